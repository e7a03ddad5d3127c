-- What authors earn: the price list as it was announced, a share a day of each app, statements, disputes and payouts.

alter table ledger.usage add column price_version text;

-- As before, with the version of the price list.
create or replace function ledger.record_usage(p_id text, p_usage jsonb, p_cost numeric, p_source text, p_at timestamptz) returns boolean language plpgsql as $$
begin
  insert into ledger.usage (id, kind, at, caller, app, model, tool, tokens_in, tokens_out, latency_ms, cost, cost_source, price_version)
    values (p_id, p_usage ->> 'kind', p_at, p_usage ->> 'caller', p_usage ->> 'app', p_usage ->> 'model', p_usage ->> 'tool',
      (p_usage ->> 'tokens_in')::integer, (p_usage ->> 'tokens_out')::integer, (p_usage ->> 'latency_ms')::integer, p_cost, p_source,
      p_usage ->> 'price_version')
    on conflict (at, id) do nothing;
  if found then return true; end if;
  update ledger.usage set cost = p_cost, cost_source = p_source,
      tokens_in = coalesce((p_usage ->> 'tokens_in')::integer, tokens_in), tokens_out = coalesce((p_usage ->> 'tokens_out')::integer, tokens_out)
    where at = p_at and id = p_id and cost_source = 'pending' and p_cost is not null;
  return false;
end $$;

create schema revenue;

-- Versions of the price list as they were first seen. One that was announced is never changed.
create table revenue.price_version (
  version text primary key,
  effective_from date not null unique,
  content jsonb not null,
  recorded_at timestamptz not null default clock_timestamp()
);

-- Whose an app was from a day on, and what of it he accrues: a row where that changed.
create table revenue.hosted (
  app text not null,
  day date not null,
  author text not null,
  share_ppm integer not null check (share_ppm between 0 and 1000000),
  -- Salted hash of the caller who submitted it.
  submitter text,
  primary key (app, day)
);

-- Lines of statements, each with the transaction that posts it. Never changed: what was wrong gets another line.
create table revenue.line (
  id bigint generated always as identity primary key,
  -- Makes a line happen once, however often it is asked for.
  key text not null unique,
  author text not null,
  -- Statement in which it stands: the first day of its month.
  month date not null,
  kind text not null check (kind in ('share', 'late', 'refund', 'dispute', 'correction', 'payout')),
  app text,
  -- The day of the uses, and what was used: use (by a visitor) or call (by an agent).
  day date,
  item text check (item in ('use', 'call')),
  price_version text,
  -- How many uses it is for, at which price in all, and the author's part of that in parts per million. Of a later line of
  -- the same day, what it adds.
  uses bigint not null default 0,
  gross numeric(20,12) not null default 0,
  share_ppm integer,
  -- What the author gains by it, or loses.
  amount numeric(20,12) not null,
  -- SHA-256 of the ids of all uses of that day, in the order of time, a line feed between two.
  events text,
  -- The usage event that a correction is for, or the dispute.
  event text,
  reason text,
  transaction_id bigint not null unique references ledger.transaction,
  posted_at timestamptz not null,
  check (kind not in ('share', 'late') or (app is not null and day is not null and item is not null and share_ppm is not null and event is null)),
  check (kind <> 'payout' or amount < 0)
);
create index line_author on revenue.line (author, month, id);
create index line_day on revenue.line (app, day) where day is not null;

create function revenue.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% of revenue.% is refused: add a correction instead', tg_op, tg_table_name using errcode = 'restrict_violation';
end $$;
create trigger line_immutable before update or delete or truncate on revenue.line
  for each statement execute function revenue.refuse_change();
create trigger price_version_immutable before update or delete or truncate on revenue.price_version
  for each statement execute function revenue.refuse_change();

-- Days of an app of which the share is posted. Uses that come after the end of the day was posted make a line of kind `late`.
create table revenue.posted_day (
  app text not null,
  day date not null,
  posted_at timestamptz not null,
  primary key (app, day)
);

-- Up to where uses were looked at, by when they were received.
create table revenue.progress (
  one boolean primary key default true check (one),
  received_until timestamptz not null default '-infinity'
);
insert into revenue.progress default values;

-- No row: nothing has happened to the statement yet, and it is open.
create table revenue.statement (
  author text not null,
  month date not null,
  state text not null check (state in ('open', 'disputed', 'adjusted', 'final')),
  changed_at timestamptz not null,
  primary key (author, month)
);

create table revenue.dispute (
  id uuid primary key,
  author text not null,
  month date not null,
  line bigint references revenue.line,
  message text not null check (length(message) between 1 and 2000),
  opened_at timestamptz not null,
  resolved_at timestamptz,
  resolution text,
  check ((resolved_at is null) = (resolution is null))
);
create index dispute_statement on revenue.dispute (author, month);

create function revenue.month_of(p_day date) returns date language sql immutable as $$
  select date_trunc('month', p_day::timestamp)::date
$$;

-- The statement in which a line for p_month stands: that month while it is not final, else the month of today, which never is.
create function revenue.open_month(p_author text, p_month date, p_at timestamptz) returns date language sql stable as $$
  select case when exists (select from revenue.statement where author = p_author and month = p_month and state = 'final')
    then revenue.month_of((p_at at time zone 'utc')::date) else p_month end
$$;

-- What a line says. It stands in the reference of its transaction, so that whoever changes the one has to change the other.
create function revenue.digest(l revenue.line) returns text language sql stable as $$
  select encode(sha256(convert_to(concat_ws(E'\n', l.key, l.author, to_char(l.month, 'YYYY-MM'), l.kind, coalesce(l.app, ''),
    coalesce(to_char(l.day, 'YYYY-MM-DD'), ''), coalesce(l.item, ''), coalesce(l.price_version, ''), l.uses::text, trim_scale(l.gross)::text,
    coalesce(l.share_ppm::text, ''), trim_scale(l.amount)::text, coalesce(l.events, ''), coalesce(l.event, ''), coalesce(l.reason, '')), 'UTF8')), 'hex')
$$;

-- Posts a line with its transaction: p_lines [{kind, owner, daily, amount}], which sum to zero. Null where there is one of this key.
create function revenue.post_line(p_line revenue.line, p_lines jsonb, p_at timestamptz) returns bigint language plpgsql as $$
declare
  v_posted jsonb;
  v_id bigint;
begin
  perform pg_advisory_xact_lock(hashtextextended('revenue.line:' || p_line.key, 0));
  if exists (select from revenue.line where key = p_line.key) then return null; end if;
  v_posted := ledger.post(p_line.key || ':' || revenue.digest(p_line), p_line.kind, p_lines, p_at);
  insert into revenue.line (key, author, month, kind, app, day, item, price_version, uses, gross, share_ppm, amount, events, event, reason, transaction_id, posted_at)
    values (p_line.key, p_line.author, p_line.month, p_line.kind, p_line.app, p_line.day, p_line.item, p_line.price_version, p_line.uses, p_line.gross,
      p_line.share_ppm, p_line.amount, p_line.events, p_line.event, p_line.reason, (v_posted ->> 'id')::bigint, p_at)
    returning id into v_id;
  return v_id;
end $$;

create function revenue.entry(p_kind text, p_owner text, p_amount numeric) returns jsonb language sql immutable as $$
  select jsonb_build_object('kind', p_kind, 'owner', p_owner, 'daily', false, 'amount', p_amount::text)
$$;

-- Notes whose the apps are today: [{app, author, share_ppm, submitter}]. A change counts from the next day on.
create function revenue.note_hosted(p_apps jsonb, p_at timestamptz default null) returns integer language plpgsql as $$
declare
  v_today date := (coalesce(p_at, clock_timestamp()) at time zone 'utc')::date;
  v_noted integer;
begin
  insert into revenue.hosted (app, day, author, share_ppm, submitter)
    select a.app, case when h.app is null then v_today else v_today + 1 end, a.author, a.share_ppm, a.submitter
    from jsonb_to_recordset(p_apps) as a (app text, author text, share_ppm integer, submitter text)
    left join lateral (select * from revenue.hosted h where h.app = a.app order by h.day desc limit 1) h on true
    where h.app is null or (h.author, h.share_ppm, h.submitter) is distinct from (a.author, a.share_ppm, a.submitter)
  on conflict (app, day) do update set author = excluded.author, share_ppm = excluded.share_ppm, submitter = excluded.submitter;
  get diagnostics v_noted = row_count;
  return v_noted;
end $$;

-- Whose an app was on a day. Of days before it was first noted, whose it was then.
create function revenue.hosted_on(p_app text, p_day date) returns revenue.hosted language sql stable as $$
  select * from revenue.hosted where app = p_app order by day <= p_day desc, case when day <= p_day then day end desc nulls last, day limit 1
$$;

-- The uses of an app in a day of which its author accrues a share.
-- Visits: at most p_per_visitor of one visitor, none without p_free_uses. Calls: those that somebody else than the submitter is
-- charged for; with p_free_calls also those that nobody is.
create function revenue.counted(p_app text, p_day date, p_submitter text, p_use numeric, p_per_visitor integer, p_free_uses boolean, p_free_calls boolean)
returns table (item text, at timestamptz, id text, price numeric) language sql stable as $$
  select 'use', v.at, v.id, p_use
    from (select u.at, u.id, row_number() over (partition by coalesce(u.caller, u.id) order by u.at, u.id) as n from ledger.usage u
      where u.app = p_app and u.at >= ledger.day_start(p_day) and u.at < ledger.day_start(p_day + 1) and u.kind = 'visit' and u.class = 'use') v
    where p_free_uses and v.n <= p_per_visitor
  union all
  select 'call', u.at, u.id, u.cost
    from ledger.usage u join ledger.hold h on h.id::text = u.id join ledger.account a on a.id = h.debit
    where u.app = p_app and u.at >= ledger.day_start(p_day) and u.at < ledger.day_start(p_day + 1) and u.kind = 'app' and h.state = 'settled'
      and u.caller is distinct from p_submitter and (a.kind = 'key' or p_free_calls)
$$;

-- Posts what is missing of the share of an app's day. Run again, it posts nothing, or what has come since. Returns how many
-- lines.
create function revenue.post_day(p_app text, p_day date, p_version text, p_use numeric, p_per_visitor integer, p_free_uses boolean, p_free_calls boolean,
  p_at timestamptz default null) returns integer language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_hosted revenue.hosted := revenue.hosted_on(p_app, p_day);
  v_line revenue.line;
  v_lines integer := 0;
  e record;
  d record;
begin
  -- Uses of a day that was dropped cannot be counted again.
  if v_hosted.app is null or p_day < (select kept_from from metering.progress) then return 0; end if;
  perform pg_advisory_xact_lock(hashtextextended('revenue.post_day:' || p_app || p_day, 0));
  for e in
    select i.item, count(c.id) as uses, coalesce(sum(c.price), 0) as gross,
      encode(sha256(convert_to(coalesce(string_agg(c.id, E'\n' order by c.at, c.id), ''), 'UTF8')), 'hex') as events
    from (values ('call'), ('use')) i (item) left join revenue.counted(p_app, p_day, v_hosted.submitter, p_use, p_per_visitor, p_free_uses, p_free_calls) c using (item)
    group by 1 order by 1
  loop
    -- The share of all that the day has is rounded down once, so that its lines are worth together what one would be.
    select e.uses - coalesce(sum(l.uses), 0) as uses, e.gross - coalesce(sum(l.gross), 0) as gross,
        trunc(e.gross * v_hosted.share_ppm / 1000000, 12) - coalesce(sum(l.amount), 0) as amount, count(*) as lines
      into d from revenue.line l where l.app = p_app and l.day = p_day and l.item = e.item and l.kind in ('share', 'late');
    if d.amount = 0 and d.gross = 0 and d.uses = 0 then continue; end if;
    v_line := null;
    v_line.key := format('share:%s:%s:%s:%s', p_app, p_day, e.item, d.lines);
    v_line.author := v_hosted.author;
    v_line.kind := case when exists (select from revenue.posted_day where app = p_app and day = p_day and posted_at >= ledger.day_start(p_day + 1)) then 'late' else 'share' end;
    v_line.app := p_app; v_line.day := p_day; v_line.item := e.item; v_line.price_version := p_version;
    v_line.uses := d.uses; v_line.gross := d.gross; v_line.share_ppm := v_hosted.share_ppm; v_line.amount := d.amount; v_line.events := e.events;
    v_line.month := revenue.open_month(v_line.author, revenue.month_of(p_day), v_at);
    -- A visit is paid by nobody, so the platform bears it; of a call, the revenue is there.
    if revenue.post_line(v_line, jsonb_build_array(revenue.entry('author', v_line.author, -d.amount)) || case e.item
        when 'use' then jsonb_build_array(revenue.entry('promotion', 'use', d.gross), revenue.entry('revenue', p_app, d.amount - d.gross))
        else jsonb_build_array(revenue.entry('revenue', p_app, d.amount)) end, v_at) is not null
    then v_lines := v_lines + 1; end if;
  end loop;
  insert into revenue.posted_day (app, day, posted_at) values (p_app, p_day, v_at) on conflict (app, day) do update set posted_at = excluded.posted_at;
  return v_lines;
end $$;

-- Apps and days that ended, of which uses have come since the last time.
create function revenue.days_to_post(p_at timestamptz default null) returns table (app text, day date) language sql stable as $$
  select distinct u.app, (u.at at time zone 'utc')::date
  from ledger.usage u, revenue.progress p
  where u.received_at >= p.received_until and u.app is not null and u.kind in ('visit', 'app') and u.class = 'use'
    and u.at < ledger.day_start((coalesce(p_at, clock_timestamp()) at time zone 'utc')::date)
$$;

-- Gives back what a call of an app was charged, and takes the author's share of it back. One line, linked to the use.
create function revenue.refund(p_event text, p_reason text, p_at timestamptz default null) returns jsonb language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_line revenue.line;
  v_share revenue.line;
  u record;
  v_id bigint;
begin
  select usage.app, (usage.at at time zone 'utc')::date as day, usage.price_version, h.cost, a.kind as debited, a.owner as payer into u
    from ledger.usage join ledger.hold h on h.id::text = usage.id join ledger.account a on a.id = h.debit
    where usage.id = p_event and usage.kind = 'app' and h.state = 'settled';
  if not found then return jsonb_build_object('outcome', 'unknown'); end if;
  if u.debited <> 'key' or u.cost = 0 then return jsonb_build_object('outcome', 'not-charged'); end if;
  -- The line of its day says whose it is and how much of it; before that is posted there is nothing to take back.
  select * into v_share from revenue.line l where l.app = u.app and l.day = u.day and l.item = 'call' and l.kind in ('share', 'late') order by l.id desc limit 1;
  if not found then return jsonb_build_object('outcome', 'not-posted', 'day', u.day); end if;
  v_line.key := 'refund:' || p_event;
  v_line.author := v_share.author; v_line.kind := 'refund'; v_line.app := u.app; v_line.day := u.day; v_line.item := 'call';
  v_line.price_version := u.price_version; v_line.uses := -1; v_line.gross := -u.cost; v_line.share_ppm := v_share.share_ppm;
  v_line.amount := -trunc(u.cost * v_share.share_ppm / 1000000, 12); v_line.event := p_event; v_line.reason := p_reason;
  v_line.month := revenue.open_month(v_line.author, v_share.month, v_at);
  v_id := revenue.post_line(v_line, jsonb_build_array(revenue.entry('author', v_line.author, -v_line.amount), revenue.entry('refund', u.payer, -u.cost),
    revenue.entry('revenue', u.app, u.cost + v_line.amount)), v_at);
  return jsonb_build_object('outcome', case when v_id is null then 'replayed' else 'posted' end, 'line', v_id::text);
end $$;

-- What the operator adds to what an author earned, or takes from it: a correction, what a dispute came to, a payout.
create function revenue.adjust(p_key text, p_kind text, p_author text, p_month date, p_amount numeric, p_event text, p_reason text, p_at timestamptz default null)
returns jsonb language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_line revenue.line;
  v_id bigint;
begin
  v_line.key := p_key; v_line.author := p_author; v_line.kind := p_kind; v_line.amount := p_amount; v_line.event := p_event; v_line.reason := p_reason;
  v_line.uses := 0; v_line.gross := 0;
  v_line.month := revenue.open_month(p_author, p_month, v_at);
  v_id := revenue.post_line(v_line, jsonb_build_array(revenue.entry('author', p_author, -p_amount),
    revenue.entry(case p_kind when 'payout' then 'payout' else 'adjustment' end, 'authors', p_amount)), v_at);
  return jsonb_build_object('outcome', case when v_id is null then 'replayed' else 'posted' end, 'line', v_id::text);
end $$;

-- What we owe an author.
create function revenue.owed(p_author text) returns numeric language sql stable as $$
  select coalesce(-sum(e.amount), 0) from ledger.account a join ledger.entry e on e.account_id = a.id where a.kind = 'author' and a.owner = p_author
$$;

-- Statements whose time for disputes is over, with none open, are final. Returns how many.
create function revenue.close_months(p_dispute_days integer, p_at timestamptz default null) returns integer language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_closed integer;
begin
  insert into revenue.statement (author, month, state, changed_at)
    select distinct l.author, l.month, 'final', v_at from revenue.line l
      where ledger.day_start((l.month + interval '1 month')::date) + p_dispute_days * interval '1 day' <= v_at
        and not exists (select from revenue.dispute d where d.author = l.author and d.month = l.month and d.resolved_at is null)
        and not exists (select from revenue.statement s where s.author = l.author and s.month = l.month and s.state = 'final')
  on conflict (author, month) do update set state = 'final', changed_at = excluded.changed_at;
  get diagnostics v_closed = row_count;
  return v_closed;
end $$;

-- Everything in which lines and ledger disagree.
create function revenue.audit() returns table (fault text) language sql stable as $$
  select format('line %s (%s) says something else than when it was posted', l.id, l.key)
    from revenue.line l join ledger.transaction t on t.id = l.transaction_id where t.reference <> l.key || ':' || revenue.digest(l)
  union all
  select format('line %s (%s) is worth %s, its transaction %s gives the author %s', l.id, l.key, l.amount, l.transaction_id, e.amount)
    from revenue.line l left join lateral (select -sum(e.amount) as amount from ledger.entry e join ledger.account a on a.id = e.account_id
      where e.transaction_id = l.transaction_id and a.kind = 'author' and a.owner = l.author) e on true
    where e.amount is distinct from l.amount
  union all
  select format('transaction %s (%s) has no line', t.id, t.reference)
    from ledger.transaction t where t.kind in ('share', 'late', 'refund', 'dispute', 'correction', 'payout') and not exists (select from revenue.line l where l.transaction_id = t.id)
$$;
