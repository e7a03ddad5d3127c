// Waiting for a condition, with a limit and an error that names what was waited for.
import { setTimeout as sleep } from 'node:timers/promises';

export interface WaitOptions {
  /** Seconds until the wait is given up. */
  seconds: number;
  /** Milliseconds between two looks; 250 unless told. */
  every?: number;
  /** Asked once at the end, for a hint on why it never came true. */
  hint?: () => Promise<string>;
}

/**
 * Looks again and again until `look` gives a value other than false or undefined; an error thrown by it counts as "not
 * yet".
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
    [`${what} did not come about within ${options.seconds} s`, last, hint].filter((line) => line !== '').join('\n  '),
  );
}
