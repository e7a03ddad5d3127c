// GET /api/usage: what a caller has used and spent, what is left of his quota, and single requests by their id.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import {
  formatMoney,
  isUnguessable,
  type LedgerHandle,
  ledgerUnavailable,
  ledgerUnconfigured,
  type Money,
  negate,
  type OpenLedger,
  parseMoney,
  type Payer,
  quotaFields,
  sumMoney,
  viewQuota,
} from '../../billing/index.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import type { PayerFor } from '../callers/payers.ts';
import { keyChecksLimited, keyRefused, modelsUnconfigured, requestUnknown, routerUnavailable } from '../problems.ts';
import { readCursor, writeCursor } from './cursor.ts';
import { pendingOf, usesOf, usesOfRequest } from './statements.ts';
import { use, useOf } from './view.ts';

export interface UsageOptions {
  readonly ledger: Pick<LedgerHandle, 'get'>;
  readonly payerFor: PayerFor;
  readonly baseUrl: string;
}

const path = '/api/usage';
const tag = 'models';
const problems = [
  keyRefused,
  keyChecksLimited,
  routerUnavailable,
  modelsUnconfigured,
  ledgerUnavailable,
  ledgerUnconfigured,
];
const whose =
  'With an API key, your own uses alone. Without one, the address that you call from is shared with others: uses are not listed then, and those of a request are found by its id alone, from the network that sent it.';

const quota = quotaFields.extend({
  scope: z
    .enum(['free', 'key'])
    .describe('Your own: free is what you may use without a key; key is what your key may be charged by us.'),
});

const usage = z.object({
  caller: z.string().describe('Salted hash of your key, or of your network address.'),
  kind: z.enum(['anonymous', 'key']),
  quota,
  balance: z
    .object({
      billed_to_key_usd: z.string().describe('What the model router has billed to your key through us, in all.'),
      charged_today_usd: z.string().describe('What we have charged your key today (UTC), on top of it.'),
    })
    .nullable()
    .describe('Of a key; null without one.'),
  pending: z.int().describe('Uses of your key whose cost is not known yet.'),
  uses: z.array(use).describe('Newest first; empty without a key. Calls that failed at no cost are not among them.'),
  next: z.string().nullable().describe('Address of the next page; null on the last one.'),
  hint: z.string().optional().describe('Without a key: how to find the uses of a request.'),
});

export function usageEndpoints(options: UsageOptions): Endpoint[] {
  return [listEndpoint(options), requestEndpoint(options)];
}

function listEndpoint({ ledger, payerFor, baseUrl }: UsageOptions): Endpoint {
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
        .describe('Only uses whose cost is pending, or those that are not pending any more.'),
      limit: z.coerce
        .number()
        .int()
        .min(1)
        .max(200)
        .default(50)
        .describe('Maximum number of uses, 1 to 200; default 50.'),
      cursor: z.string().max(120).optional().describe('Where to go on: part of `next` of the page before.'),
    }),
    output: usage,
    outputDescription: 'Quota, balance and uses.',
    problems,
    async handler({ query: { state, limit, cursor } }, context) {
      const { database, ledger: accounts } = ledger.get();
      const payer = await payerFor(context);
      const [at, id] = readCursor(cursor);
      if (payer.kind !== 'key') return anonymousUsage(payer, await accounts.budget(payer.charge));
      const [rows, [pending], budget, balance] = await Promise.all([
        database.query(usesOf, [payer.owner, state ?? null, at, id, limit + 1]),
        database.query(pendingOf, [payer.owner]),
        accounts.budget(payer.charge),
        balanceOf(accounts, payer),
      ]);
      const uses = rows.slice(0, limit).map(useOf);
      const last = rows.length > limit ? uses.at(-1) : undefined;
      const filter = state === undefined ? '' : `&state=${state}`;
      return {
        caller: payer.owner,
        ...accountOf(payer, budget, balance),
        pending: pending?.count ?? 0,
        uses,
        next: last === undefined ? null : `${baseUrl}${path}?limit=${limit}${filter}&cursor=${writeCursor(last)}`,
      };
    },
  });
}

/** The quota alone, which every answer shows to those who share it. */
function anonymousUsage(payer: Payer, budget: { readonly used: Money; readonly held: Money }): z.output<typeof usage> {
  return {
    caller: payer.owner,
    ...accountOf(payer, budget, undefined),
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
function accountOf(
  payer: Payer,
  budget: { readonly used: Money; readonly held: Money },
  balance: KeyBalance | undefined,
): Pick<z.output<typeof usage>, 'kind' | 'quota' | 'balance'> {
  if (balance === undefined) return { kind: 'anonymous', quota: quotaOf(payer, budget), balance: null };
  const { billed, charged } = balance;
  return {
    kind: 'key',
    quota: quotaOf(payer, { ...budget, used: charged }),
    balance: { billed_to_key_usd: formatMoney(billed), charged_today_usd: formatMoney(charged) },
  };
}

/** From the entries: a margin is charged to an account that has no running total before its first reservation. */
async function balanceOf(accounts: OpenLedger['ledger'], { debit, charge }: Payer): Promise<KeyBalance> {
  const [billed, charged] = await Promise.all([accounts.balance(debit.account), accounts.balance(charge.account)]);
  return { billed, charged };
}

function quotaOf(payer: Payer, { used, held }: { readonly used: Money; readonly held: Money }): z.output<typeof quota> {
  const limit = payer.charge.limit ?? sumMoney([used, held]);
  const now = new Date();
  const resetsAt = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1));
  return viewQuota({ limit, used, held, resetsAt }, payer.kind === 'key' ? 'key' : 'free');
}

const request = z.object({
  request_id: z.string(),
  cost_usd: z.string().describe('What is known of what its calls cost together, in USD.'),
  charged_usd: z.string().describe('What of that we charged your key, in USD.'),
  pending: z.int().describe('Calls of it whose cost is not known yet.'),
  uses: z.array(use).describe('Its calls, in the order of time.'),
});

function requestEndpoint({ ledger, payerFor }: UsageOptions): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: `${path}/{id}`,
    operation: 'getUsageOfRequest',
    returnsCallerData: true,
    tag,
    summary: 'Get what one of your requests cost',
    description: `By the id that is in X-Request-Id of its answer or, with a key, by the id of a call in the ledger. Without a key, an X-Request-Id of your own works only if it is hard to guess, such as a UUID. A cost that was pending in the answer is here once it is settled. ${whose}`,
    params: z.strictObject({ id: z.string().max(64).describe('Id of the request, or of a call.') }),
    output: request,
    outputDescription: 'The calls of the request, and what they cost.',
    problems: [requestUnknown, ...problems],
    async handler({ params: { id } }, context) {
      const { database } = ledger.get();
      const { kind, owner } = await payerFor(context);
      const isKnown = kind === 'key' || isUnguessable(id);
      const uses = isKnown ? (await database.query(usesOfRequest, [owner, id, kind === 'key'])).map(useOf) : [];
      if (uses.length === 0)
        throw new Problem(
          requestUnknown,
          `You have no use with the id ${id.slice(0, 64)}. A call is here once it has ended, and not if it failed at no cost.`,
        );
      return {
        request_id: id,
        cost_usd: total(uses.map(({ cost_usd }) => cost_usd)),
        charged_usd: total(uses.map(({ charged_usd }) => charged_usd)),
        pending: uses.filter(({ state }) => state === 'pending').length,
        uses,
      };
    },
  });
}

/** Of decimal texts; those that are not known are left out. */
function total(amounts: readonly (string | null)[]): string {
  return formatMoney(sumMoney(amounts.flatMap((amount) => (amount === null ? [] : [moneyOf(amount)]))));
}

function moneyOf(text: string): Money {
  return text.startsWith('-') ? negate(parseMoney(text.slice(1))) : parseMoney(text);
}
