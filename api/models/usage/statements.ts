// Reads of a caller's own uses: each with its hold and what the caller was charged.
import { z } from 'zod';
import type { Statement } from '../../billing/index.ts';

const row = z.object({
  id: z.string(),
  at: z.string(),
  request: z.string().nullable(),
  kind: z.string(),
  tool: z.string().nullable(),
  app: z.string().nullable(),
  model: z.string().nullable(),
  tokens_in: z.int().nullable(),
  tokens_out: z.int().nullable(),
  latency_ms: z.int().nullable(),
  cost: z.string().nullable(),
  source: z.string(),
  /** Of its hold. */
  state: z.string(),
  settled_at: z.string().nullable(),
  charged: z.string().nullable(),
  retry_of: z.string().nullable(),
  billed_both: z.boolean().nullable(),
});
export type UseRow = z.output<typeof row>;

const time = (of: string): string => `to_jsonb(${of} at time zone 'utc') #>> '{}' || 'Z'`;

/** A use, and what of its transaction was posted to the account by which a key is charged. */
const columns = `u.id, ${time('u.at')} as at, u.request, u.kind, u.tool, u.app, u.model, u.tokens_in, u.tokens_out, u.latency_ms,
    trim_scale(u.cost)::text as cost, u.cost_source as source, h.state, case when h.state = 'settled' then ${time('h.closed_at')} end as settled_at,
    case when h.transaction_id is not null then (select coalesce(trim_scale(sum(e.amount)), 0)::text from ledger.entry e
      join ledger.account a on a.id = e.account_id where e.transaction_id = h.transaction_id and a.kind = 'key') end as charged,
    k.retry_of::text, case when r.state = 'settled' and h.state = 'settled' then r.cost > 0 and h.cost > 0 end as billed_both
  from ledger.usage u join ledger.hold h on h.id = case when u.id ~ '^[0-9a-f-]{36}$' then u.id::uuid end
  left join ledger.keyed_call k on k.hold_id = h.id left join ledger.hold r on r.id = k.retry_of`;

/** Newest first, behind a given one; $2: pending, settled, or null for all. */
export const usesOf: Statement<UseRow> = {
  name: 'usage-list',
  text: `select ${columns} where u.caller = $1 and u.kind <> 'visit' and (u.at, u.id) < ($3::timestamptz, $4)
    and ($2::text is null or ($2 = 'pending') = (u.cost_source = 'pending'))
    order by u.at desc, u.id desc limit $5`,
  row,
};

/** Those of one request or, where $3 is true, the one with this id, which the record of the ledger shows to everybody. */
export const usesOfRequest: Statement<UseRow> = {
  name: 'usage-request',
  text: `select ${columns} where u.caller = $1 and u.kind <> 'visit' and (u.request = $2 or ($3 and u.id = $2)) order by u.at, u.id limit 100`,
  row,
};

export const pendingOf: Statement<{ count: number }> = {
  name: 'usage-pending',
  text: "select count(*)::int as count from ledger.usage where cost_source = 'pending' and caller = $1",
  row: z.object({ count: z.int() }),
};
