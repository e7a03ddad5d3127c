-- What the containers of apps used, as kubelets counted it: the last sample of each, and the sums by app and hour.

-- The last sample of each container. One that is started anew is another container.
create table metering.container (
  container text primary key check (length(container) between 1 and 200),
  app text not null,
  at timestamptz not null,
  -- Microseconds of CPU since the container started; the highest that was seen.
  cpu_us bigint not null check (cpu_us >= 0),
  memory_bytes bigint not null check (memory_bytes >= 0)
) with (fillfactor = 70);
create index container_at on metering.container (at);

create table metering.compute_hour (
  app text not null,
  hour timestamptz not null,
  cpu_seconds numeric(20,6) not null,
  memory_byte_seconds numeric(30) not null,
  primary key (app, hour)
);

-- Counts samples: [{container, app, started_at, at, cpu_us, memory_bytes}]. From each to the one before it in the same
-- container, the CPU by which the counter rose is shared out over the hours by time, and memory is the area under the
-- line between both (trapezoid). A container begins with nothing, so its first sample counts from its start. A sample
-- that is not newer than the last of its container counts nothing, nor does a counter that went back.
-- Where samples are far apart, CPU is counted all the same; memory only for the last five minutes before the later one.
-- What is known of a container is kept for 30 days: one that started before and is unknown may have been counted
-- already, and is counted from its first sample on. Samples ahead of the clock would hide those that follow, and are refused.
create function metering.add_compute(p_samples jsonb, p_now timestamptz default null,
  out counted integer, out ignored integer, out refused integer, out cpu_seconds numeric, out memory_byte_seconds numeric)
language plpgsql as $$
declare
  v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
  -- A leader that is about to end may still send while the next one does.
  perform pg_advisory_xact_lock(7201133511);
  with given as (
    select * from jsonb_to_recordset(p_samples)
      as s (container text, app text, started_at timestamptz, at timestamptz, cpu_us bigint, memory_bytes bigint)
  ), timely as (
    select distinct on (container, at) * from given where at <= v_now + interval '5 minutes' order by container, at, cpu_us desc
  ), newer as (
    select t.*, k.at as known_at, k.cpu_us as known_cpu_us, k.memory_bytes as known_memory_bytes
    from timely t left join metering.container k using (container) where k.at is null or t.at > k.at
  ), risen as (
    select *, greatest(max(cpu_us) over (partition by container order by at), known_cpu_us) as high from newer
  ), step as (
    select container, app, at, high, memory_bytes,
      coalesce(lag(at) over w, known_at,
        case when started_at > v_now - interval '30 days' then least(started_at, at - interval '1 second') else at end) as from_at,
      coalesce(lag(high) over w, known_cpu_us, case when started_at > v_now - interval '30 days' then 0 else high end) as from_us,
      coalesce(lag(memory_bytes) over w, known_memory_bytes, 0) as from_bytes
    from risen window w as (partition by container order by at)
  ), remembered as (
    insert into metering.container as known (container, app, at, cpu_us, memory_bytes)
      select distinct on (container) container, app, at, high, memory_bytes from step order by container, at desc
    on conflict (container) do update set app = excluded.app, at = excluded.at, cpu_us = excluded.cpu_us, memory_bytes = excluded.memory_bytes
  ), piece as (
    -- Seconds since the step began at the start and the end of its part of an hour; m where memory begins to count.
    select s.*, h.hour, extract(epoch from at - from_at) as whole,
      extract(epoch from greatest(h.hour, from_at) - from_at) as a,
      extract(epoch from least(h.hour + interval '1 hour', at) - from_at) as b,
      greatest(extract(epoch from at - from_at) - 300, 0) as m
    from step s cross join lateral generate_series(date_trunc('hour', from_at, 'UTC'), at, interval '1 hour') as h (hour)
    where at > from_at and h.hour < at
  ), part as (
    -- Each part is the difference of two rounded totals, so that the parts add up to the whole.
    select app, hour,
      trunc((high - from_us) * b / whole) - trunc((high - from_us) * a / whole) as us,
      metering.area(from_bytes, memory_bytes, whole - m, b - m) - metering.area(from_bytes, memory_bytes, whole - m, a - m) as byte_seconds
    from piece
  ), summed as (
    select app, hour, sum(us) / 1000000 as seconds, sum(byte_seconds) as byte_seconds from part group by app, hour
  ), added as (
    insert into metering.compute_hour as known (app, hour, cpu_seconds, memory_byte_seconds)
      select app, hour, seconds, byte_seconds from summed order by app, hour
    on conflict (app, hour) do update set cpu_seconds = known.cpu_seconds + excluded.cpu_seconds,
      memory_byte_seconds = known.memory_byte_seconds + excluded.memory_byte_seconds
  )
  select (select count(*) from newer), (select count(*) from given where at <= v_now + interval '5 minutes') - (select count(*) from newer),
    (select count(*) from given where at > v_now + interval '5 minutes'), coalesce(sum(seconds), 0), coalesce(sum(byte_seconds), 0)
    into counted, ignored, refused, cpu_seconds, memory_byte_seconds from summed;
end $$;

-- Byte-seconds after p_seconds under the line from p_from to p_to that is p_whole seconds long, rounded down.
create function metering.area(p_from bigint, p_to bigint, p_whole numeric, p_seconds numeric) returns numeric language sql immutable as $$
  select case when p_whole <= 0 or p_seconds <= 0 then 0
    else trunc(p_from * p_seconds + (p_to - p_from) * p_seconds * p_seconds / (2 * p_whole)) end
$$;

-- Forgets containers of which nothing was heard for 30 days. Returns how many.
create function metering.forget_containers(p_now timestamptz default null) returns integer language plpgsql as $$
declare
  v_count integer;
begin
  delete from metering.container where at < coalesce(p_now, clock_timestamp()) - interval '30 days';
  get diagnostics v_count = row_count;
  return v_count;
end $$;
