// Ends the process in good order: on SIGTERM or SIGINT, an abort signal and a bound on how long the end may take.
import type { Logger } from './logger.ts';

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
  /** Asks for the end from inside, such as when leadership is lost; the exit code is then 1. */
  fail(reason: string): void;
  /** Takes the handlers away and exits with 0, or 1 after `fail`. Call when everything has ended. */
  finish(): void;
}

/** Listens for signals from now on. A second signal ends the process at once. */
export function listenForShutdown(options: ShutdownOptions = {}): Shutdown {
  throw new Error(`not implemented ${String(options.limitMs)}`);
}
