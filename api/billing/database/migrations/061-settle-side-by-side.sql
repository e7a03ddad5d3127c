-- Settlements of a batch without joins of arrays, and proof of a caller that takes one look.

-- Daily accounts with a model call that cost no more than was reserved for it: their calls need not wait for one another. What is
-- not here may be proven all the same (waits_for_proof). Kept for two days.
create table ledger.proven_payer (
  account_id bigint primary key,
  at timestamptz not null
);

-- As before (060-waiting-holds.sql), but only calls of callers that are not proven, or near their limit, are judged one by one.
create or replace function ledger.reserve(p_requests jsonb, p_at timestamptz default null) returns jsonb language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_day date := (v_at at time zone 'utc')::date;
  v_day_ends_at timestamptz := (v_day + 1)::timestamp at time zone 'utc';
  v_stops text[];
  v_sent jsonb := p_requests;
  v_given jsonb := '[]';
  v_n integer;
  -- The refusal of each group that is refused, by its name.
  v_refusals jsonb;
  -- Holds that were made now, or waited until now, and are not judged yet; those that are taken back, and those that wait.
  v_made uuid[];
  v_undone uuid[] := '{}';
  v_waiting uuid[] := '{}';
  -- The rows of all of those, and their ids in the same order.
  v_holds ledger.hold[];
  v_ids uuid[];
  -- Other calls in flight: how many, the caller of each that has one of those rows, and the models of those rows.
  v_all integer;
  v_callers bigint[];
  v_models text[];
  -- Callers with a call whose cost is not known yet, and models that are proven.
  v_pending bigint[];
  -- Callers whose calls are judged one by one; whether more calls are in flight than may be; whether a model is not proven.
  v_busy bigint[];
  v_is_full boolean;
  v_is_unproven boolean;
  v_caller_limit integer;
  v_limit integer;
  -- Whether no request is stopped, waits or has a group.
  v_is_plain boolean;
  v_proven text[];
  v_request jsonb;
  v_answer jsonb;
  v_refused text;
  h ledger.hold;
  v_model text;
  v_calls integer;
begin
  if not jsonb_path_exists(p_requests, '$[*] ? (exists(@.flight) || exists(@.group) || exists(@.waits))') then return ledger.hold_in_networks(p_requests, p_at); end if;

  if exists (select from ledger.overrun where day = v_day and lifted_at is null) then
    select array_agg(case
        when q.flight is null then null
        when exists (select from ledger.overrun o where o.day = v_day and o.lifted_at is null
          and o.payer_kind = q.debit ->> 'kind' and o.payer = q.debit ->> 'owner') then 'stopped_caller'
        when exists (select from ledger.overrun o where o.day = v_day and o.lifted_at is null and o.model = q.usage ->> 'model') then 'stopped_model'
      end order by q.n) into v_stops
      from rows from (jsonb_to_recordset(p_requests) as (debit jsonb, usage jsonb, flight jsonb)) with ordinality as q (debit, usage, flight, n);
    select coalesce(jsonb_agg(q.value order by q.n) filter (where v_stops[q.n] is null), '[]') into v_sent
      from jsonb_array_elements(p_requests) with ordinality as q (value, n);
  end if;
  if jsonb_array_length(v_sent) > 0 then v_given := ledger.hold_in_networks(v_sent, p_at); end if;

  if jsonb_path_exists(v_sent, '$[*].group') then v_refusals := ledger.refuse_groups(v_sent, v_given); end if;

  -- The budgets of the platform are locked by now, so no other replica reserves while calls are counted. Most calls need no further
  -- look: their model is proven, their caller has no other hold or is proven and below its limit, and all calls in flight, those on
  -- keys of callers included, are fewer than may be made.
  select array_agg(model) filter (where is_proven), coalesce(bool_or(not is_proven), false), min(caller), min("all")
    into v_proven, v_is_unproven, v_caller_limit, v_limit
    from (select q.model, min(q.caller) as caller, min(q."all") as "all",
        exists (select from ledger.proven_model p where p.model = q.model and p.at > v_at - interval '1 day') as is_proven
      from (select value -> 'usage' ->> 'model' as model, (value -> 'flight' ->> 'caller')::integer as caller, (value -> 'flight' ->> 'all')::integer as "all"
        from jsonb_array_elements(v_sent) where value ? 'flight') q group by q.model) by_model;
  select coalesce(sum(calls) > v_limit, false), coalesce(array_agg(debit) filter (where holds > 1 and (calls > v_caller_limit
        or not exists (select from ledger.proven_payer p where p.account_id = debit))), '{}')
    into v_is_full, v_busy
    from (select debit, count(*) as holds, count(*) filter (where state = 'open') as calls from ledger.hold
      where state in ('open', 'pending') and not waits group by debit) by_caller;
  v_is_plain := v_stops is null and not jsonb_path_exists(v_sent, '$[*] ? (exists(@.group) || exists(@.waits))');
  if v_is_plain and not v_is_full and not v_is_unproven and v_busy = '{}' and not jsonb_path_exists(v_given, '$[*] ? (@.outcome == "replayed")')
    then return v_given; end if;
  select array_agg(x), array_agg(x.id) into v_holds, v_ids
    from jsonb_array_elements(v_sent) with ordinality as q (value, n)
    join ledger.hold x on x.id = (q.value ->> 'id')::uuid
    where q.value ? 'flight' and case when v_given -> (q.n::integer - 1) ->> 'outcome' = 'held'
      then v_is_full or x.debit = any (v_busy) or (x.usage ->> 'model' = any (v_proven)) is not true
      else x.waits and x.state = 'open' end;
  if v_ids is null and v_is_plain then return v_given; end if;
  v_made := v_ids;
  if v_made is not null then
    with made as materialized (
      select array_agg(debit) as debits, array_agg(credit) as credits, array_agg(usage ->> 'model') as models from unnest(v_holds)
    ), other as (
      select x.state, x.debit, x.usage ->> 'model' as model from ledger.hold x, made
      where x.state in ('open', 'pending') and not x.waits and x.credit = any (made.credits) and x.id <> all (v_ids)
    )
    select count(*) filter (where o.state = 'open'),
        coalesce(array_agg(o.debit) filter (where o.state = 'open' and o.debit = any (made.debits)), '{}'),
        coalesce(array_agg(distinct o.model) filter (where o.state = 'open' and o.model = any (made.models)), '{}'),
        coalesce(array_agg(o.debit) filter (where o.state = 'pending' and o.debit = any (made.debits)), '{}'),
        coalesce((select array_agg(p.model) from ledger.proven_model p, made where p.model = any (made.models) and p.at > v_at - interval '1 day'), '{}')
      into v_all, v_callers, v_models, v_pending, v_proven
      from made left join other o on true;
  end if;

  -- Only answers that may have to change.
  for v_n, v_request in
    select n, value from jsonb_array_elements(v_sent) with ordinality as q (value, n)
    where value ? 'group' or value ? 'waits' or (value ->> 'id')::uuid = any (v_ids) order by n
  loop
    v_answer := v_given -> (v_n - 1);
    if v_refusals ? (v_request ->> 'group') then
      if v_answer ->> 'outcome' = 'held' then v_undone := v_undone || (v_request ->> 'id')::uuid; end if;
      v_given := jsonb_set(v_given, array[(v_n - 1)::text], v_refusals -> (v_request ->> 'group'));
    elsif v_request ? 'waits' and v_answer ->> 'outcome' = 'held' then
      v_waiting := v_waiting || (v_request ->> 'id')::uuid;
    elsif v_request ? 'flight' and (v_request ->> 'id')::uuid = any (v_made) then
      h := v_holds[array_position(v_ids, (v_request ->> 'id')::uuid)];
      v_made := array_remove(v_made, h.id);
      v_model := h.usage ->> 'model';
      v_calls := cardinality(array_positions(v_callers, h.debit));
      v_refused := case
        when v_calls >= (v_request -> 'flight' ->> 'caller')::integer then 'in_flight_caller'
        when v_all >= (v_request -> 'flight' ->> 'all')::integer then 'in_flight_all'
        when v_model = any (v_models) and v_model <> all (v_proven) then 'in_flight_model'
        when (v_calls > 0 or h.debit = any (v_pending)) and ledger.waits_for_proof(h, v_made || v_undone, v_at) then 'in_flight_caller'
      end;
      if v_refused is null then
        v_all := v_all + 1;
        v_callers := v_callers || h.debit;
        if v_model is not null then v_models := v_models || v_model; end if;
        if h.waits then
          update ledger.hold set waits = false, expires_at = v_at + (v_request ->> 'ttl_ms')::bigint * interval '1 millisecond' where id = h.id;
        end if;
      else
        -- A hold that waits is kept, for another try.
        if not h.waits then v_undone := v_undone || h.id; end if;
        v_given := jsonb_set(v_given, array[(v_n - 1)::text],
          v_answer || jsonb_build_object('outcome', 'refused', 'refused_by', v_refused, 'state', null, 'expires_at', null));
      end if;
    end if;
  end loop;

  if cardinality(v_undone) > 0 then
    perform ledger.void(v_undone, p_at);
    delete from ledger.hold where id = any (v_undone) and state = 'voided';
  end if;
  if cardinality(v_waiting) > 0 then update ledger.hold set waits = true where id = any (v_waiting); end if;
  if v_stops is null then return v_given; end if;
  return (select jsonb_agg(case when stop is null then v_given -> (sent::integer - 1) else jsonb_build_object('outcome', 'refused', 'refused_by', stop,
      'state', null, 'expires_at', null, 'day_ends_at', v_day_ends_at, 'debit', null, 'credit', null) end order by n)
    from (select stop, n, count(*) filter (where stop is null) over (order by n) as sent from unnest(v_stops) with ordinality as s (stop, n)) s);
end $$;


create or replace function ledger.waits_for_proof(p_hold ledger.hold, p_without uuid[], p_at timestamptz) returns boolean language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off as $$
begin
  if exists (select from ledger.proven_payer where account_id = p_hold.debit) then return false; end if;
  -- What was settled on earlier days counts for an app too.
  if exists (
    select from ledger.account now_paid
    join ledger.account paid on (paid.kind, paid.owner) = (now_paid.kind, now_paid.owner)
      and paid.day between now_paid.day - case now_paid.kind when 'app' then 7 else 0 end and now_paid.day
    join ledger.entry e on e.account_id = paid.id
    join ledger.hold s on s.transaction_id = e.transaction_id
    join ledger.account owed on owed.id = s.credit
    where now_paid.id = p_hold.debit and owed.kind = 'platform' and s.debit = paid.id and s.cost <= s.amount
  ) then return false; end if;
  return exists (
    select from ledger.hold x
    where x.state in ('open', 'pending') and not x.waits and x.debit = p_hold.debit and x.credit = p_hold.credit and x.id <> p_hold.id and x.id <> all (p_without)
      and (x.state = 'open' or exists (select from ledger.pending p where p.hold_id = x.id and p.since > p_at - interval '6 seconds'))
      and (x.usage ->> 'model' is null or x.usage ->> 'model' = p_hold.usage ->> 'model' or x.usage ->> 'request' is distinct from p_hold.usage ->> 'request')
  );
end $$;

-- As before (030-batches-at-once.sql): the first cost of a hold stands, whatever its state. Budgets are locked last, since reservations
-- wait for them. A hold that is committed after the locks are taken is unknown, as it would have been a moment before. What belongs
-- together is kept side by side: arrays that are joined are read once for each of their elements. This also records what a model call
-- proves, and calls that cost more than was reserved (031-calls-in-flight.sql); nothing else settles a hold.
create or replace function ledger.settle(p_requests jsonb, p_at timestamptz default null) returns jsonb language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_requests ledger.settle_request[];
  v_ids uuid[];
  v_holds ledger.hold[];
  -- Side by side, in the order of their ids: holds that are not settled yet, the first request of each, and its transaction.
  v_unsettled ledger.hold[];
  v_settling ledger.settle_request[];
  v_transactions bigint[];
  -- Whether one of them was more than open.
  v_late boolean;
  -- Accounts of the platform that are owed for model calls; what these calls prove, and whether one cost more than was reserved.
  v_platform bigint[];
  v_models text[];
  v_payers bigint[];
  v_is_over boolean;
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
  select array_agg(x.id), array_agg(x order by x.id) filter (where x.state <> 'settled'), bool_or(x.state <> 'open') filter (where x.state <> 'settled')
    into v_ids, v_unsettled, v_late from unnest(v_holds) x;

  if v_unsettled is not null then
    v_settling := array(
      select first from (select distinct on (q.hold) q.hold, q::ledger.settle_request as first
        from unnest(v_requests) q where q.hold = any (array(select x.id from unnest(v_unsettled) x)) order by q.hold, q.n) s
      order by s.hold);
    with booked as (
      insert into ledger.transaction (reference, kind, at) select 'settle:' || s.hold, 'settle', v_at from unnest(v_settling) s order by s.n
      returning id, reference
    ) select array_agg(id order by reference collate "C") into v_transactions from booked;
    with settling as materialized (
      select s.transaction_id as id, s.hold, s.cost, s.source, s.lines, s.debit, s.credit, s.created_at, coalesce(s.usage, s.known_usage) as usage,
        case when s.state in ('open', 'pending') then s.amount else 0 end as freed
      from rows from (unnest(v_settling), unnest(v_transactions), unnest(v_unsettled)) as s (n, hold, cost, source, usage, lines, transaction_id,
        id, debit, credit, amount, state, created_at, expires_at, closed_at, known_cost, known_transaction, known_usage)
    ), line as (
      select s.id, l.* from settling s cross join lateral (
        select 1, s.debit, s.cost, s.freed
        union all select 2, s.credit, -s.cost, s.freed
        union all select 2 + g.n, ledger.account_id(g.kind, g.owner, ledger.account_day(g.daily, s.created_at)), ledger.amount(g.amount), 0
          from rows from (jsonb_to_recordset(s.lines) as (kind text, owner text, daily boolean, amount text)) with ordinality as g (kind, owner, daily, amount, n)
      ) l (line, account, amount, freed)
    ), entered as (
      insert into ledger.entry (transaction_id, line, account_id, amount) select id, line, account, amount from line order by id, line
    ), closed as (
      update ledger.hold x set state = 'settled', closed_at = v_at, cost = s.cost, transaction_id = s.id, usage = null
        from settling s where x.id = s.hold
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

    v_platform := array(select id from ledger.account where kind = 'platform' and id = any (array(select distinct x.credit from unnest(v_unsettled) x)));
    if v_platform <> '{}' then
      select array_agg(distinct s.known_usage ->> 'model') filter (where s.cost <= s.amount),
          array_agg(distinct s.debit) filter (where s.cost <= s.amount and not exists (select from ledger.proven_payer p where p.account_id = s.debit)),
          bool_or(s.cost > s.amount)
        into v_models, v_payers, v_is_over
        from rows from (unnest(v_settling), unnest(v_unsettled)) as s (n, hold, cost, source, usage, lines,
          id, debit, credit, amount, state, created_at, expires_at, closed_at, known_cost, known_transaction, known_usage)
        where s.credit = any (v_platform);
      insert into ledger.proven_model as p (model, at) select m.model, v_at from unnest(v_models) as m (model)
        where m.model is not null and not exists (select from ledger.proven_model k where k.model = m.model and k.at > v_at - interval '1 hour') order by m.model
        on conflict (model) do update set at = excluded.at where p.at < excluded.at;
      if v_payers is not null then
        insert into ledger.proven_payer (account_id, at) select payer, v_at from unnest(v_payers) as p (payer) order by payer on conflict do nothing;
      end if;
      if v_is_over then
        insert into ledger.overrun (hold_id, day, called_at, settled_at, payer_kind, payer, model, held, cost)
          select s.hold, (v_at at time zone 'utc')::date, s.created_at, v_at, payer.kind, payer.owner, s.known_usage ->> 'model', s.amount, s.cost
          from rows from (unnest(v_settling), unnest(v_unsettled)) as s (n, hold, cost, source, usage, lines,
            id, debit, credit, amount, state, created_at, expires_at, closed_at, known_cost, known_transaction, known_usage)
          join ledger.account payer on payer.id = s.debit
          where s.cost > s.amount and s.credit = any (v_platform)
          on conflict do nothing;
      end if;
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

drop trigger hold_cost on ledger.hold;
drop function ledger.note_cost();
