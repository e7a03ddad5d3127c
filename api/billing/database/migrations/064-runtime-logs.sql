-- What apps print while they run, for their authors: the newest lines of each app, and the last lines before each crash.

-- The replica that collects, as a row: it is free again soon after its holder was killed.
create table author.log_collector (
  id int primary key default 1 check (id = 1),
  holder text not null,
  until timestamptz not null
);

-- How far each container of a pod was read. It changes in the transaction that stores the lines, so a collector that was
-- killed leaves neither a gap nor a line twice.
create table author.log_stream (
  id bigint generated always as identity primary key,
  -- UID of the HostedApp.
  app text not null,
  pod_uid text not null,
  pod text not null,
  container text not null,
  -- The component that the container runs.
  component text not null,
  -- Of the last line that was read: its time (RFC 3339 with nine digits, UTC), and how many lines with that time were read.
  last_at text collate "C" not null,
  last_count int not null,
  -- The latest time of all lines so far: the lines of two streams of a process can be in another order than their times.
  max_at text collate "C" not null,
  -- Counts up with each change. Whoever read another version stores nothing.
  version bigint not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (pod_uid, container)
);
create index log_stream_app on author.log_stream (app);

-- Lines in the order in which they were stored. Secrets are masked. Lines are added to the newest chunk of an app while it is small.
create table author.log_chunk (
  id bigint generated always as identity primary key,
  app text not null,
  -- Each ends with a line feed: time, id of the stream, text.
  lines text not null,
  count int not null,
  bytes int not null,
  -- The latest time of its lines.
  last_at text collate "C" not null,
  created_at timestamptz not null default now()
);
create index log_chunk_app on author.log_chunk (app, id desc);

create table author.crash (
  id bigint generated always as identity primary key,
  app text not null,
  -- Identifies what ended: the id of the container.
  instance text not null,
  at timestamptz not null,
  pod text not null,
  component text not null,
  restarts int not null,
  exit_code int not null,
  signal int,
  -- As Kubernetes says it: OOMKilled, Error, Completed.
  reason text not null,
  -- The last lines before the end: time and text. Secrets are masked.
  lines jsonb not null,
  created_at timestamptz not null default now(),
  unique (app, instance)
);

-- Values that are masked in what an app prints. A keyed hash says nothing about the value to those who have this table alone.
create table author.secret_fingerprint (
  app text not null,
  -- Variable that the value was set for.
  name text not null,
  length int not null,
  -- Keyed hashes of the first characters and of all of them, which are cheap to compute at each position of a line.
  prefix int not null,
  rolling int not null,
  -- HMAC-SHA-256 of the value, in hexadecimal digits.
  hmac text not null,
  created_at timestamptz not null default now(),
  primary key (app, hmac)
);
