// What keeps a submission from being followed to its end: the command or the platform, not the repository.

/** Ends `npm run submit` with exit code 2. The message is for a person, and says what to do. */
export class Fault extends Error {
  override readonly name: string = 'Fault';
}

/** The API did not answer, or asked to come back later: the same request may succeed then. */
export class Unavailable extends Fault {
  override readonly name = 'Unavailable';
  /** As asked by Retry-After. */
  readonly retryAfterMs: number | undefined;
  constructor(message: string, retryAfterMs?: number) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

/** The log cannot be followed; the status may still be read. */
export class LogUnavailable extends Fault {
  override readonly name = 'LogUnavailable';
}
