// The history keeps apart what was built and what was released: a build whose app does not start has not succeeded as a whole.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { HistoryEntry, HostedAppStatus } from '../../../../../crds/hosted-app.ts';
import type { Snapshot } from '../../../../../controller/reconcile/snapshot.ts';
import {
  app,
  at,
  built,
  deployed,
  digest,
  first,
  outcome,
  second,
  snapshotOf,
} from '../../../../support/operator/scenario.ts';

const entry = (number: number, commit: string, rest: Partial<HistoryEntry> = {}): HistoryEntry => ({
  ...{ number, job: `hello-${number}`, commit, reason: 'new commit', result: 'Succeeded', finishedAt: at(-60) },
  ...{ image: digest(commit.charAt(0)), ...rest },
});

function releasesOf(status: HostedAppStatus, rest: (of: ReturnType<typeof app>) => Partial<Snapshot>): string[] {
  const of = app({}, status);
  const { history = [] } = outcome(snapshotOf(of, rest(of))).status;
  return history.map(({ number, result, release, releaseMessage }) =>
    [number, result, release, releaseMessage?.slice(0, 15)].filter(Boolean).join(' '),
  );
}

const unfinished = { replicas: 1, updatedReplicas: 1 };
const crashed = {
  restartCount: 3,
  state: { waiting: { reason: 'CrashLoopBackOff' } },
  lastState: { terminated: { exitCode: 1, message: 'no' } },
};

test('an image is pending until it is ready, and released then', () => {
  const status = built(first, { history: [entry(1, first)] });
  const starting = { ready: false, started: false, state: { running: { startedAt: at(-1) } } };
  assert.deepEqual(
    releasesOf(status, (of) => deployed(of, unfinished, starting)),
    ['1 Succeeded Pending'],
  );
  assert.deepEqual(
    releasesOf(status, (of) => deployed(of)),
    ['1 Succeeded Released'],
  );
});

test('an image that does not start is built and not released, with the reason', () => {
  const status = built(first, { history: [entry(1, first)] });
  assert.deepEqual(
    releasesOf(status, (of) => deployed(of, unfinished, crashed)),
    ['1 Succeeded Failed The app crashed'],
  );
});

test('an image that a newer one overtakes before it is ready was skipped; what is known of older ones stays', () => {
  const history = [
    entry(3, second),
    entry(2, first, { image: digest('c'), release: 'Pending' }),
    entry(1, first, { release: 'Released' }),
  ];
  const status = built(second, { history });
  assert.deepEqual(
    releasesOf(status, (of) => deployed(of)),
    ['3 Succeeded Released', '2 Succeeded Skipped', '1 Succeeded Released'],
  );
});
