-- Receipts: each transaction is linked into the chain of a UTC day, and each day is sealed with the Merkle root of its links.
-- All that is signed is signed by the API. Whoever has only the database can break this record, and not mend it.

create schema receipts;

-- Transactions that are not linked yet. A row comes with its transaction, in one commit, so that none is passed over
-- however late it commits and whatever its number and time are. What was there before receipts waits first.
create table receipts.waiting (
  transaction_id bigint primary key,
  since timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

create function receipts.wait() returns trigger language plpgsql as $$
begin
  insert into receipts.waiting (transaction_id) values (new.id);
  return null;
end $$;

-- One transaction in the chain of its day.
create table receipts.link (
  -- Without a foreign key: checking it would lock each transaction once more, and a missing one has to be found anyway.
  transaction_id bigint primary key,
  day date not null,
  -- In the day, from 0.
  position integer not null check (position >= 0),
  -- The transaction as it was: canonical JSON, so that what is changed or deleted later can be named, and put back.
  leaf text not null,
  hash bytea not null,
  chain bytea not null,
  unique (day, position)
);

-- A sealed day, as it is published and signed; tiles are the roots of each 256 links, from which proofs are made.
create table receipts.day (
  day date primary key,
  document jsonb not null,
  tiles bytea not null
);

-- The newest signed state of the days that are not sealed yet.
create table receipts.checkpoint (
  one boolean primary key default true check (one),
  document jsonb not null
);

create function receipts.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% of receipts.% is refused: what is signed stays as it is', tg_op, tg_table_name using errcode = 'restrict_violation';
end $$;
create trigger link_immutable before update or delete or truncate on receipts.link
  for each statement execute function receipts.refuse_change();
create trigger day_immutable before update or delete or truncate on receipts.day
  for each statement execute function receipts.refuse_change();

set local statement_timeout = 0;
insert into receipts.waiting (transaction_id) select id from ledger.transaction;
create trigger transaction_waits after insert on ledger.transaction for each row execute function receipts.wait();

-- A caller's own charges, by day.
create index usage_caller on ledger.usage (caller, at) where caller is not null and kind <> 'visit';
