-- Jobs: calls of tools that outlast a request. Whichever process has room takes one, and takes it up again when its process dies.

create schema if not exists tools;

create table tools.job (
  -- Random, and all that a poll needs beside the caller: nobody guesses one.
  id uuid primary key,
  tool text not null,
  -- json, not jsonb, here and below: it comes back as it went in, with its fields in the same order.
  input json not null,
  -- Hash of the input: the same call while it is under way is the same job.
  fingerprint text not null,
  -- A salted hash of the caller, never an address or a key.
  owner text not null,
  payer text not null check (payer in ('anonymous', 'key')),
  session text,
  state text not null default 'queued' check (state in ('queued', 'running', 'done', 'failed')),
  progress real not null default 0 check (progress between 0 and 1),
  message text not null default '',
  -- How often it was begun.
  attempt smallint not null default 0,
  -- The process that works on it, for as long as its lease is renewed. A job that is paid with a caller's own key has one
  -- from the start, since the key is in that process and nowhere else.
  runner uuid,
  lease_until timestamptz,
  -- What was set aside for it in the ledger, in all attempts: what it cost is the sum of what these cost.
  holds uuid[] not null default '{}',
  result json,
  problem json,
  artifact bytea,
  artifact_bytes integer,
  media_type text,
  file_name text,
  created_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  expires_at timestamptz not null
);
-- Files are compressed already where they can be.
alter table tools.job alter column artifact set storage external;
create unique index job_same on tools.job (owner, tool, fingerprint) where state in ('queued', 'running');
create index job_due on tools.job (created_at) where state in ('queued', 'running');
create index job_ended on tools.job (owner, ended_at) where state in ('done', 'failed');
create index job_expiry on tools.job (expires_at);
