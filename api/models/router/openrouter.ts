// OpenRouter and its kind: routers that report the cost in the answer's `usage`, and keep a record of each generation.
import { z } from 'zod';
import { type RouterBill, sumMoney, zero } from '../../billing/index.ts';
import { readBilled, type RouterUsage, usageCost } from './answer.ts';
import type { Get, RouterShape } from './shape.ts';

const tokens = z.int().nullish().catch(undefined);
const generation = z.looseObject({
  data: z.looseObject({ total_cost: z.string(), tokens_prompt: tokens, tokens_completion: tokens }),
});

const dayMs = 86_400_000;
const activity = z.looseObject({ data: z.array(z.looseObject({ usage: z.string(), requests: z.int() })) });

const keyRecord = z.looseObject({
  data: z.looseObject({ limit: z.string().nullable(), limit_reset: z.string().nullish() }),
});

export const openRouter: RouterShape = {
  dialect: (body) => body,
  // `usage.include` is what older versions need to report the cost.
  fields: (_hold, streamed) => ({
    usage: { include: true },
    ...(streamed ? { stream_options: { include_usage: true } } : {}),
  }),
  headers: (hold) => ({ 'x-request-id': hold }),
  cost({ usage, priced }) {
    const cost = usageCost(usage);
    const tokens = countTokens(usage);
    // Tokens that have a price do not cost 0: the router has not computed it yet.
    return cost?.amount === zero && priced && tokens > 0 ? undefined : cost;
  },
  async lookUp({ reference }, get, base) {
    if (reference === null) return { outcome: 'never', why: 'the call ended before the router reported its id' };
    const { status, body, said } = await get(`${base}/generation?id=${encodeURIComponent(reference)}`);
    if (status === 404 && keepsNoRecords(said)) return { outcome: 'never', why: withoutRecords };
    const record = status === 200 ? generation.safeParse(body) : undefined;
    if (record?.success !== true)
      return { outcome: 'not yet', why: `the lookup of ${reference} returned status ${status}` };
    const cost = readBilled(record.data.data.total_cost);
    return cost === undefined
      ? { outcome: 'not yet', why: `the record of ${reference} has no amount in total_cost` }
      : { outcome: 'found', cost, source: 'router_record', tokens: sumTokens(record.data.data) };
  },
  async missingRecords(get, base) {
    const { status, said } = await get(`${base}/generation?id=moorage`);
    return status === 404 && keepsNoRecords(said) ? withoutRecords : undefined;
  },
  // It reports sums of whole days by model, and no single call.
  async billOf({ from, to, keyHash }, get, base) {
    if (to.getTime() - from.getTime() !== dayMs || from.getTime() % dayMs !== 0)
      return { outcome: 'not known', why: 'OpenRouter reports a day once it is over' };
    if (keyHash === undefined) return { outcome: 'not known', why: 'the platform has no key at the router' };
    const query = new URLSearchParams({ date: from.toISOString().slice(0, 10), api_key_hash: keyHash }).toString();
    return dayBill(await get(`${base}/activity?${query}`));
  },
  keyAddress: (base) => `${base}/key`,
  keyLimit(body) {
    const read = keyRecord.safeParse(body);
    if (!read.success) return { outcome: 'not known', why: 'what the router says of the key has an unexpected form' };
    const { limit, limit_reset: per } = read.data.data;
    return limit === null ? { outcome: 'unlimited' } : { outcome: 'limited', usd: limit, per: per ?? undefined };
  },
  setLimit: ({ hash, usd }, base) => ({
    method: 'PATCH',
    address: `${base}/keys/${hash}`,
    body: { limit: usd, limit_reset: 'daily' },
  }),
  limitAdvice:
    'set a credit limit that resets daily for this key on the page Keys of OpenRouter, or by PATCH /api/v1/keys/<hash> with a management key',
};

const withoutRecords = 'this router keeps no records of single calls';

/** The demo router says so. OpenRouter also answers 404 while a record is not written yet. */
function keepsNoRecords(said: string | undefined): boolean {
  return said !== undefined && /keeps no records/.test(said);
}

function countTokens(usage: RouterUsage | null | undefined): number {
  return usage?.total_tokens ?? (usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0);
}

/** Undefined unless both counts are there. */
function sumTokens({ tokens_prompt: input, tokens_completion: output }: GenerationTokens): number | undefined {
  return typeof input === 'number' && typeof output === 'number' ? input + output : undefined;
}

type GenerationTokens = Pick<z.output<typeof generation>['data'], 'tokens_prompt' | 'tokens_completion'>;

function dayBill({ status, body }: Awaited<ReturnType<Get>>): RouterBill {
  if (status !== 200)
    return {
      outcome: 'not known',
      why: `the activity of the router answered with status ${status}. OpenRouter shows it for the last 30 days, and only to a management key: set MOORAGE_ROUTER_BILL_KEY to one`,
    };
  const unexpected: RouterBill = {
    outcome: 'not known',
    why: 'the activity of the router has an unexpected form',
  };
  const read = activity.safeParse(body);
  if (!read.success) return unexpected;
  const amounts = read.data.data.map(({ usage }) => readBilled(usage));
  if (!amounts.every((amount) => amount !== undefined)) return unexpected;
  const calls = read.data.data.reduce((total, { requests }) => total + requests, 0);
  return { outcome: 'totals', calls, amount: sumMoney(amounts) };
}
