// Room for one more app: per caller and day, per network, and on the whole.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { checkRoom, type Limits } from '../../../../../api/apps/submit/admission.ts';
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
    checkRoom(sampleApps(...cached).apps, unseen, { caller: 'me', network: 'here' }, limits, now);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof Problem);
    return error;
  }
}

test('below the limit there is room, whatever others did and whatever is older than a day', () => {
  const apps = [submitted('a', 'me', 1), submitted('b', 'you', 1), submitted('c', 'you', 2), submitted('d', 'me', 25)];
  assert.equal(refusal(apps, [], { perCallerAndDay: 2, apps: 100 }), undefined);
});

test('at the limit, Retry-After says when the oldest of today leaves the count', () => {
  const problem = refusal([submitted('a', 'me', 20), submitted('b', 'me', 1)], [], { perCallerAndDay: 2, apps: 100 });
  assert.equal(problem?.type.status, 429);
  assert.equal(problem.headers['retry-after'], String(4 * 3600));
  assert.match(problem.message, /2 new repositories within 24 hours.*in 4 hours/);
});

test('with a limit that was lowered, enough of them have to leave the count', () => {
  const problem = refusal([submitted('a', 'me', 20), submitted('b', 'me', 10), submitted('c', 'me', 1)], [], {
    perCallerAndDay: 1,
    apps: 100,
  });
  assert.equal(problem?.headers['retry-after'], String(23 * 3600));
});

test('what was created and is not in the cache yet counts', () => {
  assert.equal(refusal([], [submitted('a', 'me', 0)], { perCallerAndDay: 1, apps: 100 })?.type.status, 429);
  assert.equal(
    refusal([submitted('a', 'you', 0)], [submitted('b', 'you', 0)], { perCallerAndDay: 1, apps: 2 })?.type.slug,
    'platform-full',
  );
});

test('one network fills only its part, day after day, with ever new keys', () => {
  const apps = Array.from({ length: 4 }, (_, index) => submitted(`a${index}`, `key-${index}`, 24 * 30 * index, 'here'));
  const unseen = [submitted('new', 'key-9', 0, 'here')];
  assert.equal(refusal(apps, unseen, { perNetwork: 6 }), undefined);
  const problem = refusal(apps, unseen, { perNetwork: 5 });
  assert.deepEqual([problem?.type.slug, problem?.type.status], ['too-many-apps', 429]);
  assert.match(problem?.message ?? '', /has 5 apps here; the limit is 5/);
  assert.equal(refusal([submitted('other', 'you', 1, 'there')], [], { perNetwork: 1 }), undefined);
});
