-- The current database schema, generated from the migrations by `npm run generate`. To change it, add a migration.
-- Definitions are as PostgreSQL prints them. Comments above them come from the migrations, which PostgreSQL does not keep.
-- Not included: rows that migrations insert, the table of each day (ledger.make_day) and the rights of roles (roles.ts).

-- ==================== public ====================

-- Exists in every database.

CREATE TABLE public.moorage_migration (
  name text NOT NULL,
  checksum text NOT NULL,
  applied_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT moorage_migration_pkey PRIMARY KEY (name)
);

-- What an app said of its operations when one of its releases was first asked. Agents read these texts, so they stay
-- the same for the whole release, in every process and after a restart. `operations` is text, not jsonb: the order of
-- arguments is kept.
CREATE TABLE public.operation_pins (
  app text NOT NULL,
  release text NOT NULL,
  operations text NOT NULL,
  used_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT operation_pins_operations_check CHECK (octet_length(operations) <= 1048576),
  CONSTRAINT operation_pins_pkey PRIMARY KEY (app, release)
);
CREATE INDEX operation_pins_used_at ON public.operation_pins USING btree (used_at);

-- Sessions that callers have with the MCP servers of apps. Every replica of the API continues them from here. Of a caller
-- and of their values for variables, only hashes are kept.
CREATE TABLE public.mcp_sessions (
  -- Of the app's release, the caller, the caller's own session and their values for variables.
  key text NOT NULL,
  -- UID of the HostedApp.
  app text NOT NULL,
  caller text NOT NULL,
  -- Of the caller and the caller's own session.
  owner text NOT NULL,
  -- The id that the app gave the session, and the revision of MCP that both sides speak in it.
  session text NOT NULL,
  protocol_version text NOT NULL,
  -- Calls in progress: when each ends at the latest, in milliseconds since 1970, by the call's id. A replica that is killed
  -- leaves its calls here, and they count until then.
  calls jsonb DEFAULT '{}'::jsonb NOT NULL,
  -- Each call sets it twice. Without an index on it, such an update changes no index.
  used_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT mcp_sessions_pkey PRIMARY KEY (key)
) WITH (fillfactor=50);
CREATE INDEX mcp_sessions_app ON public.mcp_sessions USING btree (app);
CREATE INDEX mcp_sessions_owner ON public.mcp_sessions USING btree (owner);

-- ==================== ledger ====================

CREATE SCHEMA ledger;

-- What a request looks like once its accounts are resolved.
CREATE TYPE ledger.hold_request AS (
  n bigint,
  id uuid,
  amount numeric,
  ttl_ms bigint,
  debit bigint,
  debit_limit numeric,
  credit bigint,
  credit_limit numeric,
  usage jsonb
);

CREATE TYPE ledger.settle_request AS (
  n bigint,
  hold uuid,
  cost numeric,
  source text,
  usage jsonb,
  lines jsonb
);

-- day is -infinity for an account that lasts, so that one plain unique index serves both kinds.
CREATE TABLE ledger.account (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  kind text NOT NULL,
  owner text NOT NULL,
  day date DEFAULT '-infinity'::date NOT NULL,
  CONSTRAINT account_kind_check CHECK (kind ~ '^[a-z][a-z-]{0,39}$'::text),
  CONSTRAINT account_owner_check CHECK (length(owner) >= 1 AND length(owner) <= 200),
  CONSTRAINT account_pkey PRIMARY KEY (id),
  CONSTRAINT account_kind_owner_day_key UNIQUE (kind, owner, day)
);

-- The reference makes a transaction happen once, however often it is sent.
CREATE TABLE ledger.transaction (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  reference text NOT NULL,
  kind text NOT NULL,
  at timestamp with time zone NOT NULL,
  CONSTRAINT transaction_pkey PRIMARY KEY (id),
  CONSTRAINT transaction_reference_key UNIQUE (reference)
);
-- Transactions come in the order of time, so ranges of pages are enough to find those of a day.
CREATE INDEX transaction_at ON ledger.transaction USING brin (at);
CREATE TRIGGER transaction_immutable BEFORE DELETE OR UPDATE OR TRUNCATE ON ledger.transaction FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();
CREATE TRIGGER transaction_waits AFTER INSERT ON ledger.transaction REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION receipts.wait();

-- Debits are positive, credits negative.
CREATE TABLE ledger.entry (
  transaction_id bigint NOT NULL,
  line smallint NOT NULL,
  account_id bigint NOT NULL,
  amount numeric(20,12) NOT NULL,
  CONSTRAINT entry_line_check CHECK (line > 0),
  CONSTRAINT entry_pkey PRIMARY KEY (transaction_id, line),
  CONSTRAINT entry_transaction_id_fkey FOREIGN KEY (transaction_id) REFERENCES ledger.transaction(id),
  CONSTRAINT entry_account_id_fkey FOREIGN KEY (account_id) REFERENCES ledger.account(id)
);
CREATE INDEX entry_account ON ledger.entry USING btree (account_id) INCLUDE (amount);
CREATE TRIGGER entry_immutable BEFORE DELETE OR UPDATE OR TRUNCATE ON ledger.entry FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();
CREATE TRIGGER entry_balanced AFTER INSERT ON ledger.entry REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ledger.check_balanced();

-- Running totals of the accounts that have a limit: |balance| + held is what of the limit is taken.
-- Both are derived (entries, open holds) and kept here only so that a reservation is one row lock; audit() compares them.
CREATE TABLE ledger.budget (
  account_id bigint NOT NULL,
  balance numeric(20,12) NOT NULL,
  held numeric(20,12) NOT NULL,
  CONSTRAINT budget_held_check CHECK (held >= 0::numeric),
  CONSTRAINT budget_pkey PRIMARY KEY (account_id),
  CONSTRAINT budget_account_id_fkey FOREIGN KEY (account_id) REFERENCES ledger.account(id)
) WITH (fillfactor=50);

CREATE TABLE ledger.hold (
  id uuid NOT NULL,
  debit bigint NOT NULL,
  credit bigint NOT NULL,
  amount numeric(20,12) NOT NULL,
  -- open and pending holds are reserved; the others are not.
  state text DEFAULT 'open'::text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  closed_at timestamp with time zone,
  cost numeric(20,12),
  transaction_id bigint,
  usage jsonb,
  -- The networks that a hold counts for, the widest first; null for callers with a key, for apps, and for IPv4.
  networks text[],
  -- A request to several models reserves what all of them can cost before the first is called, wholly or not at all. Until a call
  -- of it is made, its hold waits: its money is reserved, and it does not count as a call in flight.
  waits boolean DEFAULT false NOT NULL,
  CONSTRAINT hold_check CHECK (credit <> debit),
  CONSTRAINT hold_amount_check CHECK (amount >= 0::numeric),
  CONSTRAINT hold_state_check CHECK (state = ANY (ARRAY['open'::text, 'pending'::text, 'settled'::text, 'voided'::text, 'expired'::text, 'abandoned'::text])),
  CONSTRAINT hold_cost_check CHECK (cost >= 0::numeric),
  CONSTRAINT hold_check1 CHECK ((state = 'settled'::text) = (cost IS NOT NULL AND transaction_id IS NOT NULL)),
  CONSTRAINT hold_pkey PRIMARY KEY (id),
  CONSTRAINT hold_transaction_id_key UNIQUE (transaction_id),
  CONSTRAINT hold_debit_fkey FOREIGN KEY (debit) REFERENCES ledger.account(id),
  CONSTRAINT hold_credit_fkey FOREIGN KEY (credit) REFERENCES ledger.account(id),
  CONSTRAINT hold_transaction_id_fkey FOREIGN KEY (transaction_id) REFERENCES ledger.transaction(id)
) WITH (fillfactor=70);
CREATE INDEX hold_open ON ledger.hold USING btree (expires_at) WHERE (state = 'open'::text);
CREATE INDEX hold_reserved ON ledger.hold USING btree (state) WHERE (state = ANY (ARRAY['open'::text, 'pending'::text]));
-- Holds are made in the order of time, so ranges of pages are enough to find old ones.
CREATE INDEX hold_created ON ledger.hold USING brin (created_at);
-- At the end of the transaction, since a settlement locks the budgets last and a reservation locks them first: locking
-- the totals before the budgets in one and after them in the other could deadlock.
CREATE CONSTRAINT TRIGGER hold_networks AFTER UPDATE ON ledger.hold DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (new.networks IS NOT NULL) EXECUTE FUNCTION ledger.count_networks();

-- Calls whose cost is not known yet. The reconciler asks the router; an abandoned row stays as a record of what was never found.
CREATE TABLE ledger.pending (
  hold_id uuid NOT NULL,
  -- missing: the router's answer had no cost. expired: our process ended before it could book.
  reason text NOT NULL,
  -- What the router knows the call by, when it told us.
  reference text,
  since timestamp with time zone NOT NULL,
  attempts integer DEFAULT 0 NOT NULL,
  next_attempt_at timestamp with time zone NOT NULL,
  abandoned_at timestamp with time zone,
  note text,
  -- What the call costs at list prices, as far as its tokens are known; null: what was reserved, which is the maximum.
  estimate numeric(20,12),
  CONSTRAINT pending_reason_check CHECK (reason = ANY (ARRAY['missing'::text, 'expired'::text])),
  CONSTRAINT pending_pkey PRIMARY KEY (hold_id),
  CONSTRAINT pending_hold_id_fkey FOREIGN KEY (hold_id) REFERENCES ledger.hold(id),
  CONSTRAINT pending_estimate_check CHECK (estimate >= 0::numeric)
);
CREATE INDEX pending_due ON ledger.pending USING btree (next_attempt_at) WHERE (abandoned_at IS NULL);

CREATE TABLE ledger.idempotency (
  -- Whose key it is: endpoint and caller, so that no one reads another's answer.
  scope text NOT NULL,
  key text NOT NULL,
  request_hash text NOT NULL,
  -- Who works on it now; an answer of an owner whose lease was taken over is not stored.
  owner uuid NOT NULL,
  lease_until timestamp with time zone NOT NULL,
  -- json, not jsonb: the second sender gets the same text, with its fields in the same order.
  response json,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT idempotency_pkey PRIMARY KEY (scope, key)
);
CREATE INDEX idempotency_expiry ON ledger.idempotency USING btree (expires_at);

-- Uses, each with an id of its own, so that one sent twice is counted once. A model call has the id of its hold.
CREATE TABLE ledger.usage (
  at timestamp with time zone NOT NULL,
  id text NOT NULL,
  -- ask, compare, v1, tool, app: a metered call. visit: a request that the gateway passed on.
  kind text NOT NULL,
  -- What a visit was: use, asset, health, …; a metered call is a use.
  class text DEFAULT 'use'::text NOT NULL,
  caller text,
  app text,
  model text,
  tool text,
  tokens_in integer,
  tokens_out integer,
  latency_ms integer,
  status smallint,
  bytes_in bigint,
  bytes_out bigint,
  -- The run of a gateway that counted it.
  instance bigint,
  -- null while it is not known
  cost numeric(20,12),
  cost_source text NOT NULL,
  received_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  price_version text,
  request text,
  -- Salted hash of the /24 or /48 that a visit came from, with the salt of its day. Null for uses before this column.
  network text,
  CONSTRAINT usage_id_check CHECK (length(id) >= 1 AND length(id) <= 200),
  CONSTRAINT usage_cost_check CHECK ((cost IS NULL) = (cost_source = ANY (ARRAY['pending'::text, 'none'::text]))),
  -- In the order of time, so that new rows go to the end of the index; it serves reads by time too.
  CONSTRAINT usage_pkey PRIMARY KEY (at, id),
  CONSTRAINT usage_cost_source_check CHECK (cost_source = ANY (ARRAY['billed'::text, 'router_computed'::text, 'router_record'::text, 'tariff'::text, 'estimated'::text, 'pending'::text, 'none'::text]))
) PARTITION BY RANGE (at);
-- Visits are many and read from sums; only metered calls are looked up by app and tool.
CREATE INDEX usage_app ON ledger.usage USING btree (app, at) INCLUDE (kind, latency_ms, cost, cost_source) WHERE ((app IS NOT NULL) AND (kind <> 'visit'::text));
CREATE INDEX usage_tool ON ledger.usage USING btree (tool, at) WHERE (tool IS NOT NULL);
-- Calls of apps in the order of time, from which the callers are brought up to date.
CREATE INDEX usage_app_call ON ledger.usage USING btree (at) INCLUDE (app, caller) WHERE (kind = 'app'::text);
CREATE INDEX usage_pending ON ledger.usage USING btree (at) WHERE (cost_source = 'pending'::text);
-- Rows come in the order of their arrival: from it, sums are brought up to date.
CREATE INDEX usage_received ON ledger.usage USING brin (received_at) WITH (autosummarize='on');
-- A caller's own charges, by day.
CREATE INDEX usage_caller ON ledger.usage USING btree (caller, at) WHERE ((caller IS NOT NULL) AND (kind <> 'visit'::text));
CREATE INDEX usage_request ON ledger.usage USING btree (caller, request) WHERE (request IS NOT NULL);

-- Holds what has no day of its own yet: nothing is lost where days are made late.
CREATE TABLE ledger.usage_default PARTITION OF ledger.usage DEFAULT;

-- Calls that cost more than was reserved for them. One that is not lifted stops its caller and its model until the day is over.
CREATE TABLE ledger.overrun (
  hold_id uuid NOT NULL,
  -- UTC day on which it was settled, when the call was reserved, and when it was settled.
  day date NOT NULL,
  called_at timestamp with time zone NOT NULL,
  settled_at timestamp with time zone NOT NULL,
  payer_kind text NOT NULL,
  payer text NOT NULL,
  model text,
  held numeric(20,12) NOT NULL,
  cost numeric(20,12) NOT NULL,
  lifted_at timestamp with time zone,
  CONSTRAINT overrun_check CHECK (cost > held),
  CONSTRAINT overrun_pkey PRIMARY KEY (hold_id)
);
CREATE INDEX overrun_day ON ledger.overrun USING btree (day);
CREATE INDEX overrun_called ON ledger.overrun USING btree (called_at);

-- Models with a call that cost no more than was reserved, at least once an hour: until then, one call is made at a time.
CREATE TABLE ledger.proven_model (
  model text NOT NULL,
  at timestamp with time zone NOT NULL,
  CONSTRAINT proven_model_pkey PRIMARY KEY (model)
);

CREATE TABLE ledger.keyed_call (
  hold_id uuid NOT NULL,
  scope text NOT NULL,
  key text NOT NULL,
  -- Which try of the request made it.
  owner uuid NOT NULL,
  -- What tells the calls of one try apart: the model.
  label text NOT NULL,
  -- The call of an earlier try that it repeats.
  retry_of uuid,
  at timestamp with time zone NOT NULL,
  CONSTRAINT keyed_call_pkey PRIMARY KEY (hold_id)
);
CREATE INDEX keyed_call_key ON ledger.keyed_call USING btree (scope, key);
CREATE INDEX keyed_call_at ON ledger.keyed_call USING btree (at);

-- What a network has spent and reserved on a day, without a key. A derived total, like ledger.budget.
CREATE TABLE ledger.network_use (
  -- A salted hash, never an address.
  network text NOT NULL,
  day date NOT NULL,
  taken numeric(20,12) NOT NULL,
  CONSTRAINT network_use_taken_check CHECK (taken >= 0::numeric),
  CONSTRAINT network_use_pkey PRIMARY KEY (network, day)
) WITH (fillfactor=50);

-- Daily accounts with a model call that cost no more than was reserved for it: their calls need not wait for one another. What is
-- not here may be proven all the same (waits_for_proof). Kept for two days.
CREATE TABLE ledger.proven_payer (
  account_id bigint NOT NULL,
  at timestamp with time zone NOT NULL,
  CONSTRAINT proven_payer_pkey PRIMARY KEY (account_id)
);

CREATE OR REPLACE FUNCTION ledger.check_balanced()
 RETURNS trigger
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
declare
  v_transaction bigint;
  v_total numeric;
begin
  select transaction_id, sum(amount) into v_transaction, v_total from ledger.entry
    where transaction_id = any (array(select distinct transaction_id from added)) group by transaction_id having sum(amount) <> 0 limit 1;
  if found then
    raise exception 'transaction % does not balance: its entries sum to %', v_transaction, v_total
      using errcode = 'check_violation', constraint = 'entry_balanced';
  end if;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION ledger.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception '% of ledger.% is refused: book a reversing transaction instead', tg_op, tg_table_name
    using errcode = 'restrict_violation';
end $function$;

-- Reads an amount from text; a digit that numeric(20,12) would round away is an error, not a rounding.
CREATE OR REPLACE FUNCTION ledger.amount(p_text text)
 RETURNS numeric
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
declare
  v numeric := p_text::numeric;
begin
  if v is null or scale(trim_scale(v)) > 12 or v = 'NaN' then
    raise exception 'not an amount of at most 12 decimals: %', p_text using errcode = 'invalid_parameter_value';
  end if;
  return v;
end $function$;

CREATE OR REPLACE FUNCTION ledger.account_day(p_daily boolean, p_at timestamp with time zone)
 RETURNS date
 LANGUAGE sql
 STABLE
AS $function$
  select case when p_daily then (p_at at time zone 'utc')::date else '-infinity'::date end
$function$;

-- The id of an account, made on first use.
CREATE OR REPLACE FUNCTION ledger.account_id(p_kind text, p_owner text, p_day date)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
  v_id bigint;
begin
  select id into v_id from ledger.account where kind = p_kind and owner = p_owner and day = p_day;
  if v_id is not null then return v_id; end if;
  insert into ledger.account (kind, owner, day) values (p_kind, p_owner, p_day) on conflict do nothing;
  select id into strict v_id from ledger.account where kind = p_kind and owner = p_owner and day = p_day;
  return v_id;
end $function$;

-- Books one transaction. p_release is freed from what is held on the accounts of the first two lines.
-- Entries go in before budgets are touched: their foreign key waits for a budget being made, so that none misses an entry.
CREATE OR REPLACE FUNCTION ledger.book(p_reference text, p_kind text, p_at timestamp with time zone, p_accounts bigint[], p_amounts numeric[], p_release numeric)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
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
end $function$;

-- Books a plain transaction, lines [{kind, owner, daily, amount}]. Sent twice with the same entries it is booked once.
CREATE OR REPLACE FUNCTION ledger.post(p_reference text, p_kind text, p_lines jsonb, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
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
end $function$;

-- Locks the budgets of some accounts, always in the same order, and makes those that are missing.
-- The account row is locked first, so that no entry or hold can come in between the sums and the insert.
CREATE OR REPLACE FUNCTION ledger.open_budgets(p_accounts bigint[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_missing bigint[];
begin
  select array_agg(a order by a) into v_missing from (select distinct unnest(p_accounts) as a) s
    where not exists (select from ledger.budget where account_id = a);
  if v_missing is null then return; end if;
  perform 1 from ledger.account where id = any (v_missing) order by id for update;
  insert into ledger.budget (account_id, balance, held)
    select a, coalesce((select sum(amount) from ledger.entry where account_id = a), 0),
      coalesce((select sum(amount) from ledger.hold where state in ('open', 'pending') and a in (debit, credit)), 0)
    from unnest(v_missing) as a on conflict do nothing;
end $function$;

-- A function in SQL is planned in every transaction that calls it, one in PL/pgSQL once.
CREATE OR REPLACE FUNCTION ledger.budget_of(p_account bigint, p_limit numeric)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
  return (select jsonb_build_object('limit', p_limit::text, 'used', abs(balance)::text, 'held', held::text) from ledger.budget where account_id = p_account);
end $function$;

-- Reserves, for each request in order, or refuses it; one answer a request. All that decides is read under the locks of the budgets.
-- Requests: [{id, amount, ttl_ms, debit: {kind, owner, daily, limit}, credit: {…}}], amounts as decimal text, limit null for none.
-- As before: requests are decided in their order, under the locks of the budgets. What is decided is kept in arrays and
-- written once at the end. Without scans of whole tables: plans are made while tables are small, and last.
CREATE OR REPLACE FUNCTION ledger.hold(p_requests jsonb, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS jsonb
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_day_ends_at timestamptz := ((v_at at time zone 'utc')::date + 1)::timestamp at time zone 'utc';
  v_requests ledger.hold_request[];
  v_ids uuid[];
  -- Of holds that are there.
  v_known uuid[];
  v_found bigint;
  v_unopened bigint[];
  -- The budgets that these requests share, side by side: account, what is used, what is held.
  v_accounts bigint[];
  v_used numeric[];
  v_held numeric[];
  -- Holds that were there before, and those that are made.
  v_holds ledger.hold[];
  v_made ledger.hold[] := '{}';
  v_answers jsonb[] := '{}';
  q ledger.hold_request;
  h ledger.hold;
  d integer;
  c integer;
  v_refused text;
  v_outcome text;
begin
  for v_try in 1 .. 3 loop
    select array_agg((g.n, g.id, ledger.amount(g.amount), g.ttl_ms, da.id, case when g.debit ->> 'limit' is not null then ledger.amount(g.debit ->> 'limit') end,
        ca.id, case when g.credit ->> 'limit' is not null then ledger.amount(g.credit ->> 'limit') end, g.usage)::ledger.hold_request order by g.n),
      array_agg(g.id), array_agg(da.id) || array_agg(ca.id), count(da.id) + count(ca.id),
      array_agg(da.id) filter (where g.debit ->> 'limit' is not null and db.account_id is null)
        || array_agg(ca.id) filter (where g.credit ->> 'limit' is not null and cb.account_id is null)
      into v_requests, v_ids, v_accounts, v_found, v_unopened
      from rows from (jsonb_to_recordset(p_requests) as (id uuid, amount text, ttl_ms bigint, debit jsonb, credit jsonb, usage jsonb)) with ordinality
        as g (id, amount, ttl_ms, debit, credit, usage, n)
      left join ledger.account da on da.kind = g.debit ->> 'kind' and da.owner = g.debit ->> 'owner' and da.day = ledger.account_day((g.debit ->> 'daily')::boolean, v_at)
      left join ledger.account ca on ca.kind = g.credit ->> 'kind' and ca.owner = g.credit ->> 'owner' and ca.day = ledger.account_day((g.credit ->> 'daily')::boolean, v_at)
      left join ledger.budget db on db.account_id = da.id
      left join ledger.budget cb on cb.account_id = ca.id;
    exit when v_found = 2 * jsonb_array_length(p_requests);
    if v_try = 3 then raise exception 'the accounts of a reservation cannot be read' using errcode = 'serialization_failure'; end if;
    perform ledger.open_accounts(p_requests, v_at);
  end loop;
  if v_unopened is not null then perform ledger.open_budgets(v_unopened); end if;
  select array_agg(b.account_id), array_agg(abs(b.balance)), array_agg(b.held) into v_accounts, v_used, v_held
    from (select * from ledger.budget where account_id = any (v_accounts) order by account_id for update) b;
  select array_agg(x), array_agg(x.id) into v_holds, v_known from ledger.hold x where x.id = any (v_ids);

  foreach q in array v_requests loop
    d := array_position(v_accounts, q.debit);
    c := array_position(v_accounts, q.credit);
    h := null;
    v_refused := null;
    if q.id = any (v_known) then
      select x.* into h from unnest(v_holds || v_made) x where x.id = q.id;
      -- Sent again after midnight, the request resolves to another day's accounts: the same kinds and owners are enough.
      select case when h.amount = q.amount and count(*) = 2 then 'replayed' else 'conflict' end into v_outcome
        from ledger.account was join ledger.account is_now on (was.kind, was.owner) = (is_now.kind, is_now.owner)
        where (was.id, is_now.id) in ((h.debit, q.debit), (h.credit, q.credit));
    elsif v_used[d] + v_held[d] + q.amount > q.debit_limit then
      v_outcome := 'refused';
      v_refused := 'debit';
    elsif v_used[c] + v_held[c] + q.amount > q.credit_limit then
      v_outcome := 'refused';
      v_refused := 'credit';
    else
      v_outcome := 'held';
      h := (q.id, q.debit, q.credit, q.amount, 'open', v_at, v_at + q.ttl_ms * interval '1 millisecond', null, null, null, q.usage);
      v_made := v_made || h;
      v_known := v_known || q.id;
      if d is not null then v_held[d] := v_held[d] + q.amount; end if;
      if c is not null then v_held[c] := v_held[c] + q.amount; end if;
    end if;
    v_answers := v_answers || jsonb_build_object(
      'outcome', v_outcome, 'refused_by', v_refused, 'state', h.state, 'expires_at', h.expires_at, 'day_ends_at', v_day_ends_at,
      'debit', case when d is not null then jsonb_build_object('limit', q.debit_limit::text, 'used', v_used[d]::text, 'held', v_held[d]::text) end,
      'credit', case when c is not null then jsonb_build_object('limit', q.credit_limit::text, 'used', v_used[c]::text, 'held', v_held[c]::text) end);
  end loop;

  if cardinality(v_made) > 0 then
    insert into ledger.hold (id, debit, credit, amount, created_at, expires_at, usage)
      select m.id, m.debit, m.credit, m.amount, m.created_at, m.expires_at, m.usage from unnest(v_made) m;
    -- Also the budget of an account without a limit, which somebody may have begun while the insert waited for him.
    update ledger.budget b set held = b.held + made.amount
      from (select side.account, sum(m.amount) as amount from unnest(v_made) m cross join lateral (values (m.debit), (m.credit)) side (account) group by 1) made
      where b.account_id = made.account;
  end if;
  return to_jsonb(v_answers);
end $function$;

-- Frees what a hold reserves and gives it its new state.
CREATE OR REPLACE FUNCTION ledger.release(p_hold ledger.hold, p_state text, p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  if p_hold.state in ('open', 'pending') then
    perform 1 from ledger.budget where account_id in (p_hold.debit, p_hold.credit) order by account_id for update;
    update ledger.budget set held = held - p_hold.amount where account_id in (p_hold.debit, p_hold.credit);
  end if;
  update ledger.hold set state = p_state, closed_at = p_at where id = p_hold.id;
end $function$;

-- Locks the holds and the budgets that a batch will touch, always in the same order.
CREATE OR REPLACE FUNCTION ledger.lock_holds(p_ids uuid[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  perform 1 from ledger.hold where id = any (p_ids) order by id for update;
  perform 1 from ledger.budget b
    where account_id in (select debit from ledger.hold where id = any (p_ids) union select credit from ledger.hold where id = any (p_ids))
    order by account_id for update;
end $function$;

-- Writes the use of a hold at the time of the hold, or fills in the cost of one that was pending. True when it was not
-- known before.
-- As before, with the version of the price list.
CREATE OR REPLACE FUNCTION ledger.record_usage(p_id text, p_usage jsonb, p_cost numeric, p_source text, p_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
begin
  insert into ledger.usage (id, kind, at, caller, app, model, tool, tokens_in, tokens_out, latency_ms, cost, cost_source, price_version, request)
    values (p_id, p_usage ->> 'kind', p_at, p_usage ->> 'caller', p_usage ->> 'app', p_usage ->> 'model', p_usage ->> 'tool',
      (p_usage ->> 'tokens_in')::integer, (p_usage ->> 'tokens_out')::integer, (p_usage ->> 'latency_ms')::integer, p_cost, p_source,
      p_usage ->> 'price_version', left(p_usage ->> 'request', 64))
    on conflict (at, id) do nothing;
  if found then return true; end if;
  update ledger.usage set cost = p_cost, cost_source = p_source,
      tokens_in = coalesce((p_usage ->> 'tokens_in')::integer, tokens_in), tokens_out = coalesce((p_usage ->> 'tokens_out')::integer, tokens_out)
    where at = p_at and id = p_id and cost_source = 'pending' and p_cost is not null;
  return false;
end $function$;

-- Books the real cost of calls. The first cost booked for a hold stands; whatever state the hold was in, a cost that came is booked.
-- Requests: [{hold, cost, source, usage: {…} | null, lines: [{kind, owner, daily, amount}] | null}].
-- As before: the first cost of a hold stands, whatever its state. Budgets are locked last, since reservations wait for them.
-- A hold that is committed after the locks are taken is unknown, as it would have been a moment before.
-- As before (030-batches-at-once.sql): the first cost of a hold stands, whatever its state. Budgets are locked last, since reservations
-- wait for them. A hold that is committed after the locks are taken is unknown, as it would have been a moment before. What belongs
-- together is kept side by side: arrays that are joined are read once for each of their elements. This also records what a model call
-- proves, and calls that cost more than was reserved (031-calls-in-flight.sql); nothing else settles a hold.
CREATE OR REPLACE FUNCTION ledger.settle(p_requests jsonb, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS jsonb
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_requests ledger.settle_request[];
  v_ids uuid[];
  v_holds ledger.hold[];
  -- Side by side, in the order of their ids: holds that are not settled yet, the first request of each, and its transaction.
  v_unsettled ledger.hold[];
  v_settling ledger.settle_request[];
  v_transactions bigint[];
  -- Whether one of them was more than open.
  v_late boolean;
  -- Accounts of the platform that are owed for model calls; what these calls prove, and whether one cost more than was reserved.
  v_platform bigint[];
  v_models text[];
  v_payers bigint[];
  v_is_over boolean;
  -- By account: what its balance changes by, and what is freed; then what its budget is afterwards.
  v_accounts bigint[];
  v_amounts numeric[];
  v_freed numeric[];
  v_used numeric[];
  v_held numeric[];
  v_answers jsonb[] := '{}';
  r ledger.settle_request;
  h ledger.hold;
  i integer;
  d integer;
  v_was text;
begin
  select array_agg((q.n, q.hold, ledger.amount(q.cost), q.source, q.usage, q.lines)::ledger.settle_request order by q.n), array_agg(q.hold)
    into v_requests, v_ids
    from rows from (jsonb_to_recordset(p_requests) as (hold uuid, cost text, source text, usage jsonb, lines jsonb)) with ordinality
      as q (hold, cost, source, usage, lines, n);
  v_holds := array(select x from ledger.hold x where x.id = any (v_ids) order by x.id for update);
  select array_agg(x.id), array_agg(x order by x.id) filter (where x.state <> 'settled'), bool_or(x.state <> 'open') filter (where x.state <> 'settled')
    into v_ids, v_unsettled, v_late from unnest(v_holds) x;

  if v_unsettled is not null then
    v_settling := array(
      select first from (select distinct on (q.hold) q.hold, q::ledger.settle_request as first
        from unnest(v_requests) q where q.hold = any (array(select x.id from unnest(v_unsettled) x)) order by q.hold, q.n) s
      order by s.hold);
    with booked as (
      insert into ledger.transaction (reference, kind, at) select 'settle:' || s.hold, 'settle', v_at from unnest(v_settling) s order by s.n
      returning id, reference
    ) select array_agg(id order by reference collate "C") into v_transactions from booked;
    with settling as materialized (
      select s.transaction_id as id, s.hold, s.cost, s.source, s.lines, s.debit, s.credit, s.created_at, coalesce(s.usage, s.known_usage) as usage,
        case when s.state in ('open', 'pending') then s.amount else 0 end as freed
      from rows from (unnest(v_settling), unnest(v_transactions), unnest(v_unsettled)) as s (n, hold, cost, source, usage, lines, transaction_id,
        id, debit, credit, amount, state, created_at, expires_at, closed_at, known_cost, known_transaction, known_usage)
    ), line as (
      select s.id, l.* from settling s cross join lateral (
        select 1, s.debit, s.cost, s.freed
        union all select 2, s.credit, -s.cost, s.freed
        union all select 2 + g.n, ledger.account_id(g.kind, g.owner, ledger.account_day(g.daily, s.created_at)), ledger.amount(g.amount), 0
          from rows from (jsonb_to_recordset(s.lines) as (kind text, owner text, daily boolean, amount text)) with ordinality as g (kind, owner, daily, amount, n)
      ) l (line, account, amount, freed)
    ), entered as (
      insert into ledger.entry (transaction_id, line, account_id, amount) select id, line, account, amount from line order by id, line
    ), closed as (
      update ledger.hold x set state = 'settled', closed_at = v_at, cost = s.cost, transaction_id = s.id, usage = null
        from settling s where x.id = s.hold
    ), used as (
      insert into ledger.usage (id, kind, at, caller, app, model, tool, tokens_in, tokens_out, latency_ms, cost, cost_source, price_version, request)
        select hold::text, usage ->> 'kind', created_at, usage ->> 'caller', usage ->> 'app', usage ->> 'model', usage ->> 'tool',
          (usage ->> 'tokens_in')::integer, (usage ->> 'tokens_out')::integer, (usage ->> 'latency_ms')::integer, cost, source,
          usage ->> 'price_version', left(usage ->> 'request', 64)
        from settling where usage is not null
        on conflict (at, id) do nothing
    )
    select array_agg(account), array_agg(amount), array_agg(freed) into v_accounts, v_amounts, v_freed
      from (select account, sum(amount) as amount, sum(freed) as freed from line group by account) summed;
    if v_late then
      update ledger.usage u set cost = s.cost, cost_source = s.source,
          tokens_in = coalesce((s.usage ->> 'tokens_in')::integer, u.tokens_in), tokens_out = coalesce((s.usage ->> 'tokens_out')::integer, u.tokens_out)
        from unnest(v_settling) s join unnest(v_holds) x on x.id = s.hold
        where u.at = x.created_at and u.id = s.hold::text and u.cost_source = 'pending';
      delete from ledger.pending where hold_id = any (v_ids);
    end if;

    v_platform := array(select id from ledger.account where kind = 'platform' and id = any (array(select distinct x.credit from unnest(v_unsettled) x)));
    if v_platform <> '{}' then
      select array_agg(distinct s.known_usage ->> 'model') filter (where s.cost <= s.amount),
          array_agg(distinct s.debit) filter (where s.cost <= s.amount and not exists (select from ledger.proven_payer p where p.account_id = s.debit)),
          bool_or(s.cost > s.amount)
        into v_models, v_payers, v_is_over
        from rows from (unnest(v_settling), unnest(v_unsettled)) as s (n, hold, cost, source, usage, lines,
          id, debit, credit, amount, state, created_at, expires_at, closed_at, known_cost, known_transaction, known_usage)
        where s.credit = any (v_platform);
      insert into ledger.proven_model as p (model, at) select m.model, v_at from unnest(v_models) as m (model)
        where m.model is not null and not exists (select from ledger.proven_model k where k.model = m.model and k.at > v_at - interval '1 hour') order by m.model
        on conflict (model) do update set at = excluded.at where p.at < excluded.at;
      if v_payers is not null then
        insert into ledger.proven_payer (account_id, at) select payer, v_at from unnest(v_payers) as p (payer) order by payer on conflict do nothing;
      end if;
      if v_is_over then
        insert into ledger.overrun (hold_id, day, called_at, settled_at, payer_kind, payer, model, held, cost)
          select s.hold, (v_at at time zone 'utc')::date, s.created_at, v_at, payer.kind, payer.owner, s.known_usage ->> 'model', s.amount, s.cost
          from rows from (unnest(v_settling), unnest(v_unsettled)) as s (n, hold, cost, source, usage, lines,
            id, debit, credit, amount, state, created_at, expires_at, closed_at, known_cost, known_transaction, known_usage)
          join ledger.account payer on payer.id = s.debit
          where s.cost > s.amount and s.credit = any (v_platform)
          on conflict do nothing;
      end if;
    end if;

    perform 1 from ledger.budget where account_id = any (v_accounts) order by account_id for update;
    with after as (
      update ledger.budget set
          balance = balance + v_amounts[array_position(v_accounts, account_id)], held = held - v_freed[array_position(v_accounts, account_id)]
        where account_id = any (v_accounts) returning *
    ) select array_agg(account_id), array_agg(abs(balance)), array_agg(held) into v_accounts, v_used, v_held from after;
  end if;

  foreach r in array v_requests loop
    i := array_position(v_ids, r.hold);
    if i is null then
      v_answers := v_answers || jsonb_build_object('outcome', 'unknown');
      continue;
    end if;
    h := v_holds[i];
    v_was := h.state;
    if v_was <> 'settled' then
      h.state := 'settled';
      h.cost := r.cost;
      v_holds[i] := h;
    end if;
    d := array_position(v_accounts, h.debit);
    v_answers := v_answers || jsonb_build_object(
      'outcome', case when v_was = 'settled' then 'replayed' else 'settled' end, 'was', v_was, 'cost', h.cost::text, 'held', h.amount::text,
      'debit', case when d is null then ledger.budget_of(h.debit, null) else jsonb_build_object('limit', null, 'used', v_used[d]::text, 'held', v_held[d]::text) end);
  end loop;
  return to_jsonb(v_answers);
end $function$;

-- Gives reservations back for calls that cost nothing. A hold that is settled stays so.
CREATE OR REPLACE FUNCTION ledger.void(p_holds uuid[], p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS jsonb
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_answers jsonb := '[]';
  v_id uuid;
  h ledger.hold;
begin
  perform ledger.lock_holds(p_holds);
  foreach v_id in array p_holds loop
    select * into h from ledger.hold where id = v_id for update skip locked;
    if h.state in ('open', 'pending', 'expired') then
      perform ledger.release(h, 'voided', v_at);
      delete from ledger.pending where hold_id = v_id;
    end if;
    v_answers := v_answers || jsonb_build_object('outcome', case when h.id is null then 'unknown' when h.state in ('open', 'pending', 'expired') then 'voided' when h.state = 'voided' then 'replayed' else h.state end);
  end loop;
  return v_answers;
end $function$;

-- Says that a call was made and its cost is not known. The reservation stays until the reconciler settles or abandons it.
CREATE OR REPLACE FUNCTION ledger.pend(p_hold uuid, p_reference text, p_usage jsonb, p_retry_ms bigint, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  h ledger.hold;
begin
  select * into h from ledger.hold where id = p_hold for update;
  if not found then return jsonb_build_object('outcome', 'unknown'); end if;
  if h.state in ('settled', 'abandoned') then return jsonb_build_object('outcome', h.state, 'was', h.state); end if;
  if h.state = 'open' then update ledger.hold set state = 'pending' where id = p_hold; end if;
  insert into ledger.pending (hold_id, reason, reference, since, next_attempt_at)
    values (p_hold, 'missing', p_reference, v_at, v_at + p_retry_ms * interval '1 millisecond')
    on conflict (hold_id) do update set reason = 'missing', reference = coalesce(excluded.reference, pending.reference), next_attempt_at = excluded.next_attempt_at
      where pending.abandoned_at is null and pending.reason = 'expired';
  if p_usage is not null then perform ledger.record_usage(p_hold::text, p_usage, null, 'pending', h.created_at); end if;
  return jsonb_build_object('outcome', 'pending', 'was', h.state);
end $function$;

-- Hands the holds whose time is over to the reconciler. Two sweepers never meet.
-- As before, but a hold that waits is given back: its call was never made, so there is no cost to look up.
CREATE OR REPLACE FUNCTION ledger.expire(p_limit integer, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_waiting uuid[];
  v_holds uuid[];
begin
  -- First, since this locks the budgets.
  v_waiting := array(select id from ledger.hold where state = 'open' and expires_at <= v_at and waits order by id limit p_limit);
  perform ledger.void(v_waiting, v_at);
  v_holds := array(select id from ledger.hold where state = 'open' and expires_at <= v_at and not waits order by id limit p_limit for update skip locked);
  update ledger.hold set state = 'pending' where id = any (v_holds);
  insert into ledger.pending (hold_id, reason, since, next_attempt_at) select id, 'expired', v_at, v_at from unnest(v_holds) as id on conflict do nothing;
  return cardinality(v_waiting) + cardinality(v_holds);
end $function$;

-- Lends pending costs to one reconciler for a while; no two get the same one.
-- As before, with what is reserved and the estimate.
CREATE OR REPLACE FUNCTION ledger.claim_pending(p_limit integer, p_lease_ms bigint, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS jsonb
 LANGUAGE sql
AS $function$
  with due as (
    select hold_id from ledger.pending where abandoned_at is null and next_attempt_at <= coalesce(p_at, clock_timestamp())
    order by next_attempt_at limit p_limit for update skip locked
  ), taken as (
    update ledger.pending p set attempts = attempts + 1, next_attempt_at = coalesce(p_at, clock_timestamp()) + p_lease_ms * interval '1 millisecond'
    from due where p.hold_id = due.hold_id returning p.*
  )
  select coalesce(jsonb_agg(jsonb_build_object('hold', t.hold_id, 'reason', t.reason, 'reference', t.reference, 'attempts', t.attempts,
    'since', t.since, 'called_at', h.created_at, 'held', h.amount::text, 'estimate', coalesce(t.estimate, h.amount)::text) order by t.since, t.hold_id), '[]')
  from taken t join ledger.hold h on h.id = t.hold_id
$function$;

-- Puts off the next look at a pending cost.
CREATE OR REPLACE FUNCTION ledger.defer_pending(p_hold uuid, p_wait_ms bigint, p_note text, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS void
 LANGUAGE sql
AS $function$
  update ledger.pending set next_attempt_at = coalesce(p_at, clock_timestamp()) + p_wait_ms * interval '1 millisecond', note = p_note
  where hold_id = p_hold and abandoned_at is null
$function$;

-- Stops looking for a cost: the reservation is freed, the record stays, and a cost that comes later is still booked.
CREATE OR REPLACE FUNCTION ledger.abandon(p_hold uuid, p_note text, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  h ledger.hold;
begin
  select * into h from ledger.hold where id = p_hold for update;
  update ledger.pending set abandoned_at = v_at, note = p_note where hold_id = p_hold and abandoned_at is null;
  if not found then return jsonb_build_object('outcome', coalesce(h.state, 'unknown')); end if;
  if h.state in ('pending', 'expired') then perform ledger.release(h, 'abandoned', v_at); end if;
  return jsonb_build_object('outcome', 'abandoned');
end $function$;

-- Compares every running total with what it is derived from; each row is one fault, in words. No row: the books are right.
CREATE OR REPLACE FUNCTION ledger.audit()
 RETURNS TABLE(fault text)
 LANGUAGE sql
 STABLE
AS $function$
  select format('transaction %s sums to %s', transaction_id, sum(amount)) from ledger.entry group by transaction_id having sum(amount) <> 0
  union all
  select format('budget of account %s keeps balance %s, its entries sum to %s', b.account_id, b.balance, coalesce(e.total, 0))
    from ledger.budget b left join (select account_id, sum(amount) as total from ledger.entry group by 1) e using (account_id)
    where b.balance <> coalesce(e.total, 0)
  union all
  select format('budget of account %s keeps held %s, its open holds sum to %s', b.account_id, b.held, coalesce(h.total, 0))
    from ledger.budget b left join (
      select account_id, sum(amount) as total from (
        select debit as account_id, amount from ledger.hold where state in ('open', 'pending')
        union all select credit, amount from ledger.hold where state in ('open', 'pending')) s group by 1) h using (account_id)
    where b.held <> coalesce(h.total, 0)
  union all
  select format('hold %s was settled at %s, its transaction says %s', h.id, h.cost, e.amount)
    from ledger.hold h left join ledger.entry e on e.transaction_id = h.transaction_id and e.line = 1 and e.account_id = h.debit
    where h.state = 'settled' and e.amount is distinct from h.cost
  union all
  select format('usage %s costs %s, its hold %s', u.id, u.cost, h.cost)
    from ledger.usage u join ledger.hold h on h.id::text = u.id where u.kind <> 'visit' and h.state = 'settled' and u.cost is distinct from h.cost
  union all
  select format('usage %s is at %s, its hold at %s', u.id, u.at, h.created_at)
    from ledger.usage u join ledger.hold h on h.id::text = u.id where u.kind <> 'visit' and u.at <> h.created_at
  union all
  select format('hold %s is pending and nobody looks for its cost', h.id)
    from ledger.hold h left join ledger.pending p on p.hold_id = h.id and p.abandoned_at is null where h.state = 'pending' and p.hold_id is null
$function$;

CREATE OR REPLACE FUNCTION ledger.begin_request(p_scope text, p_key text, p_hash text, p_owner uuid, p_lease_ms bigint, p_keep_ms bigint, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS json
 LANGUAGE plpgsql
AS $function$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_lease timestamptz := v_at + p_lease_ms * interval '1 millisecond';
  v_known ledger.idempotency;
begin
  insert into ledger.idempotency as i (scope, key, request_hash, owner, lease_until, expires_at)
    values (p_scope, p_key, p_hash, p_owner, v_lease, v_at + p_keep_ms * interval '1 millisecond')
    on conflict (scope, key) do update
      set request_hash = excluded.request_hash, owner = excluded.owner, lease_until = excluded.lease_until, response = null, expires_at = excluded.expires_at
      where i.owner = excluded.owner and i.response is null or i.expires_at <= v_at or (i.response is null and i.lease_until <= v_at and i.request_hash = excluded.request_hash)
    returning * into v_known;
  if found then return json_build_object('outcome', 'begun'); end if;
  select * into v_known from ledger.idempotency where scope = p_scope and key = p_key;
  if v_known.request_hash <> p_hash then return json_build_object('outcome', 'mismatch'); end if;
  if v_known.response is null then return json_build_object('outcome', 'in_flight', 'lease_until', v_known.lease_until); end if;
  return json_build_object('outcome', 'answered', 'response', v_known.response);
end $function$;

-- Removes a limited number of finished holds and running totals of days that ended before p_before. What is still being
-- looked for stays, and so do costs that were given up. Running totals are derived, and made again when they are needed.
-- Uses go with their day (see metering.drop_days); one by one only those of a day that waits for a cost.
CREATE OR REPLACE FUNCTION ledger.purge_detail(p_before timestamp with time zone, p_limit integer)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_day timestamptz := ledger.day_start((p_before at time zone 'utc')::date);
  v_uses integer;
  v_holds integer;
  v_budgets integer;
begin
  delete from ledger.usage where (at, id) in (
    select at, id from ledger.usage where at < v_day and cost_source <> 'pending' limit p_limit for update skip locked);
  get diagnostics v_uses = row_count;
  delete from ledger.hold where id in (
    select id from ledger.hold h where created_at < p_before and state in ('settled', 'voided', 'expired')
      and not exists (select from ledger.pending where hold_id = h.id) limit p_limit for update skip locked);
  get diagnostics v_holds = row_count;
  delete from ledger.budget where account_id in (
    select b.account_id from ledger.budget b join ledger.account a on a.id = b.account_id
      where a.day > '-infinity' and a.day < (p_before at time zone 'utc')::date and b.held = 0 limit p_limit for update of b skip locked);
  get diagnostics v_budgets = row_count;
  return v_uses + v_holds + v_budgets;
end $function$;

CREATE OR REPLACE FUNCTION ledger.day_start(p_day date)
 RETURNS timestamp with time zone
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select p_day::timestamp at time zone 'utc'
$function$;

CREATE OR REPLACE FUNCTION ledger.usage_days()
 RETURNS TABLE(partition text, day date)
 LANGUAGE sql
 STABLE
AS $function$
  select c.relname::text, to_date(substr(c.relname, 7), 'YYYYMMDD')
  from pg_inherits i join pg_class c on c.oid = i.inhrelid
  where i.inhparent = 'ledger.usage'::regclass and c.relname ~ '^usage_\d{8}$'
$function$;

-- Makes the table of a day, with what of it came before. False where there is one.
CREATE OR REPLACE FUNCTION ledger.make_day(p_day date)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
  v_name text := 'usage_' || to_char(p_day, 'YYYYMMDD');
begin
  perform pg_advisory_xact_lock(7201133510);
  if to_regclass('ledger.' || v_name) is not null then return false; end if;
  lock table ledger.usage_default in access exclusive mode;
  execute format('create table ledger.%I (like ledger.usage including defaults including constraints)', v_name);
  execute format('with moved as (delete from ledger.usage_default where at >= $1 and at < $2 returning *) insert into ledger.%I select * from moved', v_name)
    using ledger.day_start(p_day), ledger.day_start(p_day + 1);
  execute format('alter table ledger.usage attach partition ledger.%I for values from (%L) to (%L)',
    v_name, ledger.day_start(p_day), ledger.day_start(p_day + 1));
  return true;
end $function$;

-- Makes the days from yesterday to some days ahead, and those of uses that have none yet. Returns how many.
CREATE OR REPLACE FUNCTION ledger.make_days(p_ahead integer, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_today date := (coalesce(p_at, clock_timestamp()) at time zone 'utc')::date;
  v_made integer := 0;
  v_day date;
begin
  for v_day in
    select v_today + n from generate_series(-1, p_ahead) n
    union select distinct (at at time zone 'utc')::date from ledger.usage_default
    order by 1
  loop
    if ledger.make_day(v_day) then v_made := v_made + 1; end if;
  end loop;
  return v_made;
end $function$;

-- Makes the accounts of requests that are not there yet.
CREATE OR REPLACE FUNCTION ledger.open_accounts(p_requests jsonb, p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  insert into ledger.account (kind, owner, day)
    select distinct side.kind, side.owner, ledger.account_day(side.daily, p_at)
    from jsonb_to_recordset(p_requests) as q (debit jsonb, credit jsonb)
    cross join lateral jsonb_to_recordset(jsonb_build_array(q.debit, q.credit)) as side (kind text, owner text, daily boolean)
    order by 1, 2, 3
    on conflict do nothing;
end $function$;

-- Reserves as ledger.hold_in_networks does (042-network-quota.sql). Requests with `flight` are model calls that the platform pays, and are also refused
-- (refused_by) when their caller or their model is stopped for the day (stopped_caller, stopped_model), or when too many calls
-- are in flight: of the caller, of all, or of a model or caller of which no call has been settled yet within what was reserved
-- for it (in_flight_caller, in_flight_all, in_flight_model). flight: {"caller": 8, "all": 256}.
-- As before (031-calls-in-flight.sql), and: requests with the same `group` are reserved together, or all of them are refused. A
-- request with `waits` makes a hold that waits. Sent again with `flight`, when its call is to be made, the request is judged as
-- any other call is: the hold no longer waits then, or the answer is refused and it waits for another try. Holds that are reserved
-- are read by their index: without statistics of a new day the planner would read all holds. It may not build a bitmap of them
-- either, since only a plain index scan marks the entries of settled holds as dead, so that later scans skip them.
-- As before (060-waiting-holds.sql), but only calls of callers that are not proven, or near their limit, are judged one by one.
CREATE OR REPLACE FUNCTION ledger.reserve(p_requests jsonb, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS jsonb
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_bitmapscan TO 'off'
AS $function$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_day date := (v_at at time zone 'utc')::date;
  v_day_ends_at timestamptz := (v_day + 1)::timestamp at time zone 'utc';
  v_stops text[];
  v_sent jsonb := p_requests;
  v_given jsonb := '[]';
  v_n integer;
  -- The refusal of each group that is refused, by its name.
  v_refusals jsonb;
  -- Holds that were made now, or waited until now, and are not judged yet; those that are taken back, and those that wait.
  v_made uuid[];
  v_undone uuid[] := '{}';
  v_waiting uuid[] := '{}';
  -- The rows of all of those, and their ids in the same order.
  v_holds ledger.hold[];
  v_ids uuid[];
  -- Other calls in flight: how many, the caller of each that has one of those rows, and the models of those rows.
  v_all integer;
  v_callers bigint[];
  v_models text[];
  -- Callers with a call whose cost is not known yet, and models that are proven.
  v_pending bigint[];
  -- Callers whose calls are judged one by one; whether more calls are in flight than may be; whether a model is not proven.
  v_busy bigint[];
  v_is_full boolean;
  v_is_unproven boolean;
  v_caller_limit integer;
  v_limit integer;
  -- Whether no request is stopped, waits or has a group.
  v_is_plain boolean;
  v_proven text[];
  v_request jsonb;
  v_answer jsonb;
  v_refused text;
  h ledger.hold;
  v_model text;
  v_calls integer;
begin
  if not jsonb_path_exists(p_requests, '$[*] ? (exists(@.flight) || exists(@.group) || exists(@.waits))') then return ledger.hold_in_networks(p_requests, p_at); end if;

  if exists (select from ledger.overrun where day = v_day and lifted_at is null) then
    select array_agg(case
        when q.flight is null then null
        when exists (select from ledger.overrun o where o.day = v_day and o.lifted_at is null
          and o.payer_kind = q.debit ->> 'kind' and o.payer = q.debit ->> 'owner') then 'stopped_caller'
        when exists (select from ledger.overrun o where o.day = v_day and o.lifted_at is null and o.model = q.usage ->> 'model') then 'stopped_model'
      end order by q.n) into v_stops
      from rows from (jsonb_to_recordset(p_requests) as (debit jsonb, usage jsonb, flight jsonb)) with ordinality as q (debit, usage, flight, n);
    select coalesce(jsonb_agg(q.value order by q.n) filter (where v_stops[q.n] is null), '[]') into v_sent
      from jsonb_array_elements(p_requests) with ordinality as q (value, n);
  end if;
  if jsonb_array_length(v_sent) > 0 then v_given := ledger.hold_in_networks(v_sent, p_at); end if;

  if jsonb_path_exists(v_sent, '$[*].group') then v_refusals := ledger.refuse_groups(v_sent, v_given); end if;

  -- The budgets of the platform are locked by now, so no other replica reserves while calls are counted. Most calls need no further
  -- look: their model is proven, their caller has no other hold or is proven and below its limit, and all calls in flight, those on
  -- keys of callers included, are fewer than may be made.
  select array_agg(model) filter (where is_proven), coalesce(bool_or(not is_proven), false), min(caller), min("all")
    into v_proven, v_is_unproven, v_caller_limit, v_limit
    from (select q.model, min(q.caller) as caller, min(q."all") as "all",
        exists (select from ledger.proven_model p where p.model = q.model and p.at > v_at - interval '1 day') as is_proven
      from (select value -> 'usage' ->> 'model' as model, (value -> 'flight' ->> 'caller')::integer as caller, (value -> 'flight' ->> 'all')::integer as "all"
        from jsonb_array_elements(v_sent) where value ? 'flight') q group by q.model) by_model;
  select coalesce(sum(calls) > v_limit, false), coalesce(array_agg(debit) filter (where holds > 1 and (calls > v_caller_limit
        or not exists (select from ledger.proven_payer p where p.account_id = debit))), '{}')
    into v_is_full, v_busy
    from (select debit, count(*) as holds, count(*) filter (where state = 'open') as calls from ledger.hold
      where state in ('open', 'pending') and not waits group by debit) by_caller;
  v_is_plain := v_stops is null and not jsonb_path_exists(v_sent, '$[*] ? (exists(@.group) || exists(@.waits))');
  if v_is_plain and not v_is_full and not v_is_unproven and v_busy = '{}' and not jsonb_path_exists(v_given, '$[*] ? (@.outcome == "replayed")')
    then return v_given; end if;
  select array_agg(x), array_agg(x.id) into v_holds, v_ids
    from jsonb_array_elements(v_sent) with ordinality as q (value, n)
    join ledger.hold x on x.id = (q.value ->> 'id')::uuid
    where q.value ? 'flight' and case when v_given -> (q.n::integer - 1) ->> 'outcome' = 'held'
      then v_is_full or x.debit = any (v_busy) or (x.usage ->> 'model' = any (v_proven)) is not true
      else x.waits and x.state = 'open' end;
  if v_ids is null and v_is_plain then return v_given; end if;
  v_made := v_ids;
  if v_made is not null then
    with made as materialized (
      select array_agg(debit) as debits, array_agg(credit) as credits, array_agg(usage ->> 'model') as models from unnest(v_holds)
    ), other as (
      select x.state, x.debit, x.usage ->> 'model' as model from ledger.hold x, made
      where x.state in ('open', 'pending') and not x.waits and x.credit = any (made.credits) and x.id <> all (v_ids)
    )
    select count(*) filter (where o.state = 'open'),
        coalesce(array_agg(o.debit) filter (where o.state = 'open' and o.debit = any (made.debits)), '{}'),
        coalesce(array_agg(distinct o.model) filter (where o.state = 'open' and o.model = any (made.models)), '{}'),
        coalesce(array_agg(o.debit) filter (where o.state = 'pending' and o.debit = any (made.debits)), '{}'),
        coalesce((select array_agg(p.model) from ledger.proven_model p, made where p.model = any (made.models) and p.at > v_at - interval '1 day'), '{}')
      into v_all, v_callers, v_models, v_pending, v_proven
      from made left join other o on true;
  end if;

  -- Only answers that may have to change.
  for v_n, v_request in
    select n, value from jsonb_array_elements(v_sent) with ordinality as q (value, n)
    where value ? 'group' or value ? 'waits' or (value ->> 'id')::uuid = any (v_ids) order by n
  loop
    v_answer := v_given -> (v_n - 1);
    if v_refusals ? (v_request ->> 'group') then
      if v_answer ->> 'outcome' = 'held' then v_undone := v_undone || (v_request ->> 'id')::uuid; end if;
      v_given := jsonb_set(v_given, array[(v_n - 1)::text], v_refusals -> (v_request ->> 'group'));
    elsif v_request ? 'waits' and v_answer ->> 'outcome' = 'held' then
      v_waiting := v_waiting || (v_request ->> 'id')::uuid;
    elsif v_request ? 'flight' and (v_request ->> 'id')::uuid = any (v_made) then
      h := v_holds[array_position(v_ids, (v_request ->> 'id')::uuid)];
      v_made := array_remove(v_made, h.id);
      v_model := h.usage ->> 'model';
      v_calls := cardinality(array_positions(v_callers, h.debit));
      v_refused := case
        when v_calls >= (v_request -> 'flight' ->> 'caller')::integer then 'in_flight_caller'
        when v_all >= (v_request -> 'flight' ->> 'all')::integer then 'in_flight_all'
        when v_model = any (v_models) and v_model <> all (v_proven) then 'in_flight_model'
        when (v_calls > 0 or h.debit = any (v_pending)) and ledger.waits_for_proof(h, v_made || v_undone, v_at) then 'in_flight_caller'
      end;
      if v_refused is null then
        v_all := v_all + 1;
        v_callers := v_callers || h.debit;
        if v_model is not null then v_models := v_models || v_model; end if;
        if h.waits then
          update ledger.hold set waits = false, expires_at = v_at + (v_request ->> 'ttl_ms')::bigint * interval '1 millisecond' where id = h.id;
        end if;
      else
        -- A hold that waits is kept, for another try.
        if not h.waits then v_undone := v_undone || h.id; end if;
        v_given := jsonb_set(v_given, array[(v_n - 1)::text],
          v_answer || jsonb_build_object('outcome', 'refused', 'refused_by', v_refused, 'state', null, 'expires_at', null));
      end if;
    end if;
  end loop;

  if cardinality(v_undone) > 0 then
    perform ledger.void(v_undone, p_at);
    delete from ledger.hold where id = any (v_undone) and state = 'voided';
  end if;
  if cardinality(v_waiting) > 0 then update ledger.hold set waits = true where id = any (v_waiting); end if;
  if v_stops is null then return v_given; end if;
  return (select jsonb_agg(case when stop is null then v_given -> (sent::integer - 1) else jsonb_build_object('outcome', 'refused', 'refused_by', stop,
      'state', null, 'expires_at', null, 'day_ends_at', v_day_ends_at, 'debit', null, 'credit', null) end order by n)
    from (select stop, n, count(*) filter (where stop is null) over (order by n) as sent from unnest(v_stops) with ordinality as s (stop, n)) s);
end $function$;

-- Whether a call has to wait for another one of its caller, of whom no call of the day (of an app: of the last seven, since many
-- people use it) has been settled yet within what was reserved: the calls of one request to several models are made together, any other one by one. One that ended with its cost
-- unknown is waited for, for the time of a first look at the router's records. p_without: holds that are not decided, or not made.
CREATE OR REPLACE FUNCTION ledger.waits_for_proof(p_hold ledger.hold, p_without uuid[], p_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_bitmapscan TO 'off'
AS $function$
begin
  if exists (select from ledger.proven_payer where account_id = p_hold.debit) then return false; end if;
  -- What was settled on earlier days counts for an app too.
  if exists (
    select from ledger.account now_paid
    join ledger.account paid on (paid.kind, paid.owner) = (now_paid.kind, now_paid.owner)
      and paid.day between now_paid.day - case now_paid.kind when 'app' then 7 else 0 end and now_paid.day
    join ledger.entry e on e.account_id = paid.id
    join ledger.hold s on s.transaction_id = e.transaction_id
    join ledger.account owed on owed.id = s.credit
    where now_paid.id = p_hold.debit and owed.kind = 'platform' and s.debit = paid.id and s.cost <= s.amount
  ) then return false; end if;
  return exists (
    select from ledger.hold x
    where x.state in ('open', 'pending') and not x.waits and x.debit = p_hold.debit and x.credit = p_hold.credit and x.id <> p_hold.id and x.id <> all (p_without)
      and (x.state = 'open' or exists (select from ledger.pending p where p.hold_id = x.id and p.since > p_at - interval '6 seconds'))
      and (x.usage ->> 'model' is null or x.usage ->> 'model' = p_hold.usage ->> 'model' or x.usage ->> 'request' is distinct from p_hold.usage ->> 'request')
  );
end $function$;

-- Notes a call before it is made. The hold of an earlier try is handed to the reconciler, since nobody else will settle it.
-- Returns the id of that hold; null where there is none, or it cost nothing.
CREATE OR REPLACE FUNCTION ledger.note_keyed_call(p_scope text, p_key text, p_owner uuid, p_hold uuid, p_label text, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS uuid
 LANGUAGE plpgsql
AS $function$
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
end $function$;

-- Records that a cost is not known, as ledger.pend does, with what it is settled at if it never is.
CREATE OR REPLACE FUNCTION ledger.pend_at_estimate(p_hold uuid, p_reference text, p_usage jsonb, p_retry_ms bigint, p_at timestamp with time zone, p_estimate numeric)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
declare
  v_answer jsonb := ledger.pend(p_hold, p_reference, p_usage, p_retry_ms, p_at);
begin
  update ledger.pending set estimate = p_estimate where hold_id = p_hold and p_estimate is not null;
  return v_answer;
end $function$;

CREATE OR REPLACE FUNCTION ledger.network_share(h ledger.hold)
 RETURNS numeric
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select case when h.state in ('open', 'pending') then h.amount when h.state = 'settled' then h.cost else 0 end
$function$;

-- Keeps the totals right whatever becomes of a hold. The row may be gone where a cost is found after days.
CREATE OR REPLACE FUNCTION ledger.count_networks()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  v_change numeric := ledger.network_share(new) - case when old.networks is null then 0 else ledger.network_share(old) end;
  v_network text;
begin
  if v_change = 0 then return null; end if;
  foreach v_network in array new.networks loop
    insert into ledger.network_use as u (network, day, taken) values (v_network, (new.created_at at time zone 'utc')::date, greatest(v_change, 0))
      on conflict (network, day) do update set taken = greatest(u.taken + v_change, 0);
  end loop;
  return null;
end $function$;

-- The first of these networks that has no room for an amount, as a refusal; null where all have. p_within: [{network, limit}].
CREATE OR REPLACE FUNCTION ledger.full_network(p_within jsonb, p_amount numeric, p_day date)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
AS $function$
  select jsonb_build_object('limit', w.limit, 'used', coalesce(u.taken, 0)::text, 'held', '0')
  from rows from (jsonb_to_recordset(p_within) as (network text, "limit" text)) with ordinality as w (network, "limit", n)
  left join ledger.network_use u on u.network = w.network and u.day = p_day
  where coalesce(u.taken, 0) + p_amount > ledger.amount(w.limit) order by w.n limit 1
$function$;

-- As ledger.hold, for requests whose debit side may name networks: debit: {…, within: [{network, limit}]}, the widest
-- first. A request that a network has no room for is refused by 'network', with its limit and what is taken of it.
CREATE OR REPLACE FUNCTION ledger.hold_in_networks(p_requests jsonb, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_day date := (v_at at time zone 'utc')::date;
  v_answers jsonb[];
  v_passed bigint[];
  v_held jsonb;
  v_full jsonb;
  r record;
begin
  if not jsonb_path_exists(p_requests, '$[*].debit.within') then return ledger.hold(p_requests, p_at); end if;
  v_answers := array_fill(null::jsonb, array[jsonb_array_length(p_requests)]);
  -- Most that a network has no room for are refused here, before they make an account or a hold.
  for r in select value as request, value #> '{debit,within}' as within, (value ->> 'id')::uuid as id, n from jsonb_array_elements(p_requests) with ordinality as q (value, n) order by n loop
    v_full := null;
    if r.within is not null and not exists (select from ledger.hold where id = r.id) then
      v_full := ledger.full_network(r.within, ledger.amount(r.request ->> 'amount'), v_day);
    end if;
    if v_full is null then
      v_passed := v_passed || r.n;
    else
      v_answers[r.n] := ledger.refused_by_network(v_full, v_at);
    end if;
  end loop;
  if v_passed is null then return to_jsonb(v_answers); end if;
  v_held := ledger.hold((select jsonb_agg(p_requests -> (n::integer - 1) order by place) from unnest(v_passed) with ordinality as p (n, place)), v_at);
  -- The budgets are locked now.
  set constraints ledger.hold_networks immediate;
  -- In the order of the widest networks, so that no two batches wait for each other. What others took meanwhile counts now.
  for r in
    select p.n, v_held -> (place::integer - 1) as answer, (q.request ->> 'id')::uuid as id, q.request #> '{debit,within}' as within
    from unnest(v_passed) with ordinality as p (n, place) cross join lateral (select p_requests -> (p.n::integer - 1) as request) q
    order by q.request #>> '{debit,within,0,network}' nulls first, p.n
  loop
    v_answers[r.n] := r.answer;
    continue when r.within is null or r.answer ->> 'outcome' <> 'held';
    update ledger.hold set networks = array(select w.network from rows from (jsonb_to_recordset(r.within) as (network text)) with ordinality as w (network, n) order by w.n)
      where id = r.id;
    v_full := ledger.full_network(r.within, 0, v_day);
    continue when v_full is null;
    perform ledger.void(array[r.id], v_at);
    v_answers[r.n] := ledger.refused_by_network(v_full, v_at);
  end loop;
  return to_jsonb(v_answers);
end $function$;

CREATE OR REPLACE FUNCTION ledger.refused_by_network(p_budget jsonb, p_at timestamp with time zone)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select jsonb_build_object('outcome', 'refused', 'refused_by', 'network', 'state', null, 'expires_at', null,
    'day_ends_at', (((p_at at time zone 'utc')::date + 1)::timestamp at time zone 'utc'), 'debit', p_budget, 'credit', null)
$function$;

CREATE OR REPLACE FUNCTION ledger.without_held(p_budget jsonb, p_amount numeric)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select case when p_budget ->> 'held' is null or p_amount is null then p_budget
    else p_budget || jsonb_build_object('held', ((p_budget ->> 'held')::numeric - p_amount)::text) end
$function$;

-- The refusal of each group of which a request is refused, by the group's name: without what the group itself has reserved.
CREATE OR REPLACE FUNCTION ledger.refuse_groups(p_requests jsonb, p_answers jsonb)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
AS $function$
  with member as (
    select q.value as request, q.n, q.value ->> 'group' as name, p_answers -> (q.n::integer - 1) as answer
    from jsonb_array_elements(p_requests) with ordinality as q (value, n) where q.value ? 'group'
  ), refused as (
    select distinct on (name) * from member where answer ->> 'outcome' = 'refused' order by name, n
  )
  select jsonb_object_agg(r.name, case when r.answer ->> 'refused_by' in ('debit', 'credit') then r.answer || jsonb_build_object(
      'debit', ledger.without_held(r.answer -> 'debit', own.debit), 'credit', ledger.without_held(r.answer -> 'credit', own.credit)) else r.answer end)
  from refused r cross join lateral (
    select sum(ledger.amount(m.request ->> 'amount')) filter (where m.request -> 'debit' = r.request -> 'debit') as debit,
      sum(ledger.amount(m.request ->> 'amount')) filter (where m.request -> 'credit' = r.request -> 'credit') as credit
    from member m where m.name = r.name and m.n < r.n and m.answer ->> 'outcome' = 'held'
  ) own
$function$;

-- ==================== tools ====================

CREATE SCHEMA tools;

CREATE TABLE tools.memory (
  -- A salted hash of the caller's key, or of the address of one without.
  owner text NOT NULL,
  session text NOT NULL,
  key text NOT NULL,
  value text NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  -- Entries without it last.
  expires_at timestamp with time zone,
  is_json boolean DEFAULT false NOT NULL,
  -- Spaces of the tool `memory` without a key: owner is a hash of the session name, which is the secret.
  network text,
  CONSTRAINT memory_pkey PRIMARY KEY (owner, session, key)
);
CREATE INDEX memory_expiry ON tools.memory USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX memory_network ON tools.memory USING btree (network) WHERE (network IS NOT NULL);

CREATE TABLE tools.job (
  -- Random, and all that a poll needs beside the caller: nobody guesses one.
  id uuid NOT NULL,
  tool text NOT NULL,
  -- json, not jsonb, here and below: it comes back as it went in, with its fields in the same order.
  input json NOT NULL,
  -- Hash of the input: the same call while it is under way is the same job.
  fingerprint text NOT NULL,
  -- A salted hash of the caller, never an address or a key.
  owner text NOT NULL,
  payer text NOT NULL,
  session text,
  state text DEFAULT 'queued'::text NOT NULL,
  progress real DEFAULT 0 NOT NULL,
  message text DEFAULT ''::text NOT NULL,
  -- How often it was begun.
  attempt smallint DEFAULT 0 NOT NULL,
  -- The process that works on it, for as long as its lease is renewed. A job that is paid with a caller's own key has one
  -- from the start, since the key is in that process and nowhere else.
  runner uuid,
  lease_until timestamp with time zone,
  -- What was set aside for it in the ledger, in all attempts: what it cost is the sum of what these cost.
  holds uuid[] DEFAULT '{}'::uuid[] NOT NULL,
  result json,
  problem json,
  artifact bytea,
  artifact_bytes integer,
  media_type text,
  file_name text,
  created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  ended_at timestamp with time zone,
  expires_at timestamp with time zone NOT NULL,
  -- The file of a job is kept with it, and has such an address too.
  file_id text,
  -- As the agent names it; a job that an agent did not begin has none.
  context text,
  -- Of an IPv6 address: the /64 and the /48 for which the quota of an anonymous job is counted, as salted hashes.
  networks text[],
  CONSTRAINT job_payer_check CHECK (payer = ANY (ARRAY['anonymous'::text, 'key'::text])),
  CONSTRAINT job_state_check CHECK (state = ANY (ARRAY['queued'::text, 'running'::text, 'done'::text, 'failed'::text])),
  CONSTRAINT job_progress_check CHECK (progress >= 0::double precision AND progress <= 1::double precision),
  CONSTRAINT job_pkey PRIMARY KEY (id)
);
ALTER TABLE tools.job ALTER COLUMN artifact SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX job_same ON tools.job USING btree (owner, tool, fingerprint) WHERE (state = ANY (ARRAY['queued'::text, 'running'::text]));
CREATE INDEX job_due ON tools.job USING btree (created_at) WHERE (state = ANY (ARRAY['queued'::text, 'running'::text]));
CREATE INDEX job_ended ON tools.job USING btree (owner, ended_at) WHERE (state = ANY (ARRAY['done'::text, 'failed'::text]));
CREATE INDEX job_expiry ON tools.job USING btree (expires_at);
CREATE UNIQUE INDEX job_file ON tools.job USING btree (file_id) WHERE (file_id IS NOT NULL);
CREATE INDEX job_context ON tools.job USING btree (context) WHERE (payer = 'anonymous'::text);

CREATE TABLE tools.artifact (
  -- 128 random bits: who knows it may read the file.
  id text NOT NULL,
  -- A salted hash of the caller, for whom so much is kept.
  owner text NOT NULL,
  media_type text NOT NULL,
  file_name text NOT NULL,
  bytes bytea NOT NULL,
  size integer NOT NULL,
  created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  nth bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  CONSTRAINT artifact_pkey PRIMARY KEY (id)
);
ALTER TABLE tools.artifact ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE INDEX artifact_owner ON tools.artifact USING btree (owner, nth);

-- A replica of the version before writes text, also over a value that was JSON.
CREATE OR REPLACE FUNCTION tools.remember(p_owner text, p_session text, p_key text, p_value text, p_ttl_ms bigint, p_entries integer, p_bytes bigint, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS json
 LANGUAGE sql
AS $function$
  select tools.remember_value(p_owner, p_session, p_key, p_value, false, p_ttl_ms, p_entries, p_bytes, p_at)
$function$;

-- As tools.remember, with the mark.
CREATE OR REPLACE FUNCTION tools.remember_value(p_owner text, p_session text, p_key text, p_value text, p_is_json boolean, p_ttl_ms bigint, p_entries integer, p_bytes bigint, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS json
 LANGUAGE plpgsql
AS $function$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_entries int;
  v_bytes bigint;
begin
  -- One writer for an owner at a time, so that two cannot both take the last place.
  perform pg_advisory_xact_lock(hashtextextended('tools.memory ' || p_owner, 0));
  delete from tools.memory where (owner, session, key) in (
    select owner, session, key from tools.memory where expires_at <= v_at order by expires_at limit 100 for update skip locked);
  select count(*), coalesce(sum(octet_length(key) + octet_length(value)), 0) into v_entries, v_bytes from tools.memory
    where owner = p_owner and (session, key) is distinct from (p_session, p_key) and (expires_at is null or expires_at > v_at);
  v_entries := v_entries + 1;
  v_bytes := v_bytes + octet_length(p_key) + octet_length(p_value);
  if v_entries > p_entries or v_bytes > p_bytes then return json_build_object('stored', false, 'entries', v_entries, 'bytes', v_bytes); end if;
  insert into tools.memory (owner, session, key, value, is_json, updated_at, expires_at)
    values (p_owner, p_session, p_key, p_value, p_is_json, v_at, v_at + p_ttl_ms * interval '1 millisecond')
    on conflict (owner, session, key) do update
      set value = excluded.value, is_json = excluded.is_json, updated_at = excluded.updated_at, expires_at = excluded.expires_at;
  return json_build_object('stored', true, 'entries', v_entries, 'bytes', v_bytes, 'expires_at', v_at + p_ttl_ms * interval '1 millisecond');
end $function$;

-- As tools.remember_value, and counted for a network as well.
CREATE OR REPLACE FUNCTION tools.remember_in_network(p_owner text, p_session text, p_key text, p_value text, p_is_json boolean, p_ttl_ms bigint, p_entries integer, p_bytes bigint, p_network text, p_network_entries integer, p_network_bytes bigint, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS json
 LANGUAGE plpgsql
AS $function$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_entries int;
  v_bytes bigint;
  v_answer json;
begin
  if p_network is null then return tools.remember_value(p_owner, p_session, p_key, p_value, p_is_json, p_ttl_ms, p_entries, p_bytes, v_at); end if;
  -- One writer for a network at a time.
  perform pg_advisory_xact_lock(hashtextextended('tools.memory network ' || p_network, 0));
  select count(*), coalesce(sum(octet_length(key) + octet_length(value)), 0) into v_entries, v_bytes from tools.memory
    where network = p_network and (owner, session, key) is distinct from (p_owner, p_session, p_key) and (expires_at is null or expires_at > v_at);
  if v_entries >= p_network_entries or v_bytes + octet_length(p_key) + octet_length(p_value) > p_network_bytes then
    return json_build_object('stored', false, 'entries', v_entries, 'bytes', v_bytes);
  end if;
  v_answer := tools.remember_value(p_owner, p_session, p_key, p_value, p_is_json, p_ttl_ms, p_entries, p_bytes, v_at);
  update tools.memory set network = p_network where (owner, session, key) = (p_owner, p_session, p_key) and network is distinct from p_network;
  return v_answer;
end $function$;

-- ==================== catalog ====================

CREATE SCHEMA catalog;

CREATE TABLE catalog.repository (
  -- Address of the repository in normal form.
  url text NOT NULL,
  host text NOT NULL,
  -- Which kind of forge answered, and the ETag of its answer.
  forge text,
  etag text,
  stars integer,
  stars_at timestamp with time zone,
  -- SPDX identifier, where the forge recognises a licence.
  license text,
  -- Why the last question failed.
  reason text,
  failures integer DEFAULT 0 NOT NULL,
  claimed_at timestamp with time zone,
  next_at timestamp with time zone NOT NULL,
  CONSTRAINT repository_url_check CHECK (length(url) >= 1 AND length(url) <= 600),
  CONSTRAINT repository_stars_check CHECK (stars >= 0),
  CONSTRAINT repository_check CHECK ((stars IS NULL) = (stars_at IS NULL)),
  CONSTRAINT repository_pkey PRIMARY KEY (url)
);
CREATE INDEX repository_due ON catalog.repository USING btree (next_at);

-- First and last call of an app by a caller, derived from the uses: made again from them where it is lost.
CREATE TABLE catalog.caller (
  app text NOT NULL,
  -- A salted hash, as in the record of the use.
  caller text NOT NULL,
  first_at timestamp with time zone NOT NULL,
  last_at timestamp with time zone NOT NULL,
  CONSTRAINT caller_check CHECK (first_at <= last_at),
  CONSTRAINT caller_pkey PRIMARY KEY (app, caller)
) WITH (fillfactor=80);
CREATE INDEX caller_last ON catalog.caller USING btree (app, last_at);
CREATE INDEX caller_at ON catalog.caller USING btree (last_at);

-- ==================== bench ====================

CREATE SCHEMA bench;

CREATE TABLE bench.campaign (
  id uuid NOT NULL,
  app text NOT NULL,
  models text[] NOT NULL,
  -- [{task, hash, born}], as they were when it was registered
  tasks jsonb NOT NULL,
  runs integer NOT NULL,
  -- Instances of odd runs come from seed, of even ones from held_back_seed, of which only the hash is published.
  seed text NOT NULL,
  held_back_seed text NOT NULL,
  held_back_hash text NOT NULL,
  parameters jsonb NOT NULL,
  -- How model calls are known to be of a run: by a marker that the app passes on, or because all calls of the app are.
  attribution text NOT NULL,
  -- The process that runs it; another one may take over, and then this one writes no more.
  runner uuid NOT NULL,
  registered_at timestamp with time zone NOT NULL,
  finished_at timestamp with time zone,
  CONSTRAINT campaign_models_check CHECK (cardinality(models) > 0),
  CONSTRAINT campaign_runs_check CHECK (runs > 0),
  CONSTRAINT campaign_attribution_check CHECK (attribution = ANY (ARRAY['marker'::text, 'app'::text])),
  CONSTRAINT campaign_pkey PRIMARY KEY (id)
);
CREATE INDEX campaign_app ON bench.campaign USING btree (app, registered_at);

CREATE TABLE bench.run (
  id uuid NOT NULL,
  campaign uuid NOT NULL,
  app text NOT NULL,
  model text NOT NULL,
  task text NOT NULL,
  number integer NOT NULL,
  -- Above 1 where an earlier attempt was interrupted.
  attempt integer DEFAULT 1 NOT NULL,
  held_back boolean NOT NULL,
  task_hash text NOT NULL,
  instance text NOT NULL,
  state text DEFAULT 'registered'::text NOT NULL,
  app_commit text,
  image text,
  router text,
  parameters jsonb NOT NULL,
  passed boolean,
  score double precision,
  -- The ledger's sum over the model calls of the run.
  cost numeric(20,12),
  cost_state text,
  model_calls integer,
  tokens_in bigint,
  tokens_out bigint,
  latency_ms integer,
  error text,
  detail text,
  output_hash text,
  -- Downloads go on from this time, page by page.
  registered_at timestamp with time zone NOT NULL,
  started_at timestamp with time zone,
  at timestamp with time zone,
  CONSTRAINT run_number_check CHECK (number > 0),
  CONSTRAINT run_attempt_check CHECK (attempt > 0),
  CONSTRAINT run_state_check CHECK (state = ANY (ARRAY['registered'::text, 'running'::text, 'finished'::text, 'interrupted'::text])),
  CONSTRAINT run_score_check CHECK (score >= 0::double precision AND score <= 1::double precision),
  CONSTRAINT run_cost_check CHECK (cost >= 0::numeric),
  CONSTRAINT run_cost_state_check CHECK (cost_state = ANY (ARRAY['exact'::text, 'pending'::text, 'unknown'::text])),
  CONSTRAINT run_latency_ms_check CHECK (latency_ms >= 0),
  CONSTRAINT run_error_check CHECK (error = ANY (ARRAY['outage'::text, 'limit'::text, 'app-5xx'::text, 'timeout'::text, 'wake'::text, 'malformed'::text, 'refused'::text, 'wrong'::text, 'grader'::text])),
  CONSTRAINT run_detail_check CHECK (length(detail) <= 500),
  CONSTRAINT run_registered_at_check CHECK (registered_at = date_trunc('milliseconds'::text, registered_at)),
  CONSTRAINT run_check CHECK ((state = 'finished'::text) = (passed IS NOT NULL)),
  CONSTRAINT run_check1 CHECK (state <> 'finished'::text OR score IS NOT NULL AND latency_ms IS NOT NULL AND passed = (error IS NULL)),
  CONSTRAINT run_check2 CHECK ((state = ANY (ARRAY['finished'::text, 'interrupted'::text])) = (at IS NOT NULL AND cost_state IS NOT NULL)),
  CONSTRAINT run_pkey PRIMARY KEY (id),
  CONSTRAINT run_campaign_model_task_number_attempt_key UNIQUE (campaign, model, task, number, attempt),
  CONSTRAINT run_campaign_fkey FOREIGN KEY (campaign) REFERENCES bench.campaign(id)
);
CREATE INDEX run_published ON bench.run USING btree (app, registered_at, id);
CREATE INDEX run_cell ON bench.run USING btree (app, model, task) INCLUDE (passed, cost, latency_ms) WHERE (state = 'finished'::text);
CREATE INDEX run_open ON bench.run USING btree (app, state) WHERE (state <> 'finished'::text);
CREATE INDEX run_next ON bench.run USING btree (campaign, number, task, model) WHERE (state = ANY (ARRAY['registered'::text, 'running'::text]));
CREATE INDEX run_cost_pending ON bench.run USING btree (at) WHERE (cost_state = 'pending'::text);

-- Which model answers an app's calls at /v1 while a run of it is in progress. Marker '': all calls of the app.
CREATE TABLE bench.assignment (
  app text NOT NULL,
  marker text NOT NULL,
  run uuid NOT NULL,
  model text NOT NULL,
  -- A runner that ended leaves it behind; it holds no longer than its run could take.
  until timestamp with time zone NOT NULL,
  CONSTRAINT assignment_pkey PRIMARY KEY (app, marker),
  CONSTRAINT assignment_run_key UNIQUE (run),
  CONSTRAINT assignment_run_fkey FOREIGN KEY (run) REFERENCES bench.run(id)
);

-- Model calls of runs, noted before money is reserved for them; outcome is null while one is in progress.
CREATE TABLE bench.call (
  hold uuid NOT NULL,
  run uuid NOT NULL,
  at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  outcome text,
  CONSTRAINT call_pkey PRIMARY KEY (hold),
  CONSTRAINT call_run_fkey FOREIGN KEY (run) REFERENCES bench.run(id)
);
CREATE INDEX call_run ON bench.call USING btree (run);

-- What finished runs add up to, per app, model and task; task '' is all tasks. Made anew from the runs with each one that finishes.
CREATE TABLE bench.summary (
  app text NOT NULL,
  model text NOT NULL,
  task text NOT NULL,
  runs integer NOT NULL,
  passed integer NOT NULL,
  -- Runs that show nothing of the model: its upstream was out, or a limit of ours refused the call.
  unanswered integer NOT NULL,
  cost numeric(20,12) NOT NULL,
  cost_unknown integer NOT NULL,
  latency_p50 double precision NOT NULL,
  latency_p95 double precision NOT NULL,
  errors jsonb NOT NULL,
  updated timestamp with time zone NOT NULL,
  CONSTRAINT summary_pkey PRIMARY KEY (app, model, task)
);

CREATE TABLE bench.visit (
  id uuid NOT NULL,
  app text NOT NULL,
  at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  app_commit text,
  image text,
  -- Requests that a visitor makes, the page included; polling counts once.
  steps integer NOT NULL,
  -- From the first request to the useful answer, or until it was given up.
  latency_ms integer NOT NULL,
  answered boolean NOT NULL,
  -- Why there was no useful answer.
  detail text,
  CONSTRAINT visit_steps_check CHECK (steps > 0),
  CONSTRAINT visit_latency_ms_check CHECK (latency_ms >= 0),
  CONSTRAINT visit_detail_check CHECK (length(detail) <= 500),
  CONSTRAINT visit_check CHECK (answered = (detail IS NULL)),
  CONSTRAINT visit_pkey PRIMARY KEY (id)
);
CREATE INDEX visit_app ON bench.visit USING btree (app, at);

CREATE OR REPLACE FUNCTION bench.summarize(p_app text, p_model text, p_task text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  insert into bench.summary as s
    select p_app, p_model, p_task, count(*), count(*) filter (where passed),
      count(*) filter (where error in ('outage', 'limit')), coalesce(sum(cost), 0), count(*) filter (where cost_state <> 'exact'),
      percentile_cont(0.5) within group (order by latency_ms), percentile_cont(0.95) within group (order by latency_ms),
      (select coalesce(jsonb_object_agg(error, many), '{}') from (
        select error, count(*) as many from bench.run
          where app = p_app and model = p_model and (p_task = '' or task = p_task) and state = 'finished' and error is not null
          group by error) e),
      max(at)
    from bench.run where app = p_app and model = p_model and (p_task = '' or task = p_task) and state = 'finished'
    having count(*) > 0
    on conflict (app, model, task) do update set runs = excluded.runs, passed = excluded.passed, unanswered = excluded.unanswered,
      cost = excluded.cost, cost_unknown = excluded.cost_unknown, latency_p50 = excluded.latency_p50, latency_p95 = excluded.latency_p95,
      errors = excluded.errors, updated = excluded.updated;
end $function$;

-- The cost of a run with a call at an estimate is as unknown as before: an estimate is no measurement.
CREATE OR REPLACE FUNCTION bench.cost_of(p_run uuid, OUT cost numeric, OUT cost_state text, OUT calls integer, OUT tokens_in bigint, OUT tokens_out bigint)
 RETURNS record
 LANGUAGE sql
 STABLE
AS $function$
  select coalesce(sum(h.cost), 0),
    case when bool_or(h.state in ('open', 'pending', 'expired') or (h.id is null and c.outcome is null and c.at > clock_timestamp() - interval '1 hour')) then 'pending'
      when bool_or(h.state = 'abandoned' or u.cost_source = 'estimated') then 'unknown' else 'exact' end,
    count(*)::integer, sum(u.tokens_in), sum(u.tokens_out)
  from bench.call c left join ledger.hold h on h.id = c.hold left join ledger.usage u on u.at = h.created_at and u.id = c.hold::text
  where c.run = p_run
$function$;

-- Registers a campaign with all of its runs. Each run: {id, model, task, number, held_back, task_hash, instance}.
CREATE OR REPLACE FUNCTION bench.register(p_campaign jsonb, p_runs jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  -- Downloads go on from this time page by page, and their readers know milliseconds only.
  v_at timestamptz := date_trunc('milliseconds', clock_timestamp());
begin
  insert into bench.campaign (id, app, models, tasks, runs, seed, held_back_seed, held_back_hash, parameters, attribution, runner, registered_at)
    select c.id, c.app, array(select jsonb_array_elements_text(p_campaign -> 'models')), c.tasks, c.runs, c.seed, c.held_back_seed, c.held_back_hash,
      c.parameters, c.attribution, c.runner, v_at
    from jsonb_to_record(p_campaign) as c (id uuid, app text, tasks jsonb, runs integer, seed text, held_back_seed text, held_back_hash text,
      parameters jsonb, attribution text, runner uuid);
  insert into bench.run (id, campaign, app, model, task, number, held_back, task_hash, instance, parameters, registered_at)
    select r.id, (p_campaign ->> 'id')::uuid, p_campaign ->> 'app', r.model, r.task, r.number, r.held_back, r.task_hash, r.instance,
      p_campaign -> 'parameters', v_at
    from jsonb_to_recordset(p_runs) as r (id uuid, model text, task text, number integer, held_back boolean, task_hash text, instance text);
end $function$;

-- Gives a campaign to another runner: what was running is interrupted and registered again. Returns how many those were.
CREATE OR REPLACE FUNCTION bench.take_over(p_campaign uuid, p_runner uuid)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_at timestamptz := date_trunc('milliseconds', clock_timestamp());
  v_count integer := 0;
  r bench.run;
begin
  update bench.campaign set runner = p_runner where id = p_campaign;
  for r in select * from bench.run where campaign = p_campaign and state = 'running' for update loop
    delete from bench.assignment where run = r.id;
    update bench.run set state = 'interrupted', at = v_at,
        (cost, cost_state, model_calls, tokens_in, tokens_out) = (select c.cost, c.cost_state, c.calls, c.tokens_in, c.tokens_out from bench.cost_of(r.id) c)
      where id = r.id;
    insert into bench.run (id, campaign, app, model, task, number, attempt, held_back, task_hash, instance, parameters, registered_at)
      values (gen_random_uuid(), r.campaign, r.app, r.model, r.task, r.number, r.attempt + 1, r.held_back, r.task_hash, r.instance, r.parameters, v_at);
    v_count := v_count + 1;
  end loop;
  return v_count;
end $function$;

-- Starts the next run of a campaign and assigns its model to the app. Null: none is left. 'taken': another runner has the
-- campaign. 'busy': all calls of the app are assigned to a run of another campaign.
CREATE OR REPLACE FUNCTION bench.start_next(p_campaign uuid, p_runner uuid, p_release jsonb, p_ms bigint)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
declare
  v_at timestamptz := clock_timestamp();
  v_attribution text;
  v_marker text;
  r bench.run;
begin
  select attribution into v_attribution from bench.campaign where id = p_campaign and runner = p_runner for update;
  if not found then return '"taken"'; end if;
  select * into r from bench.run where campaign = p_campaign and state = 'registered' order by number, task, model limit 1 for update;
  if not found then
    update bench.campaign set finished_at = coalesce(finished_at, v_at) where id = p_campaign;
    return null;
  end if;
  v_marker := case when v_attribution = 'app' then '' else 'bench-' || r.id end;
  insert into bench.assignment as a (app, marker, run, model, until)
    values (r.app, v_marker, r.id, r.model, v_at + p_ms * interval '1 millisecond')
    on conflict (app, marker) do update set run = excluded.run, model = excluded.model, until = excluded.until where a.until < v_at;
  if not found then return '"busy"'; end if;
  update bench.run set state = 'running', started_at = v_at, app_commit = p_release ->> 'commit', image = p_release ->> 'image', router = p_release ->> 'router'
    where id = r.id;
  return jsonb_build_object('id', r.id, 'model', r.model, 'task', r.task, 'number', r.number, 'attempt', r.attempt, 'held_back', r.held_back,
    'marker', v_marker, 'instance', r.instance);
end $function$;

-- Ends the assignment of a run, so that no further call is counted as its own. Returns the outcomes of its calls, the first one first.
CREATE OR REPLACE FUNCTION bench.end_calls(p_run uuid)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
begin
  delete from bench.assignment where run = p_run;
  return (select coalesce(jsonb_agg(outcome order by at), '[]') from bench.call where run = p_run);
end $function$;

-- Writes the result of a run and adds it up, both or neither. False: another runner has taken the campaign over meanwhile.
CREATE OR REPLACE FUNCTION bench.finish(p_run uuid, p_runner uuid, p_result jsonb)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
  r bench.run;
begin
  select x.* into r from bench.run x join bench.campaign c on c.id = x.campaign
    where x.id = p_run and x.state = 'running' and c.runner = p_runner for update;
  if not found then return false; end if;
  delete from bench.assignment where run = p_run;
  update bench.run set state = 'finished', at = clock_timestamp(), passed = (p_result ->> 'passed')::boolean, score = (p_result ->> 'score')::double precision,
      latency_ms = (p_result ->> 'latency_ms')::integer, error = p_result ->> 'error', detail = p_result ->> 'detail', output_hash = p_result ->> 'output_hash',
      (cost, cost_state, model_calls, tokens_in, tokens_out) = (select c.cost, c.cost_state, c.calls, c.tokens_in, c.tokens_out from bench.cost_of(p_run) c)
    where id = p_run;
  perform bench.summarize(r.app, r.model, r.task);
  perform bench.summarize(r.app, r.model, '');
  return true;
end $function$;

-- Looks again for costs that were not known when their run ended. Returns how many are known now.
CREATE OR REPLACE FUNCTION bench.settle_costs(p_limit integer)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_count integer := 0;
  v record;
  r bench.run;
begin
  for r in select * from bench.run where cost_state = 'pending' order by at limit p_limit for update skip locked loop
    select * into v from bench.cost_of(r.id);
    continue when v.cost_state = 'pending';
    update bench.run set cost = v.cost, cost_state = v.cost_state, model_calls = v.calls, tokens_in = v.tokens_in, tokens_out = v.tokens_out where id = r.id;
    if r.state = 'finished' then
      perform bench.summarize(r.app, r.model, r.task);
      perform bench.summarize(r.app, r.model, '');
    end if;
    v_count := v_count + 1;
  end loop;
  return v_count;
end $function$;

-- ==================== metering ====================

CREATE SCHEMA metering;

-- A run of a gateway process. Its counter begins at 1 with it, and each of its records carries a number of it.
CREATE TABLE metering.instance (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  -- Which gateway it is a run of, as its sender names it.
  gateway text NOT NULL,
  -- Numbers that came, refused ones included; and those among them that were refused for their time.
  counters int8multirange DEFAULT '{}'::int8multirange NOT NULL,
  refused int8multirange DEFAULT '{}'::int8multirange NOT NULL,
  -- Uses that were recorded of it: as many as numbers came, less those refused.
  events bigint DEFAULT 0 NOT NULL,
  -- The highest number, and when that request began and ended, in nanoseconds since 1970; the last end of any.
  newest bigint NOT NULL,
  newest_start_ns bigint NOT NULL,
  newest_end_ns bigint NOT NULL,
  last_end_ns bigint NOT NULL,
  first_received_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  last_received_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT instance_gateway_check CHECK (length(gateway) >= 1 AND length(gateway) <= 200),
  CONSTRAINT instance_pkey PRIMARY KEY (id)
) WITH (fillfactor=70);
CREATE INDEX instance_gateway ON metering.instance USING btree (gateway, id);

-- Numbers below the highest that have not come: of requests in progress, or of records that were lost.
CREATE TABLE metering.gap (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  instance bigint NOT NULL,
  counters int8multirange NOT NULL,
  -- When the requests before and after it began.
  after_at timestamp with time zone,
  before_at timestamp with time zone NOT NULL,
  seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  -- Set once it has been missing for too long: a loss. A record that comes late is taken out of it.
  lost_at timestamp with time zone,
  CONSTRAINT gap_pkey PRIMARY KEY (id),
  CONSTRAINT gap_instance_fkey FOREIGN KEY (instance) REFERENCES metering.instance(id)
);
CREATE INDEX gap_instance ON metering.gap USING btree (instance);
CREATE INDEX gap_open ON metering.gap USING btree (seen_at) WHERE (lost_at IS NULL);

-- Sums of uses; status_class is 2 for 2xx, 0 where there is no status. Both are derived, and kept when uses are dropped.
CREATE TABLE metering.hour (
  hour timestamp with time zone NOT NULL,
  app text NOT NULL,
  kind text NOT NULL,
  class text NOT NULL,
  status_class smallint NOT NULL,
  uses bigint NOT NULL,
  bytes_in bigint NOT NULL,
  bytes_out bigint NOT NULL,
  -- Sum over the uses that have one, and how many those are.
  latency_ms bigint NOT NULL,
  timed bigint NOT NULL,
  CONSTRAINT hour_pkey PRIMARY KEY (app, hour, kind, class, status_class)
);
CREATE INDEX hour_at ON metering.hour USING btree (hour);

CREATE TABLE metering.day (
  day date NOT NULL,
  app text NOT NULL,
  kind text NOT NULL,
  class text NOT NULL,
  status_class smallint NOT NULL,
  uses bigint NOT NULL,
  bytes_in bigint NOT NULL,
  bytes_out bigint NOT NULL,
  latency_ms bigint NOT NULL,
  timed bigint NOT NULL,
  CONSTRAINT day_pkey PRIMARY KEY (app, day, kind, class, status_class)
);
CREATE INDEX day_at ON metering.day USING btree (day);

-- Up to where uses are summed up, by when they were received; and the first day whose uses are kept.
CREATE TABLE metering.progress (
  one boolean DEFAULT true NOT NULL,
  received_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
  kept_from date DEFAULT '-infinity'::date NOT NULL,
  CONSTRAINT progress_one_check CHECK (one),
  CONSTRAINT progress_pkey PRIMARY KEY (one)
);

-- The last sample of each container. One that is started anew is another container.
CREATE TABLE metering.container (
  container text NOT NULL,
  app text NOT NULL,
  at timestamp with time zone NOT NULL,
  -- Microseconds of CPU since the container started; the highest that was seen.
  cpu_us bigint NOT NULL,
  memory_bytes bigint NOT NULL,
  CONSTRAINT container_container_check CHECK (length(container) >= 1 AND length(container) <= 200),
  CONSTRAINT container_cpu_us_check CHECK (cpu_us >= 0),
  CONSTRAINT container_memory_bytes_check CHECK (memory_bytes >= 0),
  CONSTRAINT container_pkey PRIMARY KEY (container)
) WITH (fillfactor=70);
CREATE INDEX container_at ON metering.container USING btree (at);

CREATE TABLE metering.compute_hour (
  app text NOT NULL,
  hour timestamp with time zone NOT NULL,
  cpu_seconds numeric(20,6) NOT NULL,
  memory_byte_seconds numeric(30,0) NOT NULL,
  CONSTRAINT compute_hour_pkey PRIMARY KEY (app, hour)
);

CREATE VIEW metering.loss AS
 SELECT g.id AS gap,
    i.gateway,
    g.instance,
    lower(r.r) AS first,
    upper(r.r) - 1 AS last,
    upper(r.r) - lower(r.r) AS requests,
    COALESCE(g.after_at, i.first_received_at) AS after_at,
    g.before_at,
    g.seen_at,
    g.lost_at
   FROM metering.gap g
     JOIN metering.instance i ON i.id = g.instance
     CROSS JOIN LATERAL unnest(g.counters) r(r)
  WHERE g.lost_at IS NOT NULL;

-- Each run as it should add up: every number that was given out is an event, refused, still missing, or lost. What came
-- twice is counted once in both. A difference that is not 0 is a fault of ours.
CREATE VIEW metering.reconciliation AS
 SELECT i.id AS instance,
    i.gateway,
    i.newest AS counted,
    i.events,
    metering.size(i.refused) AS refused,
    COALESCE(g.missing, 0::numeric)::bigint AS missing,
    COALESCE(g.lost, 0::numeric)::bigint AS lost,
    i.newest - i.events - metering.size(i.refused) - COALESCE(g.missing + g.lost, 0::numeric)::bigint AS difference
   FROM metering.instance i
     LEFT JOIN ( SELECT gap.instance,
            COALESCE(sum(metering.size(gap.counters)) FILTER (WHERE gap.lost_at IS NULL), 0::numeric) AS missing,
            COALESCE(sum(metering.size(gap.counters)) FILTER (WHERE gap.lost_at IS NOT NULL), 0::numeric) AS lost
           FROM metering.gap
          GROUP BY gap.instance) g ON g.instance = i.id;

CREATE OR REPLACE FUNCTION metering.size(p_counters int8multirange)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select coalesce(sum(upper(r) - lower(r)), 0)::bigint from unnest(p_counters) as r
$function$;

-- Takes numbers that came late out of what is missing. Returns how many of a loss came back.
CREATE OR REPLACE FUNCTION metering.fill(p_instance bigint, p_counters int8multirange)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
  v_back bigint;
begin
  select coalesce(sum(metering.size(counters * p_counters)), 0) into v_back
    from metering.gap where instance = p_instance and lost_at is not null and counters && p_counters;
  delete from metering.gap where instance = p_instance and counters <@ p_counters;
  update metering.gap set counters = counters - p_counters where instance = p_instance and counters && p_counters;
  return v_back;
end $function$;

-- What has been missing for so long is lost. Returns how many requests.
CREATE OR REPLACE FUNCTION metering.declare_losses(p_ms bigint, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS bigint
 LANGUAGE sql
AS $function$
  with lost as (
    update metering.gap set lost_at = coalesce(p_at, clock_timestamp())
      where lost_at is null and seen_at < coalesce(p_at, clock_timestamp()) - p_ms * interval '1 millisecond' returning counters
  ) select coalesce(sum(metering.size(counters)), 0)::bigint from lost
$function$;

-- Makes the sums of some hours of one day anew, and of the day. What was dropped keeps its sums.
CREATE OR REPLACE FUNCTION metering.roll_up(p_day date, p_hours timestamp with time zone[] DEFAULT NULL::timestamp with time zone[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_from timestamptz := ledger.day_start(p_day);
  v_to timestamptz := ledger.day_start(p_day + 1);
  v_hours timestamptz[] := coalesce(p_hours, array(select v_from + n * interval '1 hour' from generate_series(0, 23) n));
begin
  if p_day < (select kept_from from metering.progress) then return; end if;
  perform pg_advisory_xact_lock(7201133511000000 + (p_day - date '2000-01-01'));
  delete from metering.hour where hour = any (v_hours);
  insert into metering.hour
    select date_trunc('hour', at, 'UTC'), coalesce(app, ''), kind, class, coalesce(status / 100, 0),
      count(*), coalesce(sum(bytes_in), 0), coalesce(sum(bytes_out), 0), coalesce(sum(latency_ms), 0), count(latency_ms)
    from ledger.usage where at >= v_from and at < v_to and date_trunc('hour', at, 'UTC') = any (v_hours)
    group by 1, 2, 3, 4, 5;
  delete from metering.day where day = p_day;
  insert into metering.day
    select p_day, app, kind, class, status_class, sum(uses), sum(bytes_in), sum(bytes_out), sum(latency_ms), sum(timed)
    from metering.hour where hour >= v_from and hour < v_to group by app, kind, class, status_class;
end $function$;

-- Sums up the hours of which uses have come since the last time. Returns how many hours.
-- A use is seen by others only once its transaction ends, so the last minutes are looked at again.
CREATE OR REPLACE FUNCTION metering.roll_up_new()
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_mark timestamptz;
  v_now timestamptz := clock_timestamp();
  v_hours integer := 0;
  r record;
begin
  select received_until into v_mark from metering.progress for update;
  for r in
    select (hour at time zone 'utc')::date as day, array_agg(hour) as hours
    from (select distinct date_trunc('hour', at, 'UTC') as hour from ledger.usage where received_at >= v_mark) h group by 1 order by 1
  loop
    perform metering.roll_up(r.day, r.hours);
    v_hours := v_hours + cardinality(r.hours);
  end loop;
  update metering.progress set received_until = v_now - interval '2 minutes';
  return v_hours;
end $function$;

-- Drops the uses of days that ended before p_before, once they are summed up and their costs are known. Returns how many
-- days.
CREATE OR REPLACE FUNCTION metering.drop_days(p_before timestamp with time zone)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_before date := (p_before at time zone 'utc')::date;
  v_dropped integer := 0;
  v_waits boolean;
  r record;
begin
  for r in select * from ledger.usage_days() where day < v_before order by day loop
    perform metering.roll_up(r.day);
    execute format('select exists (select from ledger.%I where cost_source = ''pending'')', r.partition) into v_waits;
    if v_waits then continue; end if;
    execute format('drop table ledger.%I', r.partition);
    v_dropped := v_dropped + 1;
  end loop;
  update metering.progress set kept_from = v_before where kept_from < v_before;
  return v_dropped;
end $function$;

-- Counts samples: [{container, app, started_at, at, cpu_us, memory_bytes}]. From each to the one before it in the same
-- container, the CPU by which the counter rose is shared out over the hours by time, and memory is the area under the
-- line between both (trapezoid). A container begins with nothing, so its first sample counts from its start. A sample
-- that is not newer than the last of its container counts nothing, nor does a counter that went back.
-- Where samples are far apart, CPU is counted all the same; memory only for the last five minutes before the later one.
-- What is known of a container is kept for 30 days: one that started before and is unknown may have been counted
-- already, and is counted from its first sample on. Samples ahead of the clock would hide those that follow, and are refused.
CREATE OR REPLACE FUNCTION metering.add_compute(p_samples jsonb, p_now timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT counted integer, OUT ignored integer, OUT refused integer, OUT cpu_seconds numeric, OUT memory_byte_seconds numeric)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
  v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
  -- A leader that is about to end may still send while the next one does.
  perform pg_advisory_xact_lock(7201133511);
  with given as (
    select * from jsonb_to_recordset(p_samples)
      as s (container text, app text, started_at timestamptz, at timestamptz, cpu_us bigint, memory_bytes bigint)
  ), timely as (
    select distinct on (container, at) * from given where at <= v_now + interval '5 minutes' order by container, at, cpu_us desc
  ), newer as (
    select t.*, k.at as known_at, k.cpu_us as known_cpu_us, k.memory_bytes as known_memory_bytes
    from timely t left join metering.container k using (container) where k.at is null or t.at > k.at
  ), risen as (
    select *, greatest(max(cpu_us) over (partition by container order by at), known_cpu_us) as high from newer
  ), step as (
    select container, app, at, high, memory_bytes,
      coalesce(lag(at) over w, known_at,
        case when started_at > v_now - interval '30 days' then least(started_at, at - interval '1 second') else at end) as from_at,
      coalesce(lag(high) over w, known_cpu_us, case when started_at > v_now - interval '30 days' then 0 else high end) as from_us,
      coalesce(lag(memory_bytes) over w, known_memory_bytes, 0) as from_bytes
    from risen window w as (partition by container order by at)
  ), remembered as (
    insert into metering.container as known (container, app, at, cpu_us, memory_bytes)
      select distinct on (container) container, app, at, high, memory_bytes from step order by container, at desc
    on conflict (container) do update set app = excluded.app, at = excluded.at, cpu_us = excluded.cpu_us, memory_bytes = excluded.memory_bytes
  ), piece as (
    -- Seconds since the step began at the start and the end of its part of an hour; m where memory begins to count.
    select s.*, h.hour, extract(epoch from at - from_at) as whole,
      extract(epoch from greatest(h.hour, from_at) - from_at) as a,
      extract(epoch from least(h.hour + interval '1 hour', at) - from_at) as b,
      greatest(extract(epoch from at - from_at) - 300, 0) as m
    from step s cross join lateral generate_series(date_trunc('hour', from_at, 'UTC'), at, interval '1 hour') as h (hour)
    where at > from_at and h.hour < at
  ), part as (
    -- Each part is the difference of two rounded totals, so that the parts add up to the whole.
    select app, hour,
      trunc((high - from_us) * b / whole) - trunc((high - from_us) * a / whole) as us,
      metering.area(from_bytes, memory_bytes, whole - m, b - m) - metering.area(from_bytes, memory_bytes, whole - m, a - m) as byte_seconds
    from piece
  ), summed as (
    select app, hour, sum(us) / 1000000 as seconds, sum(byte_seconds) as byte_seconds from part group by app, hour
  ), added as (
    insert into metering.compute_hour as known (app, hour, cpu_seconds, memory_byte_seconds)
      select app, hour, seconds, byte_seconds from summed order by app, hour
    on conflict (app, hour) do update set cpu_seconds = known.cpu_seconds + excluded.cpu_seconds,
      memory_byte_seconds = known.memory_byte_seconds + excluded.memory_byte_seconds
  )
  select (select count(*) from newer), (select count(*) from given where at <= v_now + interval '5 minutes') - (select count(*) from newer),
    (select count(*) from given where at > v_now + interval '5 minutes'), coalesce(sum(seconds), 0), coalesce(sum(byte_seconds), 0)
    into counted, ignored, refused, cpu_seconds, memory_byte_seconds from summed;
end $function$;

-- Byte-seconds after p_seconds under the line from p_from to p_to that is p_whole seconds long, rounded down.
CREATE OR REPLACE FUNCTION metering.area(p_from bigint, p_to bigint, p_whole numeric, p_seconds numeric)
 RETURNS numeric
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select case when p_whole <= 0 or p_seconds <= 0 then 0
    else trunc(p_from * p_seconds + (p_to - p_from) * p_seconds * p_seconds / (2 * p_whole)) end
$function$;

-- Forgets containers of which nothing was heard for 30 days. Returns how many.
CREATE OR REPLACE FUNCTION metering.forget_containers(p_now timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_count integer;
begin
  delete from metering.container where at < coalesce(p_now, clock_timestamp()) - interval '30 days';
  get diagnostics v_count = row_count;
  return v_count;
end $function$;

-- ==================== receipts ====================

CREATE SCHEMA receipts;

-- Transactions that are not linked yet. A row comes with its transaction, in one commit, so that none is passed over
-- however late it commits and whatever its number and time are. What was there before receipts waits first.
CREATE TABLE receipts.waiting (
  transaction_id bigint NOT NULL,
  since timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT waiting_pkey PRIMARY KEY (transaction_id)
) WITH (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000);

-- One transaction in the chain of its day.
CREATE TABLE receipts.link (
  -- Without a foreign key: checking it would lock each transaction once more, and a missing one has to be found anyway.
  transaction_id bigint NOT NULL,
  day date NOT NULL,
  -- In the day, from 0.
  "position" integer NOT NULL,
  -- The transaction as it was: canonical JSON, so that what is changed or deleted later can be named, and put back.
  leaf text NOT NULL,
  hash bytea NOT NULL,
  chain bytea NOT NULL,
  CONSTRAINT link_position_check CHECK ("position" >= 0),
  CONSTRAINT link_pkey PRIMARY KEY (transaction_id),
  CONSTRAINT link_day_position_key UNIQUE (day, "position")
);
CREATE TRIGGER link_immutable BEFORE DELETE OR UPDATE OR TRUNCATE ON receipts.link FOR EACH STATEMENT EXECUTE FUNCTION receipts.refuse_change();

-- A sealed day, as it is published and signed; tiles are the roots of each 256 links, from which proofs are made.
CREATE TABLE receipts.day (
  day date NOT NULL,
  document jsonb NOT NULL,
  tiles bytea NOT NULL,
  CONSTRAINT day_pkey PRIMARY KEY (day)
);
CREATE TRIGGER day_immutable BEFORE DELETE OR UPDATE OR TRUNCATE ON receipts.day FOR EACH STATEMENT EXECUTE FUNCTION receipts.refuse_change();

-- The newest signed state of the days that are not sealed yet.
CREATE TABLE receipts.checkpoint (
  one boolean DEFAULT true NOT NULL,
  document jsonb NOT NULL,
  CONSTRAINT checkpoint_one_check CHECK (one),
  CONSTRAINT checkpoint_pkey PRIMARY KEY (one)
);

CREATE OR REPLACE FUNCTION receipts.wait()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into receipts.waiting (transaction_id) select id from added;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION receipts.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception '% of receipts.% is refused: what is signed stays as it is', tg_op, tg_table_name using errcode = 'restrict_violation';
end $function$;

-- ==================== reconciliation ====================

CREATE SCHEMA reconciliation;

CREATE TABLE reconciliation.day (
  day date NOT NULL,
  made_at timestamp with time zone NOT NULL,
  -- The day was over when it was compared.
  is_complete boolean NOT NULL,
  -- Something of it could still come: a cost, a record of a gateway, a row of the router's bill.
  waits boolean NOT NULL,
  -- What no record explains, as absolute figures.
  events bigint NOT NULL,
  usd numeric(20,12) NOT NULL,
  -- What the operator found out about it; it stands as long as the difference is the same.
  explanation text,
  result jsonb NOT NULL,
  CONSTRAINT day_events_check CHECK (events >= 0),
  CONSTRAINT day_usd_check CHECK (usd >= 0::numeric),
  CONSTRAINT day_explanation_check CHECK (length(explanation) >= 1 AND length(explanation) <= 500),
  CONSTRAINT day_pkey PRIMARY KEY (day)
);

-- Which replica compares a day, so that only one does.
CREATE TABLE reconciliation.claim (
  day date NOT NULL,
  until timestamp with time zone NOT NULL,
  CONSTRAINT claim_pkey PRIMARY KEY (day)
);

-- The metered calls that began in a time: the use of each beside its hold and what was booked for it. Either may be missing.
CREATE OR REPLACE FUNCTION reconciliation.calls(p_from timestamp with time zone, p_to timestamp with time zone)
 RETURNS TABLE(id text, kind text, is_used boolean, use_cost numeric, state text, held numeric, hold_cost numeric, booked numeric, closed_at timestamp with time zone, is_late boolean, creditor text, router text)
 LANGUAGE sql
 STABLE
AS $function$
  with used as (
    select u.id, u.at, u.kind, u.cost, t.id as transaction_id
    from ledger.usage u left join ledger.transaction t on t.reference = 'settle:' || u.id
    where u.at >= p_from and u.at < p_to and u.kind <> 'visit'
  ), held as (
    select h.id::text as id, h.created_at as at, h.state, h.amount, h.cost, h.transaction_id, h.closed_at, h.closed_at >= h.expires_at as is_late,
      a.kind as creditor, a.owner
    from ledger.hold h join ledger.account a on a.id = h.credit where h.created_at >= p_from and h.created_at < p_to
  )
  select coalesce(u.id, h.id), coalesce(u.kind, case h.creditor when 'tool' then 'tool' when 'revenue' then 'app' else 'model' end),
    u.id is not null, u.cost, h.state, h.amount, h.cost, e.amount, h.closed_at, h.is_late, h.creditor, h.owner
  from used u full join held h on h.id = u.id and h.at = u.at
  left join ledger.entry e on e.transaction_id = coalesce(h.transaction_id, u.transaction_id) and e.line = 1
$function$;

-- Takes the next day that is due, or null: the days since the last one that was compared, up to yesterday, at most
-- p_back; and again, every few hours for as many days, one that waits for something. None in the first p_after_ms of a day.
CREATE OR REPLACE FUNCTION reconciliation.claim_due(p_after_ms bigint, p_again_ms bigint, p_back integer, p_lease_ms bigint, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS date
 LANGUAGE plpgsql
AS $function$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_yesterday date := ((v_at - p_after_ms * interval '1 millisecond') at time zone 'utc')::date - 1;
  v_first date;
  v_day date;
begin
  perform pg_advisory_xact_lock(7201133512);
  select greatest(coalesce(min(day) filter (where is_complete), v_yesterday), v_yesterday - p_back + 1) into v_first from reconciliation.day;
  select d::date into v_day
    from generate_series(v_first, v_yesterday, interval '1 day') d
    left join reconciliation.day r on r.day = d::date
    where (r.day is null or not r.is_complete or (r.waits and r.made_at < v_at - p_again_ms * interval '1 millisecond'))
      and not exists (select from reconciliation.claim c where c.day = d::date and c.until > v_at)
    order by d limit 1;
  if v_day is null then return null; end if;
  delete from reconciliation.claim where until <= v_at;
  insert into reconciliation.claim (day, until) values (v_day, v_at + p_lease_ms * interval '1 millisecond');
  return v_day;
end $function$;

-- ==================== revenue ====================

CREATE SCHEMA revenue;

-- Versions of the price list as they were first seen. One that was announced is never changed.
CREATE TABLE revenue.price_version (
  version text NOT NULL,
  effective_from date NOT NULL,
  content jsonb NOT NULL,
  recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT price_version_pkey PRIMARY KEY (version),
  CONSTRAINT price_version_effective_from_key UNIQUE (effective_from)
);
CREATE TRIGGER price_version_immutable BEFORE DELETE OR UPDATE OR TRUNCATE ON revenue.price_version FOR EACH STATEMENT EXECUTE FUNCTION revenue.refuse_change();

-- Whose an app was from a day on, and what of it he accrues: a row where that changed.
CREATE TABLE revenue.hosted (
  app text NOT NULL,
  day date NOT NULL,
  author text NOT NULL,
  share_ppm integer NOT NULL,
  -- Salted hash of the caller who submitted it.
  submitter text,
  CONSTRAINT hosted_share_ppm_check CHECK (share_ppm >= 0 AND share_ppm <= 1000000),
  CONSTRAINT hosted_pkey PRIMARY KEY (app, day)
);

-- Lines of statements, each with the transaction that posts it. Never changed: what was wrong gets another line.
CREATE TABLE revenue.line (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  -- Makes a line happen once, however often it is asked for.
  key text NOT NULL,
  author text NOT NULL,
  -- Statement in which it stands: the first day of its month.
  month date NOT NULL,
  kind text NOT NULL,
  app text,
  -- The day of the uses, and what was used: use (by a visitor) or call (by an agent).
  day date,
  item text,
  price_version text,
  -- How many uses it is for, at which price in all, and the author's part of that in parts per million. Of a later line of
  -- the same day, what it adds.
  uses bigint DEFAULT 0 NOT NULL,
  gross numeric(20,12) DEFAULT 0 NOT NULL,
  share_ppm integer,
  -- What the author gains by it, or loses.
  amount numeric(20,12) NOT NULL,
  -- SHA-256 of the ids of all uses of that day, in the order of time, a line feed between two.
  events text,
  -- The usage event that a correction is for, or the dispute.
  event text,
  reason text,
  transaction_id bigint NOT NULL,
  posted_at timestamp with time zone NOT NULL,
  CONSTRAINT line_kind_check CHECK (kind = ANY (ARRAY['share'::text, 'late'::text, 'refund'::text, 'dispute'::text, 'correction'::text, 'payout'::text])),
  CONSTRAINT line_item_check CHECK (item = ANY (ARRAY['use'::text, 'call'::text])),
  CONSTRAINT line_check CHECK ((kind <> ALL (ARRAY['share'::text, 'late'::text])) OR app IS NOT NULL AND day IS NOT NULL AND item IS NOT NULL AND share_ppm IS NOT NULL AND event IS NULL),
  CONSTRAINT line_check1 CHECK (kind <> 'payout'::text OR amount < 0::numeric),
  CONSTRAINT line_pkey PRIMARY KEY (id),
  CONSTRAINT line_key_key UNIQUE (key),
  CONSTRAINT line_transaction_id_key UNIQUE (transaction_id),
  CONSTRAINT line_transaction_id_fkey FOREIGN KEY (transaction_id) REFERENCES ledger.transaction(id)
);
CREATE INDEX line_author ON revenue.line USING btree (author, month, id);
CREATE INDEX line_day ON revenue.line USING btree (app, day) WHERE (day IS NOT NULL);
-- What all apps accrued on a day.
CREATE INDEX line_paid ON revenue.line USING btree (day) INCLUDE (app, amount, uses) WHERE (item = 'use'::text);
-- Payouts of the last days, of which authors are notified.
CREATE INDEX line_payout ON revenue.line USING btree (posted_at) WHERE (kind = 'payout'::text);
CREATE TRIGGER line_immutable BEFORE DELETE OR UPDATE OR TRUNCATE ON revenue.line FOR EACH STATEMENT EXECUTE FUNCTION revenue.refuse_change();

-- Days of an app of which the share is posted. Uses that come after the end of the day was posted make a line of kind `late`.
CREATE TABLE revenue.posted_day (
  app text NOT NULL,
  day date NOT NULL,
  posted_at timestamp with time zone NOT NULL,
  CONSTRAINT posted_day_pkey PRIMARY KEY (app, day)
);

-- Up to where uses were looked at, by when they were received.
CREATE TABLE revenue.progress (
  one boolean DEFAULT true NOT NULL,
  received_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
  CONSTRAINT progress_one_check CHECK (one),
  CONSTRAINT progress_pkey PRIMARY KEY (one)
);

-- No row: nothing has happened to the statement yet, and it is open.
CREATE TABLE revenue.statement (
  author text NOT NULL,
  month date NOT NULL,
  state text NOT NULL,
  changed_at timestamp with time zone NOT NULL,
  CONSTRAINT statement_state_check CHECK (state = ANY (ARRAY['open'::text, 'disputed'::text, 'adjusted'::text, 'final'::text])),
  CONSTRAINT statement_pkey PRIMARY KEY (author, month)
);

CREATE TABLE revenue.dispute (
  id uuid NOT NULL,
  author text NOT NULL,
  month date NOT NULL,
  line bigint,
  message text NOT NULL,
  opened_at timestamp with time zone NOT NULL,
  resolved_at timestamp with time zone,
  resolution text,
  CONSTRAINT dispute_message_check CHECK (length(message) >= 1 AND length(message) <= 2000),
  CONSTRAINT dispute_check CHECK ((resolved_at IS NULL) = (resolution IS NULL)),
  CONSTRAINT dispute_pkey PRIMARY KEY (id),
  CONSTRAINT dispute_line_fkey FOREIGN KEY (line) REFERENCES revenue.line(id)
);
CREATE INDEX dispute_statement ON revenue.dispute USING btree (author, month);

-- What became of the visits of an app's day. Statements show it, and `accrued` keeps the count reproducible: the first so
-- many uses below the caps, in the order of time.
CREATE TABLE revenue.visits (
  app text NOT NULL,
  day date NOT NULL,
  author text NOT NULL,
  uses bigint NOT NULL,
  accrued bigint NOT NULL,
  over_visitor bigint NOT NULL,
  over_network bigint NOT NULL,
  over_app bigint NOT NULL,
  over_budget bigint NOT NULL,
  CONSTRAINT visits_check CHECK (uses = (accrued + over_visitor + over_network + over_app + over_budget)),
  CONSTRAINT visits_pkey PRIMARY KEY (app, day)
);
CREATE INDEX visits_author ON revenue.visits USING btree (author, day);

CREATE TABLE revenue.account (
  -- Host and owner, in lower case.
  author text NOT NULL,
  -- Kind of forge and the number of the account there, like github:583231.
  account text NOT NULL,
  noted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  -- Another account that the forge named since. From then on nothing accrues, is shown or is paid out.
  other text,
  frozen_at timestamp with time zone,
  CONSTRAINT account_check CHECK (other <> account),
  CONSTRAINT account_check1 CHECK ((other IS NULL) = (frozen_at IS NULL)),
  CONSTRAINT account_pkey PRIMARY KEY (author)
);

CREATE OR REPLACE FUNCTION revenue.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception '% of revenue.% is refused: add a correction instead', tg_op, tg_table_name using errcode = 'restrict_violation';
end $function$;

CREATE OR REPLACE FUNCTION revenue.month_of(p_day date)
 RETURNS date
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select date_trunc('month', p_day::timestamp)::date
$function$;

-- The statement in which a line for p_month stands: that month while it is not final, else the month of today, which never is.
CREATE OR REPLACE FUNCTION revenue.open_month(p_author text, p_month date, p_at timestamp with time zone)
 RETURNS date
 LANGUAGE sql
 STABLE
AS $function$
  select case when exists (select from revenue.statement where author = p_author and month = p_month and state = 'final')
    then revenue.month_of((p_at at time zone 'utc')::date) else p_month end
$function$;

-- What a line says. It stands in the reference of its transaction, so that whoever changes the one has to change the other.
CREATE OR REPLACE FUNCTION revenue.digest(l revenue.line)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  select encode(sha256(convert_to(concat_ws(E'\n', l.key, l.author, to_char(l.month, 'YYYY-MM'), l.kind, coalesce(l.app, ''),
    coalesce(to_char(l.day, 'YYYY-MM-DD'), ''), coalesce(l.item, ''), coalesce(l.price_version, ''), l.uses::text, trim_scale(l.gross)::text,
    coalesce(l.share_ppm::text, ''), trim_scale(l.amount)::text, coalesce(l.events, ''), coalesce(l.event, ''), coalesce(l.reason, '')), 'UTF8')), 'hex')
$function$;

-- Posts a line with its transaction: p_lines [{kind, owner, daily, amount}], which sum to zero. Null where there is one of this key.
CREATE OR REPLACE FUNCTION revenue.post_line(p_line revenue.line, p_lines jsonb, p_at timestamp with time zone)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
  v_posted jsonb;
  v_id bigint;
begin
  perform pg_advisory_xact_lock(hashtextextended('revenue.line:' || p_line.key, 0));
  if exists (select from revenue.line where key = p_line.key) then return null; end if;
  v_posted := ledger.post(p_line.key || ':' || revenue.digest(p_line), p_line.kind, p_lines, p_at);
  insert into revenue.line (key, author, month, kind, app, day, item, price_version, uses, gross, share_ppm, amount, events, event, reason, transaction_id, posted_at)
    values (p_line.key, p_line.author, p_line.month, p_line.kind, p_line.app, p_line.day, p_line.item, p_line.price_version, p_line.uses, p_line.gross,
      p_line.share_ppm, p_line.amount, p_line.events, p_line.event, p_line.reason, (v_posted ->> 'id')::bigint, p_at)
    returning id into v_id;
  return v_id;
end $function$;

CREATE OR REPLACE FUNCTION revenue.entry(p_kind text, p_owner text, p_amount numeric)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select jsonb_build_object('kind', p_kind, 'owner', p_owner, 'daily', false, 'amount', p_amount::text)
$function$;

-- Notes whose the apps are today: [{app, author, share_ppm, submitter}]. A change counts from the next day on.
CREATE OR REPLACE FUNCTION revenue.note_hosted(p_apps jsonb, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_today date := (coalesce(p_at, clock_timestamp()) at time zone 'utc')::date;
  v_noted integer;
begin
  insert into revenue.hosted (app, day, author, share_ppm, submitter)
    select a.app, case when h.app is null then v_today else v_today + 1 end, a.author, a.share_ppm, a.submitter
    from jsonb_to_recordset(p_apps) as a (app text, author text, share_ppm integer, submitter text)
    left join lateral (select * from revenue.hosted h where h.app = a.app order by h.day desc limit 1) h on true
    where h.app is null or (h.author, h.share_ppm, h.submitter) is distinct from (a.author, a.share_ppm, a.submitter)
  on conflict (app, day) do update set author = excluded.author, share_ppm = excluded.share_ppm, submitter = excluded.submitter;
  get diagnostics v_noted = row_count;
  return v_noted;
end $function$;

-- Whose an app was on a day. Of days before it was first noted, whose it was then.
CREATE OR REPLACE FUNCTION revenue.hosted_on(p_app text, p_day date)
 RETURNS revenue.hosted
 LANGUAGE sql
 STABLE
AS $function$
  select * from revenue.hosted where app = p_app order by day <= p_day desc, case when day <= p_day then day end desc nulls last, day limit 1
$function$;

-- Apps and days that ended, of which uses have come since the last time.
-- As before; of an author who is frozen, nothing is posted.
CREATE OR REPLACE FUNCTION revenue.days_to_post(p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS TABLE(app text, day date)
 LANGUAGE sql
 STABLE
AS $function$
  select distinct u.app, (u.at at time zone 'utc')::date
  from ledger.usage u, revenue.progress p
  where u.received_at >= p.received_until and u.app is not null and u.kind in ('visit', 'app') and u.class = 'use'
    and u.at < ledger.day_start((coalesce(p_at, clock_timestamp()) at time zone 'utc')::date)
    and not exists (select from revenue.hosted_on(u.app, (u.at at time zone 'utc')::date) h where revenue.is_frozen(h.author))
$function$;

-- Gives back what a call of an app was charged, and takes the author's share of it back. One line, linked to the use.
CREATE OR REPLACE FUNCTION revenue.refund(p_event text, p_reason text, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_line revenue.line;
  v_share revenue.line;
  u record;
  v_id bigint;
begin
  select usage.app, (usage.at at time zone 'utc')::date as day, usage.price_version, h.cost, a.kind as debited, a.owner as payer into u
    from ledger.usage join ledger.hold h on h.id::text = usage.id join ledger.account a on a.id = h.debit
    where usage.id = p_event and usage.kind = 'app' and h.state = 'settled';
  if not found then return jsonb_build_object('outcome', 'unknown'); end if;
  if u.debited <> 'key' or u.cost = 0 then return jsonb_build_object('outcome', 'not-charged'); end if;
  -- The line of its day says whose it is and how much of it; before that is posted there is nothing to take back.
  select * into v_share from revenue.line l where l.app = u.app and l.day = u.day and l.item = 'call' and l.kind in ('share', 'late') order by l.id desc limit 1;
  if not found then return jsonb_build_object('outcome', 'not-posted', 'day', u.day); end if;
  v_line.key := 'refund:' || p_event;
  v_line.author := v_share.author; v_line.kind := 'refund'; v_line.app := u.app; v_line.day := u.day; v_line.item := 'call';
  v_line.price_version := u.price_version; v_line.uses := -1; v_line.gross := -u.cost; v_line.share_ppm := v_share.share_ppm;
  v_line.amount := -trunc(u.cost * v_share.share_ppm / 1000000, 12); v_line.event := p_event; v_line.reason := p_reason;
  v_line.month := revenue.open_month(v_line.author, v_share.month, v_at);
  v_id := revenue.post_line(v_line, jsonb_build_array(revenue.entry('author', v_line.author, -v_line.amount), revenue.entry('refund', u.payer, -u.cost),
    revenue.entry('revenue', u.app, u.cost + v_line.amount)), v_at);
  return jsonb_build_object('outcome', case when v_id is null then 'replayed' else 'posted' end, 'line', v_id::text);
end $function$;

-- What the operator adds to what an author earned, or takes from it: a correction, what a dispute came to, a payout.
CREATE OR REPLACE FUNCTION revenue.adjust(p_key text, p_kind text, p_author text, p_month date, p_amount numeric, p_event text, p_reason text, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_line revenue.line;
  v_id bigint;
begin
  v_line.key := p_key; v_line.author := p_author; v_line.kind := p_kind; v_line.amount := p_amount; v_line.event := p_event; v_line.reason := p_reason;
  v_line.uses := 0; v_line.gross := 0;
  v_line.month := revenue.open_month(p_author, p_month, v_at);
  v_id := revenue.post_line(v_line, jsonb_build_array(revenue.entry('author', p_author, -p_amount),
    revenue.entry(case p_kind when 'payout' then 'payout' else 'adjustment' end, 'authors', p_amount)), v_at);
  return jsonb_build_object('outcome', case when v_id is null then 'replayed' else 'posted' end, 'line', v_id::text);
end $function$;

-- What we owe an author.
CREATE OR REPLACE FUNCTION revenue.owed(p_author text)
 RETURNS numeric
 LANGUAGE sql
 STABLE
AS $function$
  select coalesce(-sum(e.amount), 0) from ledger.account a join ledger.entry e on e.account_id = a.id where a.kind = 'author' and a.owner = p_author
$function$;

-- Statements whose time for disputes is over, with none open, are final. Returns how many.
CREATE OR REPLACE FUNCTION revenue.close_months(p_dispute_days integer, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_closed integer;
begin
  insert into revenue.statement (author, month, state, changed_at)
    select distinct l.author, l.month, 'final', v_at from revenue.line l
      where ledger.day_start((l.month + interval '1 month')::date) + p_dispute_days * interval '1 day' <= v_at
        and not exists (select from revenue.dispute d where d.author = l.author and d.month = l.month and d.resolved_at is null)
        and not exists (select from revenue.statement s where s.author = l.author and s.month = l.month and s.state = 'final')
  on conflict (author, month) do update set state = 'final', changed_at = excluded.changed_at;
  get diagnostics v_closed = row_count;
  return v_closed;
end $function$;

-- The visits of an app's day below the caps of a visitor and of a network, numbered in the order of time, and all of them.
CREATE OR REPLACE FUNCTION revenue.visits_below(p_app text, p_day date, p_per_visitor integer, p_per_network integer)
 RETURNS TABLE(at timestamp with time zone, id text, number bigint, over_visitor boolean, over_network boolean)
 LANGUAGE sql
 STABLE
AS $function$
  select at, id, row_number() over (partition by over_visitor or over_network order by at, id), over_visitor, over_network
  from (
    select at, id, over_visitor, not over_visitor and row_number() over (partition by network, over_visitor order by at, id) > p_per_network as over_network
    from (
      select u.at, u.id, coalesce(u.network, u.caller, u.id) as network,
        row_number() over (partition by coalesce(u.caller, u.id) order by u.at, u.id) > p_per_visitor as over_visitor
      from ledger.usage u
      where u.app = p_app and u.at >= ledger.day_start(p_day) and u.at < ledger.day_start(p_day + 1) and u.kind = 'visit' and u.class = 'use'
    ) v
  ) n
$function$;

-- The uses of an app in a day of which its author accrues a share.
-- Visits: at most p_per_visitor of one visitor, none without p_free_uses. Calls: those that somebody else than the submitter is
-- charged for; with p_free_calls also those that nobody is.
CREATE OR REPLACE FUNCTION revenue.counted(p_app text, p_day date, p_submitter text, p_accrued bigint, p_use numeric, p_per_visitor integer, p_per_network integer, p_free_uses boolean, p_free_calls boolean)
 RETURNS TABLE(item text, at timestamp with time zone, id text, price numeric)
 LANGUAGE sql
 STABLE
AS $function$
  select 'use', v.at, v.id, p_use from revenue.visits_below(p_app, p_day, p_per_visitor, p_per_network) v
    where p_free_uses and not v.over_visitor and (p_accrued is null or not v.over_network and v.number <= p_accrued)
  union all
  select 'call', u.at, u.id, u.cost
    from ledger.usage u join ledger.hold h on h.id::text = u.id join ledger.account a on a.id = h.debit
    where u.app = p_app and u.at >= ledger.day_start(p_day) and u.at < ledger.day_start(p_day + 1) and u.kind = 'app' and h.state = 'settled'
      and u.caller is distinct from p_submitter and (a.kind = 'key' or p_free_calls)
$function$;

-- Decides how many visits of an app's day accrue, and records what became of the others. Never fewer than are posted.
-- p_budget: what all apps may accrue for the visits of a day, USD. What is left of it is divided among the apps that are
-- not posted yet; apps are posted by ascending use, so that what one leaves over goes to the others.
CREATE OR REPLACE FUNCTION revenue.cap_visits(p_app text, p_day date, p_hosted revenue.hosted, p_use numeric, p_per_visitor integer, p_per_network integer, p_per_app integer, p_budget numeric)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
  v revenue.visits;
  v_below bigint;
  v_each numeric := p_use * p_hosted.share_ppm / 1000000;
  v_own record;
  v_left numeric;
  v_waiting integer;
  v_fit bigint;
begin
  -- A day that was posted before there were caps goes on without them.
  if not exists (select from revenue.visits where app = p_app and day = p_day)
    and exists (select from revenue.line where app = p_app and day = p_day and item = 'use') then return null; end if;
  select count(*), count(*) filter (where over_visitor), count(*) filter (where over_network) into v.uses, v.over_visitor, v.over_network
    from revenue.visits_below(p_app, p_day, p_per_visitor, p_per_network);
  if v.uses = 0 then return 0; end if;
  v_below := v.uses - v.over_visitor - v.over_network;
  v_fit := least(v_below, p_per_app);
  v.over_app := v_below - v_fit;
  select coalesce(sum(amount), 0) as amount, coalesce(sum(uses), 0)::bigint as uses into v_own
    from revenue.line where app = p_app and day = p_day and item = 'use';
  if v_each > 0 then
    select p_budget - coalesce(sum(amount), 0) into v_left from revenue.line where day = p_day and item = 'use' and app <> p_app;
    select count(distinct d.app) + 1 into v_waiting from metering.day d
      where d.day = p_day and d.kind = 'visit' and d.class = 'use' and d.app not in ('', p_app)
        and not exists (select from revenue.posted_day p where p.app = d.app and p.day = p_day);
    v_fit := least(v_fit, trunc(greatest(v_left, 0) / v_waiting / v_each)::bigint);
  end if;
  -- What is posted stays, also where a cap or the budget is smaller now.
  v.accrued := least(greatest(v_fit, v_own.uses), v_below);
  v.over_budget := greatest(v_below - v.over_app - v.accrued, 0);
  v.over_app := greatest(v_below - v.accrued - v.over_budget, 0);
  insert into revenue.visits (app, day, author, uses, accrued, over_visitor, over_network, over_app, over_budget)
    values (p_app, p_day, p_hosted.author, v.uses, v.accrued, v.over_visitor, v.over_network, v.over_app, v.over_budget)
    on conflict (app, day) do update set author = excluded.author, uses = excluded.uses, accrued = excluded.accrued, over_visitor = excluded.over_visitor,
      over_network = excluded.over_network, over_app = excluded.over_app, over_budget = excluded.over_budget;
  return v.accrued;
end $function$;

-- Posts what is missing of the share of an app's day. Run again, it posts nothing, or what has come since. Returns how many
-- lines.
CREATE OR REPLACE FUNCTION revenue.post_day(p_app text, p_day date, p_version text, p_use numeric, p_per_visitor integer, p_per_network integer, p_free_uses boolean, p_free_calls boolean, p_per_app integer, p_budget numeric, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_hosted revenue.hosted := revenue.hosted_on(p_app, p_day);
  v_line revenue.line;
  v_lines integer := 0;
  v_accrued bigint := 0;
  e record;
  d record;
begin
  -- Uses of a day that was dropped cannot be counted again.
  if v_hosted.app is null or p_day < (select kept_from from metering.progress) then return 0; end if;
  perform pg_advisory_xact_lock(hashtextextended('revenue.post_day:' || p_app || p_day, 0));
  if p_free_uses then v_accrued := revenue.cap_visits(p_app, p_day, v_hosted, p_use, p_per_visitor, p_per_network, p_per_app, p_budget); end if;
  for e in
    select i.item, count(c.id) as uses, coalesce(sum(c.price), 0) as gross,
      encode(sha256(convert_to(coalesce(string_agg(c.id, E'\n' order by c.at, c.id), ''), 'UTF8')), 'hex') as events
    from (values ('call'), ('use')) i (item)
    left join revenue.counted(p_app, p_day, v_hosted.submitter, v_accrued, p_use, p_per_visitor, p_per_network, p_free_uses, p_free_calls) c using (item)
    group by 1 order by 1
  loop
    -- The share of all that the day has is rounded down once, so that its lines are worth together what one would be.
    select e.uses - coalesce(sum(l.uses), 0) as uses, e.gross - coalesce(sum(l.gross), 0) as gross,
        trunc(e.gross * v_hosted.share_ppm / 1000000, 12) - coalesce(sum(l.amount), 0) as amount, count(*) as lines
      into d from revenue.line l where l.app = p_app and l.day = p_day and l.item = e.item and l.kind in ('share', 'late');
    if d.amount = 0 and d.gross = 0 and d.uses = 0 then continue; end if;
    v_line := null;
    v_line.key := format('share:%s:%s:%s:%s', p_app, p_day, e.item, d.lines);
    v_line.author := v_hosted.author;
    v_line.kind := case when exists (select from revenue.posted_day where app = p_app and day = p_day and posted_at >= ledger.day_start(p_day + 1)) then 'late' else 'share' end;
    v_line.app := p_app; v_line.day := p_day; v_line.item := e.item; v_line.price_version := p_version;
    v_line.uses := d.uses; v_line.gross := d.gross; v_line.share_ppm := v_hosted.share_ppm; v_line.amount := d.amount; v_line.events := e.events;
    v_line.month := revenue.open_month(v_line.author, revenue.month_of(p_day), v_at);
    -- A visit is paid by nobody, so the platform bears it; of a call, the revenue is there.
    if revenue.post_line(v_line, jsonb_build_array(revenue.entry('author', v_line.author, -d.amount)) || case e.item
        when 'use' then jsonb_build_array(revenue.entry('promotion', 'use', d.gross), revenue.entry('revenue', p_app, d.amount - d.gross))
        else jsonb_build_array(revenue.entry('revenue', p_app, d.amount)) end, v_at) is not null
    then v_lines := v_lines + 1; end if;
  end loop;
  insert into revenue.posted_day (app, day, posted_at) values (p_app, p_day, v_at) on conflict (app, day) do update set posted_at = excluded.posted_at;
  return v_lines;
end $function$;

-- Binds an author to the first account that is found, and freezes it when there is another one. Returns bound, frozen or known.
CREATE OR REPLACE FUNCTION revenue.note_account(p_author text, p_account text, p_at timestamp with time zone DEFAULT NULL::timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
begin
  insert into revenue.account (author, account) values (p_author, p_account) on conflict (author) do nothing;
  if found then return 'bound'; end if;
  update revenue.account a set other = p_account, frozen_at = coalesce(p_at, clock_timestamp())
    where a.author = p_author and a.account <> p_account and a.other is null;
  return case when found then 'frozen' else 'known' end;
end $function$;

CREATE OR REPLACE FUNCTION revenue.is_frozen(p_author text)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
  select exists (select from revenue.account where author = p_author and frozen_at is not null)
$function$;

-- Binds an author to the account that was found, or to the earlier one again, and lets the days since then be posted. False
-- where it is neither.
CREATE OR REPLACE FUNCTION revenue.unfreeze(p_author text, p_account text)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
  v_frozen_at timestamptz;
begin
  select frozen_at into v_frozen_at from revenue.account where author = p_author and p_account in (account, other) for update;
  if v_frozen_at is null then return false; end if;
  update revenue.account set account = p_account, other = null, frozen_at = null where author = p_author;
  update revenue.progress set received_until = least(received_until, v_frozen_at - interval '1 day');
  return true;
end $function$;

-- ==================== agents ====================

CREATE SCHEMA agents;

CREATE TABLE agents.push_config (
  job uuid NOT NULL,
  id text NOT NULL,
  url text NOT NULL,
  -- Secrets of the receiver: gone once the notification is delivered or given up, and with the job in any case.
  token text,
  scheme text,
  credentials text,
  -- The version of the protocol in which the notification is written.
  version text NOT NULL,
  state text DEFAULT 'waiting'::text NOT NULL,
  -- How often it was tried. A try moves due_at on before it begins: a process that dies in the middle is followed by another.
  attempts smallint DEFAULT 0 NOT NULL,
  due_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT push_config_state_check CHECK (state = ANY (ARRAY['waiting'::text, 'delivered'::text, 'abandoned'::text])),
  CONSTRAINT push_config_pkey PRIMARY KEY (job, id),
  CONSTRAINT push_config_job_fkey FOREIGN KEY (job) REFERENCES tools.job(id) ON DELETE CASCADE
);
CREATE INDEX push_config_due ON agents.push_config USING btree (due_at) WHERE (state = 'waiting'::text);

-- ==================== author ====================

CREATE SCHEMA author;

CREATE TABLE author.action (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  at timestamp with time zone DEFAULT now() NOT NULL,
  -- UID of the HostedApp, and its name at that time.
  app text NOT NULL,
  slug text NOT NULL,
  -- First 12 digits of the hash of the author key.
  actor text NOT NULL,
  action text NOT NULL,
  -- Never holds a secret value.
  detail jsonb DEFAULT '{}'::jsonb NOT NULL,
  outcome text NOT NULL,
  -- X-Request-Id of the request.
  request text NOT NULL,
  -- The actor is the first 12 digits of the hash of an author key, or a kind, a colon and an id, as of a token. The name is what
  -- its owner called it at that time.
  actor_name text,
  CONSTRAINT action_outcome_check CHECK (outcome = ANY (ARRAY['accepted'::text, 'failed'::text])),
  CONSTRAINT action_pkey PRIMARY KEY (id)
);
CREATE INDEX action_app ON author.action USING btree (app, id DESC);
CREATE TRIGGER action_immutable BEFORE DELETE OR UPDATE OR TRUNCATE ON author.action FOR EACH STATEMENT EXECUTE FUNCTION author.refuse_change();

-- The replica that collects, as a row: it is free again soon after its holder was killed.
CREATE TABLE author.log_collector (
  id integer DEFAULT 1 NOT NULL,
  holder text NOT NULL,
  until timestamp with time zone NOT NULL,
  CONSTRAINT log_collector_id_check CHECK (id = 1),
  CONSTRAINT log_collector_pkey PRIMARY KEY (id)
);

-- How far each container of a pod was read. It changes in the transaction that stores the lines, so a collector that was
-- killed leaves neither a gap nor a line twice.
CREATE TABLE author.log_stream (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  -- UID of the HostedApp.
  app text NOT NULL,
  pod_uid text NOT NULL,
  pod text NOT NULL,
  container text NOT NULL,
  -- The component that the container runs.
  component text NOT NULL,
  -- Of the last line that was read: its time (RFC 3339 with nine digits, UTC), and how many lines with that time were read.
  last_at text COLLATE "C" NOT NULL,
  last_count integer NOT NULL,
  -- The latest time of all lines so far: the lines of two streams of a process can be in another order than their times.
  max_at text COLLATE "C" NOT NULL,
  -- Counts up with each change. Whoever read another version stores nothing.
  version bigint NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  updated_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT log_stream_pkey PRIMARY KEY (id),
  CONSTRAINT log_stream_pod_uid_container_key UNIQUE (pod_uid, container)
);
CREATE INDEX log_stream_app ON author.log_stream USING btree (app);

-- Lines in the order in which they were stored. Secrets are masked. Lines are added to the newest chunk of an app while it is small.
CREATE TABLE author.log_chunk (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  app text NOT NULL,
  -- Each ends with a line feed: time, id of the stream, text.
  lines text NOT NULL,
  count integer NOT NULL,
  bytes integer NOT NULL,
  -- The latest time of its lines.
  last_at text COLLATE "C" NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT log_chunk_pkey PRIMARY KEY (id)
);
CREATE INDEX log_chunk_app ON author.log_chunk USING btree (app, id DESC);

CREATE TABLE author.crash (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  app text NOT NULL,
  -- Identifies what ended: the id of the container.
  instance text NOT NULL,
  at timestamp with time zone NOT NULL,
  pod text NOT NULL,
  component text NOT NULL,
  restarts integer NOT NULL,
  exit_code integer NOT NULL,
  signal integer,
  -- As Kubernetes says it: OOMKilled, Error, Completed.
  reason text NOT NULL,
  -- The last lines before the end: time and text. Secrets are masked.
  lines jsonb NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT crash_pkey PRIMARY KEY (id),
  CONSTRAINT crash_app_instance_key UNIQUE (app, instance)
);

-- Values that are masked in what an app prints. A keyed hash says nothing about the value to those who have this table alone.
CREATE TABLE author.secret_fingerprint (
  app text NOT NULL,
  -- Variable that the value was set for.
  name text NOT NULL,
  length integer NOT NULL,
  -- Keyed hashes of the first characters and of all of them, which are cheap to compute at each position of a line.
  prefix integer NOT NULL,
  rolling integer NOT NULL,
  -- HMAC-SHA-256 of the value, in hexadecimal digits.
  hmac text NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT secret_fingerprint_pkey PRIMARY KEY (app, hmac)
);

-- Noticed once, by whichever replica was first.
CREATE TABLE author.event (
  -- Sent with every attempt, so that receivers can recognize one that they already have.
  id uuid DEFAULT gen_random_uuid() NOT NULL,
  -- UID of the HostedApp, and its name at that time.
  app text NOT NULL,
  slug text NOT NULL,
  kind text NOT NULL,
  -- Distinguishes the events of a kind: a commit, the time of a crash, a day.
  subject text NOT NULL,
  -- What the message says. Never holds a secret value or a log.
  detail jsonb DEFAULT '{}'::jsonb NOT NULL,
  at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT event_pkey PRIMARY KEY (id),
  CONSTRAINT event_app_kind_subject_key UNIQUE (app, kind, subject)
);
CREATE INDEX event_app ON author.event USING btree (app, at DESC);

-- Where the events of an app are sent. The address of a mail is in the HostedApp, so its row only says how it goes.
CREATE TABLE author.notification_target (
  app text NOT NULL,
  channel text NOT NULL,
  url text,
  -- Part of what the signing secret is derived from. A new one makes the old secret worthless.
  version uuid,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  -- Since when every attempt has failed.
  failing_since timestamp with time zone,
  -- When it was switched off, because it had failed for too long.
  off_at timestamp with time zone,
  recipient text DEFAULT ''::text NOT NULL,
  address text,
  confirmed_at timestamp with time zone,
  CONSTRAINT notification_target_channel_check CHECK (channel = ANY (ARRAY['mail'::text, 'webhook'::text])),
  CONSTRAINT notification_target_pkey PRIMARY KEY (app, channel, recipient),
  CONSTRAINT notification_target_check CHECK ((channel = 'webhook'::text) = (url IS NOT NULL)),
  CONSTRAINT notification_target_check1 CHECK ((channel = 'webhook'::text) = (recipient = ''::text)),
  CONSTRAINT notification_target_check2 CHECK (
CASE channel
    WHEN 'mail'::text THEN (address IS NULL) = (version IS NULL)
    ELSE version IS NOT NULL
END)
);

-- Contacts that want no mail about an app, as keyed hashes.
CREATE TABLE author.notification_stop (
  app text NOT NULL,
  contact text NOT NULL,
  at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT notification_stop_pkey PRIMARY KEY (app, contact)
);

CREATE TABLE author.delivery (
  event uuid NOT NULL,
  channel text NOT NULL,
  app text NOT NULL,
  state text DEFAULT 'waiting'::text NOT NULL,
  attempts integer DEFAULT 0 NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  -- When the next attempt is due. The replica that makes an attempt moves it to the end of its lease first.
  due_at timestamp with time zone DEFAULT now() NOT NULL,
  ended_at timestamp with time zone,
  last_error text,
  recipient text DEFAULT ''::text NOT NULL,
  CONSTRAINT delivery_channel_check CHECK (channel = ANY (ARRAY['mail'::text, 'webhook'::text])),
  CONSTRAINT delivery_state_check CHECK (state = ANY (ARRAY['waiting'::text, 'delivered'::text, 'abandoned'::text, 'skipped'::text])),
  CONSTRAINT delivery_event_fkey FOREIGN KEY (event) REFERENCES author.event(id) ON DELETE CASCADE,
  CONSTRAINT delivery_pkey PRIMARY KEY (event, channel, recipient)
);
CREATE INDEX delivery_due ON author.delivery USING btree (due_at) WHERE (state = 'waiting'::text);
CREATE INDEX delivery_app ON author.delivery USING btree (app, created_at DESC);
CREATE INDEX delivery_recipient ON author.delivery USING btree (recipient, created_at DESC) WHERE (recipient <> ''::text);

CREATE TABLE author.token (
  -- First 12 digits of the hash: what lists and the audit log name it by.
  id text NOT NULL,
  -- UID of the HostedApp.
  app text NOT NULL,
  name text NOT NULL,
  -- SHA-256 of the token, which itself is not stored.
  hash text NOT NULL,
  scopes text[] NOT NULL,
  -- Hash of the author key that made it. The token ends with the line of that key.
  author_key text NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  revoked_at timestamp with time zone,
  -- To the minute.
  last_used_at timestamp with time zone,
  CONSTRAINT token_check CHECK (expires_at <= (created_at + '366 days'::interval)),
  CONSTRAINT token_pkey PRIMARY KEY (id)
);
CREATE INDEX token_app ON author.token USING btree (app, created_at DESC);

-- Sign-ins that have ended, so that each ends once, at whichever replica of the API.
CREATE TABLE author.sign_in_state (
  -- SHA-256 of the state.
  hash text NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT sign_in_state_pkey PRIMARY KEY (hash)
);
CREATE INDEX sign_in_state_expiry ON author.sign_in_state USING btree (expires_at);

-- Runs of the tasks of apps, and of commands that authors started. Kubernetes keeps the last few, and the status of a HostedApp
-- the last twenty; here they are kept for their author.
CREATE TABLE author.task_run (
  -- UID of the HostedApp.
  app text NOT NULL,
  -- Name of the Job.
  id text NOT NULL,
  task text NOT NULL,
  trigger text NOT NULL,
  -- Of a command that is no task.
  command jsonb,
  commit text,
  requested_at timestamp with time zone,
  scheduled_at timestamp with time zone,
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  exit_code integer,
  -- How it ended, in the words of Kubernetes, or Missed, NotStarted, Replaced or Removed.
  reason text,
  -- The first of its times, by which runs are sorted.
  at timestamp with time zone NOT NULL,
  CONSTRAINT task_run_trigger_check CHECK (trigger = ANY (ARRAY['schedule'::text, 'manual'::text, 'release'::text])),
  CONSTRAINT task_run_pkey PRIMARY KEY (app, id)
);
CREATE INDEX task_run_at ON author.task_run USING btree (app, at DESC, id DESC);
CREATE INDEX task_run_task ON author.task_run USING btree (app, task, at DESC, id DESC);

-- Kinds of events that a channel of an app sends. No row: all of them, also those that are added later.
CREATE TABLE author.notification_choice (
  app text NOT NULL,
  channel text NOT NULL,
  events text[] NOT NULL,
  CONSTRAINT notification_choice_channel_check CHECK (channel = ANY (ARRAY['mail'::text, 'webhook'::text])),
  CONSTRAINT notification_choice_events_check CHECK (cardinality(events) > 0),
  CONSTRAINT notification_choice_pkey PRIMARY KEY (app, channel)
);

-- The secret of an app's push hook, which is derived from its version. No row: the first version, which was never replaced.
CREATE TABLE author.push_hook (
  -- UID of the HostedApp.
  app text NOT NULL,
  version integer NOT NULL,
  replaced_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  -- Until when the version before is valid, too.
  previous_until timestamp with time zone,
  CONSTRAINT push_hook_version_check CHECK (version > 1),
  CONSTRAINT push_hook_pkey PRIMARY KEY (app)
);

-- One for each app whose author set a token. Deleting it ends what is waiting.
CREATE TABLE author.forge_token (
  -- UID of the HostedApp.
  app text NOT NULL,
  -- Changes with each token. The Secret names it too, so that a token is used only for its own row.
  version uuid DEFAULT gen_random_uuid() NOT NULL,
  -- Host, owner and name that it was set for. It is sent for no other repository.
  repository text NOT NULL,
  set_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  -- When the forge rejected it, and with which status. It is not sent again.
  refused_at timestamp with time zone,
  refused_status integer,
  CONSTRAINT forge_token_check CHECK ((refused_at IS NULL) = (refused_status IS NULL)),
  CONSTRAINT forge_token_pkey PRIMARY KEY (app)
);

-- The newest status of each commit, and how its delivery goes.
CREATE TABLE author.commit_status (
  app text NOT NULL,
  commit text NOT NULL,
  -- UID of the HostedApp that builds the commit (the app or a preview), and its resourceVersion when it was read.
  source text NOT NULL,
  seen bigint NOT NULL,
  state text NOT NULL,
  description text NOT NULL,
  target_url text NOT NULL,
  -- Changes with the status.
  revision integer DEFAULT 1 NOT NULL,
  changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  delivery text DEFAULT 'waiting'::text NOT NULL,
  attempts integer DEFAULT 0 NOT NULL,
  -- When the next attempt is due. The replica that makes an attempt moves it to the end of its lease first.
  due_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  -- Identifies the attempt that is being made. Statuses of a commit are sent one after another.
  claim uuid,
  last_error text,
  CONSTRAINT commit_status_state_check CHECK (state = ANY (ARRAY['pending'::text, 'success'::text, 'failure'::text, 'ended'::text])),
  CONSTRAINT commit_status_description_check CHECK (char_length(description) <= 140),
  CONSTRAINT commit_status_delivery_check CHECK (delivery = ANY (ARRAY['waiting'::text, 'delivered'::text, 'abandoned'::text])),
  CONSTRAINT commit_status_pkey PRIMARY KEY (app, commit),
  CONSTRAINT commit_status_app_fkey FOREIGN KEY (app) REFERENCES author.forge_token(app) ON DELETE CASCADE
);
CREATE INDEX commit_status_due ON author.commit_status USING btree (due_at) WHERE (delivery = 'waiting'::text);

-- Slugs that are about to be taken, by a submission or a rename, so that one of them gets each. What has one is in the cluster:
-- a claim lasts until every replica of the API has seen it there.
CREATE TABLE author.slug_claim (
  slug text NOT NULL,
  -- Hash of the repository that is submitted, or UID of the HostedApp that is renamed.
  holder text NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT slug_claim_pkey PRIMARY KEY (slug)
);

CREATE OR REPLACE FUNCTION author.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception '% of author.% is refused: an audit log is only added to', tg_op, tg_table_name using errcode = 'restrict_violation';
end $function$;
