-- A hold knows the use that it is for. A process may die between the call of a model and its settlement: the reconciler
-- then finds what the call cost, and the use is recorded with it.

alter table ledger.hold add column usage jsonb;
alter type ledger.hold_request add attribute usage jsonb;

create or replace function ledger.resolve_holds(p_requests jsonb, p_at timestamptz) returns setof ledger.hold_request language plpgsql as $$
begin
  insert into ledger.account (kind, owner, day)
    select distinct side.kind, side.owner, ledger.account_day(side.daily, p_at)
    from jsonb_to_recordset(p_requests) as q (debit jsonb, credit jsonb)
    cross join lateral jsonb_to_recordset(jsonb_build_array(q.debit, q.credit)) as side (kind text, owner text, daily boolean)
    where not exists (select from ledger.account a where a.kind = side.kind and a.owner = side.owner and a.day = ledger.account_day(side.daily, p_at))
    order by 1, 2, 3
    on conflict do nothing;
  return query
    select q.n, q.id, ledger.amount(q.amount), q.ttl_ms,
      d.id, case when q.debit ->> 'limit' is not null then ledger.amount(q.debit ->> 'limit') end,
      c.id, case when q.credit ->> 'limit' is not null then ledger.amount(q.credit ->> 'limit') end,
      q.usage
    from rows from (jsonb_to_recordset(p_requests) as (id uuid, amount text, ttl_ms bigint, debit jsonb, credit jsonb, usage jsonb)) with ordinality
      as q (id, amount, ttl_ms, debit, credit, usage, n)
    join ledger.account d on d.kind = q.debit ->> 'kind' and d.owner = q.debit ->> 'owner' and d.day = ledger.account_day((q.debit ->> 'daily')::boolean, p_at)
    join ledger.account c on c.kind = q.credit ->> 'kind' and c.owner = q.credit ->> 'owner' and c.day = ledger.account_day((q.credit ->> 'daily')::boolean, p_at)
    order by q.n;
end $$;

create or replace function ledger.hold_one(q ledger.hold_request, p_at timestamptz) returns jsonb language plpgsql as $$
declare
  v_known ledger.hold;
  v_refused text;
  v_outcome text;
begin
  select * into v_known from ledger.hold where id = q.id;
  if found then
    -- Sent again after midnight, the request resolves to another day's accounts: the same kinds and owners are enough.
    select case when v_known.amount = q.amount and count(*) = 2 then 'replayed' else 'conflict' end into v_outcome
      from ledger.account was join ledger.account is_now on (was.kind, was.owner) = (is_now.kind, is_now.owner)
      where (was.id, is_now.id) in ((v_known.debit, q.debit), (v_known.credit, q.credit));
  else
    select case when b.account_id = q.debit then 'debit' else 'credit' end into v_refused
      from ledger.budget b
      where (b.account_id = q.debit and abs(b.balance) + b.held + q.amount > q.debit_limit)
         or (b.account_id = q.credit and abs(b.balance) + b.held + q.amount > q.credit_limit)
      order by b.account_id = q.debit desc limit 1;
    v_outcome := case when v_refused is null then 'held' else 'refused' end;
  end if;
  if v_outcome = 'held' then
    insert into ledger.hold (id, debit, credit, amount, created_at, expires_at, usage)
      values (q.id, q.debit, q.credit, q.amount, p_at, p_at + q.ttl_ms * interval '1 millisecond', q.usage) returning * into v_known;
    update ledger.budget set held = held + q.amount where account_id in (q.debit, q.credit);
  end if;
  return jsonb_build_object(
    'outcome', v_outcome, 'refused_by', v_refused, 'state', v_known.state, 'expires_at', v_known.expires_at,
    'day_ends_at', (((p_at at time zone 'utc')::date + 1)::timestamp at time zone 'utc'),
    'debit', ledger.budget_of(q.debit, q.debit_limit), 'credit', ledger.budget_of(q.credit, q.credit_limit));
end $$;

create or replace function ledger.settle_one(p_hold uuid, p_cost numeric, p_source text, p_usage jsonb, p_lines jsonb, p_at timestamptz) returns jsonb language plpgsql as $$
declare
  h ledger.hold;
  v_state text;
  v_accounts bigint[];
  v_amounts numeric[];
  v_transaction bigint;
  v_usage jsonb;
begin
  select * into h from ledger.hold where id = p_hold for update skip locked;
  if not found then return jsonb_build_object('outcome', 'unknown'); end if;
  v_state := h.state;
  v_usage := coalesce(p_usage, h.usage);
  if v_state <> 'settled' then
    v_accounts := array[h.debit, h.credit];
    v_amounts := array[p_cost, -p_cost];
    if p_lines is not null then
      select v_accounts || array_agg(ledger.account_id(l.kind, l.owner, ledger.account_day(l.daily, h.created_at)) order by n), v_amounts || array_agg(ledger.amount(l.amount) order by n)
        into v_accounts, v_amounts
        from rows from (jsonb_to_recordset(p_lines) as (kind text, owner text, daily boolean, amount text)) with ordinality as l (kind, owner, daily, amount, n);
    end if;
    v_transaction := ledger.book('settle:' || p_hold, 'settle', p_at, v_accounts, v_amounts, case when v_state in ('open', 'pending') then h.amount else 0 end);
    update ledger.hold set state = 'settled', closed_at = p_at, cost = p_cost, transaction_id = v_transaction, usage = null where id = p_hold returning * into h;
    delete from ledger.pending where hold_id = p_hold;
    if v_usage is not null then
      perform ledger.record_usage(p_hold::text, v_usage, p_cost, p_source, h.created_at);
    else
      update ledger.usage set cost = p_cost, cost_source = p_source where at = h.created_at and id = p_hold::text and cost_source = 'pending';
    end if;
  end if;
  return jsonb_build_object(
    'outcome', case when v_state = 'settled' then 'replayed' else 'settled' end, 'was', v_state, 'cost', h.cost::text, 'held', h.amount::text,
    'debit', ledger.budget_of(h.debit, null));
end $$;
