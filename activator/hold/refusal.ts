// Why the activator answers a request itself.
export type RefusalKind =
  /** No app has this host. */
  | 'unknown'
  /** It is suspended or has no replicas. */
  | 'stopped'
  /** It does not come up. */
  | 'failed'
  /** It wakes, and the client does not want to wait longer. */
  | 'waking'
  /** Too many requests wait already. */
  | 'full'
  /** Too many requests of this client wait already. */
  | 'limited'
  /** A look by the platform, which wakes nothing. */
  | 'asleep'
  /** The app ended the connection without an answer. */
  | 'broken';

/** Thrown where a request is not passed on. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly kind: RefusalKind;
  /** Seconds after which to ask again; undefined: that would not help. */
  readonly retryAfter: number | undefined;

  constructor(kind: RefusalKind, message: string, retryAfter?: number) {
    super(message);
    this.kind = kind;
    this.retryAfter = retryAfter;
  }
}
