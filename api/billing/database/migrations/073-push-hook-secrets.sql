-- The secret of an app's push hook, which is derived from its version. No row: the first version, which was never replaced.
create table author.push_hook (
  -- UID of the HostedApp.
  app text primary key,
  version integer not null check (version > 1),
  replaced_at timestamptz not null default clock_timestamp(),
  -- Until when the version before is valid, too.
  previous_until timestamptz
);
