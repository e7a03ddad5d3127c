-- What callers of the tool `memory` keep: values by key, for each owner and session name.

create schema if not exists tools;

create table tools.memory (
  -- A salted hash of the caller's key, or of the address of one without.
  owner text not null,
  session text not null,
  key text not null,
  value text not null,
  updated_at timestamptz not null,
  -- Entries without it last.
  expires_at timestamptz,
  primary key (owner, session, key)
);
create index memory_expiry on tools.memory (expires_at) where expires_at is not null;

-- Stores a value, unless the owner would then have more entries or bytes than allowed. Removes some expired ones on the way.
create function tools.remember(p_owner text, p_session text, p_key text, p_value text, p_ttl_ms bigint, p_entries int, p_bytes bigint, p_at timestamptz default null)
returns json language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_entries int;
  v_bytes bigint;
begin
  -- One writer for an owner at a time, so that two cannot both take the last place.
  perform pg_advisory_xact_lock(hashtextextended('tools.memory ' || p_owner, 0));
  delete from tools.memory where (owner, session, key) in (
    select owner, session, key from tools.memory where expires_at <= v_at order by expires_at limit 100 for update skip locked);
  select count(*), coalesce(sum(octet_length(key) + octet_length(value)), 0) into v_entries, v_bytes from tools.memory
    where owner = p_owner and (session, key) is distinct from (p_session, p_key) and (expires_at is null or expires_at > v_at);
  v_entries := v_entries + 1;
  v_bytes := v_bytes + octet_length(p_key) + octet_length(p_value);
  if v_entries > p_entries or v_bytes > p_bytes then return json_build_object('stored', false, 'entries', v_entries, 'bytes', v_bytes); end if;
  insert into tools.memory (owner, session, key, value, updated_at, expires_at)
    values (p_owner, p_session, p_key, p_value, v_at, v_at + p_ttl_ms * interval '1 millisecond')
    on conflict (owner, session, key) do update set value = excluded.value, updated_at = excluded.updated_at, expires_at = excluded.expires_at;
  return json_build_object('stored', true, 'entries', v_entries, 'bytes', v_bytes, 'expires_at', v_at + p_ttl_ms * interval '1 millisecond');
end $$;
