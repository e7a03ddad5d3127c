// What LiteLLM does differently from OpenRouter: it reports the cost in a header, and keeps spend logs where it has a database.
import { z } from 'zod';
import type { BilledCall, LookupResult, RouterBill } from '../../billing/index.ts';
import { type Get, readBilled, readHeader, readUsageCost, type RouterShape } from './openrouter.ts';

const spendLogs = z.array(z.looseObject({ spend: z.string(), total_tokens: z.int().nullish().catch(undefined) }));

/** A row of /spend/logs/v2; older versions have no column for the id that the caller gave, but keep its metadata. */
const billedRow = z.looseObject({
  request_id: z.string(),
  litellm_call_id: z.string().nullish(),
  api_key: z.string().nullish(),
  spend: z.string(),
  startTime: z.string(),
  metadata: z
    .looseObject({ requester_metadata: z.looseObject({ moorage_hold: z.string().optional() }).nullish().catch(null) })
    .nullish()
    .catch(null),
});
const billedPage = z.looseObject({ data: z.array(billedRow) });

/** The most that a page may have. */
const pageSize = 1_000;
/** A day with more rows than this times a page is not read: it would keep the router busy for too long. */
const maxPages = 500;
/** What its rows call the master key by. */
const masterKeyAlias = 'litellm_proxy_master_key';

const withReasoning = z.looseObject({ reasoning: z.looseObject({ effort: z.string().optional() }) });

const liteLlmKey = z.looseObject({
  info: z.looseObject({ max_budget: z.string().nullish(), budget_duration: z.string().nullish() }),
});

/** LiteLLM: reports the cost in a header, computed from its price map, and keeps spend logs where it has a database. */
export const liteLlm: RouterShape = {
  // It passes `reasoning` on as it is, which most providers refuse, and translates `reasoning_effort` for each of them.
  dialect(body) {
    const read = withReasoning.safeParse(body);
    if (!read.success) return body;
    const {
      reasoning: { effort },
      ...rest
    } = read.data;
    return effort === undefined ? rest : { reasoning_effort: effort, ...rest };
  },
  fields: (hold, streamed) => ({
    metadata: { moorage_hold: hold },
    ...(streamed ? { stream_options: { include_usage: true } } : {}),
  }),
  // Its own id of the call, which its records then carry.
  headers: (hold) => ({ 'x-litellm-call-id': hold }),
  cost({ headers, usage, streamed, priced }) {
    // In the body where `include_cost_in_streaming_usage` is set.
    const inBody = readUsageCost(usage);
    if (inBody !== undefined && inBody.amount > 0n) return { ...inBody, source: 'router_computed' };
    // On a stream the header was written before there was anything to bill.
    const text = streamed ? undefined : readHeader(headers, 'x-litellm-response-cost');
    const amount = text === undefined ? undefined : readBilled(text);
    // It is known to write 0 where its own records have an amount.
    if (amount === undefined || (amount === 0n && priced)) return undefined;
    return { amount, source: 'router_computed' };
  },
  async lookUp({ hold, reference }, get, base) {
    for (const id of [reference, hold]) {
      if (id === null) continue;
      const { status, body, said } = await get(`${toRoot(base)}/spend/logs?request_id=${encodeURIComponent(id)}`);
      if (status !== 200 && isWithoutDatabase(said)) return { outcome: 'never', why: withoutDatabase };
      const found = status === 200 ? readSpendLog(body) : undefined;
      if (found !== undefined) return found;
    }
    return { outcome: 'not yet', why: 'the spend logs do not have the call' };
  },
  async missingRecords(get, base) {
    const { status, said } = await get(`${toRoot(base)}/spend/logs?request_id=moorage`);
    return status !== 200 && isWithoutDatabase(said) ? withoutDatabase : undefined;
  },
  async fetchBill({ from, to, keyHash }, get, base) {
    const calls: BilledCall[] = [];
    for (let page = 1; page <= maxPages; page += 1) {
      const rows = await readBillPage(get, `${toRoot(base)}/spend/logs/v2?${formatWindowQuery(from, to, page)}`);
      if (typeof rows === 'string') return { outcome: 'not known', why: rows };
      for (const row of rows) {
        const call = toBilledCall(row, keyHash);
        if (call === undefined)
          return {
            outcome: 'not known',
            why: `the spend log ${row.request_id} has no amount or no time that can be read`,
          };
        if (call.at >= from && call.at < to) calls.push(call);
      }
      if (rows.length < pageSize) return toBill(calls);
    }
    return { outcome: 'not known', why: `the router has more than ${maxPages * pageSize} spend logs for this time` };
  },
  // Not /v1/models: where it asks for no key at all, that would call every invented key valid.
  keyAddress: (base) => `${toRoot(base)}/key/info`,
  keyLimit(body) {
    const read = liteLlmKey.safeParse(body);
    if (!read.success) return { outcome: 'not known', why: 'what the router says of the key has an unexpected form' };
    const { max_budget: usd, budget_duration: per } = read.data.info;
    return usd === null || usd === undefined
      ? { outcome: 'unlimited' }
      : { outcome: 'limited', usd, per: per ?? undefined };
  },
  setLimit: ({ key, usd }, base) => ({
    method: 'POST',
    address: `${toRoot(base)}/key/update`,
    body: { key, max_budget: usd, budget_duration: '1d' },
  }),
  limitAdvice:
    'make a key of its own for Moorage with POST /key/generate and a max_budget and budget_duration in its body, which needs a database behind LiteLLM',
};

const withoutDatabase = 'this LiteLLM has no database, so it keeps no spend logs';

function readSpendLog(body: unknown): LookupResult | undefined {
  const [row] = spendLogs.safeParse(body).data ?? [];
  const cost = row === undefined ? undefined : readBilled(row.spend);
  if (row === undefined || cost === undefined) return undefined;
  return { outcome: 'found', cost, source: 'router_record', tokens: row.total_tokens ?? undefined };
}

/** By its own words: the status is that of any fault. */
function isWithoutDatabase(said: string | undefined): boolean {
  return said !== undefined && /database not connected|no database|prisma/i.test(said);
}

function toRoot(base: string): string {
  return base.replace(/\/v1$/, '');
}

/** Both ends are included, in whole seconds; the oldest row first, so that rows that come meanwhile move no page. */
function formatWindowQuery(from: Date, to: Date, page: number): string {
  const second = (time: Date): string => time.toISOString().slice(0, 19).replace('T', ' ');
  return new URLSearchParams({
    start_date: second(from),
    end_date: second(new Date(to.getTime() + 999)),
    sort_by: 'startTime',
    sort_order: 'asc',
    page: String(page),
    page_size: String(pageSize),
  }).toString();
}

/** Rows, or why there are none. */
async function readBillPage(get: Get, address: string): Promise<z.output<typeof billedRow>[] | string> {
  const { status, body } = await get(address);
  if (status !== 200)
    return `the spend logs of LiteLLM answered with status ${status}. It keeps them only where it has a database, and shows all of them only to the key of an administrator`;
  const read = billedPage.safeParse(body);
  return read.success ? read.data.data : 'the spend logs of LiteLLM have an unexpected form';
}

function toBilledCall(row: z.output<typeof billedRow>, keyHash: string | undefined): BilledCall | undefined {
  const amount = readBilled(row.spend);
  // Without a zone it is UTC, as the column is.
  const at = new Date(/(Z|[+-]\d\d:?\d\d)$/.test(row.startTime) ? row.startTime : `${row.startTime}Z`);
  if (amount === undefined || Number.isNaN(at.getTime())) return undefined;
  return {
    hold: row.litellm_call_id ?? row.metadata?.requester_metadata?.moorage_hold ?? undefined,
    reference: row.request_id,
    at,
    amount,
    isPlatform: row.api_key === keyHash || row.api_key === masterKeyAlias,
  };
}

/** Rows of the same time may change places between two pages: one that is there twice stands where another is missing. */
function toBill(calls: readonly BilledCall[]): RouterBill {
  const distinct = new Set(calls.map(({ reference }) => reference)).size;
  return distinct === calls.length
    ? { outcome: 'calls', calls }
    : { outcome: 'not known', why: 'the pages of the spend logs overlap: try again' };
}
