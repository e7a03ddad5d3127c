-- Detail is kept for a time; the books (accounts, transactions, entries) are kept for good, and no balance changes.

-- Holds are made in the order of time, so ranges of pages are enough to find old ones.
create index hold_created on ledger.hold using brin (created_at);

-- Removes a limited number of uses, finished holds and running totals of days that ended before p_before. What is still being
-- looked for stays, and so do costs that were given up. Running totals are derived, and made again when they are needed.
create function ledger.purge_detail(p_before timestamptz, p_limit integer) returns integer language plpgsql as $$
declare
  v_uses integer;
  v_holds integer;
  v_budgets integer;
begin
  delete from ledger.usage where id in (select id from ledger.usage where at < p_before and cost_source <> 'pending' limit p_limit for update skip locked);
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
end $$;
