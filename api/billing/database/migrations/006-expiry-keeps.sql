-- A hold whose process died stays reserved until its cost is found, found not to exist, or given up: the router may have billed
-- the call, and room that is free before that is known could be spent twice.

-- Hands the holds whose time is over to the reconciler. Two sweepers never meet.
create or replace function ledger.expire(p_limit integer, p_at timestamptz default null) returns integer language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_holds uuid[];
begin
  v_holds := array(select id from ledger.hold where state = 'open' and expires_at <= v_at order by id limit p_limit for update skip locked);
  update ledger.hold set state = 'pending' where id = any (v_holds);
  insert into ledger.pending (hold_id, reason, since, next_attempt_at) select id, 'expired', v_at, v_at from unnest(v_holds) as id on conflict do nothing;
  return cardinality(v_holds);
end $$;
