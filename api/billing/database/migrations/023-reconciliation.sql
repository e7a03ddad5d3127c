-- What was found when the records of a day were compared with each other.

create schema reconciliation;

create table reconciliation.day (
  day date primary key,
  made_at timestamptz not null,
  -- The day was over when it was compared.
  is_complete boolean not null,
  -- Something of it could still come: a cost, a record of a gateway, a row of the router's bill.
  waits boolean not null,
  -- What no record explains, as absolute figures.
  events bigint not null check (events >= 0),
  usd numeric(20,12) not null check (usd >= 0),
  -- What the operator found out about it; it stands as long as the difference is the same.
  explanation text check (length(explanation) between 1 and 500),
  result jsonb not null
);

-- Which replica compares a day, so that only one does.
create table reconciliation.claim (
  day date primary key,
  until timestamptz not null
);

-- Transactions come in the order of time, so ranges of pages are enough to find those of a day.
create index if not exists transaction_at on ledger.transaction using brin (at);

-- The metered calls that began in a time: the use of each beside its hold and what was booked for it. Either may be missing.
create function reconciliation.calls(p_from timestamptz, p_to timestamptz) returns table (
  id text, kind text, is_used boolean, use_cost numeric, state text, held numeric, hold_cost numeric, booked numeric, closed_at timestamptz, is_late boolean,
  creditor text, router text
) language sql stable as $$
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
$$;

-- Takes the next day that is due, or null: the days since the last one that was compared, up to yesterday, at most
-- p_back; and again, every few hours for as many days, one that waits for something. None in the first p_after_ms of a day.
create function reconciliation.claim_due(p_after_ms bigint, p_again_ms bigint, p_back integer, p_lease_ms bigint, p_at timestamptz default null)
returns date language plpgsql as $$
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
end $$;
