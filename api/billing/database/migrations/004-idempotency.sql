-- Idempotency keys: one request, one effect, one stored answer, for as long as the key is remembered.

create table ledger.idempotency (
  -- Whose key it is: endpoint and caller, so that no one reads another's answer.
  scope text not null,
  key text not null,
  request_hash text not null,
  -- Who works on it now; an answer of an owner whose lease was taken over is not stored.
  owner uuid not null,
  lease_until timestamptz not null,
  -- json, not jsonb: the second sender gets the same text, with its fields in the same order.
  response json,
  expires_at timestamptz not null,
  primary key (scope, key)
);
create index idempotency_expiry on ledger.idempotency (expires_at);

create function ledger.begin_request(p_scope text, p_key text, p_hash text, p_owner uuid, p_lease_ms bigint, p_keep_ms bigint, p_at timestamptz default null)
returns json language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_lease timestamptz := v_at + p_lease_ms * interval '1 millisecond';
  v_known ledger.idempotency;
begin
  insert into ledger.idempotency as i (scope, key, request_hash, owner, lease_until, expires_at)
    values (p_scope, p_key, p_hash, p_owner, v_lease, v_at + p_keep_ms * interval '1 millisecond')
    on conflict (scope, key) do update
      set request_hash = excluded.request_hash, owner = excluded.owner, lease_until = excluded.lease_until, response = null, expires_at = excluded.expires_at
      where i.owner = excluded.owner and i.response is null or i.expires_at <= v_at or (i.response is null and i.lease_until <= v_at and i.request_hash = excluded.request_hash)
    returning * into v_known;
  if found then return json_build_object('outcome', 'begun'); end if;
  select * into v_known from ledger.idempotency where scope = p_scope and key = p_key;
  if v_known.request_hash <> p_hash then return json_build_object('outcome', 'mismatch'); end if;
  if v_known.response is null then return json_build_object('outcome', 'in_flight', 'lease_until', v_known.lease_until); end if;
  return json_build_object('outcome', 'answered', 'response', v_known.response);
end $$;
