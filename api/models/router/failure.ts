// How a call to a router fails, and what that means for the bill.

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

/** The message of a failure of the kind `cancelled`: who reads it has not disconnected. */
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
  readonly cause?: unknown;
}

/** Thrown when a call gave no complete answer. The message is the router's own, or what happened. */
export class RouterFailure extends Error {
  override readonly name = 'RouterFailure';
  readonly kind: FailureKind;
  readonly status: number | undefined;
  readonly reference: string | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(kind: FailureKind, message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.kind = kind;
    this.status = options.status;
    this.reference = options.reference;
    this.retryAfterSeconds = options.retryAfterSeconds;
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

/** The failure that an HTTP status stands for. */
export function refused(status: number, said: string, options: Omit<FailureOptions, 'status'> = {}): RouterFailure {
  const kind = kinds[status] ?? (status >= 500 ? 'broken' : 'request');
  return new RouterFailure(kind === 'busy' && status === 429 && aboutMoney.test(said) ? 'credit' : kind, said, {
    ...options,
    status,
  });
}
