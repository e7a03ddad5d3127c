-- Values of the tool `memory` may be JSON beside text: kept as text, with a mark that says which it is.

alter table tools.memory add column is_json boolean not null default false;

-- As tools.remember, with the mark.
create function tools.remember_value(p_owner text, p_session text, p_key text, p_value text, p_is_json boolean, p_ttl_ms bigint, p_entries int, p_bytes bigint, p_at timestamptz default null)
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
  insert into tools.memory (owner, session, key, value, is_json, updated_at, expires_at)
    values (p_owner, p_session, p_key, p_value, p_is_json, v_at, v_at + p_ttl_ms * interval '1 millisecond')
    on conflict (owner, session, key) do update
      set value = excluded.value, is_json = excluded.is_json, updated_at = excluded.updated_at, expires_at = excluded.expires_at;
  return json_build_object('stored', true, 'entries', v_entries, 'bytes', v_bytes, 'expires_at', v_at + p_ttl_ms * interval '1 millisecond');
end $$;

-- A replica of the version before writes text, also over a value that was JSON.
create or replace function tools.remember(p_owner text, p_session text, p_key text, p_value text, p_ttl_ms bigint, p_entries int, p_bytes bigint, p_at timestamptz default null)
returns json language sql as $$
  select tools.remember_value(p_owner, p_session, p_key, p_value, false, p_ttl_ms, p_entries, p_bytes, p_at)
$$;
