// Apps that never went live: warned, then deleted; and those that are left alone.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { applyControl } from '../../../../crds/control.ts';
import type { HostedApp, HostedAppStatus } from '../../../../crds/hosted-app.ts';
import { labels } from '../../../../crds/names.ts';
import {
  app,
  formatTime,
  config,
  first,
  createLiveStatus,
  now,
  decideStatus,
  createPolledStatus,
  createSnapshot,
} from '../../../support/operator/scenario.ts';

const hour = 3600;
const day = 24 * hour;

/** An app of that age in seconds, which is warned since `warned` seconds. */
function aged(age: number, warned?: number, of: HostedApp = app({}, createPolledStatus(first))): HostedApp {
  const condition = { type: 'Expiring', status: 'True' as const, reason: 'NeverLive', message: '.' };
  const conditions = warned === undefined ? [] : [{ ...condition, lastTransitionTime: formatTime(-warned) }];
  return {
    ...of,
    metadata: { ...of.metadata, creationTimestamp: formatTime(-age), labels: { [labels.caller]: 'someone' } },
    status: { ...of.status, conditions },
  };
}

const expiry = (
  of: HostedApp,
  expireMs: number | undefined = 7 * day * 1000,
): { isDue: boolean | undefined; at: Date | undefined } => {
  const found = decideStatus(createSnapshot(of, { config: { ...config, expireMs } })).decision.expiry;
  return { isDue: found?.isDue, at: found?.at };
};
const warning = (status: HostedAppStatus): string | undefined =>
  status.conditions?.find(({ type }) => type === 'Expiring')?.message;

test('warns a day before an app expires, and deletes it when it does', () => {
  assert.deepEqual(expiry(aged(5 * day)), { isDue: false, at: undefined });
  assert.deepEqual(expiry(aged(6 * day + hour)), { isDue: false, at: new Date(now.getTime() + 24 * hour * 1000) });
  assert.deepEqual(expiry(aged(7 * day, day)), { isDue: true, at: now });
  const { status, conditions } = decideStatus(createSnapshot(aged(6 * day + hour)));
  assert.ok(conditions.includes('Expiring=True NeverLive'));
  assert.match(warning(status) ?? '', /has never been live. It is deleted at 2026-11-22T12:00:00Z unless/);
});

test('warns first about an app that is long past a newly set limit', () => {
  assert.equal(expiry(aged(300 * day)).isDue, false);
  assert.equal(expiry(aged(300 * day, hour)).isDue, false);
  assert.equal(expiry(aged(300 * day, day)).isDue, true);
});

test('never expires an app that has been live, is suspended, or was created with kubectl', () => {
  const wasLive = aged(300 * day, 30 * day, app({}, createLiveStatus(first, { served: undefined })));
  assert.equal(expiry(wasLive).isDue, undefined);
  assert.equal(expiry(aged(300 * day, 30 * day, app({ suspend: true }, createPolledStatus(first)))).isDue, undefined);
  const byHand = aged(300 * day, 30 * day);
  assert.equal(expiry({ ...byHand, metadata: { ...byHand.metadata, labels: {} } }).isDue, undefined);
  assert.equal(
    decideStatus(createSnapshot(aged(300 * day, 30 * day), { config: { ...config, expireMs: undefined } })).decision
      .expiry,
    undefined,
  );
});

test('deletes an app whose author deleted it once its time has come, whether it was live or not', () => {
  for (const status of [createLiveStatus(first), createPolledStatus(first)]) {
    const decideDeletion = (seconds: number): ReturnType<typeof decideStatus> => {
      const of = app({ control: { deleteAfter: formatTime(seconds) } }, status);
      return decideStatus(createSnapshot({ ...of, spec: applyControl(of.spec) }, { config }));
    };
    const early = decideDeletion(90);
    assert.deepEqual(early.decision.expiry, { isDue: false, reason: 'DeletedByAuthor', afterMs: 90_000 });
    assert.ok(early.conditions.includes('Ready=False Suspended'));
    assert.match(
      early.status.conditions?.find(({ type }) => type === 'Ready')?.message ?? '',
      /^Its author deleted the app\. It is removed after /,
    );
    assert.equal(warning(early.status), undefined);
    for (const seconds of [0, -day])
      assert.deepEqual(decideDeletion(seconds).decision.expiry, {
        isDue: true,
        reason: 'DeletedByAuthor',
        afterMs: 0,
      });
  }
});
