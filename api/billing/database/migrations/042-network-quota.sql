-- The free quota of a caller is counted for the networks around them too: a /64 of IPv6 is one caller, but whoever has a
-- /48 has 65,536 of those, and could spend everybody's daily limit with them.

-- What a network has spent and reserved on a day, without a key. A derived total, like ledger.budget.
create table ledger.network_use (
  -- A salted hash, never an address.
  network text not null,
  day date not null,
  taken numeric(20,12) not null check (taken >= 0),
  primary key (network, day)
) with (fillfactor = 50);

-- The networks that a hold counts for, the widest first; null for callers with a key, for apps, and for IPv4.
alter table ledger.hold add column networks text[];

create function ledger.network_share(h ledger.hold) returns numeric language sql immutable as $$
  select case when h.state in ('open', 'pending') then h.amount when h.state = 'settled' then h.cost else 0 end
$$;

-- Keeps the totals right whatever becomes of a hold. The row may be gone where a cost is found after days.
create function ledger.count_networks() returns trigger language plpgsql as $$
declare
  v_change numeric := ledger.network_share(new) - case when old.networks is null then 0 else ledger.network_share(old) end;
  v_network text;
begin
  if v_change = 0 then return null; end if;
  foreach v_network in array new.networks loop
    insert into ledger.network_use as u (network, day, taken) values (v_network, (new.created_at at time zone 'utc')::date, greatest(v_change, 0))
      on conflict (network, day) do update set taken = greatest(u.taken + v_change, 0);
  end loop;
  return null;
end $$;
-- At the end of the transaction, since a settlement locks the budgets last and a reservation locks them first: locking
-- the totals before the budgets in one and after them in the other could deadlock.
create constraint trigger hold_networks after update on ledger.hold deferrable initially deferred
  for each row when (new.networks is not null) execute function ledger.count_networks();

-- The first of these networks that has no room for an amount, as a refusal; null where all have. p_within: [{network, limit}].
create function ledger.full_network(p_within jsonb, p_amount numeric, p_day date) returns jsonb language sql stable as $$
  select jsonb_build_object('limit', w.limit, 'used', coalesce(u.taken, 0)::text, 'held', '0')
  from rows from (jsonb_to_recordset(p_within) as (network text, "limit" text)) with ordinality as w (network, "limit", n)
  left join ledger.network_use u on u.network = w.network and u.day = p_day
  where coalesce(u.taken, 0) + p_amount > ledger.amount(w.limit) order by w.n limit 1
$$;

-- As ledger.hold, for requests whose debit side may name networks: debit: {…, within: [{network, limit}]}, the widest
-- first. A request that a network has no room for is refused by 'network', with its limit and what is taken of it.
create function ledger.hold_in_networks(p_requests jsonb, p_at timestamptz default null) returns jsonb language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_day date := (v_at at time zone 'utc')::date;
  v_answers jsonb[];
  v_passed bigint[];
  v_held jsonb;
  v_full jsonb;
  r record;
begin
  if not jsonb_path_exists(p_requests, '$[*].debit.within') then return ledger.hold(p_requests, p_at); end if;
  v_answers := array_fill(null::jsonb, array[jsonb_array_length(p_requests)]);
  -- Most that a network has no room for are refused here, before they make an account or a hold.
  for r in select value as request, value #> '{debit,within}' as within, (value ->> 'id')::uuid as id, n from jsonb_array_elements(p_requests) with ordinality as q (value, n) order by n loop
    v_full := null;
    if r.within is not null and not exists (select from ledger.hold where id = r.id) then
      v_full := ledger.full_network(r.within, ledger.amount(r.request ->> 'amount'), v_day);
    end if;
    if v_full is null then
      v_passed := v_passed || r.n;
    else
      v_answers[r.n] := ledger.refused_by_network(v_full, v_at);
    end if;
  end loop;
  if v_passed is null then return to_jsonb(v_answers); end if;
  v_held := ledger.hold((select jsonb_agg(p_requests -> (n::integer - 1) order by place) from unnest(v_passed) with ordinality as p (n, place)), v_at);
  -- The budgets are locked now.
  set constraints ledger.hold_networks immediate;
  -- In the order of the widest networks, so that no two batches wait for each other. What others took meanwhile counts now.
  for r in
    select p.n, v_held -> (place::integer - 1) as answer, (q.request ->> 'id')::uuid as id, q.request #> '{debit,within}' as within
    from unnest(v_passed) with ordinality as p (n, place) cross join lateral (select p_requests -> (p.n::integer - 1) as request) q
    order by q.request #>> '{debit,within,0,network}' nulls first, p.n
  loop
    v_answers[r.n] := r.answer;
    continue when r.within is null or r.answer ->> 'outcome' <> 'held';
    update ledger.hold set networks = array(select w.network from rows from (jsonb_to_recordset(r.within) as (network text)) with ordinality as w (network, n) order by w.n)
      where id = r.id;
    v_full := ledger.full_network(r.within, 0, v_day);
    continue when v_full is null;
    perform ledger.void(array[r.id], v_at);
    v_answers[r.n] := ledger.refused_by_network(v_full, v_at);
  end loop;
  return to_jsonb(v_answers);
end $$;

create function ledger.refused_by_network(p_budget jsonb, p_at timestamptz) returns jsonb language sql immutable as $$
  select jsonb_build_object('outcome', 'refused', 'refused_by', 'network', 'state', null, 'expires_at', null,
    'day_ends_at', (((p_at at time zone 'utc')::date + 1)::timestamp at time zone 'utc'), 'debit', p_budget, 'credit', null)
$$;
