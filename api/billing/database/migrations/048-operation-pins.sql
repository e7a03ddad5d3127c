-- What an app said of its operations when one of its releases was first asked. Agents read these texts, so they stay
-- the same for the whole release, in every process and after a restart. `operations` is text, not jsonb: the order of
-- arguments is kept.
create table operation_pins (
  app text not null,
  release text not null,
  operations text not null check (octet_length(operations) <= 1048576),
  used_at timestamptz not null default now(),
  primary key (app, release)
);
create index operation_pins_used_at on operation_pins (used_at);
