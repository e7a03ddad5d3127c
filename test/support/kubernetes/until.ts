// Waits for something to come true, without a time limit of its own: the test's is the limit.
import { setTimeout as delay } from 'node:timers/promises';

/** Resolves when `condition` holds, asking every few milliseconds. */
export async function waitUntil(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await delay(2);
}
