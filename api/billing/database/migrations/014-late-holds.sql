-- A reservation that is committed between the locks of a settlement and its work is not locked by it, so two could settle
-- it at once and the later one failed on its reference. It counts as unknown to whoever does not get its lock, as it
-- would have a moment before. Waiting for the lock here could deadlock, since those of budgets are held.

create or replace function ledger.settle_one(p_hold uuid, p_cost numeric, p_source text, p_usage jsonb, p_lines jsonb, p_at timestamptz) returns jsonb language plpgsql as $$
declare
  h ledger.hold;
  v_state text;
  v_accounts bigint[];
  v_amounts numeric[];
  v_transaction bigint;
begin
  select * into h from ledger.hold where id = p_hold for update skip locked;
  if not found then return jsonb_build_object('outcome', 'unknown'); end if;
  v_state := h.state;
  if v_state <> 'settled' then
    v_accounts := array[h.debit, h.credit];
    v_amounts := array[p_cost, -p_cost];
    if p_lines is not null then
      select v_accounts || array_agg(ledger.account_id(l.kind, l.owner, ledger.account_day(l.daily, h.created_at)) order by n), v_amounts || array_agg(ledger.amount(l.amount) order by n)
        into v_accounts, v_amounts
        from rows from (jsonb_to_recordset(p_lines) as (kind text, owner text, daily boolean, amount text)) with ordinality as l (kind, owner, daily, amount, n);
    end if;
    v_transaction := ledger.book('settle:' || p_hold, 'settle', p_at, v_accounts, v_amounts, case when v_state in ('open', 'pending') then h.amount else 0 end);
    update ledger.hold set state = 'settled', closed_at = p_at, cost = p_cost, transaction_id = v_transaction where id = p_hold returning * into h;
    delete from ledger.pending where hold_id = p_hold;
    if p_usage is not null then
      perform ledger.record_usage(p_hold::text, p_usage, p_cost, p_source, p_at);
    else
      update ledger.usage set cost = p_cost, cost_source = p_source where id = p_hold::text and cost_source = 'pending';
    end if;
  end if;
  return jsonb_build_object(
    'outcome', case when v_state = 'settled' then 'replayed' else 'settled' end, 'was', v_state, 'cost', h.cost::text, 'held', h.amount::text,
    'debit', ledger.budget_of(h.debit, null));
end $$;

create or replace function ledger.void(p_holds uuid[], p_at timestamptz default null) returns jsonb language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_answers jsonb := '[]';
  v_id uuid;
  h ledger.hold;
begin
  perform ledger.lock_holds(p_holds);
  foreach v_id in array p_holds loop
    select * into h from ledger.hold where id = v_id for update skip locked;
    if h.state in ('open', 'pending', 'expired') then
      perform ledger.release(h, 'voided', v_at);
      delete from ledger.pending where hold_id = v_id;
    end if;
    v_answers := v_answers || jsonb_build_object('outcome', case when h.id is null then 'unknown' when h.state in ('open', 'pending', 'expired') then 'voided' when h.state = 'voided' then 'replayed' else h.state end);
  end loop;
  return v_answers;
end $$;
alter function ledger.void(uuid[], timestamptz) set plan_cache_mode = force_generic_plan;
