-- What authors are notified of, where to, and how each delivery went. Every replica of the API may be killed at any time.

-- Noticed once, by whichever replica was first.
create table author.event (
  -- Sent with every attempt, so that receivers can recognize one that they already have.
  id uuid primary key default gen_random_uuid(),
  -- UID of the HostedApp, and its name at that time.
  app text not null,
  slug text not null,
  kind text not null,
  -- Distinguishes the events of a kind: a commit, the time of a crash, a day.
  subject text not null,
  -- What the message says. Never holds a secret value or a log.
  detail jsonb not null default '{}',
  at timestamptz not null default now(),
  unique (app, kind, subject)
);
create index event_app on author.event (app, at desc);

-- Where the events of an app are sent. The address of a mail is in the HostedApp, so its row only says how it goes.
create table author.notification_target (
  app text not null,
  channel text not null check (channel in ('mail', 'webhook')),
  url text,
  -- Part of what the signing secret is derived from. A new one makes the old secret worthless.
  version uuid,
  -- Kinds of events that are sent.
  events text[] not null default '{}',
  created_at timestamptz not null default now(),
  -- Since when every attempt has failed.
  failing_since timestamptz,
  -- When it was switched off, because it had failed for too long.
  off_at timestamptz,
  primary key (app, channel),
  check ((channel = 'webhook') = (url is not null and version is not null))
);

-- Contacts that want no mail about an app, as keyed hashes.
create table author.notification_stop (
  app text not null,
  contact text not null,
  at timestamptz not null default now(),
  primary key (app, contact)
);

create table author.delivery (
  event uuid not null references author.event on delete cascade,
  channel text not null check (channel in ('mail', 'webhook')),
  app text not null,
  -- Keyed hash of the contact; of a mail alone.
  contact text,
  state text not null default 'waiting' check (state in ('waiting', 'delivered', 'abandoned', 'skipped')),
  attempts integer not null default 0,
  created_at timestamptz not null default now(),
  -- When the next attempt is due. The replica that makes an attempt moves it to the end of its lease first.
  due_at timestamptz not null default now(),
  ended_at timestamptz,
  last_error text,
  primary key (event, channel)
);
create index delivery_due on author.delivery (due_at) where state = 'waiting';
create index delivery_app on author.delivery (app, created_at desc);
create index delivery_contact on author.delivery (contact, created_at desc) where contact is not null;
