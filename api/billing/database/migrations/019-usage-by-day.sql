-- Uses in one table a day, so that old ones are dropped without work, and gateway records beside metered calls.
-- A use is found by its time and its id: that of a metered call is when its hold was made, so that a settlement finds it.

-- Carrying over the uses of a large ledger takes longer than a statement may take otherwise.
set local statement_timeout = 0;

alter table ledger.usage rename to usage_before;
alter table ledger.usage_before rename constraint usage_pkey to usage_before_pkey;
drop index ledger.usage_app, ledger.usage_at, ledger.usage_tool, ledger.usage_app_call;

create table ledger.usage (
  at timestamptz not null,
  id text not null constraint usage_id_check check (length(id) between 1 and 200),
  -- ask, compare, v1, tool, app: a metered call. visit: a request that the gateway passed on.
  kind text not null,
  -- What a visit was: use, asset, health, …; a metered call is a use.
  class text not null default 'use',
  caller text,
  app text,
  model text,
  tool text,
  tokens_in integer,
  tokens_out integer,
  latency_ms integer,
  status smallint,
  bytes_in bigint,
  bytes_out bigint,
  -- The run of a gateway that counted it.
  instance bigint,
  -- null while it is not known
  cost numeric(20,12),
  cost_source text not null
    constraint usage_cost_source_check check (cost_source in ('billed', 'router_computed', 'router_record', 'tariff', 'pending', 'none')),
  received_at timestamptz not null default clock_timestamp(),
  constraint usage_cost_check check ((cost is null) = (cost_source in ('pending', 'none'))),
  -- In the order of time, so that new rows go to the end of the index; it serves reads by time too.
  primary key (at, id)
) partition by range (at);

-- Visits are many and read from sums; only metered calls are looked up by app and tool.
create index usage_app on ledger.usage (app, at) include (kind, latency_ms, cost, cost_source) where app is not null and kind <> 'visit';
create index usage_tool on ledger.usage (tool, at) where tool is not null;
create index usage_app_call on ledger.usage (at) include (app, caller) where kind = 'app';
create index usage_pending on ledger.usage (at) where cost_source = 'pending';
-- Rows come in the order of their arrival: from it, sums are brought up to date.
create index usage_received on ledger.usage using brin (received_at) with (autosummarize = on);

-- Holds what has no day of its own yet: nothing is lost where days are made late.
create table ledger.usage_default partition of ledger.usage default;

create function ledger.day_start(p_day date) returns timestamptz language sql immutable as $$
  select p_day::timestamp at time zone 'utc'
$$;

create function ledger.usage_days() returns table (partition text, day date) language sql stable as $$
  select c.relname::text, to_date(substr(c.relname, 7), 'YYYYMMDD')
  from pg_inherits i join pg_class c on c.oid = i.inhrelid
  where i.inhparent = 'ledger.usage'::regclass and c.relname ~ '^usage_\d{8}$'
$$;

-- Makes the table of a day, with what of it came before. False where there is one.
create function ledger.make_day(p_day date) returns boolean language plpgsql as $$
declare
  v_name text := 'usage_' || to_char(p_day, 'YYYYMMDD');
begin
  perform pg_advisory_xact_lock(7201133510);
  if to_regclass('ledger.' || v_name) is not null then return false; end if;
  lock table ledger.usage_default in access exclusive mode;
  execute format('create table ledger.%I (like ledger.usage including defaults including constraints)', v_name);
  execute format('with moved as (delete from ledger.usage_default where at >= $1 and at < $2 returning *) insert into ledger.%I select * from moved', v_name)
    using ledger.day_start(p_day), ledger.day_start(p_day + 1);
  execute format('alter table ledger.usage attach partition ledger.%I for values from (%L) to (%L)',
    v_name, ledger.day_start(p_day), ledger.day_start(p_day + 1));
  return true;
end $$;

-- Makes the days from yesterday to some days ahead, and those of uses that have none yet. Returns how many.
create function ledger.make_days(p_ahead integer, p_at timestamptz default null) returns integer language plpgsql as $$
declare
  v_today date := (coalesce(p_at, clock_timestamp()) at time zone 'utc')::date;
  v_made integer := 0;
  v_day date;
begin
  for v_day in
    select v_today + n from generate_series(-1, p_ahead) n
    union select distinct (at at time zone 'utc')::date from ledger.usage_default
    order by 1
  loop
    if ledger.make_day(v_day) then v_made := v_made + 1; end if;
  end loop;
  return v_made;
end $$;

-- The days of the uses that there are, then the uses themselves. Calls whose hold is there get its time.
do $$
declare
  v_day date;
begin
  for v_day in select distinct (coalesce(h.created_at, u.at) at time zone 'utc')::date
    from ledger.usage_before u left join ledger.hold h on h.id::text = u.id order by 1
  loop
    perform ledger.make_day(v_day);
  end loop;
end $$;
insert into ledger.usage (at, id, kind, caller, app, model, tool, tokens_in, tokens_out, latency_ms, cost, cost_source, received_at)
  select coalesce(h.created_at, u.at), u.id, u.kind, u.caller, u.app, u.model, u.tool, u.tokens_in, u.tokens_out, u.latency_ms, u.cost, u.cost_source, u.at
  from ledger.usage_before u left join ledger.hold h on h.id::text = u.id;
drop table ledger.usage_before;
select ledger.make_days(7);

-- Writes the use of a hold at the time of the hold, or fills in the cost of one that was pending. True when it was not
-- known before.
create or replace function ledger.record_usage(p_id text, p_usage jsonb, p_cost numeric, p_source text, p_at timestamptz) returns boolean language plpgsql as $$
begin
  insert into ledger.usage (id, kind, at, caller, app, model, tool, tokens_in, tokens_out, latency_ms, cost, cost_source)
    values (p_id, p_usage ->> 'kind', p_at, p_usage ->> 'caller', p_usage ->> 'app', p_usage ->> 'model', p_usage ->> 'tool',
      (p_usage ->> 'tokens_in')::integer, (p_usage ->> 'tokens_out')::integer, (p_usage ->> 'latency_ms')::integer, p_cost, p_source)
    on conflict (at, id) do nothing;
  if found then return true; end if;
  update ledger.usage set cost = p_cost, cost_source = p_source,
      tokens_in = coalesce((p_usage ->> 'tokens_in')::integer, tokens_in), tokens_out = coalesce((p_usage ->> 'tokens_out')::integer, tokens_out)
    where at = p_at and id = p_id and cost_source = 'pending' and p_cost is not null;
  return false;
end $$;

-- As before, with the time of the hold.
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
      perform ledger.record_usage(p_hold::text, p_usage, p_cost, p_source, h.created_at);
    else
      update ledger.usage set cost = p_cost, cost_source = p_source where at = h.created_at and id = p_hold::text and cost_source = 'pending';
    end if;
  end if;
  return jsonb_build_object(
    'outcome', case when v_state = 'settled' then 'replayed' else 'settled' end, 'was', v_state, 'cost', h.cost::text, 'held', h.amount::text,
    'debit', ledger.budget_of(h.debit, null));
end $$;

create or replace function ledger.pend(p_hold uuid, p_reference text, p_usage jsonb, p_retry_ms bigint, p_at timestamptz default null) returns jsonb language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  h ledger.hold;
begin
  select * into h from ledger.hold where id = p_hold for update;
  if not found then return jsonb_build_object('outcome', 'unknown'); end if;
  if h.state in ('settled', 'abandoned') then return jsonb_build_object('outcome', h.state, 'was', h.state); end if;
  if h.state = 'open' then update ledger.hold set state = 'pending' where id = p_hold; end if;
  insert into ledger.pending (hold_id, reason, reference, since, next_attempt_at)
    values (p_hold, 'missing', p_reference, v_at, v_at + p_retry_ms * interval '1 millisecond')
    on conflict (hold_id) do update set reason = 'missing', reference = coalesce(excluded.reference, pending.reference), next_attempt_at = excluded.next_attempt_at
      where pending.abandoned_at is null and pending.reason = 'expired';
  if p_usage is not null then perform ledger.record_usage(p_hold::text, p_usage, null, 'pending', h.created_at); end if;
  return jsonb_build_object('outcome', 'pending', 'was', h.state);
end $$;

create or replace function bench.cost_of(p_run uuid, out cost numeric, out cost_state text, out calls integer, out tokens_in bigint, out tokens_out bigint)
language sql stable as $$
  select coalesce(sum(h.cost), 0),
    case when bool_or(h.state in ('open', 'pending', 'expired') or (h.id is null and c.outcome is null and c.at > clock_timestamp() - interval '1 hour')) then 'pending'
      when bool_or(h.state = 'abandoned') then 'unknown' else 'exact' end,
    count(*)::integer, sum(u.tokens_in), sum(u.tokens_out)
  from bench.call c left join ledger.hold h on h.id = c.hold left join ledger.usage u on u.at = h.created_at and u.id = c.hold::text
  where c.run = p_run
$$;

create or replace function ledger.audit() returns table (fault text) language sql stable as $$
  select format('transaction %s sums to %s', transaction_id, sum(amount)) from ledger.entry group by transaction_id having sum(amount) <> 0
  union all
  select format('budget of account %s keeps balance %s, its entries sum to %s', b.account_id, b.balance, coalesce(e.total, 0))
    from ledger.budget b left join (select account_id, sum(amount) as total from ledger.entry group by 1) e using (account_id)
    where b.balance <> coalesce(e.total, 0)
  union all
  select format('budget of account %s keeps held %s, its open holds sum to %s', b.account_id, b.held, coalesce(h.total, 0))
    from ledger.budget b left join (
      select account_id, sum(amount) as total from (
        select debit as account_id, amount from ledger.hold where state in ('open', 'pending')
        union all select credit, amount from ledger.hold where state in ('open', 'pending')) s group by 1) h using (account_id)
    where b.held <> coalesce(h.total, 0)
  union all
  select format('hold %s was settled at %s, its transaction says %s', h.id, h.cost, e.amount)
    from ledger.hold h left join ledger.entry e on e.transaction_id = h.transaction_id and e.line = 1 and e.account_id = h.debit
    where h.state = 'settled' and e.amount is distinct from h.cost
  union all
  select format('usage %s costs %s, its hold %s', u.id, u.cost, h.cost)
    from ledger.usage u join ledger.hold h on h.id::text = u.id where u.kind <> 'visit' and h.state = 'settled' and u.cost is distinct from h.cost
  union all
  select format('usage %s is at %s, its hold at %s', u.id, u.at, h.created_at)
    from ledger.usage u join ledger.hold h on h.id::text = u.id where u.kind <> 'visit' and u.at <> h.created_at
  union all
  select format('hold %s is pending and nobody looks for its cost', h.id)
    from ledger.hold h left join ledger.pending p on p.hold_id = h.id and p.abandoned_at is null where h.state = 'pending' and p.hold_id is null
$$;

-- Removes a limited number of finished holds and running totals of days that ended before p_before. What is still being
-- looked for stays, and so do costs that were given up. Running totals are derived, and made again when they are needed.
-- Uses go with their day (see metering.drop_days); one by one only those of a day that waits for a cost.
create or replace function ledger.purge_detail(p_before timestamptz, p_limit integer) returns integer language plpgsql as $$
declare
  v_day timestamptz := ledger.day_start((p_before at time zone 'utc')::date);
  v_uses integer;
  v_holds integer;
  v_budgets integer;
begin
  delete from ledger.usage where (at, id) in (
    select at, id from ledger.usage where at < v_day and cost_source <> 'pending' limit p_limit for update skip locked);
  get diagnostics v_uses = row_count;
  delete from ledger.hold where id in (
    select id from ledger.hold h where created_at < p_before and state in ('settled', 'voided', 'expired')
      and not exists (select from ledger.pending where hold_id = h.id) limit p_limit for update skip locked);
  get diagnostics v_holds = row_count;
  delete from ledger.budget where account_id in (
    select b.account_id from ledger.budget b join ledger.account a on a.id = b.account_id
      where a.day > '-infinity' and a.day < (p_before at time zone 'utc')::date and b.held = 0 limit p_limit for update of b skip locked);
  get diagnostics v_budgets = row_count;
  return v_uses + v_holds + v_budgets;
end $$;
