// The task that asks the activators: which apps are looked at again because of what they say.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import type { Activators } from '../../../../controller/steps/deploy/idle/rest.ts';
import { createActivityTask } from '../../../../controller/idle/task.ts';
import { createLog } from '../../../../lib/telemetry.ts';

test('every app is looked at again once there is no activator any more, and once there is one again', async () => {
  const states: Activators[] = ['present', 'present', 'absent', 'absent', 'present'];
  const seen: string[][] = [];
  const ended = new AbortController();
  let round = 0;
  const task = createActivityTask({
    pool: {
      reports: () => {
        seen.push([]);
        return Promise.resolve([]);
      },
    },
    record: {
      take: () => [],
      of: () => undefined,
      activators: () => {
        const state = states[round] ?? 'present';
        round += 1;
        if (round === states.length) ended.abort();
        return state;
      },
    },
    intervalMs: 1,
    changed: (app) => seen.at(-1)?.push(app),
    apps: () => ['hello', 'other'],
    log: createLog('test'),
  });
  await Promise.race([task(ended.signal), sleep(5_000)]);
  assert.deepEqual(seen, [[], ['hello', 'other'], [], ['hello', 'other']]);
});
