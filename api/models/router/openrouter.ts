// A model router's form, as OpenRouter has it: its answers, stream events, costs and records, and what another router has to define.
// Loose where fields are the router's own, exact where they are money.
import { createParser } from 'eventsource-parser';
import { z } from 'zod';
import {
  type BillRequest,
  type CostSource,
  type LookupResult,
  type Money,
  MoneyError,
  parseBilled,
  type RouterBill,
  sumMoney,
  zero,
} from '../../billing/index.ts';
import { RouterFailure } from './failures.ts';

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

const recorded = z.int().nullish().catch(undefined);
const generation = z.looseObject({
  data: z.looseObject({ total_cost: z.string(), tokens_prompt: recorded, tokens_completion: recorded }),
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

/** A cost that a router reported, and where it was found. */
export interface Cost {
  readonly amount: Money;
  readonly source: CostSource;
}

/** A whole answer. */
export interface RouterAnswer {
  /** The router's own id of the call. */
  readonly reference: string | undefined;
  /** The model's text; empty for embeddings. */
  readonly text: string;
  readonly finishReason: string | undefined;
  readonly tokensIn: number | undefined;
  readonly tokensOut: number | undefined;
  /** Absent while it is not known. */
  readonly cost: Cost | undefined;
  /** The body as JSON text; of a stream, empty. */
  readonly body: string;
}

const tokens = z.int().min(0).max(2_000_000_000).nullish().catch(undefined);

/** Money in its own digits (see parseExact); anything else counts as not reported. */
const digits = z.string().max(60).nullish().catch(undefined);

export const usage = z.looseObject({
  prompt_tokens: tokens,
  completion_tokens: tokens,
  total_tokens: tokens,
  cost: digits,
  is_byok: z.boolean().nullish().catch(undefined),
  cost_details: z.looseObject({ upstream_inference_cost: digits }).nullish().catch(undefined),
});

export type RouterUsage = z.output<typeof usage>;

const failure = z.looseObject({
  message: z.string().nullish().catch(undefined),
  code: z.union([z.number(), z.string()]).nullish().catch(undefined),
});

const content = z.string().nullish().catch(undefined);

export const completion = z.looseObject({
  id: z.string().nullish().catch(undefined),
  choices: z.array(z.looseObject({ message: z.looseObject({ content }), finish_reason: z.string().nullish() })).min(1),
  usage: usage.nullish().catch(undefined),
});

const chunk = z.looseObject({
  id: z.string().nullish().catch(undefined),
  choices: z
    .array(z.looseObject({ delta: z.looseObject({ content }).nullish(), finish_reason: z.string().nullish() }))
    .nullish(),
  usage: usage.nullish().catch(undefined),
  error: failure.nullish(),
});

export type Chunk = z.output<typeof chunk>;

export const embeddings = z.looseObject({
  id: z.string().nullish().catch(undefined),
  data: z.array(z.unknown()).min(1),
  usage: usage.nullish().catch(undefined),
});

/** The list of models. */
export const offered = z.looseObject({ data: z.array(z.looseObject({ id: z.string() })) });

const refusal = z.looseObject({
  error: z.union([failure, z.string().transform((message) => ({ message, code: undefined }))]),
});

/** The cost in `usage.cost`. With a provider key of the payer's own, what that provider bills is part of it. */
export function readUsageCost(reported: RouterUsage | null | undefined): Cost | undefined {
  const parts = [
    reported?.cost,
    reported?.is_byok === true ? reported.cost_details?.upstream_inference_cost : undefined,
  ].filter((part) => part !== undefined && part !== null);
  if (reported?.cost === undefined || reported.cost === null) return undefined;
  const amounts = parts.map(readBilled);
  return amounts.every((amount) => amount !== undefined) ? { amount: sumMoney(amounts), source: 'billed' } : undefined;
}

/** An amount that a router wrote; undefined when it is none, like a negative one. */
export function readBilled(text: string): Money | undefined {
  try {
    return parseBilled(text);
  } catch (error) {
    if (error instanceof MoneyError) return undefined;
    throw error;
  }
}

/** JSON with money kept exact. @throws RouterFailure */
export function parseBody(text: string, headers: RouterHeaders): unknown {
  try {
    return parseExact(text);
  } catch (error) {
    throw new RouterFailure('malformed', 'the response of the router is not JSON', {
      reference: readReference(headers),
      cause: error,
    });
  }
}

/** Fields in which routers write USD. */
const moneyFields: ReadonlySet<string> = new Set([
  'cost',
  'total_cost',
  'upstream_inference_cost',
  'spend',
  'response_cost',
  // Of a key: what it may spend.
  'limit',
  'max_budget',
  // Of a day, in what OpenRouter calls activity; in an answer it is an object.
  'usage',
]);

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;

/** The language has the third argument; the types of this version do not know it yet. */
const parse = JSON.parse as (text: string, reviver: Reviver) => unknown;

/** Like JSON.parse, but a number in a field of money becomes the text it was written as, digit by digit. @throws SyntaxError */
export function parseExact(text: string): unknown {
  return parse(text, (key, value, { source }) => (typeof value === 'number' && moneyFields.has(key) ? source : value));
}

/** A 200 without an answer in it: some routers put their refusal there. It may have been billed all the same. */
export function toUnexpectedBodyFailure(text: string, headers: RouterHeaders): RouterFailure {
  const said = readErrorMessage(text);
  return new RouterFailure(
    said === undefined ? 'malformed' : 'broken',
    said === undefined ? 'the response of the router has an unexpected form' : 'the router reported an error',
    { reference: readReference(headers), said },
  );
}

/** The message of an error body. */
export function readErrorMessage(text: string): string | undefined {
  try {
    const read = refusal.safeParse(JSON.parse(text));
    return read.success && typeof read.data.error.message === 'string' ? redact(read.data.error.message) : undefined;
  } catch {
    return undefined;
  }
}

/** Short, and without anything that looks like a key. */
function redact(message: string): string {
  return message.replaceAll(/sk-[\w-]{4,}/g, 'sk-…').slice(0, 500);
}

/** The router's own id of the call, from the headers. */
export function readReference(headers: RouterHeaders): string | undefined {
  return readHeader(headers, 'x-generation-id');
}

const maxBodyBytes = 16 * 1024 * 1024;

export async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const bytes of body) {
    length += bytes.length;
    if (length > maxBodyBytes)
      throw new RouterFailure('malformed', `the response of the router is longer than ${maxBodyBytes} bytes`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The data of each server-sent event. */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const ready: string[] = [];
  const parser = createParser({
    onEvent: ({ data }) => {
      ready.push(data);
    },
  });
  const decoder = new TextDecoder();
  for await (const bytes of body) {
    parser.feed(decoder.decode(bytes, { stream: true }));
    yield* ready.splice(0);
  }
}

/** What a stream has delivered so far. */
export interface StreamProgress {
  id?: string | undefined;
  usage?: RouterUsage | undefined;
  finish?: string | undefined;
  done: boolean;
  text: string;
}

/** Adds one event. @returns it with its piece of the answer; undefined for the mark of the end */
export function addEvent(
  seen: StreamProgress,
  data: string,
  headers: RouterHeaders,
): { text: string; chunk: Chunk } | undefined {
  if (data === '[DONE]') {
    seen.done = true;
    return undefined;
  }
  const part = readChunk(data, headers);
  const [choice] = part.choices ?? [];
  const text = choice?.delta?.content ?? '';
  seen.id = part.id ?? seen.id;
  seen.usage = part.usage ?? seen.usage;
  seen.finish = choice?.finish_reason ?? seen.finish;
  seen.text += text;
  return { text, chunk: part };
}

/** An event of a stream. @throws RouterFailure when it is none, or reports an error */
function readChunk(data: string, headers: RouterHeaders): Chunk {
  const read = chunk.safeParse(parseBody(data, headers));
  if (!read.success)
    throw new RouterFailure('malformed', 'the router sent a stream event of an unexpected form', {
      reference: readReference(headers),
    });
  const { error, id } = read.data;
  if (error !== undefined && error !== null)
    throw new RouterFailure('broken', 'the model stopped before its answer was complete', {
      said: typeof error.message === 'string' ? redact(error.message) : undefined,
      reference: id ?? readReference(headers),
    });
  return read.data;
}

/** One value of a header. */
export function readHeader(headers: RouterHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}
