// How calls to a router fail, what that means for the bill, and what a router's refusal means in our own words.

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

interface FailureOptions {
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
