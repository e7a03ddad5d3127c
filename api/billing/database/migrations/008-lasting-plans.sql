-- Plans that last as long as the connection: making them anew was half of what a call costs the database.

-- Every statement of these functions goes by primary key, so one plan fits all calls.
alter function ledger.hold(jsonb, timestamptz) set plan_cache_mode = force_generic_plan;
alter function ledger.settle(jsonb, timestamptz) set plan_cache_mode = force_generic_plan;
alter function ledger.void(uuid[], timestamptz) set plan_cache_mode = force_generic_plan;

-- A function in SQL is planned in every transaction that calls it, one in PL/pgSQL once.
create or replace function ledger.budget_of(p_account bigint, p_limit numeric) returns jsonb language plpgsql stable as $$
begin
  return (select jsonb_build_object('limit', p_limit::text, 'used', abs(balance)::text, 'held', held::text) from ledger.budget where account_id = p_account);
end $$;
