-- What gateways counted, what of it is missing, and the sums of all uses by hour and day.

create schema metering;

-- A run of a gateway process. Its counter begins at 1 with it, and each of its records carries a number of it.
create table metering.instance (
  id bigint generated always as identity primary key,
  -- Which gateway it is a run of, as its sender names it.
  gateway text not null check (length(gateway) between 1 and 200),
  -- Numbers that came, refused ones included; and those among them that were refused for their time.
  counters int8multirange not null default '{}',
  refused int8multirange not null default '{}',
  -- Uses that were recorded of it: as many as numbers came, less those refused.
  events bigint not null default 0,
  -- The highest number, and when that request began and ended, in nanoseconds since 1970; the last end of any.
  newest bigint not null,
  newest_start_ns bigint not null,
  newest_end_ns bigint not null,
  last_end_ns bigint not null,
  first_received_at timestamptz not null default clock_timestamp(),
  last_received_at timestamptz not null default clock_timestamp()
) with (fillfactor = 70);
create index instance_gateway on metering.instance (gateway, id);

-- Numbers below the highest that have not come: of requests in progress, or of records that were lost.
create table metering.gap (
  id bigint generated always as identity primary key,
  instance bigint not null references metering.instance,
  counters int8multirange not null,
  -- When the requests before and after it began.
  after_at timestamptz,
  before_at timestamptz not null,
  seen_at timestamptz not null default clock_timestamp(),
  -- Set once it has been missing for too long: a loss. A record that comes late is taken out of it.
  lost_at timestamptz
);
create index gap_instance on metering.gap (instance);
create index gap_open on metering.gap (seen_at) where lost_at is null;

create view metering.loss as
  select g.id as gap, i.gateway, g.instance, lower(r) as first, upper(r) - 1 as last, upper(r) - lower(r) as requests,
    coalesce(g.after_at, i.first_received_at) as after_at, g.before_at, g.seen_at, g.lost_at
  from metering.gap g join metering.instance i on i.id = g.instance cross join lateral unnest(g.counters) as r
  where g.lost_at is not null;

create function metering.size(p_counters int8multirange) returns bigint language sql immutable as $$
  select coalesce(sum(upper(r) - lower(r)), 0)::bigint from unnest(p_counters) as r
$$;

-- Each run as it should add up: every number that was given out is an event, refused, still missing, or lost. What came
-- twice is counted once in both. A difference that is not 0 is a fault of ours.
create view metering.reconciliation as
  select i.id as instance, i.gateway, i.newest as counted, i.events, metering.size(i.refused) as refused,
    coalesce(g.missing, 0)::bigint as missing, coalesce(g.lost, 0)::bigint as lost,
    i.newest - i.events - metering.size(i.refused) - coalesce(g.missing + g.lost, 0)::bigint as difference
  from metering.instance i left join (
    select instance,
      coalesce(sum(metering.size(counters)) filter (where lost_at is null), 0) as missing,
      coalesce(sum(metering.size(counters)) filter (where lost_at is not null), 0) as lost
    from metering.gap group by instance) g on g.instance = i.id;

-- Takes numbers that came late out of what is missing. Returns how many of a loss came back.
create function metering.fill(p_instance bigint, p_counters int8multirange) returns bigint language plpgsql as $$
declare
  v_back bigint;
begin
  select coalesce(sum(metering.size(counters * p_counters)), 0) into v_back
    from metering.gap where instance = p_instance and lost_at is not null and counters && p_counters;
  delete from metering.gap where instance = p_instance and counters <@ p_counters;
  update metering.gap set counters = counters - p_counters where instance = p_instance and counters && p_counters;
  return v_back;
end $$;

-- What has been missing for so long is lost. Returns how many requests.
create function metering.declare_losses(p_ms bigint, p_at timestamptz default null) returns bigint language sql as $$
  with lost as (
    update metering.gap set lost_at = coalesce(p_at, clock_timestamp())
      where lost_at is null and seen_at < coalesce(p_at, clock_timestamp()) - p_ms * interval '1 millisecond' returning counters
  ) select coalesce(sum(metering.size(counters)), 0)::bigint from lost
$$;

-- Sums of uses; status_class is 2 for 2xx, 0 where there is no status. Both are derived, and kept when uses are dropped.
create table metering.hour (
  hour timestamptz not null,
  app text not null,
  kind text not null,
  class text not null,
  status_class smallint not null,
  uses bigint not null,
  bytes_in bigint not null,
  bytes_out bigint not null,
  -- Sum over the uses that have one, and how many those are.
  latency_ms bigint not null,
  timed bigint not null,
  primary key (app, hour, kind, class, status_class)
);
create index hour_at on metering.hour (hour);
create table metering.day (
  day date not null,
  app text not null,
  kind text not null,
  class text not null,
  status_class smallint not null,
  uses bigint not null,
  bytes_in bigint not null,
  bytes_out bigint not null,
  latency_ms bigint not null,
  timed bigint not null,
  primary key (app, day, kind, class, status_class)
);
create index day_at on metering.day (day);

-- Up to where uses are summed up, by when they were received; and the first day whose uses are kept.
create table metering.progress (
  one boolean primary key default true check (one),
  received_until timestamptz not null default '-infinity',
  kept_from date not null default '-infinity'
);
insert into metering.progress default values;

-- Makes the sums of some hours of one day anew, and of the day. What was dropped keeps its sums.
create function metering.roll_up(p_day date, p_hours timestamptz[] default null) returns void language plpgsql as $$
declare
  v_from timestamptz := ledger.day_start(p_day);
  v_to timestamptz := ledger.day_start(p_day + 1);
  v_hours timestamptz[] := coalesce(p_hours, array(select v_from + n * interval '1 hour' from generate_series(0, 23) n));
begin
  if p_day < (select kept_from from metering.progress) then return; end if;
  perform pg_advisory_xact_lock(7201133511000000 + (p_day - date '2000-01-01'));
  delete from metering.hour where hour = any (v_hours);
  insert into metering.hour
    select date_trunc('hour', at, 'UTC'), coalesce(app, ''), kind, class, coalesce(status / 100, 0),
      count(*), coalesce(sum(bytes_in), 0), coalesce(sum(bytes_out), 0), coalesce(sum(latency_ms), 0), count(latency_ms)
    from ledger.usage where at >= v_from and at < v_to and date_trunc('hour', at, 'UTC') = any (v_hours)
    group by 1, 2, 3, 4, 5;
  delete from metering.day where day = p_day;
  insert into metering.day
    select p_day, app, kind, class, status_class, sum(uses), sum(bytes_in), sum(bytes_out), sum(latency_ms), sum(timed)
    from metering.hour where hour >= v_from and hour < v_to group by app, kind, class, status_class;
end $$;

-- Sums up the hours of which uses have come since the last time. Returns how many hours.
-- A use is seen by others only once its transaction ends, so the last minutes are looked at again.
create function metering.roll_up_new() returns integer language plpgsql as $$
declare
  v_mark timestamptz;
  v_now timestamptz := clock_timestamp();
  v_hours integer := 0;
  r record;
begin
  select received_until into v_mark from metering.progress for update;
  for r in
    select (hour at time zone 'utc')::date as day, array_agg(hour) as hours
    from (select distinct date_trunc('hour', at, 'UTC') as hour from ledger.usage where received_at >= v_mark) h group by 1 order by 1
  loop
    perform metering.roll_up(r.day, r.hours);
    v_hours := v_hours + cardinality(r.hours);
  end loop;
  update metering.progress set received_until = v_now - interval '2 minutes';
  return v_hours;
end $$;

-- Drops the uses of days that ended before p_before, once they are summed up and their costs are known. Returns how many
-- days.
create function metering.drop_days(p_before timestamptz) returns integer language plpgsql as $$
declare
  v_before date := (p_before at time zone 'utc')::date;
  v_dropped integer := 0;
  v_waits boolean;
  r record;
begin
  for r in select * from ledger.usage_days() where day < v_before order by day loop
    perform metering.roll_up(r.day);
    execute format('select exists (select from ledger.%I where cost_source = ''pending'')', r.partition) into v_waits;
    if v_waits then continue; end if;
    execute format('drop table ledger.%I', r.partition);
    v_dropped := v_dropped + 1;
  end loop;
  update metering.progress set kept_from = v_before where kept_from < v_before;
  return v_dropped;
end $$;
