-- What the visits of a day may accrue, which the platform pays: caps by visitor, by network, by app, and a budget for all apps.

-- Salted hash of the /24 or /48 that a visit came from, with the salt of its day. Null for uses before this column.
alter table ledger.usage add column network text;

-- What became of the visits of an app's day. Statements show it, and `accrued` keeps the count reproducible: the first so
-- many uses below the caps, in the order of time.
create table revenue.visits (
  app text not null,
  day date not null,
  author text not null,
  uses bigint not null,
  accrued bigint not null,
  over_visitor bigint not null,
  over_network bigint not null,
  over_app bigint not null,
  over_budget bigint not null,
  primary key (app, day),
  check (uses = accrued + over_visitor + over_network + over_app + over_budget)
);
create index visits_author on revenue.visits (author, day);
-- What all apps accrued on a day.
create index line_paid on revenue.line (day) include (app, amount, uses) where item = 'use';

-- The visits of an app's day below the caps of a visitor and of a network, numbered in the order of time, and all of them.
create function revenue.visits_below(p_app text, p_day date, p_per_visitor integer, p_per_network integer)
returns table (at timestamptz, id text, number bigint, over_visitor boolean, over_network boolean) language sql stable as $$
  select at, id, row_number() over (partition by over_visitor or over_network order by at, id), over_visitor, over_network
  from (
    select at, id, over_visitor, not over_visitor and row_number() over (partition by network, over_visitor order by at, id) > p_per_network as over_network
    from (
      select u.at, u.id, coalesce(u.network, u.caller, u.id) as network,
        row_number() over (partition by coalesce(u.caller, u.id) order by u.at, u.id) > p_per_visitor as over_visitor
      from ledger.usage u
      where u.app = p_app and u.at >= ledger.day_start(p_day) and u.at < ledger.day_start(p_day + 1) and u.kind = 'visit' and u.class = 'use'
    ) v
  ) n
$$;

-- As before, with the caps. p_accrued: how many visits of the day accrue; null for a day before the caps.
drop function revenue.counted(text, date, text, numeric, integer, boolean, boolean);
create function revenue.counted(p_app text, p_day date, p_submitter text, p_accrued bigint, p_use numeric, p_per_visitor integer, p_per_network integer,
  p_free_uses boolean, p_free_calls boolean)
returns table (item text, at timestamptz, id text, price numeric) language sql stable as $$
  select 'use', v.at, v.id, p_use from revenue.visits_below(p_app, p_day, p_per_visitor, p_per_network) v
    where p_free_uses and not v.over_visitor and (p_accrued is null or not v.over_network and v.number <= p_accrued)
  union all
  select 'call', u.at, u.id, u.cost
    from ledger.usage u join ledger.hold h on h.id::text = u.id join ledger.account a on a.id = h.debit
    where u.app = p_app and u.at >= ledger.day_start(p_day) and u.at < ledger.day_start(p_day + 1) and u.kind = 'app' and h.state = 'settled'
      and u.caller is distinct from p_submitter and (a.kind = 'key' or p_free_calls)
$$;

-- Decides how many visits of an app's day accrue, and records what became of the others. Never fewer than are posted.
-- p_budget: what all apps may accrue for the visits of a day, USD. What is left of it is divided among the apps that are
-- not posted yet; apps are posted by ascending use, so that what one leaves over goes to the others.
create function revenue.cap_visits(p_app text, p_day date, p_hosted revenue.hosted, p_use numeric, p_per_visitor integer, p_per_network integer,
  p_per_app integer, p_budget numeric) returns bigint language plpgsql as $$
declare
  v revenue.visits;
  v_below bigint;
  v_each numeric := p_use * p_hosted.share_ppm / 1000000;
  v_own record;
  v_left numeric;
  v_waiting integer;
  v_fit bigint;
begin
  -- A day that was posted before there were caps goes on without them.
  if not exists (select from revenue.visits where app = p_app and day = p_day)
    and exists (select from revenue.line where app = p_app and day = p_day and item = 'use') then return null; end if;
  select count(*), count(*) filter (where over_visitor), count(*) filter (where over_network) into v.uses, v.over_visitor, v.over_network
    from revenue.visits_below(p_app, p_day, p_per_visitor, p_per_network);
  if v.uses = 0 then return 0; end if;
  v_below := v.uses - v.over_visitor - v.over_network;
  v_fit := least(v_below, p_per_app);
  v.over_app := v_below - v_fit;
  select coalesce(sum(amount), 0) as amount, coalesce(sum(uses), 0)::bigint as uses into v_own
    from revenue.line where app = p_app and day = p_day and item = 'use';
  if v_each > 0 then
    select p_budget - coalesce(sum(amount), 0) into v_left from revenue.line where day = p_day and item = 'use' and app <> p_app;
    select count(distinct d.app) + 1 into v_waiting from metering.day d
      where d.day = p_day and d.kind = 'visit' and d.class = 'use' and d.app not in ('', p_app)
        and not exists (select from revenue.posted_day p where p.app = d.app and p.day = p_day);
    v_fit := least(v_fit, trunc(greatest(v_left, 0) / v_waiting / v_each)::bigint);
  end if;
  -- What is posted stays, also where a cap or the budget is smaller now.
  v.accrued := least(greatest(v_fit, v_own.uses), v_below);
  v.over_budget := greatest(v_below - v.over_app - v.accrued, 0);
  v.over_app := greatest(v_below - v.accrued - v.over_budget, 0);
  insert into revenue.visits (app, day, author, uses, accrued, over_visitor, over_network, over_app, over_budget)
    values (p_app, p_day, p_hosted.author, v.uses, v.accrued, v.over_visitor, v.over_network, v.over_app, v.over_budget)
    on conflict (app, day) do update set author = excluded.author, uses = excluded.uses, accrued = excluded.accrued, over_visitor = excluded.over_visitor,
      over_network = excluded.over_network, over_app = excluded.over_app, over_budget = excluded.over_budget;
  return v.accrued;
end $$;

-- As before, within the caps.
drop function revenue.post_day(text, date, text, numeric, integer, boolean, boolean, timestamptz);
create function revenue.post_day(p_app text, p_day date, p_version text, p_use numeric, p_per_visitor integer, p_per_network integer, p_free_uses boolean,
  p_free_calls boolean, p_per_app integer, p_budget numeric, p_at timestamptz default null) returns integer language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_hosted revenue.hosted := revenue.hosted_on(p_app, p_day);
  v_line revenue.line;
  v_lines integer := 0;
  v_accrued bigint := 0;
  e record;
  d record;
begin
  -- Uses of a day that was dropped cannot be counted again.
  if v_hosted.app is null or p_day < (select kept_from from metering.progress) then return 0; end if;
  perform pg_advisory_xact_lock(hashtextextended('revenue.post_day:' || p_app || p_day, 0));
  if p_free_uses then v_accrued := revenue.cap_visits(p_app, p_day, v_hosted, p_use, p_per_visitor, p_per_network, p_per_app, p_budget); end if;
  for e in
    select i.item, count(c.id) as uses, coalesce(sum(c.price), 0) as gross,
      encode(sha256(convert_to(coalesce(string_agg(c.id, E'\n' order by c.at, c.id), ''), 'UTF8')), 'hex') as events
    from (values ('call'), ('use')) i (item)
    left join revenue.counted(p_app, p_day, v_hosted.submitter, v_accrued, p_use, p_per_visitor, p_per_network, p_free_uses, p_free_calls) c using (item)
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
