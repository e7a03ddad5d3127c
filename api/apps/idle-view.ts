// Whether an app that rests when it is not used is awake, and how long its wakes take, as JSON.
import { z } from 'zod';
import type { App } from './hosted-apps.ts';

export const idleView = z.object({
  state: z
    .enum(['awake', 'napping', 'asleep', 'waking'])
    .describe('asleep: no process, the next request starts one; napping: a process that requests a minimum.'),
  since: z.string().describe('Start of this state, RFC 3339.'),
  idle_seconds: z.int().describe('Seconds without use after which the app rests.'),
  wakes: z
    .object({
      count: z.int().describe('Wakes that were measured.'),
      p50_ms: z.int().describe('Median of the last ones.'),
      p95_ms: z.int().describe('95th percentile of the last ones.'),
    })
    .optional()
    .describe('How long its wakes took, from the first request to the first connection. They are not billed.'),
});
export type IdleView = z.output<typeof idleView>;

/** Undefined for an app that always runs. */
export function viewIdle({ status }: App): IdleView | undefined {
  const { idle } = status ?? {};
  if (idle === undefined) return undefined;
  const { state, since, afterSeconds, wakes } = idle;
  return {
    state: states[state],
    since,
    idle_seconds: afterSeconds,
    ...(wakes === undefined ? {} : { wakes: { count: wakes.count, p50_ms: wakes.p50Ms, p95_ms: wakes.p95Ms } }),
  };
}

const states = { Awake: 'awake', Napping: 'napping', Asleep: 'asleep', Waking: 'waking' } as const;
