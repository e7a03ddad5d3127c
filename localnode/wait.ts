// Waits for a condition, with a time limit and an error that names what was awaited.
import { setTimeout as sleep } from 'node:timers/promises';

export interface WaitOptions {
  /** Seconds after which to give up. */
  seconds: number;
  /** Milliseconds between two checks; default 250. */
  every?: number;
  /** Called once after giving up, for a hint on the cause. */
  hint?: () => Promise<string>;
}

/**
 * Calls `look` until it returns a value other than false or undefined. An error that it throws counts as "not yet".
 */
export async function waitFor<T>(
  what: string,
  look: () => Promise<T | false | undefined>,
  options: WaitOptions,
): Promise<T> {
  const end = Date.now() + options.seconds * 1000;
  let last = '';
  for (;;) {
    try {
      const value = await look();
      if (value !== false && value !== undefined) return value;
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
    if (Date.now() >= end) break;
    await sleep(options.every ?? 250);
  }
  const hint = options.hint === undefined ? '' : await options.hint();
  throw new Error(
    [`timed out after ${options.seconds} s waiting for ${what}`, last, hint].filter((line) => line !== '').join('\n  '),
  );
}
