-- Less work for each call. As before (060-waiting-holds.sql, 031-calls-in-flight.sql), but what a batch of requests needs is read
-- once, by the index of the holds that are reserved: without statistics of a new day the planner read all holds. A caller
-- without another call has nothing to wait for.
create or replace function ledger.reserve(p_requests jsonb, p_at timestamptz default null) returns jsonb language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_day date := (v_at at time zone 'utc')::date;
  v_day_ends_at timestamptz := (v_day + 1)::timestamp at time zone 'utc';
  v_stops text[];
  v_sent jsonb := p_requests;
  v_given jsonb := '[]';
  v_answers jsonb[] := '{}';
  v_next integer := 0;
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

  -- The budgets of the platform are locked by now, so no other replica reserves while calls are counted.
  select array_agg(x), array_agg(x.id) into v_holds, v_ids
    from jsonb_array_elements(v_sent) with ordinality as q (value, n)
    join ledger.hold x on x.id = (q.value ->> 'id')::uuid
    where q.value ? 'flight' and (v_given -> (q.n::integer - 1) ->> 'outcome' = 'held' or x.waits and x.state = 'open');
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

  for v_n in 1 .. jsonb_array_length(p_requests) loop
    v_request := p_requests -> (v_n - 1);
    if v_stops[v_n] is not null then
      v_answers := v_answers || jsonb_build_object('outcome', 'refused', 'refused_by', v_stops[v_n], 'state', null,
        'expires_at', null, 'day_ends_at', v_day_ends_at, 'debit', null, 'credit', null);
      continue;
    end if;
    v_answer := v_given -> v_next;
    v_next := v_next + 1;
    if v_refusals ? (v_request ->> 'group') then
      if v_answer ->> 'outcome' = 'held' then v_undone := v_undone || (v_request ->> 'id')::uuid; end if;
      v_answer := v_refusals -> (v_request ->> 'group');
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
        v_answer := v_answer || jsonb_build_object('outcome', 'refused', 'refused_by', v_refused, 'state', null, 'expires_at', null);
      end if;
    end if;
    v_answers := v_answers || v_answer;
  end loop;

  if cardinality(v_undone) > 0 then
    perform ledger.void(v_undone, p_at);
    delete from ledger.hold where id = any (v_undone) and state = 'voided';
  end if;
  if cardinality(v_waiting) > 0 then update ledger.hold set waits = true where id = any (v_waiting); end if;
  return to_jsonb(v_answers);
end $$;

alter function ledger.waits_for_proof(ledger.hold, uuid[], timestamptz) set enable_seqscan = off;
alter function ledger.waits_for_proof(ledger.hold, uuid[], timestamptz) set enable_hashjoin = off;
alter function ledger.waits_for_proof(ledger.hold, uuid[], timestamptz) set enable_mergejoin = off;
drop function ledger.is_proven_model(text, timestamptz);

create or replace function ledger.note_cost() returns trigger language plpgsql as $$
declare
  v_credit text;
  v_payer ledger.account;
  v_model text := old.usage ->> 'model';
begin
  -- Almost always, and so the first question.
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
