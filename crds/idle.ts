// When an app that nobody uses is put to rest, how deep, and what its status says of that.
import { z } from 'zod';
import { parseDuration } from '../lib/values.ts';
import { withRules } from './rules.ts';
import { timestamp } from './values.ts';

/** Bounds of a given idle time. */
export const idleBounds = { least: '10s', maximum: '168h' } as const;

const durationPattern = '^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?$';

function isIdleTime(text: string): boolean {
  if (text === 'auto' || text === 'never') return true;
  if (text === '' || !new RegExp(durationPattern).test(text)) return false;
  const milliseconds = parseDuration(text);
  return milliseconds >= parseDuration(idleBounds.least) && milliseconds <= parseDuration(idleBounds.maximum);
}

export const idleAfter = withRules(z.string().max(20), {
  cel: `self in ['auto', 'never'] || self.size() > 0 && self.matches('${durationPattern}') && duration(self) >= duration('${idleBounds.least}') && duration(self) <= duration('${idleBounds.maximum}')`,
  holds: isIdleTime,
  message: `idleAfter must be auto, never, or a duration from ${idleBounds.least} to ${idleBounds.maximum}, written like 90s, 15m or 2h`,
});

export const idleDepth = z.enum(['sleep', 'nap']);

/** Wakes and gaps that the status keeps. */
export const keptWakes = 30;
export const keptGaps = 30;

export const idleStates = ['Awake', 'Napping', 'Asleep', 'Waking'] as const;
export type IdleState = (typeof idleStates)[number];

export const idleStatus = z.object({
  state: z
    .enum(idleStates)
    .describe('Awake; Napping: the process stays and requests a minimum; Asleep: no pod; Waking: on its way back.'),
  since: timestamp.describe('When it entered this state.'),
  number: z
    .int()
    .min(0)
    .describe(
      'How often it was put to rest. To wake it by hand, set the annotation moorage.dev/wake of the HostedApp to this number.',
    ),
  afterSeconds: z.int().describe('Seconds without use after which it is put to rest; with auto, the present choice.'),
  lastUsedAt: timestamp
    .optional()
    .describe('When it was last used, as far as is known. Written now and then, not at each use.'),
  gaps: z
    .array(z.int())
    .max(keptGaps)
    .optional()
    .describe('Last times without use, in seconds, oldest first. auto is chosen by them.'),
  wakes: z
    .object({
      count: z.int().describe('Wakes that were measured.'),
      number: z.int().describe('The rest that the last of them ended.'),
      p50Ms: z
        .int()
        .describe('Median of the last ones, in milliseconds, from the first request to the first connection.'),
      p95Ms: z.int().describe('95th percentile of the last ones, in milliseconds.'),
      recentMs: z.array(z.int()).max(keptWakes).describe('The last ones in milliseconds, oldest first.'),
    })
    .optional()
    .describe('How long its wakes took.'),
});
export type IdleStatus = z.infer<typeof idleStatus>;

/** Seconds after which a client of an app that wakes should ask again, where the app has no history. */
export const usualWakeMs = 10_000;
