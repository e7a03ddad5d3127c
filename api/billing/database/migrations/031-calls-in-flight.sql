-- Limits of model calls that the platform pays, beside those of money: what a call can cost at most is computed from list
-- prices, and a router may bill more. So few calls are made at a time, and a cost above its hold stops who and what caused it.

-- Calls that cost more than was reserved for them. One that is not lifted stops its caller and its model until the day is over.
create table ledger.overrun (
  hold_id uuid primary key,
  -- UTC day on which it was settled, when the call was reserved, and when it was settled.
  day date not null,
  called_at timestamptz not null,
  settled_at timestamptz not null,
  payer_kind text not null,
  payer text not null,
  model text,
  held numeric(20,12) not null,
  cost numeric(20,12) not null check (cost > held),
  lifted_at timestamptz
);
create index overrun_day on ledger.overrun (day);
create index overrun_called on ledger.overrun (called_at);

-- Models with a call that cost no more than was reserved, at least once an hour: until then, one call is made at a time.
create table ledger.proven_model (
  model text primary key,
  at timestamptz not null
);

-- On the hold itself, so that no way to settle one can miss it: an answer, the reconciler, a journal, an estimate.
create function ledger.note_cost() returns trigger language plpgsql as $$
declare
  v_credit text;
  v_payer ledger.account;
  v_model text := old.usage ->> 'model';
begin
  select kind into v_credit from ledger.account where id = new.credit;
  if v_credit <> 'platform' then return null; end if;
  if new.cost > new.amount then
    select * into v_payer from ledger.account where id = new.debit;
    insert into ledger.overrun (hold_id, day, called_at, settled_at, payer_kind, payer, model, held, cost)
      values (new.id, (new.closed_at at time zone 'utc')::date, new.created_at, new.closed_at, v_payer.kind, v_payer.owner, v_model, new.amount, new.cost)
      on conflict do nothing;
  elsif v_model is not null and not exists (
    select from ledger.proven_model where model = v_model and at > new.closed_at - interval '1 hour'
  ) then
    insert into ledger.proven_model as p (model, at) values (v_model, new.closed_at)
      on conflict (model) do update set at = excluded.at where p.at < excluded.at;
  end if;
  return null;
end $$;
create trigger hold_cost after update of state on ledger.hold
  for each row when (new.state = 'settled' and old.state <> 'settled') execute function ledger.note_cost();

-- Reserves as ledger.hold_in_networks does (042-network-quota.sql). Requests with `flight` are model calls that the platform pays, and are also refused
-- (refused_by) when their caller or their model is stopped for the day (stopped_caller, stopped_model), or when too many calls
-- are in flight: of the caller, of all, or of a model or caller of which no call has been settled yet within what was reserved
-- for it (in_flight_caller, in_flight_all, in_flight_model). flight: {"caller": 8, "all": 256}.
create function ledger.reserve(p_requests jsonb, p_at timestamptz default null) returns jsonb language plpgsql
set plan_cache_mode = force_generic_plan as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_day date := (v_at at time zone 'utc')::date;
  v_day_ends_at timestamptz := (v_day + 1)::timestamp at time zone 'utc';
  v_stops text[];
  v_sent jsonb := p_requests;
  v_given jsonb := '[]';
  v_answers jsonb[] := '{}';
  v_next integer := 0;
  -- Holds that were made now and are not judged yet, and those that are taken back.
  v_made uuid[];
  v_undone uuid[] := '{}';
  -- Calls in flight beside them: all, by caller, by model.
  v_all integer;
  v_debits bigint[];
  v_debit_calls integer[];
  v_models text[];
  v_model_calls integer[];
  v_request jsonb;
  v_answer jsonb;
  v_refused text;
  h ledger.hold;
  d integer;
  m integer;
begin
  if not jsonb_path_exists(p_requests, '$[*].flight') then return ledger.hold_in_networks(p_requests, p_at); end if;

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

  -- The budgets of the platform are locked by now, so no other replica reserves while calls are counted.
  select array_agg((q.value ->> 'id')::uuid) into v_made
    from jsonb_array_elements(v_sent) with ordinality as q (value, n)
    where q.value ? 'flight' and v_given -> (q.n::integer - 1) ->> 'outcome' = 'held';
  if v_made is not null then
    with made as (
      select debit, credit, usage ->> 'model' as model from ledger.hold where id = any (v_made)
    ), flying as (
      select x.debit, x.usage ->> 'model' as model from ledger.hold x
      where x.state = 'open' and x.credit in (select credit from made) and x.id <> all (v_made)
    ), callers as (
      select m.debit, count(f.debit) as calls from (select distinct debit from made) m left join flying f using (debit) group by 1
    ), models as (
      select m.model, count(f.model) as calls from (select distinct model from made where model is not null) m left join flying f using (model) group by 1
    )
    select (select count(*) from flying), (select array_agg(debit order by debit) from callers), (select array_agg(calls order by debit) from callers),
        (select array_agg(model order by model) from models), (select array_agg(calls order by model) from models)
      into v_all, v_debits, v_debit_calls, v_models, v_model_calls;
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
    if v_answer ->> 'outcome' = 'held' and v_request ? 'flight' then
      select * into h from ledger.hold where id = (v_request ->> 'id')::uuid;
      v_made := array_remove(v_made, h.id);
      d := array_position(v_debits, h.debit);
      m := array_position(v_models, h.usage ->> 'model');
      v_refused := case
        when v_debit_calls[d] >= (v_request -> 'flight' ->> 'caller')::integer then 'in_flight_caller'
        when v_all >= (v_request -> 'flight' ->> 'all')::integer then 'in_flight_all'
        when v_model_calls[m] > 0 and not ledger.is_proven_model(v_models[m], v_at) then 'in_flight_model'
        when ledger.waits_for_proof(h, v_made || v_undone, v_at) then 'in_flight_caller'
      end;
      if v_refused is null then
        v_all := v_all + 1;
        v_debit_calls[d] := v_debit_calls[d] + 1;
        if m is not null then v_model_calls[m] := v_model_calls[m] + 1; end if;
      else
        v_undone := v_undone || h.id;
        v_answer := v_answer || jsonb_build_object('outcome', 'refused', 'refused_by', v_refused, 'state', null, 'expires_at', null);
      end if;
    end if;
    v_answers := v_answers || v_answer;
  end loop;

  if cardinality(v_undone) > 0 then
    perform ledger.void(v_undone, p_at);
    delete from ledger.hold where id = any (v_undone) and state = 'voided';
  end if;
  return to_jsonb(v_answers);
end $$;

create function ledger.is_proven_model(p_model text, p_at timestamptz) returns boolean language sql stable as $$
  select exists (select from ledger.proven_model where model = p_model and at > p_at - interval '1 day')
$$;

-- Whether a call has to wait for another one of its caller, of whom no call of the day (of an app: of the last seven, since many
-- people use it) has been settled yet within what was reserved: the calls of one request to several models are made together, any other one by one. One that ended with its cost
-- unknown is waited for, for the time of a first look at the router's records. p_without: holds that are not decided, or not made.
create function ledger.waits_for_proof(p_hold ledger.hold, p_without uuid[], p_at timestamptz) returns boolean language plpgsql
set plan_cache_mode = force_generic_plan as $$
begin
  if not exists (
    select from ledger.hold x
    where x.state in ('open', 'pending') and x.debit = p_hold.debit and x.credit = p_hold.credit and x.id <> p_hold.id and x.id <> all (p_without)
      and (x.state = 'open' or exists (select from ledger.pending p where p.hold_id = x.id and p.since > p_at - interval '6 seconds'))
      and (x.usage ->> 'model' is null or x.usage ->> 'model' = p_hold.usage ->> 'model' or x.usage ->> 'request' is distinct from p_hold.usage ->> 'request')
  ) then return false; end if;
  return not exists (
    select from ledger.account now_paid
    join ledger.account paid on (paid.kind, paid.owner) = (now_paid.kind, now_paid.owner)
      and paid.day between now_paid.day - case now_paid.kind when 'app' then 7 else 0 end and now_paid.day
    join ledger.entry e on e.account_id = paid.id
    join ledger.hold s on s.transaction_id = e.transaction_id
    join ledger.account owed on owed.id = s.credit
    where now_paid.id = p_hold.debit and owed.kind = 'platform' and s.debit = paid.id and s.cost <= s.amount
  );
end $$;
