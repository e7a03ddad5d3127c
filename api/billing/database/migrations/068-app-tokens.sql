-- Tokens that the owner of an app makes for programs and for people who only read, and the names of actors in the audit log.

create table author.token (
  -- First 12 digits of the hash: what lists and the audit log name it by.
  id text primary key,
  -- UID of the HostedApp.
  app text not null,
  name text not null,
  -- SHA-256 of the token, which itself is not stored.
  hash text not null,
  scopes text[] not null,
  -- Hash of the author key that made it. The token ends with the line of that key.
  author_key text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  revoked_at timestamptz,
  -- To the minute.
  last_used_at timestamptz,
  check (expires_at <= created_at + interval '366 days')
);
create index token_app on author.token (app, created_at desc);

-- The actor is the first 12 digits of the hash of an author key, or a kind, a colon and an id, as of a token. The name is what
-- its owner called it at that time.
alter table author.action add column actor_name text;
