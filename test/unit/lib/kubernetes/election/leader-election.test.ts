// Leader election against a server with versions: one leader at a time, whatever clocks and connections do.
import assert from 'node:assert/strict';
import { test, type TestContext } from 'vitest';
import {
  createLeaderElection,
  systemClock,
  type Clock,
  type LeaderElection,
  type LeaderElectionOptions,
} from '../../../../../lib/kubernetes/index.ts';
import type { Stored } from '../../../../support/kubernetes/fake-api.ts';
import { FakeApi, send, status } from '../../../../support/kubernetes/fake-api.ts';
import { waitUntil } from '../../../../support/kubernetes/until.ts';

const KIND = 'apis/coordination.k8s.io/v1/leases';
/** A lease that no busy machine lets run out; what a test waits for must come without that. */
const LASTING = { leaseDurationMs: 60_000, renewDeadlineMs: 50_000, retryPeriodMs: 100 };
/**
 * A lease that runs out within a test. Only where the loss is what the test waits for: a leader that lost does not
 * stand again.
 */
const SHORT = { leaseDurationMs: 3000, renewDeadlineMs: 2000, retryPeriodMs: 100 };

interface Spec {
  holderIdentity: string;
  leaseDurationSeconds: number;
  leaseTransitions: number;
  acquireTime: string;
  renewTime: string;
}

interface Candidate {
  election: LeaderElection;
  lost: string[];
  terms: AbortSignal[];
  /** Ends it in good order. */
  end: () => Promise<void>;
  running: Promise<void>;
}

const specOf = (api: FakeApi): Spec =>
  (api.objects(KIND)[0] as (Stored & { spec: Spec }) | undefined)?.spec ?? {
    holderIdentity: 'no lease',
    leaseDurationSeconds: 0,
    leaseTransitions: 0,
    acquireTime: '',
    renewTime: '',
  };

async function server(t: TestContext): Promise<FakeApi> {
  const api = new FakeApi();
  await api.start();
  t.onTestFinished(() => api.stop());
  return api;
}

function candidate(
  t: TestContext,
  api: FakeApi,
  identity: string,
  options: Partial<LeaderElectionOptions> = {},
): Candidate {
  const lost: string[] = [];
  const terms: AbortSignal[] = [];
  const client = api.client({ 'x-identity': identity });
  const election = createLeaderElection({
    client,
    namespace: 'system',
    name: 'operator',
    identity,
    onLost: (reason) => lost.push(reason),
    onAcquired: (signal) => terms.push(signal),
    ...LASTING,
    ...options,
  });
  const ending = new AbortController();
  const running = election.run(ending.signal);
  const end = async (): Promise<void> => {
    ending.abort();
    await running;
  };
  t.onTestFinished(end);
  return { election, lost, terms, end, running };
}

/** Real timers, but a clock that stands still until it is moved to a moment. No load lets a lease run out by it. */
function standing(): { clock: Clock; move: (to: number) => void } {
  let now = 0;
  return {
    clock: { ...systemClock, now: () => now },
    move: (to) => {
      now = to;
    },
  };
}

/** Cuts one replica off from the server. */
function cutOff(api: FakeApi, identity: string): void {
  api.faults.push((request, response) => {
    if (request.headers['x-identity'] !== identity) return false;
    response.destroy();
    return true;
  });
}

test('the first candidate leads, renews, and writes a valid lease', async (t) => {
  const api = await server(t);
  const a = candidate(t, api, 'a');
  await waitUntil(() => a.election.isLeader);
  const first = specOf(api);
  assert.equal(first.holderIdentity, 'a');
  assert.equal(first.leaseDurationSeconds, 60);
  assert.equal(first.leaseTransitions, 0);
  for (const time of [first.acquireTime, first.renewTime])
    assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  await waitUntil(() => specOf(api).renewTime !== first.renewTime);
  assert.equal(specOf(api).acquireTime, first.acquireTime);
  assert.equal(a.election.leader, 'a');
});

test('the others wait while one leads, and take a released lease immediately through a watch', async (t) => {
  const api = await server(t);
  const a = candidate(t, api, 'a', { leaseDurationMs: 600_000, renewDeadlineMs: 500_000, retryPeriodMs: 400_000 });
  await waitUntil(() => a.election.isLeader);
  // With these durations only the watch can bring b to lead within this test.
  const b = candidate(t, api, 'b', { leaseDurationMs: 600_000, renewDeadlineMs: 500_000, retryPeriodMs: 400_000 });
  await waitUntil(() => api.watching === 1);
  assert.equal(b.election.isLeader, false);
  assert.equal(b.election.leader, 'a');
  await a.end();
  assert.deepEqual([a.election.isLeader, a.lost, a.terms[0]?.aborted], [false, [], true]);
  await waitUntil(() => b.election.isLeader);
  assert.equal(specOf(api).leaseTransitions, 1);
});

test('finds a released lease by polling without the right to watch', async (t) => {
  const api = await server(t);
  api.faults.push((_request, response, url) => {
    if (!url.searchParams.has('watch')) return false;
    send(response, 403, status(403, 'Forbidden', 'leases is forbidden'));
    return true;
  });
  const a = candidate(t, api, 'a');
  await waitUntil(() => a.election.isLeader);
  const b = candidate(t, api, 'b');
  await waitUntil(() => b.election.leader === 'a');
  await a.end();
  await waitUntil(() => b.election.isLeader);
});

test('a leader that cannot renew gives up before another takes over', async (t) => {
  const api = await server(t);
  const { clock, move } = standing();
  const a = candidate(t, api, 'a', { clock });
  await waitUntil(() => a.election.isLeader);
  const b = candidate(t, api, 'b', { clock });
  await waitUntil(() => b.election.leader === 'a');
  cutOff(api, 'a');
  move(LASTING.renewDeadlineMs);
  await waitUntil(() => a.lost.length === 1);
  assert.deepEqual([a.election.isLeader, b.election.isLeader], [false, false]);
  move(LASTING.renewDeadlineMs + 2 * LASTING.leaseDurationMs);
  await waitUntil(() => b.election.isLeader);
  assert.match(a.lost[0] ?? '', /could not be renewed within 50000 ms/);
  assert.equal(a.terms[0]?.aborted, true);
  await a.running;
});

test('a renewal that hangs does not keep the leadership', async (t) => {
  const api = await server(t);
  const a = candidate(t, api, 'a', SHORT);
  await waitUntil(() => a.terms.length === 1);
  api.faults.push((request) => request.headers['x-identity'] === 'a');
  await waitUntil(() => a.lost.length === 1);
  assert.equal(a.election.isLeader, false);
});

test('a leader whose lease another has taken gives up when it sees that', async (t) => {
  const api = await server(t);
  const a = candidate(t, api, 'a');
  await waitUntil(() => a.election.isLeader);
  api.put(KIND, {
    metadata: { name: 'operator', namespace: 'system' },
    spec: { holderIdentity: 'usurper', leaseDurationSeconds: 600 },
  });
  await waitUntil(() => a.lost.length === 1);
  assert.match(a.lost[0] ?? '', /Another replica holds the lease: usurper/);
});

test('ignores the times in the lease, and takes it only after seeing it unchanged for its duration', async (t) => {
  const skews = { past: '1990-01-01T00:00:00.000000Z', future: '2090-01-01T00:00:00.000000Z' };
  for (const [skew, renewTime] of Object.entries(skews)) {
    const api = await server(t);
    const spec = { holderIdentity: 'dead', leaseDurationSeconds: 1, renewTime, acquireTime: renewTime };
    api.put(KIND, { metadata: { name: 'operator', namespace: 'system' }, spec });
    const { clock, move } = standing();
    const b = candidate(t, api, 'b', { clock });
    const asked = (): number => api.count('GET', (url) => !url.searchParams.has('watch'));
    await waitUntil(() => asked() >= 3);
    assert.equal(b.election.isLeader, false, `${skew}: took a lease that may be alive`);
    move(1001);
    await waitUntil(() => b.election.isLeader);
    assert.equal(specOf(api).leaseTransitions, 1);
    await b.end();
  }
});

test('exactly one of many candidates leads, and each leads in turn as they end', async (t) => {
  const api = await server(t);
  const all = Array.from({ length: 8 }, (_, index) => candidate(t, api, `c${index}`));
  const left = new Set(all);
  while (left.size > 0) {
    await waitUntil(() => [...left].some(({ election }) => election.isLeader));
    const leaders = [...left].filter(({ election }) => election.isLeader);
    assert.equal(leaders.length, 1);
    for (const leader of leaders) {
      await leader.end();
      left.delete(leader);
    }
  }
  assert.equal(specOf(api).leaseTransitions, 7);
  assert.equal(specOf(api).holderIdentity, '');
});

test('the leader recreates a deleted lease', async (t) => {
  const api = await server(t);
  const a = candidate(t, api, 'a');
  await waitUntil(() => a.election.isLeader);
  api.remove(KIND, 'operator', 'system');
  await waitUntil(() => api.objects(KIND).length === 1);
  assert.deepEqual(a.lost, []);
});

test('rejects durations that would allow two leaders', () => {
  const api = new FakeApi();
  const make = (options: Partial<LeaderElectionOptions>) => (): LeaderElection =>
    createLeaderElection({
      client: undefined as never,
      namespace: 'n',
      name: 'l',
      identity: 'x',
      onLost: () => undefined,
      ...SHORT,
      ...options,
    });
  assert.throws(make({ renewDeadlineMs: SHORT.leaseDurationMs }), /must give up before/);
  assert.throws(make({ retryPeriodMs: SHORT.renewDeadlineMs }), /retryPeriodMs/);
  assert.throws(make({ identity: '' }), /identity/);
  assert.equal(api.requests.length, 0);
});
