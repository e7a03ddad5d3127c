-- What a caller without a key creates is reached by a handle that nobody guesses, from any network. Their network is
-- only counted, so that what it keeps is bounded.

-- Of an IPv6 address: the /64 and the /48 for which the quota of an anonymous job is counted, as salted hashes.
alter table tools.job add column networks text[];
create index job_context on tools.job (context) where payer = 'anonymous';

-- Spaces of the tool `memory` without a key: owner is a hash of the session name, which is the secret.
alter table tools.memory add column network text;
create index memory_network on tools.memory (network) where network is not null;

-- As tools.remember_value, and counted for a network as well.
create function tools.remember_in_network(p_owner text, p_session text, p_key text, p_value text, p_is_json boolean, p_ttl_ms bigint, p_entries int, p_bytes bigint,
  p_network text, p_network_entries int, p_network_bytes bigint, p_at timestamptz default null)
returns json language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_entries int;
  v_bytes bigint;
  v_answer json;
begin
  if p_network is null then return tools.remember_value(p_owner, p_session, p_key, p_value, p_is_json, p_ttl_ms, p_entries, p_bytes, v_at); end if;
  -- One writer for a network at a time.
  perform pg_advisory_xact_lock(hashtextextended('tools.memory network ' || p_network, 0));
  select count(*), coalesce(sum(octet_length(key) + octet_length(value)), 0) into v_entries, v_bytes from tools.memory
    where network = p_network and (owner, session, key) is distinct from (p_owner, p_session, p_key) and (expires_at is null or expires_at > v_at);
  if v_entries >= p_network_entries or v_bytes + octet_length(p_key) + octet_length(p_value) > p_network_bytes then
    return json_build_object('stored', false, 'entries', v_entries, 'bytes', v_bytes);
  end if;
  v_answer := tools.remember_value(p_owner, p_session, p_key, p_value, p_is_json, p_ttl_ms, p_entries, p_bytes, v_at);
  update tools.memory set network = p_network where (owner, session, key) = (p_owner, p_session, p_key) and network is distinct from p_network;
  return v_answer;
end $$;
