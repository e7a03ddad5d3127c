-- Calls of models that requests with an Idempotency-Key have made. A request that is sent again because its process died, or
-- because it failed without a known cost, makes its calls again: the router may bill both, and each then knows of the other.

create table ledger.keyed_call (
  hold_id uuid primary key,
  scope text not null,
  key text not null,
  -- Which try of the request made it.
  owner uuid not null,
  -- What tells the calls of one try apart: the model.
  label text not null,
  -- The call of an earlier try that it repeats.
  retry_of uuid,
  at timestamptz not null
);
create index keyed_call_key on ledger.keyed_call (scope, key);
create index keyed_call_at on ledger.keyed_call (at);

-- Notes a call before it is made. The hold of an earlier try is handed to the reconciler, since nobody else will settle it.
-- Returns the id of that hold; null where there is none, or it cost nothing.
create function ledger.note_keyed_call(p_scope text, p_key text, p_owner uuid, p_hold uuid, p_label text, p_at timestamptz default null)
returns uuid language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_before uuid;
begin
  select hold_id into v_before from ledger.keyed_call
    where scope = p_scope and key = p_key and label = p_label and owner <> p_owner and at > v_at - interval '1 day'
      and exists (select from ledger.hold h where h.id = hold_id and h.state <> 'voided')
    order by at desc limit 1;
  insert into ledger.keyed_call (hold_id, scope, key, owner, label, retry_of, at)
    values (p_hold, p_scope, p_key, p_owner, p_label, v_before, v_at) on conflict do nothing;
  if exists (select from ledger.hold where id = v_before and state = 'open') then
    perform ledger.pend(v_before, null, null, 0, p_at);
  end if;
  return v_before;
end $$;
