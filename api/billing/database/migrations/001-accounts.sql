-- Accounts, transactions and entries: the double-entry book itself.
-- Entries are never changed or removed; a mistake is mended by a transaction that reverses it.

create schema ledger;

-- day is -infinity for an account that lasts, so that one plain unique index serves both kinds.
create table ledger.account (
  id bigint generated always as identity primary key,
  kind text not null check (kind ~ '^[a-z][a-z-]{0,39}$'),
  owner text not null check (length(owner) between 1 and 200),
  day date not null default '-infinity',
  unique (kind, owner, day)
);

-- The reference makes a transaction happen once, however often it is sent.
create table ledger.transaction (
  id bigint generated always as identity primary key,
  reference text not null unique,
  kind text not null,
  at timestamptz not null
);

-- Debits are positive, credits negative.
create table ledger.entry (
  transaction_id bigint not null references ledger.transaction,
  line smallint not null check (line > 0),
  account_id bigint not null references ledger.account,
  amount numeric(20,12) not null,
  primary key (transaction_id, line)
);
create index entry_account on ledger.entry (account_id) include (amount);

-- Running totals of the accounts that have a limit: |balance| + held is what of the limit is taken.
-- Both are derived (entries, open holds) and kept here only so that a reservation is one row lock; audit() compares them.
create table ledger.budget (
  account_id bigint primary key references ledger.account,
  balance numeric(20,12) not null,
  held numeric(20,12) not null check (held >= 0)
) with (fillfactor = 50);

create function ledger.check_balanced() returns trigger language plpgsql as $$
declare
  total numeric;
begin
  select sum(amount) into total from ledger.entry where transaction_id = new.transaction_id;
  if total <> 0 then
    raise exception 'transaction % does not balance: its entries sum to %', new.transaction_id, total
      using errcode = 'check_violation', constraint = 'entry_balanced';
  end if;
  return null;
end $$;

create constraint trigger entry_balanced after insert on ledger.entry
  deferrable initially deferred for each row execute function ledger.check_balanced();

create function ledger.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% of ledger.% is refused: book a reversing transaction instead', tg_op, tg_table_name
    using errcode = 'restrict_violation';
end $$;

create trigger entry_immutable before update or delete or truncate on ledger.entry
  for each statement execute function ledger.refuse_change();
create trigger transaction_immutable before update or delete or truncate on ledger.transaction
  for each statement execute function ledger.refuse_change();

-- Reads an amount from text; a digit that numeric(20,12) would round away is an error, not a rounding.
create function ledger.amount(p_text text) returns numeric language plpgsql immutable as $$
declare
  v numeric := p_text::numeric;
begin
  if v is null or scale(trim_scale(v)) > 12 or v = 'NaN' then
    raise exception 'not an amount of at most 12 decimals: %', p_text using errcode = 'invalid_parameter_value';
  end if;
  return v;
end $$;

create function ledger.account_day(p_daily boolean, p_at timestamptz) returns date language sql stable as $$
  select case when p_daily then (p_at at time zone 'utc')::date else '-infinity'::date end
$$;

-- The id of an account, made on first use.
create function ledger.account_id(p_kind text, p_owner text, p_day date) returns bigint language plpgsql as $$
declare
  v_id bigint;
begin
  select id into v_id from ledger.account where kind = p_kind and owner = p_owner and day = p_day;
  if v_id is not null then return v_id; end if;
  insert into ledger.account (kind, owner, day) values (p_kind, p_owner, p_day) on conflict do nothing;
  select id into strict v_id from ledger.account where kind = p_kind and owner = p_owner and day = p_day;
  return v_id;
end $$;

-- Books one transaction. p_release is freed from what is held on the accounts of the first two lines.
-- Entries go in before budgets are touched: their foreign key waits for a budget being made, so that none misses an entry.
create function ledger.book(p_reference text, p_kind text, p_at timestamptz, p_accounts bigint[], p_amounts numeric[], p_release numeric)
returns bigint language plpgsql as $$
declare
  v_id bigint;
begin
  insert into ledger.transaction (reference, kind, at) values (p_reference, p_kind, p_at) returning id into v_id;
  insert into ledger.entry (transaction_id, line, account_id, amount)
    select v_id, line, account, amount from unnest(p_accounts, p_amounts) with ordinality as l (account, amount, line);
  -- Two lines are those of a settlement, whose budgets are locked already.
  if cardinality(p_accounts) > 2 or p_kind <> 'settle' then
    perform 1 from ledger.budget where account_id = any (p_accounts) order by account_id for update;
  end if;
  update ledger.budget b set balance = b.balance + l.amount, held = b.held - l.release
    from (select account, sum(amount) as amount, sum(case when line <= 2 then p_release else 0 end) as release
          from unnest(p_accounts, p_amounts) with ordinality as l (account, amount, line) group by account) l
    where b.account_id = l.account;
  return v_id;
end $$;

-- Books a plain transaction, lines [{kind, owner, daily, amount}]. Sent twice with the same entries it is booked once.
create function ledger.post(p_reference text, p_kind text, p_lines jsonb, p_at timestamptz default null) returns jsonb language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_accounts bigint[] := '{}';
  v_amounts numeric[] := '{}';
  v_known bigint;
  r record;
begin
  -- A second sender waits here for the first, so that both get the one transaction.
  perform pg_advisory_xact_lock(hashtextextended('ledger.post:' || p_reference, 0));
  select id, at into v_known, v_at from ledger.transaction where reference = p_reference;
  v_at := coalesce(v_at, p_at, clock_timestamp());
  for r in
    select l.* from rows from (jsonb_to_recordset(p_lines) as (kind text, owner text, daily boolean, amount text)) with ordinality
      as l (kind, owner, daily, amount, line) order by l.kind, l.owner, l.daily, l.line
  loop
    v_accounts := v_accounts || ledger.account_id(r.kind, r.owner, ledger.account_day(r.daily, v_at));
    v_amounts := v_amounts || ledger.amount(r.amount);
  end loop;
  if v_known is null then
    return jsonb_build_object('outcome', 'booked', 'id', ledger.book(p_reference, p_kind, v_at, v_accounts, v_amounts, 0)::text);
  end if;
  if exists (
    select account_id, amount from ledger.entry where transaction_id = v_known
    except all select account, amount from unnest(v_accounts, v_amounts) as l (account, amount)
  ) or (select count(*) from ledger.entry where transaction_id = v_known) <> cardinality(v_accounts) then
    return jsonb_build_object('outcome', 'conflict', 'id', v_known::text);
  end if;
  return jsonb_build_object('outcome', 'replayed', 'id', v_known::text);
end $$;
