-- Holds: money reserved for a call before it is made, and settled, voided or expired after.

create table ledger.hold (
  id uuid primary key,
  debit bigint not null references ledger.account,
  credit bigint not null references ledger.account check (credit <> debit),
  amount numeric(20,12) not null check (amount >= 0),
  -- open and pending holds are reserved; the others are not.
  state text not null default 'open' check (state in ('open', 'pending', 'settled', 'voided', 'expired', 'abandoned')),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  closed_at timestamptz,
  cost numeric(20,12) check (cost >= 0),
  transaction_id bigint unique references ledger.transaction,
  check ((state = 'settled') = (cost is not null and transaction_id is not null))
) with (fillfactor = 70);
create index hold_open on ledger.hold (expires_at) where state = 'open';
create index hold_reserved on ledger.hold (state) where state in ('open', 'pending');

-- Calls whose cost is not known yet. The reconciler asks the router; an abandoned row stays as a record of what was never found.
create table ledger.pending (
  hold_id uuid primary key references ledger.hold,
  -- missing: the router's answer had no cost. expired: our process ended before it could book.
  reason text not null check (reason in ('missing', 'expired')),
  -- What the router knows the call by, when it told us.
  reference text,
  since timestamptz not null,
  attempts integer not null default 0,
  next_attempt_at timestamptz not null,
  abandoned_at timestamptz,
  note text
);
create index pending_due on ledger.pending (next_attempt_at) where abandoned_at is null;

-- Uses, each with an id of its own, so that one sent twice is counted once. A model call has the id of its hold.
create table ledger.usage (
  id text primary key check (length(id) between 1 and 200),
  kind text not null,
  at timestamptz not null,
  caller text,
  app text,
  model text,
  tokens_in integer,
  tokens_out integer,
  latency_ms integer,
  -- null while it is not known
  cost numeric(20,12),
  cost_source text not null check (cost_source in ('billed', 'router_computed', 'router_record', 'pending', 'none')),
  check ((cost is null) = (cost_source in ('pending', 'none')))
);
create index usage_app on ledger.usage (app, at) where app is not null;
create index usage_at on ledger.usage (at);

-- Locks the budgets of some accounts, always in the same order, and makes those that are missing.
-- The account row is locked first, so that no entry or hold can come in between the sums and the insert.
create function ledger.open_budgets(p_accounts bigint[]) returns void language plpgsql as $$
declare
  v_missing bigint[];
begin
  select array_agg(a order by a) into v_missing from (select distinct unnest(p_accounts) as a) s
    where not exists (select from ledger.budget where account_id = a);
  if v_missing is null then return; end if;
  perform 1 from ledger.account where id = any (v_missing) order by id for update;
  insert into ledger.budget (account_id, balance, held)
    select a, coalesce((select sum(amount) from ledger.entry where account_id = a), 0),
      coalesce((select sum(amount) from ledger.hold where state in ('open', 'pending') and a in (debit, credit)), 0)
    from unnest(v_missing) as a on conflict do nothing;
end $$;

create function ledger.budget_of(p_account bigint, p_limit numeric) returns jsonb language sql stable as $$
  select jsonb_build_object('limit', p_limit::text, 'used', abs(balance)::text, 'held', held::text) from ledger.budget where account_id = p_account
$$;

-- What a request looks like once its accounts are resolved.
create type ledger.hold_request as (n bigint, id uuid, amount numeric, ttl_ms bigint, debit bigint, debit_limit numeric, credit bigint, credit_limit numeric);

create function ledger.resolve_holds(p_requests jsonb, p_at timestamptz) returns setof ledger.hold_request language plpgsql as $$
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
      c.id, case when q.credit ->> 'limit' is not null then ledger.amount(q.credit ->> 'limit') end
    from rows from (jsonb_to_recordset(p_requests) as (id uuid, amount text, ttl_ms bigint, debit jsonb, credit jsonb)) with ordinality
      as q (id, amount, ttl_ms, debit, credit, n)
    join ledger.account d on d.kind = q.debit ->> 'kind' and d.owner = q.debit ->> 'owner' and d.day = ledger.account_day((q.debit ->> 'daily')::boolean, p_at)
    join ledger.account c on c.kind = q.credit ->> 'kind' and c.owner = q.credit ->> 'owner' and c.day = ledger.account_day((q.credit ->> 'daily')::boolean, p_at)
    order by q.n;
end $$;

-- Reserves, for each request in order, or refuses it; one answer a request. All that decides is read under the locks of the budgets.
-- Requests: [{id, amount, ttl_ms, debit: {kind, owner, daily, limit}, credit: {…}}], amounts as decimal text, limit null for none.
create function ledger.hold(p_requests jsonb, p_at timestamptz default null) returns jsonb language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_requests ledger.hold_request[];
  v_touched bigint[];
  v_answers jsonb := '[]';
  q ledger.hold_request;
begin
  select array_agg(s order by s.n) into v_requests from ledger.resolve_holds(p_requests, v_at) s;
  perform ledger.open_budgets(array(
    select debit from unnest(v_requests) where debit_limit is not null union select credit from unnest(v_requests) where credit_limit is not null));
  v_touched := array(select debit from unnest(v_requests) union select credit from unnest(v_requests));
  perform 1 from ledger.budget where account_id = any (v_touched) order by account_id for update;
  foreach q in array v_requests loop
    v_answers := v_answers || ledger.hold_one(q, v_at);
  end loop;
  return v_answers;
end $$;

create function ledger.hold_one(q ledger.hold_request, p_at timestamptz) returns jsonb language plpgsql as $$
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
    insert into ledger.hold (id, debit, credit, amount, created_at, expires_at)
      values (q.id, q.debit, q.credit, q.amount, p_at, p_at + q.ttl_ms * interval '1 millisecond') returning * into v_known;
    update ledger.budget set held = held + q.amount where account_id in (q.debit, q.credit);
  end if;
  return jsonb_build_object(
    'outcome', v_outcome, 'refused_by', v_refused, 'state', v_known.state, 'expires_at', v_known.expires_at,
    'day_ends_at', (((p_at at time zone 'utc')::date + 1)::timestamp at time zone 'utc'),
    'debit', ledger.budget_of(q.debit, q.debit_limit), 'credit', ledger.budget_of(q.credit, q.credit_limit));
end $$;

-- Frees what a hold reserves and gives it its new state.
create function ledger.release(p_hold ledger.hold, p_state text, p_at timestamptz) returns void language plpgsql as $$
begin
  if p_hold.state in ('open', 'pending') then
    perform 1 from ledger.budget where account_id in (p_hold.debit, p_hold.credit) order by account_id for update;
    update ledger.budget set held = held - p_hold.amount where account_id in (p_hold.debit, p_hold.credit);
  end if;
  update ledger.hold set state = p_state, closed_at = p_at where id = p_hold.id;
end $$;

-- Locks the holds and the budgets that a batch will touch, always in the same order.
create function ledger.lock_holds(p_ids uuid[]) returns void language plpgsql as $$
begin
  perform 1 from ledger.hold where id = any (p_ids) order by id for update;
  perform 1 from ledger.budget b
    where account_id in (select debit from ledger.hold where id = any (p_ids) union select credit from ledger.hold where id = any (p_ids))
    order by account_id for update;
end $$;
