// Room for one more app: per caller and day, per network, and on the whole.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { assertWithinLimits, type Limits } from '../../../../../api/apps/submit/submit-app.ts';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import { labels } from '../../../../../crds/names.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { sampleApp, sampleApps } from '../../../../support/api/sample.ts';

const now = Date.parse('2026-01-02T00:00:00Z');
const hour = 3_600_000;

function submitted(name: string, caller: string, hoursAgo: number, network = caller): App {
  const app = sampleApp(name, undefined, undefined, { [labels.caller]: caller, [labels.network]: network });
  return { ...app, metadata: { ...app.metadata, creationTimestamp: new Date(now - hoursAgo * hour).toISOString() } };
}

function refusal(cached: App[], unseen: App[], some: Partial<Limits>): Problem | undefined {
  const limits = { perCallerAndDay: 100, perNetwork: 100, apps: 100, ...some };
  try {
    assertWithinLimits(sampleApps(...cached).apps, unseen, { caller: 'me', network: 'here' }, limits, now);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof Problem);
    return error;
  }
}

test('accepts below the limit, regardless of other callers and of apps older than a day', () => {
  const apps = [submitted('a', 'me', 1), submitted('b', 'you', 1), submitted('c', 'you', 2), submitted('d', 'me', 25)];
  assert.equal(refusal(apps, [], { perCallerAndDay: 2, apps: 100 }), undefined);
});

test('sets Retry-After at the limit to when the oldest app of the day stops counting', () => {
  const problem = refusal([submitted('a', 'me', 20), submitted('b', 'me', 1)], [], { perCallerAndDay: 2, apps: 100 });
  assert.equal(problem?.type.status, 429);
  assert.equal(problem.headers['retry-after'], String(4 * 3600));
  assert.match(problem.message, /2 new repositories within 24 hours.*in 4 hours/);
});

test('waits for several apps to stop counting after the limit was lowered', () => {
  const problem = refusal([submitted('a', 'me', 20), submitted('b', 'me', 10), submitted('c', 'me', 1)], [], {
    perCallerAndDay: 1,
    apps: 100,
  });
  assert.equal(problem?.headers['retry-after'], String(23 * 3600));
});

test('counts apps that were created but are not in the cache yet', () => {
  assert.equal(refusal([], [submitted('a', 'me', 0)], { perCallerAndDay: 1, apps: 100 })?.type.status, 429);
  assert.equal(
    refusal([submitted('a', 'you', 0)], [submitted('b', 'you', 0)], { perCallerAndDay: 1, apps: 2 })?.type.slug,
    'platform-full',
  );
});

test('limits one network to its part over many days and keys', () => {
  const apps = Array.from({ length: 4 }, (_, index) => submitted(`a${index}`, `key-${index}`, 24 * 30 * index, 'here'));
  const unseen = [submitted('new', 'key-9', 0, 'here')];
  assert.equal(refusal(apps, unseen, { perNetwork: 6 }), undefined);
  const problem = refusal(apps, unseen, { perNetwork: 5 });
  assert.deepEqual([problem?.type.slug, problem?.type.status], ['too-many-apps', 429]);
  assert.match(problem?.message ?? '', /has 5 apps here; the limit is 5/);
  assert.equal(refusal([submitted('other', 'you', 1, 'there')], [], { perNetwork: 1 }), undefined);
});
