-- Sign-ins that have ended, so that each ends once, at whichever replica of the API.
create table author.sign_in_state (
  -- SHA-256 of the state.
  hash text primary key,
  expires_at timestamptz not null
);
create index sign_in_state_expiry on author.sign_in_state (expires_at);
