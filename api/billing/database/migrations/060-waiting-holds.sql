-- A request to several models reserves what all of them can cost before the first is called, wholly or not at all. Until a call
-- of it is made, its hold waits: its money is reserved, and it does not count as a call in flight.
alter table ledger.hold add column waits boolean not null default false;

-- As before (031-calls-in-flight.sql), and: requests with the same `group` are reserved together, or all of them are refused. A
-- request with `waits` makes a hold that waits. Sent again with `flight`, when its call is to be made, the request is judged as
-- any other call is: the hold no longer waits then, or the answer is refused and it waits for another try. Holds that are reserved
-- are read by their index: without statistics of a new day the planner would read all holds. It may not build a bitmap of them
-- either, since only a plain index scan marks the entries of settled holds as dead, so that later scans skip them.
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
  -- Callers with more than one hold; whether more calls are in flight than may be.
  v_busy bigint[];
  v_is_full boolean;
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
  -- look: the caller has no other hold, the model is proven, and all calls in flight, those on keys of callers included, are fewer than
  -- may be made.
  select sum(calls), coalesce(array_agg(debit) filter (where holds > 1), '{}') into v_all, v_busy
    from (select debit, count(*) as holds, count(*) filter (where state = 'open') as calls from ledger.hold
      where state in ('open', 'pending') and not waits group by debit) by_caller;
  select coalesce(array_agg(m.model) filter (where p.at > v_at - interval '1 day'), '{}'), coalesce(min(m."all") < v_all, false) into v_proven, v_is_full
    from (select value -> 'usage' ->> 'model' as model, min((value -> 'flight' ->> 'all')::integer) as "all"
      from jsonb_array_elements(v_sent) where value ? 'flight' group by 1) m left join ledger.proven_model p on p.model = m.model;
  select array_agg(x), array_agg(x.id) into v_holds, v_ids
    from jsonb_array_elements(v_sent) with ordinality as q (value, n)
    join ledger.hold x on x.id = (q.value ->> 'id')::uuid
    where q.value ? 'flight' and case when v_given -> (q.n::integer - 1) ->> 'outcome' = 'held'
      then v_is_full or x.debit = any (v_busy) or (x.usage ->> 'model' = any (v_proven)) is not true
      else x.waits and x.state = 'open' end;
  if v_ids is null and v_stops is null and not jsonb_path_exists(v_sent, '$[*] ? (exists(@.group) || exists(@.waits))') then return v_given; end if;
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

create function ledger.without_held(p_budget jsonb, p_amount numeric) returns jsonb language sql immutable as $$
  select case when p_budget ->> 'held' is null or p_amount is null then p_budget
    else p_budget || jsonb_build_object('held', ((p_budget ->> 'held')::numeric - p_amount)::text) end
$$;

-- The refusal of each group of which a request is refused, by the group's name: without what the group itself has reserved.
create function ledger.refuse_groups(p_requests jsonb, p_answers jsonb) returns jsonb language sql stable as $$
  with member as (
    select q.value as request, q.n, q.value ->> 'group' as name, p_answers -> (q.n::integer - 1) as answer
    from jsonb_array_elements(p_requests) with ordinality as q (value, n) where q.value ? 'group'
  ), refused as (
    select distinct on (name) * from member where answer ->> 'outcome' = 'refused' order by name, n
  )
  select jsonb_object_agg(r.name, case when r.answer ->> 'refused_by' in ('debit', 'credit') then r.answer || jsonb_build_object(
      'debit', ledger.without_held(r.answer -> 'debit', own.debit), 'credit', ledger.without_held(r.answer -> 'credit', own.credit)) else r.answer end)
  from refused r cross join lateral (
    select sum(ledger.amount(m.request ->> 'amount')) filter (where m.request -> 'debit' = r.request -> 'debit') as debit,
      sum(ledger.amount(m.request ->> 'amount')) filter (where m.request -> 'credit' = r.request -> 'credit') as credit
    from member m where m.name = r.name and m.n < r.n and m.answer ->> 'outcome' = 'held'
  ) own
$$;

create or replace function ledger.waits_for_proof(p_hold ledger.hold, p_without uuid[], p_at timestamptz) returns boolean language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off as $$
begin
  -- A caller with several calls has almost always been billed for one, and that takes one look.
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

-- As before, but a hold that waits is given back: its call was never made, so there is no cost to look up.
create or replace function ledger.expire(p_limit integer, p_at timestamptz default null) returns integer language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_waiting uuid[];
  v_holds uuid[];
begin
  -- First, since this locks the budgets.
  v_waiting := array(select id from ledger.hold where state = 'open' and expires_at <= v_at and waits order by id limit p_limit);
  perform ledger.void(v_waiting, v_at);
  v_holds := array(select id from ledger.hold where state = 'open' and expires_at <= v_at and not waits order by id limit p_limit for update skip locked);
  update ledger.hold set state = 'pending' where id = any (v_holds);
  insert into ledger.pending (hold_id, reason, since, next_attempt_at) select id, 'expired', v_at, v_at from unnest(v_holds) as id on conflict do nothing;
  return cardinality(v_waiting) + cardinality(v_holds);
end $$;

drop function ledger.is_proven_model(text, timestamptz);

-- As before (031-calls-in-flight.sql), with the question first that ends almost every call.
create or replace function ledger.note_cost() returns trigger language plpgsql as $$
declare
  v_credit text;
  v_payer ledger.account;
  v_model text := old.usage ->> 'model';
begin
  if new.cost <= new.amount and (v_model is null or exists (
    select from ledger.proven_model where model = v_model and at > new.closed_at - interval '1 hour'
  )) then return null; end if;
  select kind into v_credit from ledger.account where id = new.credit;
  if v_credit <> 'platform' then return null; end if;
  if new.cost > new.amount then
    select * into v_payer from ledger.account where id = new.debit;
    insert into ledger.overrun (hold_id, day, called_at, settled_at, payer_kind, payer, model, held, cost)
      values (new.id, (new.closed_at at time zone 'utc')::date, new.created_at, new.closed_at, v_payer.kind, v_payer.owner, v_model, new.amount, new.cost)
      on conflict do nothing;
  else
    insert into ledger.proven_model as p (model, at) values (v_model, new.closed_at)
      on conflict (model) do update set at = excluded.at where p.at < excluded.at;
  end if;
  return null;
end $$;
