-- A cost that can never be known is settled at an estimate, so that it counts against quota and daily limit: releasing it would
-- give away what the router has billed.

-- Every row has fulfilled the narrower check before, so the tables of all days need not be read again.
alter table ledger.usage drop constraint usage_cost_source_check;
alter table ledger.usage add constraint usage_cost_source_check
  check (cost_source in ('billed', 'router_computed', 'router_record', 'tariff', 'estimated', 'pending', 'none')) not valid;

-- What the call costs at list prices, as far as its tokens are known; null: what was reserved, which is the maximum.
alter table ledger.pending add column estimate numeric(20,12) check (estimate >= 0);

-- Records that a cost is not known, as ledger.pend does, with what it is settled at if it never is.
create function ledger.pend_at_estimate(p_hold uuid, p_reference text, p_usage jsonb, p_retry_ms bigint, p_at timestamptz, p_estimate numeric)
returns jsonb language plpgsql as $$
declare
  v_answer jsonb := ledger.pend(p_hold, p_reference, p_usage, p_retry_ms, p_at);
begin
  update ledger.pending set estimate = p_estimate where hold_id = p_hold and p_estimate is not null;
  return v_answer;
end $$;

-- As before, with what is reserved and the estimate.
create or replace function ledger.claim_pending(p_limit integer, p_lease_ms bigint, p_at timestamptz default null) returns jsonb language sql as $$
  with due as (
    select hold_id from ledger.pending where abandoned_at is null and next_attempt_at <= coalesce(p_at, clock_timestamp())
    order by next_attempt_at limit p_limit for update skip locked
  ), taken as (
    update ledger.pending p set attempts = attempts + 1, next_attempt_at = coalesce(p_at, clock_timestamp()) + p_lease_ms * interval '1 millisecond'
    from due where p.hold_id = due.hold_id returning p.*
  )
  select coalesce(jsonb_agg(jsonb_build_object('hold', t.hold_id, 'reason', t.reason, 'reference', t.reference, 'attempts', t.attempts,
    'since', t.since, 'called_at', h.created_at, 'held', h.amount::text, 'estimate', coalesce(t.estimate, h.amount)::text) order by t.since, t.hold_id), '[]')
  from taken t join ledger.hold h on h.id = t.hold_id
$$;

-- The cost of a run with a call at an estimate is as unknown as before: an estimate is no measurement.
create or replace function bench.cost_of(p_run uuid, out cost numeric, out cost_state text, out calls integer, out tokens_in bigint, out tokens_out bigint)
language sql stable as $$
  select coalesce(sum(h.cost), 0),
    case when bool_or(h.state in ('open', 'pending', 'expired') or (h.id is null and c.outcome is null and c.at > clock_timestamp() - interval '1 hour')) then 'pending'
      when bool_or(h.state = 'abandoned' or u.cost_source = 'estimated') then 'unknown' else 'exact' end,
    count(*)::integer, sum(u.tokens_in), sum(u.tokens_out)
  from bench.call c left join ledger.hold h on h.id = c.hold left join ledger.usage u on u.at = h.created_at and u.id = c.hold::text
  where c.run = p_run
$$;
