// A limit of time as a signal, to be combined with others.

/**
 * Aborts with a TimeoutError after so many milliseconds, and keeps no process alive.
 * Unlike a signal of `AbortSignal.timeout`, it is held by its timer: `AbortSignal.any` holds its sources weakly, and a
 * limit that was collected meanwhile never comes.
 */
export function timeLimit(ms: number): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => {
    controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'));
  }, ms).unref();
  return controller.signal;
}
