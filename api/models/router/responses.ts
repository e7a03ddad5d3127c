// Reads the responses of a router: answers, events of streams, and failures with what they mean for the bill. Loose where fields are the
// router's own, exact where they are money.
import { createParser } from 'eventsource-parser';
import { z } from 'zod';
import { readHeader, type RouterHeaders } from './shapes.ts';
import { type CostSource, type Money, MoneyError, parseBilled, sumMoney } from '../../billing/index.ts';

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

export const chunk = z.looseObject({
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

export const refusal = z.looseObject({
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
export function readChunk(data: string, headers: RouterHeaders): Chunk {
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

/** How a call to a router fails. */
export type FailureKind =
  /** No connection; nothing was sent. */
  | 'unreachable'
  /** The router accepts no more calls now. */
  | 'busy'
  /** The payer is out of credit. */
  | 'credit'
  /** The key is not, or no longer, valid. */
  | 'key'
  /** The request itself is refused. */
  | 'request'
  /** The router does not know the model. */
  | 'model'
  /** The router or the model behind it broke. */
  | 'broken'
  | 'timeout'
  /** The answer ended before it was whole. */
  | 'interrupted'
  /** The response has an unexpected form. */
  | 'malformed'
  /** The caller disconnected, or this process is ending. */
  | 'cancelled';

/** The message of a failure of the kind `cancelled`. A caller who can read it has not disconnected. */
export const cancelledMessage = 'the caller disconnected, or the API is restarting';

const costNothing: ReadonlySet<FailureKind> = new Set<FailureKind>([
  'unreachable',
  'busy',
  'credit',
  'key',
  'request',
  'model',
]);

export interface FailureOptions {
  readonly status?: number;
  /** The router's own id of the call, where known. */
  readonly reference?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  /** The router's own text, which only the owner of the key may read: it may name accounts, limits and providers of ours. */
  readonly said?: string | undefined;
  readonly cause?: unknown;
}

/** Thrown when a call gave no complete answer. The message says in our own words what happened. */
export class RouterFailure extends Error {
  override readonly name = 'RouterFailure';
  readonly kind: FailureKind;
  readonly status: number | undefined;
  readonly reference: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly said: string | undefined;

  constructor(kind: FailureKind, message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.kind = kind;
    this.status = options.status;
    this.reference = options.reference;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.said = options.said;
  }

  /** True when it is certain that nothing was billed; else the cost has to be looked up. */
  get costsNothing(): boolean {
    return costNothing.has(this.kind);
  }
}

const kinds: Readonly<Record<number, FailureKind>> = {
  401: 'key',
  402: 'credit',
  403: 'key',
  404: 'model',
  408: 'timeout',
  429: 'busy',
  503: 'busy',
};
/** Budgets of one widespread router are distinguished from its rate limits by words alone. */
const aboutMoney = /budget|insufficient (credit|quota|balance)|out of credit/i;

/** The failure that an HTTP status stands for, and the router's text. */
export function toRefusal(
  status: number,
  said: string | undefined,
  options: Omit<FailureOptions, 'status' | 'said'> = {},
): RouterFailure {
  const usual = kinds[status] ?? (status >= 500 ? 'broken' : 'request');
  const kind = usual === 'busy' && status === 429 && aboutMoney.test(said ?? '') ? 'credit' : usual;
  return new RouterFailure(kind, describeRefusal(kind, status, said ?? ''), { ...options, status, said });
}

/** What models refuse, by words that routers and providers have for it. */
const refusedFor: readonly (readonly [RegExp, string])[] = [
  [
    /context.?(length|window|size)|maximum context|too many (input )?tokens|(prompt|input|request) (is )?too (long|large)|reduce the length/i,
    'the prompt and max_tokens are more than the model can take. Shorten the prompt, or lower max_tokens',
  ],
  [
    /content.?(policy|filter|management)|moderat|flagged|safety|prohibited/i,
    'the content filter of the model or its provider refused it. Change the prompt, or choose another model',
  ],
  [/image|vision|multimodal/i, 'it does not take this image, or no images at all. Choose a model that does'],
  [
    /response_format|json.?schema|structured output/i,
    'it does not support this response_format. Remove or simplify it',
  ],
  [/tool|function/i, 'it does not support these tools. Remove or simplify them'],
  [/reasoning|thinking/i, 'it does not support this reasoning option. Remove it'],
];
const options = [
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'stop',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'repetition_penalty',
  'logit_bias',
  'top_logprobs',
  'logprobs',
  'max_tokens',
  'verbosity',
  'dimensions',
];

const descriptions: Partial<Readonly<Record<FailureKind, string>>> = {
  key: 'the router rejected the key',
  credit: 'the router reports no credit for the key',
  model: 'the router does not offer the model',
  timeout: 'the router did not respond in time',
};

function describeRefusal(kind: FailureKind, status: number, said: string): string {
  if (kind === 'request') return describeRequestRefusal(said);
  if (kind === 'busy' && status === 429) return 'the router accepts no more calls at the moment';
  return (
    descriptions[kind] ?? (kind === 'busy' ? 'the router is overloaded' : `the router responded with status ${status}`)
  );
}

function describeRequestRefusal(said: string): string {
  const known = refusedFor.find(([pattern]) => pattern.test(said))?.[1];
  if (known !== undefined) return known;
  const option = options.find((name) => said.includes(name));
  return option === undefined ? 'the request is not one that it takes' : `it does not take this ${option}`;
}
