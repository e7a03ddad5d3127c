-- A batch of reservations or settlements in a few statements, however many there are in it: most of the time of each was
-- statements of its own, and the budgets that all share were locked meanwhile.

-- Entries of a transaction come in one statement, so one look at its end is enough for all of them.
drop trigger entry_balanced on ledger.entry;
create or replace function ledger.check_balanced() returns trigger language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_transaction bigint;
  v_total numeric;
begin
  select transaction_id, sum(amount) into v_transaction, v_total from ledger.entry
    where transaction_id = any (array(select distinct transaction_id from added)) group by transaction_id having sum(amount) <> 0 limit 1;
  if found then
    raise exception 'transaction % does not balance: its entries sum to %', v_transaction, v_total
      using errcode = 'check_violation', constraint = 'entry_balanced';
  end if;
  return null;
end $$;
create trigger entry_balanced after insert on ledger.entry
  referencing new table as added for each statement execute function ledger.check_balanced();

drop trigger transaction_waits on ledger.transaction;
create or replace function receipts.wait() returns trigger language plpgsql as $$
begin
  insert into receipts.waiting (transaction_id) select id from added;
  return null;
end $$;
create trigger transaction_waits after insert on ledger.transaction
  referencing new table as added for each statement execute function receipts.wait();

-- Makes the accounts of requests that are not there yet.
create function ledger.open_accounts(p_requests jsonb, p_at timestamptz) returns void language plpgsql as $$
begin
  insert into ledger.account (kind, owner, day)
    select distinct side.kind, side.owner, ledger.account_day(side.daily, p_at)
    from jsonb_to_recordset(p_requests) as q (debit jsonb, credit jsonb)
    cross join lateral jsonb_to_recordset(jsonb_build_array(q.debit, q.credit)) as side (kind text, owner text, daily boolean)
    order by 1, 2, 3
    on conflict do nothing;
end $$;

-- As before: requests are decided in their order, under the locks of the budgets. What is decided is kept in arrays and
-- written once at the end. Without scans of whole tables: plans are made while tables are small, and last.
create or replace function ledger.hold(p_requests jsonb, p_at timestamptz default null) returns jsonb language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_day_ends_at timestamptz := ((v_at at time zone 'utc')::date + 1)::timestamp at time zone 'utc';
  v_requests ledger.hold_request[];
  v_ids uuid[];
  -- Of holds that are there.
  v_known uuid[];
  v_found bigint;
  v_unopened bigint[];
  -- The budgets that these requests share, side by side: account, what is used, what is held.
  v_accounts bigint[];
  v_used numeric[];
  v_held numeric[];
  -- Holds that were there before, and those that are made.
  v_holds ledger.hold[];
  v_made ledger.hold[] := '{}';
  v_answers jsonb[] := '{}';
  q ledger.hold_request;
  h ledger.hold;
  d integer;
  c integer;
  v_refused text;
  v_outcome text;
begin
  for v_try in 1 .. 3 loop
    select array_agg((g.n, g.id, ledger.amount(g.amount), g.ttl_ms, da.id, case when g.debit ->> 'limit' is not null then ledger.amount(g.debit ->> 'limit') end,
        ca.id, case when g.credit ->> 'limit' is not null then ledger.amount(g.credit ->> 'limit') end, g.usage)::ledger.hold_request order by g.n),
      array_agg(g.id), array_agg(da.id) || array_agg(ca.id), count(da.id) + count(ca.id),
      array_agg(da.id) filter (where g.debit ->> 'limit' is not null and db.account_id is null)
        || array_agg(ca.id) filter (where g.credit ->> 'limit' is not null and cb.account_id is null)
      into v_requests, v_ids, v_accounts, v_found, v_unopened
      from rows from (jsonb_to_recordset(p_requests) as (id uuid, amount text, ttl_ms bigint, debit jsonb, credit jsonb, usage jsonb)) with ordinality
        as g (id, amount, ttl_ms, debit, credit, usage, n)
      left join ledger.account da on da.kind = g.debit ->> 'kind' and da.owner = g.debit ->> 'owner' and da.day = ledger.account_day((g.debit ->> 'daily')::boolean, v_at)
      left join ledger.account ca on ca.kind = g.credit ->> 'kind' and ca.owner = g.credit ->> 'owner' and ca.day = ledger.account_day((g.credit ->> 'daily')::boolean, v_at)
      left join ledger.budget db on db.account_id = da.id
      left join ledger.budget cb on cb.account_id = ca.id;
    exit when v_found = 2 * jsonb_array_length(p_requests);
    if v_try = 3 then raise exception 'the accounts of a reservation cannot be read' using errcode = 'serialization_failure'; end if;
    perform ledger.open_accounts(p_requests, v_at);
  end loop;
  if v_unopened is not null then perform ledger.open_budgets(v_unopened); end if;
  select array_agg(b.account_id), array_agg(abs(b.balance)), array_agg(b.held) into v_accounts, v_used, v_held
    from (select * from ledger.budget where account_id = any (v_accounts) order by account_id for update) b;
  select array_agg(x), array_agg(x.id) into v_holds, v_known from ledger.hold x where x.id = any (v_ids);

  foreach q in array v_requests loop
    d := array_position(v_accounts, q.debit);
    c := array_position(v_accounts, q.credit);
    h := null;
    v_refused := null;
    if q.id = any (v_known) then
      select x.* into h from unnest(v_holds || v_made) x where x.id = q.id;
      -- Sent again after midnight, the request resolves to another day's accounts: the same kinds and owners are enough.
      select case when h.amount = q.amount and count(*) = 2 then 'replayed' else 'conflict' end into v_outcome
        from ledger.account was join ledger.account is_now on (was.kind, was.owner) = (is_now.kind, is_now.owner)
        where (was.id, is_now.id) in ((h.debit, q.debit), (h.credit, q.credit));
    elsif v_used[d] + v_held[d] + q.amount > q.debit_limit then
      v_outcome := 'refused';
      v_refused := 'debit';
    elsif v_used[c] + v_held[c] + q.amount > q.credit_limit then
      v_outcome := 'refused';
      v_refused := 'credit';
    else
      v_outcome := 'held';
      h := (q.id, q.debit, q.credit, q.amount, 'open', v_at, v_at + q.ttl_ms * interval '1 millisecond', null, null, null, q.usage);
      v_made := v_made || h;
      v_known := v_known || q.id;
      if d is not null then v_held[d] := v_held[d] + q.amount; end if;
      if c is not null then v_held[c] := v_held[c] + q.amount; end if;
    end if;
    v_answers := v_answers || jsonb_build_object(
      'outcome', v_outcome, 'refused_by', v_refused, 'state', h.state, 'expires_at', h.expires_at, 'day_ends_at', v_day_ends_at,
      'debit', case when d is not null then jsonb_build_object('limit', q.debit_limit::text, 'used', v_used[d]::text, 'held', v_held[d]::text) end,
      'credit', case when c is not null then jsonb_build_object('limit', q.credit_limit::text, 'used', v_used[c]::text, 'held', v_held[c]::text) end);
  end loop;

  if cardinality(v_made) > 0 then
    insert into ledger.hold (id, debit, credit, amount, created_at, expires_at, usage)
      select m.id, m.debit, m.credit, m.amount, m.created_at, m.expires_at, m.usage from unnest(v_made) m;
    -- Also the budget of an account without a limit, which somebody may have begun while the insert waited for him.
    update ledger.budget b set held = b.held + made.amount
      from (select side.account, sum(m.amount) as amount from unnest(v_made) m cross join lateral (values (m.debit), (m.credit)) side (account) group by 1) made
      where b.account_id = made.account;
  end if;
  return to_jsonb(v_answers);
end $$;

drop function ledger.hold_one(ledger.hold_request, timestamptz);
drop function ledger.resolve_holds(jsonb, timestamptz);

create type ledger.settle_request as (n bigint, hold uuid, cost numeric, source text, usage jsonb, lines jsonb);

-- As before: the first cost of a hold stands, whatever its state. Budgets are locked last, since reservations wait for them.
-- A hold that is committed after the locks are taken is unknown, as it would have been a moment before.
create or replace function ledger.settle(p_requests jsonb, p_at timestamptz default null) returns jsonb language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_requests ledger.settle_request[];
  v_ids uuid[];
  v_holds ledger.hold[];
  -- The first request of each hold that is not settled yet; whether one of these holds was more than open.
  v_settling ledger.settle_request[];
  v_late boolean;
  -- By account: what its balance changes by, and what is freed; then what its budget is afterwards.
  v_accounts bigint[];
  v_amounts numeric[];
  v_freed numeric[];
  v_used numeric[];
  v_held numeric[];
  v_answers jsonb[] := '{}';
  r ledger.settle_request;
  h ledger.hold;
  i integer;
  d integer;
  v_was text;
begin
  select array_agg((q.n, q.hold, ledger.amount(q.cost), q.source, q.usage, q.lines)::ledger.settle_request order by q.n), array_agg(q.hold)
    into v_requests, v_ids
    from rows from (jsonb_to_recordset(p_requests) as (hold uuid, cost text, source text, usage jsonb, lines jsonb)) with ordinality
      as q (hold, cost, source, usage, lines, n);
  v_holds := array(select x from ledger.hold x where x.id = any (v_ids) order by x.id for update);
  select array_agg(id) into v_ids from unnest(v_holds);
  select array_agg(first), bool_or(late) into v_settling, v_late from (
    select distinct on (q.hold) q::ledger.settle_request as first, x.state <> 'open' as late
    from unnest(v_requests) q join unnest(v_holds) x on x.id = q.hold where x.state <> 'settled' order by q.hold, q.n) s;

  if v_settling is not null then
    with settling as (
      select s.n, s.hold, 'settle:' || s.hold as reference, s.cost, s.source, s.lines, x.debit, x.credit, x.created_at, coalesce(s.usage, x.usage) as usage,
        case when x.state in ('open', 'pending') then x.amount else 0 end as freed
      from unnest(v_settling) s join unnest(v_holds) x on x.id = s.hold
    ), booked as (
      insert into ledger.transaction (reference, kind, at) select reference, 'settle', v_at from settling order by n
      returning id, reference
    ), line as (
      select b.id, l.* from settling s join booked b using (reference) cross join lateral (
        select 1, s.debit, s.cost, s.freed
        union all select 2, s.credit, -s.cost, s.freed
        union all select 2 + g.n, ledger.account_id(g.kind, g.owner, ledger.account_day(g.daily, s.created_at)), ledger.amount(g.amount), 0
          from rows from (jsonb_to_recordset(s.lines) as (kind text, owner text, daily boolean, amount text)) with ordinality as g (kind, owner, daily, amount, n)
      ) l (line, account, amount, freed)
    ), entered as (
      insert into ledger.entry (transaction_id, line, account_id, amount) select id, line, account, amount from line order by id, line
    ), closed as (
      update ledger.hold x set state = 'settled', closed_at = v_at, cost = s.cost, transaction_id = b.id, usage = null
        from settling s join booked b using (reference) where x.id = s.hold
    ), used as (
      insert into ledger.usage (id, kind, at, caller, app, model, tool, tokens_in, tokens_out, latency_ms, cost, cost_source, price_version, request)
        select hold::text, usage ->> 'kind', created_at, usage ->> 'caller', usage ->> 'app', usage ->> 'model', usage ->> 'tool',
          (usage ->> 'tokens_in')::integer, (usage ->> 'tokens_out')::integer, (usage ->> 'latency_ms')::integer, cost, source,
          usage ->> 'price_version', left(usage ->> 'request', 64)
        from settling where usage is not null
        on conflict (at, id) do nothing
    )
    select array_agg(account), array_agg(amount), array_agg(freed) into v_accounts, v_amounts, v_freed
      from (select account, sum(amount) as amount, sum(freed) as freed from line group by account) summed;
    if v_late then
      update ledger.usage u set cost = s.cost, cost_source = s.source,
          tokens_in = coalesce((s.usage ->> 'tokens_in')::integer, u.tokens_in), tokens_out = coalesce((s.usage ->> 'tokens_out')::integer, u.tokens_out)
        from unnest(v_settling) s join unnest(v_holds) x on x.id = s.hold
        where u.at = x.created_at and u.id = s.hold::text and u.cost_source = 'pending';
      delete from ledger.pending where hold_id = any (v_ids);
    end if;
    perform 1 from ledger.budget where account_id = any (v_accounts) order by account_id for update;
    with after as (
      update ledger.budget set
          balance = balance + v_amounts[array_position(v_accounts, account_id)], held = held - v_freed[array_position(v_accounts, account_id)]
        where account_id = any (v_accounts) returning *
    ) select array_agg(account_id), array_agg(abs(balance)), array_agg(held) into v_accounts, v_used, v_held from after;
  end if;

  foreach r in array v_requests loop
    i := array_position(v_ids, r.hold);
    if i is null then
      v_answers := v_answers || jsonb_build_object('outcome', 'unknown');
      continue;
    end if;
    h := v_holds[i];
    v_was := h.state;
    if v_was <> 'settled' then
      h.state := 'settled';
      h.cost := r.cost;
      v_holds[i] := h;
    end if;
    d := array_position(v_accounts, h.debit);
    v_answers := v_answers || jsonb_build_object(
      'outcome', case when v_was = 'settled' then 'replayed' else 'settled' end, 'was', v_was, 'cost', h.cost::text, 'held', h.amount::text,
      'debit', case when d is null then ledger.budget_of(h.debit, null) else jsonb_build_object('limit', null, 'used', v_used[d]::text, 'held', v_held[d]::text) end);
  end loop;
  return to_jsonb(v_answers);
end $$;
drop function ledger.settle_one(uuid, numeric, text, jsonb, jsonb, timestamptz);
