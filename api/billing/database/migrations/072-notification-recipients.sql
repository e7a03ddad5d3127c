-- Several recipients of an app's notifications: contacts that confirmed their address, and which kinds of events each channel
-- sends.

-- Kinds of events that a channel of an app sends. No row: all of them, also those that are added later.
create table author.notification_choice (
  app text not null,
  channel text not null check (channel in ('mail', 'webhook')),
  events text[] not null check (cardinality(events) > 0),
  primary key (app, channel)
);

insert into author.notification_choice (app, channel, events)
  select app, channel, events from author.notification_target
  where channel = 'webhook' and cardinality(events) > 0
    and not events @> array['live', 'rejected', 'crashed', 'rolled_back', 'secret_missing', 'budget_low', 'budget_spent'];

-- One row for each recipient. That of the contact in the repository only says how its mails go.
alter table author.notification_target
  -- Keyed hash of a contact; empty for the webhook, of which there is one.
  add column recipient text not null default '',
  -- Address of a contact that was added, sealed with a key of the installation.
  add column address text,
  -- When the owner of the address confirmed it.
  add column confirmed_at timestamptz;
update author.notification_target t set recipient = coalesce((
    select d.contact from author.delivery d where d.app = t.app and d.channel = 'mail' order by d.created_at desc limit 1), '')
  where t.channel = 'mail';
delete from author.notification_target where channel = 'mail' and recipient = '';
alter table author.notification_target
  drop column events,
  drop constraint notification_target_pkey,
  drop constraint notification_target_check,
  add primary key (app, channel, recipient),
  add check ((channel = 'webhook') = (url is not null)),
  add check ((channel = 'webhook') = (recipient = '')),
  -- Of a contact that was added, the version is part of the link that confirms it.
  add check (case channel when 'mail' then (address is null) = (version is null) else version is not null end);

alter table author.delivery add column recipient text not null default '';
update author.delivery set recipient = contact where contact is not null;
drop index author.delivery_contact;
alter table author.delivery
  drop column contact,
  drop constraint delivery_pkey,
  add primary key (event, channel, recipient);
create index delivery_recipient on author.delivery (recipient, created_at desc) where recipient <> '';

-- Payouts of the last days, of which authors are notified.
create index line_payout on revenue.line (posted_at) where kind = 'payout';
