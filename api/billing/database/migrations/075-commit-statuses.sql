-- Commit statuses that are reported to the forges of apps. The tokens themselves are in a Secret of the cluster.

-- One for each app whose author set a token. Deleting it ends what is waiting.
create table author.forge_token (
  -- UID of the HostedApp.
  app text primary key,
  -- Changes with each token. The Secret names it too, so that a token is used only for its own row.
  version uuid not null default gen_random_uuid(),
  -- Host, owner and name that it was set for. It is sent for no other repository.
  repository text not null,
  set_at timestamptz not null default clock_timestamp(),
  -- When the forge rejected it, and with which status. It is not sent again.
  refused_at timestamptz,
  refused_status integer,
  check ((refused_at is null) = (refused_status is null))
);

-- The newest status of each commit, and how its delivery goes.
create table author.commit_status (
  app text not null references author.forge_token on delete cascade,
  commit text not null,
  -- UID of the HostedApp that builds the commit (the app or a preview), and its resourceVersion when it was read.
  source text not null,
  seen bigint not null,
  state text not null check (state in ('pending', 'success', 'failure', 'ended')),
  description text not null check (char_length(description) <= 140),
  target_url text not null,
  -- Changes with the status.
  revision integer not null default 1,
  changed_at timestamptz not null default clock_timestamp(),
  delivery text not null default 'waiting' check (delivery in ('waiting', 'delivered', 'abandoned')),
  attempts integer not null default 0,
  -- When the next attempt is due. The replica that makes an attempt moves it to the end of its lease first.
  due_at timestamptz not null default clock_timestamp(),
  -- Identifies the attempt that is being made. Statuses of a commit are sent one after another.
  claim uuid,
  last_error text,
  primary key (app, commit)
);
create index commit_status_due on author.commit_status (due_at) where delivery = 'waiting';
