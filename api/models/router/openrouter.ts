// OpenRouter and its kind: routers that report the cost in the answer's `usage`, and keep a record of each generation.
import { z } from 'zod';
import { sumMoney } from '../../billing/index.ts';
import { readBilled, usageCost } from './answer.ts';
import type { RouterBill } from './bill.ts';
import type { Get, RouterShape } from './shape.ts';

const generation = z.looseObject({ data: z.looseObject({ total_cost: z.string() }) });

const dayMs = 86_400_000;
const activity = z.looseObject({ data: z.array(z.looseObject({ usage: z.string(), requests: z.int() })) });

export const openRouter: RouterShape = {
  dialect: (body) => body,
  // `usage.include` is what older versions need to report the cost.
  fields: (_hold, streamed) => ({
    usage: { include: true },
    ...(streamed ? { stream_options: { include_usage: true } } : {}),
  }),
  headers: (hold) => ({ 'x-request-id': hold }),
  cost: ({ usage }) => usageCost(usage),
  async lookUp({ reference }, get, base) {
    if (reference === null) return { outcome: 'not yet', why: 'the call ended before the router reported its id' };
    const { status, body } = await get(`${base}/generation?id=${encodeURIComponent(reference)}`);
    const record = status === 200 ? generation.safeParse(body) : undefined;
    if (record?.success !== true)
      return { outcome: 'not yet', why: `the lookup of ${reference} returned status ${status}` };
    const cost = readBilled(record.data.data.total_cost);
    return cost === undefined
      ? { outcome: 'not yet', why: `the record of ${reference} has no amount in total_cost` }
      : { outcome: 'found', cost, source: 'router_record' };
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
};

function dayBill({ status, body, said = '' }: Awaited<ReturnType<Get>>): RouterBill {
  if (status !== 200)
    return {
      outcome: 'not known',
      why: `the activity of the router answered with status ${status}${said === '' ? '' : ` (${said})`}. OpenRouter shows it for the last 30 days, and only to a management key: set MOORAGE_ROUTER_BILL_KEY to one`,
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
