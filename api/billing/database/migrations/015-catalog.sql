-- What the catalog keeps: what forges report of repositories, and who called which app first and last. And an index that
-- answers what an app used in a time without its rows.

-- Indexes of a large ledger take longer than a statement may take otherwise.
set local statement_timeout = 0;

create schema if not exists catalog;

create table catalog.repository (
  -- Address of the repository in normal form.
  url text primary key check (length(url) between 1 and 600),
  host text not null,
  -- Which kind of forge answered, and the ETag of its answer.
  forge text,
  etag text,
  stars integer check (stars >= 0),
  stars_at timestamptz,
  -- SPDX identifier, where the forge recognises a licence.
  license text,
  -- Why the last question failed.
  reason text,
  failures integer not null default 0,
  claimed_at timestamptz,
  next_at timestamptz not null,
  check ((stars is null) = (stars_at is null))
);
create index repository_due on catalog.repository (next_at);

-- First and last call of an app by a caller, derived from the uses: made again from them where it is lost.
create table catalog.caller (
  app text not null,
  -- A salted hash, as in the record of the use.
  caller text not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (app, caller),
  check (first_at <= last_at)
) with (fillfactor = 80);
create index caller_last on catalog.caller (app, last_at);
create index caller_at on catalog.caller (last_at);

drop index ledger.usage_app;
create index usage_app on ledger.usage (app, at) include (kind, latency_ms, cost, cost_source) where app is not null;
-- Calls of apps in the order of time, from which the callers are brought up to date.
create index usage_app_call on ledger.usage (at) include (app, caller) where kind = 'app';
