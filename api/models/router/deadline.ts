// One signal for the two ways in which a call is cut short: the caller disconnects, or the time limit is reached.

export interface Deadline {
  readonly signal: AbortSignal;
  /** Why the signal was aborted. */
  readonly reason: () => 'cancelled' | 'timeout' | undefined;
  /** Lets go of the caller's signal and the timer. */
  readonly clear: () => void;
}

/** By hand instead of AbortSignal.any, which keeps what it made alive for as long as the caller's signal lives. */
export function startDeadline(caller: AbortSignal, ms: number): Deadline {
  const controller = new AbortController();
  let reason: 'cancelled' | 'timeout' | undefined;
  const end = (why: 'cancelled' | 'timeout'): void => {
    reason ??= why;
    controller.abort();
  };
  const leave = (): void => {
    end('cancelled');
  };
  if (caller.aborted) leave();
  caller.addEventListener('abort', leave, { once: true });
  const timer = setTimeout(end, ms, 'timeout');
  return {
    signal: controller.signal,
    reason: () => reason,
    clear: () => {
      clearTimeout(timer);
      caller.removeEventListener('abort', leave);
    },
  };
}
