// Runs a task again whenever something changed, one run at a time, with changes that come in quick succession as one.

/** Calls for a run; safe to call at any time, as often as one likes. */
export interface Latest {
  request(): void;
  /** Resolves when no run is in progress or requested. */
  idle(): Promise<void>;
}

/** Settings. */
export interface LatestOptions {
  /** Milliseconds to wait for further changes before a run. */
  pauseMs: number;
  /** Called after a failed run; the next one is requested after `retryMs`. */
  onError: (error: unknown) => void;
  retryMs: number;
}

/** Makes one. A change during a run leads to another run. Stops for good when the signal is aborted. */
export function createLatest(task: () => Promise<void>, options: LatestOptions, signal: AbortSignal): Latest {
  let dirty = false;
  let running: Promise<void> | undefined;
  const pause = async (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  const attempt = async (): Promise<void> => {
    try {
      await task();
    } catch (error) {
      options.onError(error);
      dirty = true;
      await pause(options.retryMs);
    }
  };
  const loop = async (): Promise<void> => {
    while (dirty && !signal.aborted) {
      await pause(options.pauseMs);
      dirty = false;
      await attempt();
    }
    running = undefined;
  };
  return {
    request() {
      dirty = true;
      if (!signal.aborted) running ??= loop();
    },
    async idle() {
      await running;
    },
  };
}
