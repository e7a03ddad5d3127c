-- Files that tools have made, kept for a while at addresses that nobody guesses; and the tool in the record of a use.

create schema if not exists tools;

create table tools.artifact (
  -- 128 random bits: who knows it may read the file.
  id text primary key,
  -- A salted hash of the caller, for whom so much is kept.
  owner text not null,
  media_type text not null,
  file_name text not null,
  bytes bytea not null,
  size integer not null,
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null
);
-- Files are compressed already where they can be.
alter table tools.artifact alter column bytes set storage external;
create index artifact_owner on tools.artifact (owner, created_at);

-- The file of a job is kept with it, and has such an address too.
alter table tools.job add column file_id text;
create unique index job_file on tools.job (file_id) where file_id is not null;

alter table ledger.usage add column tool text;
create index usage_tool on ledger.usage (tool, at) where tool is not null;

-- Writes a usage event, or fills in the cost of one that was pending. True when it was not known before.
create or replace function ledger.record_usage(p_id text, p_usage jsonb, p_cost numeric, p_source text, p_at timestamptz) returns boolean language plpgsql as $$
declare
  v_new boolean;
begin
  insert into ledger.usage as u (id, kind, at, caller, app, model, tool, tokens_in, tokens_out, latency_ms, cost, cost_source)
    values (p_id, p_usage ->> 'kind', coalesce((p_usage ->> 'at')::timestamptz, p_at), p_usage ->> 'caller', p_usage ->> 'app', p_usage ->> 'model', p_usage ->> 'tool',
      (p_usage ->> 'tokens_in')::integer, (p_usage ->> 'tokens_out')::integer, (p_usage ->> 'latency_ms')::integer, p_cost, p_source)
    on conflict (id) do update set cost = excluded.cost, cost_source = excluded.cost_source,
        tokens_in = coalesce(excluded.tokens_in, u.tokens_in), tokens_out = coalesce(excluded.tokens_out, u.tokens_out)
      where u.cost_source = 'pending' and excluded.cost is not null
    returning xmax = 0 into v_new;
  return coalesce(v_new, false);
end $$;
