-- What becomes of a hold: settled at the real cost, voided, pending, expired or abandoned. Each can be sent again.

-- Writes a usage event, or fills in the cost of one that was pending. True when it was not known before.
create function ledger.record_usage(p_id text, p_usage jsonb, p_cost numeric, p_source text, p_at timestamptz) returns boolean language plpgsql as $$
declare
  v_new boolean;
begin
  insert into ledger.usage as u (id, kind, at, caller, app, model, tokens_in, tokens_out, latency_ms, cost, cost_source)
    values (p_id, p_usage ->> 'kind', coalesce((p_usage ->> 'at')::timestamptz, p_at), p_usage ->> 'caller', p_usage ->> 'app', p_usage ->> 'model',
      (p_usage ->> 'tokens_in')::integer, (p_usage ->> 'tokens_out')::integer, (p_usage ->> 'latency_ms')::integer, p_cost, p_source)
    on conflict (id) do update set cost = excluded.cost, cost_source = excluded.cost_source,
        tokens_in = coalesce(excluded.tokens_in, u.tokens_in), tokens_out = coalesce(excluded.tokens_out, u.tokens_out)
      where u.cost_source = 'pending' and excluded.cost is not null
    returning xmax = 0 into v_new;
  return coalesce(v_new, false);
end $$;

-- Books the real cost of calls. The first cost booked for a hold stands; whatever state the hold was in, a cost that came is booked.
-- Requests: [{hold, cost, source, usage: {…} | null, lines: [{kind, owner, daily, amount}] | null}].
create function ledger.settle(p_requests jsonb, p_at timestamptz default null) returns jsonb language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_answers jsonb := '[]';
  r record;
begin
  perform ledger.lock_holds(array(select hold from jsonb_to_recordset(p_requests) as q (hold uuid)));
  for r in
    select q.* from rows from (jsonb_to_recordset(p_requests) as (hold uuid, cost text, source text, usage jsonb, lines jsonb)) with ordinality
      as q (hold, cost, source, usage, lines, n) order by q.n
  loop
    v_answers := v_answers || ledger.settle_one(r.hold, ledger.amount(r.cost), r.source, r.usage, r.lines, v_at);
  end loop;
  return v_answers;
end $$;

create function ledger.settle_one(p_hold uuid, p_cost numeric, p_source text, p_usage jsonb, p_lines jsonb, p_at timestamptz) returns jsonb language plpgsql as $$
declare
  h ledger.hold;
  v_state text;
  v_accounts bigint[];
  v_amounts numeric[];
  v_transaction bigint;
begin
  select * into h from ledger.hold where id = p_hold;
  if not found then return jsonb_build_object('outcome', 'unknown'); end if;
  v_state := h.state;
  if v_state <> 'settled' then
    v_accounts := array[h.debit, h.credit];
    v_amounts := array[p_cost, -p_cost];
    if p_lines is not null then
      select v_accounts || array_agg(ledger.account_id(l.kind, l.owner, ledger.account_day(l.daily, h.created_at)) order by n), v_amounts || array_agg(ledger.amount(l.amount) order by n)
        into v_accounts, v_amounts
        from rows from (jsonb_to_recordset(p_lines) as (kind text, owner text, daily boolean, amount text)) with ordinality as l (kind, owner, daily, amount, n);
    end if;
    v_transaction := ledger.book('settle:' || p_hold, 'settle', p_at, v_accounts, v_amounts, case when v_state in ('open', 'pending') then h.amount else 0 end);
    update ledger.hold set state = 'settled', closed_at = p_at, cost = p_cost, transaction_id = v_transaction where id = p_hold returning * into h;
    delete from ledger.pending where hold_id = p_hold;
    if p_usage is not null then
      perform ledger.record_usage(p_hold::text, p_usage, p_cost, p_source, p_at);
    else
      update ledger.usage set cost = p_cost, cost_source = p_source where id = p_hold::text and cost_source = 'pending';
    end if;
  end if;
  return jsonb_build_object(
    'outcome', case when v_state = 'settled' then 'replayed' else 'settled' end, 'was', v_state, 'cost', h.cost::text, 'held', h.amount::text,
    'debit', ledger.budget_of(h.debit, null));
end $$;

-- Gives reservations back for calls that cost nothing. A hold that is settled stays so.
create function ledger.void(p_holds uuid[], p_at timestamptz default null) returns jsonb language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_answers jsonb := '[]';
  v_id uuid;
  h ledger.hold;
begin
  perform ledger.lock_holds(p_holds);
  foreach v_id in array p_holds loop
    select * into h from ledger.hold where id = v_id;
    if h.state in ('open', 'pending', 'expired') then
      perform ledger.release(h, 'voided', v_at);
      delete from ledger.pending where hold_id = v_id;
    end if;
    v_answers := v_answers || jsonb_build_object('outcome', case when h.id is null then 'unknown' when h.state in ('open', 'pending', 'expired') then 'voided' when h.state = 'voided' then 'replayed' else h.state end);
  end loop;
  return v_answers;
end $$;

-- Says that a call was made and its cost is not known. The reservation stays until the reconciler settles or abandons it.
create function ledger.pend(p_hold uuid, p_reference text, p_usage jsonb, p_retry_ms bigint, p_at timestamptz default null) returns jsonb language plpgsql as $$
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
  if p_usage is not null then perform ledger.record_usage(p_hold::text, p_usage, null, 'pending', v_at); end if;
  return jsonb_build_object('outcome', 'pending', 'was', h.state);
end $$;

-- Frees the holds whose time is over and hands them to the reconciler, since the router may have billed them. Two sweepers never meet.
create function ledger.expire(p_limit integer, p_at timestamptz default null) returns integer language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  v_holds ledger.hold[];
  h ledger.hold;
begin
  v_holds := array(select x from ledger.hold x where state = 'open' and expires_at <= v_at order by id limit p_limit for update skip locked);
  perform 1 from ledger.budget where account_id in (select debit from unnest(v_holds) union select credit from unnest(v_holds)) order by account_id for update;
  foreach h in array v_holds loop
    perform ledger.release(h, 'expired', v_at);
    insert into ledger.pending (hold_id, reason, since, next_attempt_at) values (h.id, 'expired', v_at, v_at) on conflict do nothing;
  end loop;
  return cardinality(v_holds);
end $$;

-- Lends pending costs to one reconciler for a while; no two get the same one.
create function ledger.claim_pending(p_limit integer, p_lease_ms bigint, p_at timestamptz default null) returns jsonb language sql as $$
  with due as (
    select hold_id from ledger.pending where abandoned_at is null and next_attempt_at <= coalesce(p_at, clock_timestamp())
    order by next_attempt_at limit p_limit for update skip locked
  ), taken as (
    update ledger.pending p set attempts = attempts + 1, next_attempt_at = coalesce(p_at, clock_timestamp()) + p_lease_ms * interval '1 millisecond'
    from due where p.hold_id = due.hold_id returning p.*
  )
  select coalesce(jsonb_agg(jsonb_build_object('hold', t.hold_id, 'reason', t.reason, 'reference', t.reference, 'attempts', t.attempts,
    'since', t.since, 'called_at', h.created_at) order by t.since, t.hold_id), '[]')
  from taken t join ledger.hold h on h.id = t.hold_id
$$;

-- Puts off the next look at a pending cost.
create function ledger.defer_pending(p_hold uuid, p_wait_ms bigint, p_note text, p_at timestamptz default null) returns void language sql as $$
  update ledger.pending set next_attempt_at = coalesce(p_at, clock_timestamp()) + p_wait_ms * interval '1 millisecond', note = p_note
  where hold_id = p_hold and abandoned_at is null
$$;

-- Stops looking for a cost: the reservation is freed, the record stays, and a cost that comes later is still booked.
create function ledger.abandon(p_hold uuid, p_note text, p_at timestamptz default null) returns jsonb language plpgsql as $$
declare
  v_at timestamptz := coalesce(p_at, clock_timestamp());
  h ledger.hold;
begin
  select * into h from ledger.hold where id = p_hold for update;
  update ledger.pending set abandoned_at = v_at, note = p_note where hold_id = p_hold and abandoned_at is null;
  if not found then return jsonb_build_object('outcome', coalesce(h.state, 'unknown')); end if;
  if h.state in ('pending', 'expired') then perform ledger.release(h, 'abandoned', v_at); end if;
  return jsonb_build_object('outcome', 'abandoned');
end $$;

-- Compares every running total with what it is derived from; each row is one fault, in words. No row: the books are right.
create function ledger.audit() returns table (fault text) language sql stable as $$
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
    from ledger.usage u join ledger.hold h on h.id::text = u.id where h.state = 'settled' and u.cost is distinct from h.cost
  union all
  select format('hold %s is pending and nobody looks for its cost', h.id)
    from ledger.hold h left join ledger.pending p on p.hold_id = h.id and p.abandoned_at is null where h.state = 'pending' and p.hold_id is null
$$;
