// What differs between routers: how they report a cost, keep records, and check a key. OpenRouter first, then LiteLLM.
import { z } from 'zod';
import {
  type BillRequest,
  type LookupResult,
  type RouterBill,
  sumMoney,
  zero,
  type BilledCall,
} from '../../billing/index.ts';
import { type Cost, type RouterUsage, readBilled, readUsageCost } from './responses.ts';

/** Response headers, by name in lower case. */
export type RouterHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The parts of a response that may carry its cost. */
export interface CostEvidence {
  readonly headers: RouterHeaders;
  readonly usage: RouterUsage | null | undefined;
  readonly streamed: boolean;
  /** Whether the model has a price, so that a cost of 0 is suspect. */
  readonly priced: boolean;
}

/** A GET of the router's, with a key: status, body as exact JSON, and its own error text, which is never shown. */
export type Get = (
  address: string,
) => Promise<{ readonly status: number; readonly body: unknown; readonly said?: string | undefined }>;

/** A call whose cost is to be found. */
export interface Lookup {
  /** Id of its hold, which was sent along. */
  readonly hold: string;
  readonly reference: string | null;
}

/** What the router refuses to bill to a key beyond, by its own account. */
export type KeyLimit =
  | { readonly outcome: 'limited'; readonly usd: string; readonly per: string | undefined }
  | { readonly outcome: 'unlimited' }
  | { readonly outcome: 'not known'; readonly why: string };

export interface LimitRequest {
  readonly method: 'POST' | 'PATCH';
  readonly address: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface RouterShape {
  /** A request in this router's own names, where those of OpenRouter differ from it. */
  dialect(body: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
  /** Fields to add to a request, so that it is metered and can be found again. */
  fields(hold: string, streamed: boolean): Readonly<Record<string, unknown>>;
  /** Headers to add to it. */
  headers(hold: string): Readonly<Record<string, string>>;
  /** The cost, when it is reported. */
  cost(evidence: CostEvidence): Cost | undefined;
  /** Asks the router's records. `never`, where it keeps none. */
  lookUp(call: Lookup, get: Get, base: string): Promise<LookupResult>;
  /** Why no cost can be found in its records; undefined where it can, or where that is not known. */
  missingRecords(get: Get, base: string): Promise<string | undefined>;
  /** What it billed, by its own records. Calls of others, on a router that is shared, may be among them. */
  fetchBill(request: BillRequest, get: Get, base: string): Promise<RouterBill>;
  /** Address that answers 200 to a valid key and 401 to any other. */
  keyAddress(base: string): string;
  /** The limit in what that address says of a key, its body as exact JSON. */
  keyLimit(body: unknown): KeyLimit;
  /** The request that sets a limit of so many USD a day on a key. */
  setLimit(key: { readonly key: string; readonly hash: string; readonly usd: number }, base: string): LimitRequest;
  /** How the operator of this installation sets one. */
  readonly limitAdvice: string;
}

/** One value of a header. */
export function readHeader(headers: RouterHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

const tokens = z.int().nullish().catch(undefined);
const generation = z.looseObject({
  data: z.looseObject({ total_cost: z.string(), tokens_prompt: tokens, tokens_completion: tokens }),
});

const dayMs = 86_400_000;
const activity = z.looseObject({ data: z.array(z.looseObject({ usage: z.string(), requests: z.int() })) });

const openRouterKey = z.looseObject({
  data: z.looseObject({ limit: z.string().nullable(), limit_reset: z.string().nullish() }),
});

/** OpenRouter and its kind: routers that report the cost in the answer's `usage`, and keep a record of each generation. */
export const openRouter: RouterShape = {
  dialect: (body) => body,
  // `usage.include` is what older versions need to report the cost.
  fields: (_hold, streamed) => ({
    usage: { include: true },
    ...(streamed ? { stream_options: { include_usage: true } } : {}),
  }),
  headers: (hold) => ({ 'x-request-id': hold }),
  cost({ usage, priced }) {
    const cost = readUsageCost(usage);
    const tokens = countTokens(usage);
    // Tokens that have a price do not cost 0: the router has not computed it yet.
    return cost?.amount === zero && priced && tokens > 0 ? undefined : cost;
  },
  async lookUp({ reference }, get, base) {
    if (reference === null) return { outcome: 'never', why: 'the call ended before the router reported its id' };
    const { status, body, said } = await get(`${base}/generation?id=${encodeURIComponent(reference)}`);
    if (status === 404 && isWithoutRecords(said)) return { outcome: 'never', why: withoutRecords };
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
    return status === 404 && isWithoutRecords(said) ? withoutRecords : undefined;
  },
  // It reports sums of whole days by model, and no single call.
  async fetchBill({ from, to, keyHash }, get, base) {
    if (to.getTime() - from.getTime() !== dayMs || from.getTime() % dayMs !== 0)
      return { outcome: 'not known', why: 'OpenRouter reports a day once it is over' };
    if (keyHash === undefined) return { outcome: 'not known', why: 'the platform has no key at the router' };
    const query = new URLSearchParams({ date: from.toISOString().slice(0, 10), api_key_hash: keyHash }).toString();
    return toDayBill(await get(`${base}/activity?${query}`));
  },
  keyAddress: (base) => `${base}/key`,
  keyLimit(body) {
    const read = openRouterKey.safeParse(body);
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
function isWithoutRecords(said: string | undefined): boolean {
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

function toDayBill({ status, body }: Awaited<ReturnType<Get>>): RouterBill {
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
