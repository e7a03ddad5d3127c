// Deadlines of calls: a signal that follows another one and ends after a time.
import { ApiError } from '../errors.ts';

/** A signal with a deadline that can be moved. */
export interface Deadline {
  signal: AbortSignal;
  /** Gives `ms` from now on. */
  set: (ms: number) => void;
  clear: () => void;
}

/** A signal that follows `parent` and ends after `ms` with an `ApiError` `Timeout`. */
export function deadline(parent: AbortSignal | undefined, ms: number, what: string): Deadline {
  const controller = new AbortController();
  const follow = (): void => {
    controller.abort(parent?.reason);
  };
  const start = (limitMs: number): NodeJS.Timeout =>
    setTimeout(() => {
      controller.abort(new ApiError(0, 'Timeout', `No complete answer within ${limitMs} ms: ${what}.`));
    }, limitMs);
  let timer = start(ms);
  if (parent?.aborted === true) follow();
  else parent?.addEventListener('abort', follow);
  return {
    signal: controller.signal,
    set(limitMs) {
      clearTimeout(timer);
      timer = start(limitMs);
    },
    clear() {
      clearTimeout(timer);
      parent?.removeEventListener('abort', follow);
    },
  };
}
