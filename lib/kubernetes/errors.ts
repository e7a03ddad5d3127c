// Defines the errors with which a reconciler decides what happens next, and the error of a failed API call.

/**
 * Stop: nothing that the controller can do helps until the object changes (the spec is wrong, the build is rejected).
 * The key is forgotten; it returns with the object's next change or with the periodic resync.
 */
export class StallingError extends Error {
  override readonly name = 'StallingError';
  /** CamelCase reason, fit for a condition and an event. */
  readonly reason: string;
  constructor(reason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** Come back later: nothing is wrong, but something else has to happen first. Resets the key's backoff. */
export class WaitingError extends Error {
  override readonly name = 'WaitingError';
  /** CamelCase reason, fit for a condition and an event. */
  readonly reason: string;
  /** Milliseconds after which to reconcile again. */
  readonly afterMs: number;
  constructor(reason: string, message: string, afterMs: number, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
    this.afterMs = afterMs;
  }
}

/** The reason with which work is aborted when this replica no longer leads. */
export class LeadershipLostError extends Error {
  override readonly name = 'LeadershipLostError';
}

/** An error response of the API server, or a failure to reach it (`status` 0). */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  /**
   * The API's reason, such as `NotFound`, `AlreadyExists`, `Conflict`, `Invalid`, `Expired`; `Timeout` or `Unreachable`
   * without an answer.
   */
  readonly reason: string;
  /** Seconds to wait before the next try, if the server says so. */
  readonly retryAfterSeconds: number | undefined;
  constructor(status: number, reason: string, message: string, retryAfterSeconds?: number, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
    this.reason = reason;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** True for an `ApiError` with that HTTP status. */
export function isApiStatus(error: unknown, status: number): error is ApiError {
  return error instanceof ApiError && error.status === status;
}

/** The message of anything thrown. */
export function toErrorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
