// GET /api/usage: what a caller has used and spent, what is left of their quota, and single requests by their id.
import { z } from 'zod';
import { Problem } from '../../lib/problem.ts';
import {
  formatMoney,
  isUnguessable,
  type LedgerHandle,
  money,
  type Money,
  type OpenLedger,
  type Payer,
  quotaFields,
  sumMoney,
  toQuotaView,
  type Statement,
} from '../billing/index.ts';
import { defineEndpoint, type Endpoint, createValidationProblem } from '../http/index.ts';
import type { PayerFor } from './payers.ts';
import { payerProblems, requestUnknown } from './problems.ts';

export interface UsageOptions {
  readonly ledger: Pick<LedgerHandle, 'get'>;
  readonly payerFor: PayerFor;
  readonly baseUrl: string;
}

const path = '/api/usage';

const tag = 'models';

const whose =
  'With an API key, your own uses alone. Without one, the address that you call from is shared with others: uses are not listed then, and those of a request are found by its id alone, from the network that sent it.';

const quota = quotaFields.extend({
  scope: z
    .enum(['free', 'key'])
    .describe('Your own limits: free is the quota without a key; key is the maximum that we may charge to your key.'),
});

const text = z.string().nullable();

const count = z.int().nullable();

/** A use as its caller sees it. */
export const use = z.object({
  id: z.string().describe('Id of the call in the ledger.'),
  request_id: text.describe(
    'Id of the request that made it, from the X-Request-Id of its response. A comparison makes several calls.',
  ),
  at: z.string().describe('When it began (UTC).'),
  kind: z.string().describe('ask, compare, v1, tool or app.'),
  tool: text,
  app: text,
  model: text,
  tokens_in: count.describe('Prompt tokens, as counted by the router.'),
  tokens_out: count.describe('Completion tokens, as counted by the router.'),
  latency_ms: count,
  state: z
    .enum(['settled', 'pending', 'unknown'])
    .describe(
      'settled: the cost is in the ledger; pending: the router has not reported it yet; unknown: abandoned by an earlier version, uncharged.',
    ),
  cost_usd: text.describe('Cost in USD; null until known.'),
  charged_usd: text.describe('Amount that we charged your key for it, in USD; null until it is settled.'),
  cost_source: z
    .string()
    .describe(
      'Source of the cost: billed, router_computed, router_record (found later), tariff, estimated (tokens at list prices, if the router has no record of the call), or pending.',
    ),
  settled_at: text.describe('When the cost was settled (UTC): a pending one, later than the call ended.'),
  retry_of: text.describe(
    'Id of the call that this one repeats, because its request was sent again with the same Idempotency-Key before it had a response.',
  ),
  billed_both: z
    .boolean()
    .nullable()
    .describe('Whether the router has billed both; null if this call repeats none, or a cost is not known yet.'),
});

export type Use = z.output<typeof use>;

const usage = z.object({
  caller: z.string().describe('Salted hash of your key, or of your network address.'),
  kind: z.enum(['anonymous', 'key']),
  quota,
  balance: z
    .object({
      billed_to_key_usd: z.string().describe('Total amount that the model router has billed to your key through us.'),
      charged_today_usd: z.string().describe('Amount that we have charged your key today (UTC), in addition to that.'),
    })
    .nullable()
    .describe('Of your key; null without one.'),
  pending: z.int().describe('Uses of your key whose cost is not known yet.'),
  uses: z.array(use).describe('Newest first; empty without a key. Excludes calls that failed at no cost.'),
  next: z.string().nullable().describe('URL of the next page; null on the last one.'),
  hint: z.string().optional().describe('Without a key: how to find the uses of a request.'),
});

export function createUsageEndpoints(options: UsageOptions): Endpoint[] {
  return [createListEndpoint(options), createRequestEndpoint(options)];
}

function createListEndpoint({ ledger, payerFor, baseUrl }: UsageOptions): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path,
    operation: 'getUsage',
    returnsCallerData: true,
    tag,
    summary: 'Get your quota, balance and recent uses',
    description: `${whose} GET /api/charges has the same as a signed document, day by day.`,
    query: z.strictObject({
      state: z
        .enum(['pending', 'settled'])
        .optional()
        .describe('Only uses whose cost is pending, or only those whose cost is known.'),
      limit: z.coerce
        .number()
        .int()
        .min(1)
        .max(200)
        .default(50)
        .describe('Maximum number of uses, 1 to 200; default 50.'),
      cursor: z.string().max(120).optional().describe('Cursor: part of `next` of the previous page.'),
    }),
    output: usage,
    outputDescription: 'Quota, balance and uses.',
    problems: payerProblems,
    async handler({ query: { state, limit, cursor } }, context) {
      const { database, ledger: accounts } = ledger.get();
      const payer = await payerFor(context);
      const [at, id] = readCursor(cursor);
      if (payer.kind !== 'key') return toAnonymousUsage(payer, await accounts.budget(payer.charge));
      const [rows, [pending], budget, balance] = await Promise.all([
        database.query(selectUses, [payer.owner, state ?? null, at, id, limit + 1]),
        database.query(countPending, [payer.owner]),
        accounts.budget(payer.charge),
        readBalance(accounts, payer),
      ]);
      const uses = rows.slice(0, limit).map(toUse);
      const last = rows.length > limit ? uses.at(-1) : undefined;
      const filter = state === undefined ? '' : `&state=${state}`;
      return {
        caller: payer.owner,
        ...toAccount(payer, budget, balance),
        pending: pending?.count ?? 0,
        uses,
        next: last === undefined ? null : `${baseUrl}${path}?limit=${limit}${filter}&cursor=${writeCursor(last)}`,
      };
    },
  });
}

/** The quota alone, which every answer shows to those who share it. */
function toAnonymousUsage(
  payer: Payer,
  budget: { readonly used: Money; readonly held: Money },
): z.output<typeof usage> {
  return {
    caller: payer.owner,
    ...toAccount(payer, budget, undefined),
    pending: 0,
    uses: [],
    next: null,
    hint: `Without an API key, uses are not listed, since others may call from your address. GET ${path}/{id} has those of one request, by the X-Request-Id of its answer.`,
  };
}

interface KeyBalance {
  readonly billed: Money;
  readonly charged: Money;
}

/** What is there to be spent, and what was. */
function toAccount(
  payer: Payer,
  budget: { readonly used: Money; readonly held: Money },
  balance: KeyBalance | undefined,
): Pick<z.output<typeof usage>, 'kind' | 'quota' | 'balance'> {
  if (balance === undefined) return { kind: 'anonymous', quota: toQuota(payer, budget), balance: null };
  const { billed, charged } = balance;
  return {
    kind: 'key',
    quota: toQuota(payer, { ...budget, used: charged }),
    balance: { billed_to_key_usd: formatMoney(billed), charged_today_usd: formatMoney(charged) },
  };
}

/** From the entries: a margin is charged to an account that has no running total before its first reservation. */
async function readBalance(accounts: OpenLedger['ledger'], { debit, charge }: Payer): Promise<KeyBalance> {
  const [billed, charged] = await Promise.all([accounts.balance(debit.account), accounts.balance(charge.account)]);
  return { billed, charged };
}

function toQuota(payer: Payer, { used, held }: { readonly used: Money; readonly held: Money }): z.output<typeof quota> {
  const limit = payer.charge.limit ?? sumMoney([used, held]);
  const now = new Date();
  const resetsAt = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1));
  return toQuotaView({ limit, used, held, resetsAt }, payer.kind === 'key' ? 'key' : 'free');
}

const request = z.object({
  request_id: z.string(),
  cost_usd: z.string().describe('Known total cost of its calls, in USD.'),
  charged_usd: z.string().describe('Part of it that we charged your key, in USD.'),
  pending: z.int().describe('Number of its calls whose cost is not known yet.'),
  uses: z.array(use).describe('Its calls, in chronological order.'),
});

function createRequestEndpoint({ ledger, payerFor }: UsageOptions): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: `${path}/{id}`,
    operation: 'getUsageOfRequest',
    returnsCallerData: true,
    tag,
    summary: 'Get the cost of one of your requests',
    description: `By the X-Request-Id of its response or, with a key, by the id of a call in the ledger. Without a key, an X-Request-Id of your own works only if it is hard to guess, such as a UUID. A cost that was pending in the response appears here once it is settled. ${whose}`,
    params: z.strictObject({ id: z.string().max(64).describe('Id of the request, or of a call.') }),
    output: request,
    outputDescription: 'The calls of the request, with their costs.',
    problems: [requestUnknown, ...payerProblems],
    async handler({ params: { id } }, context) {
      const { database } = ledger.get();
      const { kind, owner } = await payerFor(context);
      const isKnown = kind === 'key' || isUnguessable(id);
      const uses = isKnown ? (await database.query(selectUsesOfRequest, [owner, id, kind === 'key'])).map(toUse) : [];
      if (uses.length === 0)
        throw new Problem(
          requestUnknown,
          `You have no use with the id ${id.slice(0, 64)}. A call is here once it has ended, and not if it failed at no cost.`,
        );
      return {
        request_id: id,
        cost_usd: sumAmounts(uses.map(({ cost_usd }) => cost_usd)),
        charged_usd: sumAmounts(uses.map(({ charged_usd }) => charged_usd)),
        pending: uses.filter(({ state }) => state === 'pending').length,
        uses,
      };
    },
  });
}

/** Of decimal texts; those that are not known are left out. */
function sumAmounts(amounts: readonly (string | null)[]): string {
  return formatMoney(sumMoney(amounts.flatMap((amount) => (amount === null ? [] : [money.parse(amount)]))));
}

export function toUse({ request, cost, charged, source, state, ...rest }: UseRow): Use {
  const { id, at, kind, tool, app, model, tokens_in, tokens_out, latency_ms, settled_at, retry_of, billed_both } = rest;
  return {
    id,
    request_id: request,
    at,
    kind,
    tool,
    app,
    model,
    tokens_in,
    tokens_out,
    latency_ms,
    state: state === 'settled' ? 'settled' : state === 'abandoned' ? 'unknown' : 'pending',
    cost_usd: cost,
    charged_usd: charged,
    cost_source: source,
    settled_at,
    retry_of,
    billed_both,
  };
}

/** A cursor has the time and the id of the last use on a page. */
const timeShape = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$/;

const identifier = /^[0-9a-f-]{36}$/;

export function writeCursor({ at, id }: { readonly at: string; readonly id: string }): string {
  return Buffer.from(`${at} ${id}`).toString('base64url');
}

/** Before everything without one. @throws Problem (invalid-request) */
export function readCursor(text: string | undefined): [at: string, id: string] {
  if (text === undefined) return ['infinity', ''];
  const [at = '', id = ''] = Buffer.from(text, 'base64url').toString('utf8').split(' ');
  if (timeShape.test(at) && !Number.isNaN(Date.parse(at)) && identifier.test(id)) return [at, id];
  throw createValidationProblem([
    {
      in: 'query',
      field: 'cursor',
      message: 'is not a position in this list',
      fix: 'Take it from `next` of the previous page, or omit it for the first page.',
    },
  ]);
}

/** A use of a caller, with its hold and what the caller was charged. */
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

const formatTime = (column: string): string => `to_jsonb(${column} at time zone 'utc') #>> '{}' || 'Z'`;

/** A use, and the amount that its transaction posted to the account that pays for the key. */
const columns = `u.id, ${formatTime('u.at')} as at, u.request, u.kind, u.tool, u.app, u.model, u.tokens_in, u.tokens_out, u.latency_ms,
    trim_scale(u.cost)::text as cost, u.cost_source as source, h.state, case when h.state = 'settled' then ${formatTime('h.closed_at')} end as settled_at,
    case when h.transaction_id is not null then (select coalesce(trim_scale(sum(e.amount)), 0)::text from ledger.entry e
      join ledger.account a on a.id = e.account_id where e.transaction_id = h.transaction_id and a.kind = 'key') end as charged,
    k.retry_of::text, case when r.state = 'settled' and h.state = 'settled' then r.cost > 0 and h.cost > 0 end as billed_both
  from ledger.usage u join ledger.hold h on h.id = case when u.id ~ '^[0-9a-f-]{36}$' then u.id::uuid end
  left join ledger.keyed_call k on k.hold_id = h.id left join ledger.hold r on r.id = k.retry_of`;

/** Newest first, behind a given one; $2: pending, settled, or null for all. */
export const selectUses: Statement<UseRow> = {
  name: 'usage-list',
  text: `select ${columns} where u.caller = $1 and u.kind <> 'visit' and (u.at, u.id) < ($3::timestamptz, $4)
    and ($2::text is null or ($2 = 'pending') = (u.cost_source = 'pending'))
    order by u.at desc, u.id desc limit $5`,
  row,
};

/** Those of one request or, where $3 is true, the one with this id, which the record of the ledger shows to everybody. */
export const selectUsesOfRequest: Statement<UseRow> = {
  name: 'usage-request',
  text: `select ${columns} where u.caller = $1 and u.kind <> 'visit' and (u.request = $2 or ($3 and u.id = $2)) order by u.at, u.id limit 100`,
  row,
};

export const countPending: Statement<{ count: number }> = {
  name: 'usage-pending',
  text: "select count(*)::int as count from ledger.usage where cost_source = 'pending' and caller = $1",
  row: z.object({ count: z.int() }),
};
