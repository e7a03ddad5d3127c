// Ends the process in good order: on SIGTERM or SIGINT, an abort signal and a bound on how long the end may take.
import type { Logger } from '../logger.ts';
import { silentLogger } from '../logger.ts';

/** Settings. */
export interface ShutdownOptions {
  /** Default SIGTERM and SIGINT. */
  signals?: readonly NodeJS.Signals[];
  /** Milliseconds after the signal until the process is ended by force, with exit code 1; default 25 000. */
  limitMs?: number;
  log?: Logger;
  /** Default `process.exit`. */
  exit?: (code: number) => void;
}

/** A way to hear of the end and to bring it about. */
export interface Shutdown {
  /** Aborted when the process is asked to end. */
  readonly signal: AbortSignal;
  /**
   * Asks for the end from inside, such as when leadership is lost; the exit code is then 1. `limitMs` shortens the
   * bound.
   */
  fail(reason: string, limitMs?: number): void;
  /** Takes the handlers away and exits with 0, or 1 after `fail`. Call when everything has ended. */
  finish(): void;
}

/** Listens for signals from now on. A second signal ends the process at once. */
export function listenForShutdown(options: ShutdownOptions = {}): Shutdown {
  const {
    signals = ['SIGTERM', 'SIGINT'],
    limitMs = 25_000,
    log = silentLogger,
    exit = (code: number) => process.exit(code),
  } = options;
  const controller = new AbortController();
  let failed = false;
  let timer: NodeJS.Timeout | undefined;
  const bound = (ms: number): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      log.error({ limitMs: ms }, 'The shutdown took too long; the process ends by force.');
      exit(1);
    }, ms);
    // The bound must not be what keeps the process alive.
    timer.unref();
  };
  const onSignal = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) {
      log.warn({ signal: name }, 'A second signal: the process ends at once.');
      exit(1);
      return;
    }
    log.info({ signal: name }, 'The process was asked to end.');
    bound(limitMs);
    controller.abort(new Error(`The process got ${name}.`));
  };
  for (const name of signals) process.on(name, onSignal);
  return {
    signal: controller.signal,
    fail(reason, shorterMs) {
      failed = true;
      log.error({ reason }, 'The process ends because of a fault.');
      if (shorterMs !== undefined || !controller.signal.aborted) bound(shorterMs ?? limitMs);
      controller.abort(new Error(reason));
    },
    finish() {
      for (const name of signals) process.off(name, onSignal);
      clearTimeout(timer);
      exit(failed ? 1 : 0);
    },
  };
}

/** Runs `stop` when the process is asked to end, reports its failure, and lets the process end. */
export function stopOnShutdown(shutdown: Shutdown, log: Logger, stop: () => Promise<void>): void {
  shutdown.signal.addEventListener('abort', () => {
    void stop()
      .catch((error: unknown) => {
        log.error({ err: error }, 'stopping failed');
      })
      .finally(() => {
        shutdown.finish();
      });
  });
}
