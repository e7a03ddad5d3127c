// Which release the public status names while new ones respond with errors: never one whose URL does not work.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { toPublicStatus, type PublicStatus } from '../../../../../crds/public-status.ts';
import { app, config } from '../../../../support/operator/scenario.ts';
import { createTimeline, type Behaviour, type Moment, type Timeline } from '../../../../support/operator/timeline.ts';

const probed = { config: { ...config, probeUrl: 'https://gateway.test' } };
const volumes = { run: { volumes: [{ name: 'data', path: '/data', size: '1Gi' }] } };
const kinds = [
  ['without a volume', {}],
  ['with a volume', volumes],
] as const;

function toPublic({ status }: Moment): PublicStatus {
  return toPublicStatus({ spec: app().spec, status });
}

/** Letters of the commits that the public status calls live at some moment. */
function listLive(moments: readonly Moment[]): string {
  const letters = moments.map(toPublic).flatMap((each) => (each.status === 'live' ? [each.commit.charAt(0)] : []));
  return [...new Set(letters)].join('');
}

function play(
  spec: Parameters<typeof createTimeline>[0],
  ...steps: readonly (readonly [Behaviour, number])[]
): Timeline {
  const timeline = createTimeline(spec, probed);
  for (const [behaviour, seconds] of steps) {
    timeline.push(behaviour);
    timeline.run(seconds);
  }
  return timeline;
}

test.each(['faulty', 'mute'] as const)('a first release that is %s is never live, and is rejected', (behaviour) => {
  const timeline = createTimeline({}, probed);
  timeline.push(behaviour);
  const moments = timeline.run(300);
  assert.equal(listLive(moments), '');
  const last = toPublic(timeline.last);
  assert.ok(last.status === 'rejected');
  assert.equal(last.reason.rule, behaviour === 'faulty' ? 'run/server-error' : 'run/no-response');
  assert.equal(timeline.last.runs, '1 a', 'it stays, since it may recover');
});

test('a first release whose worker dies after a response does not stay live', () => {
  const timeline = createTimeline({}, probed);
  timeline.push('fading');
  timeline.run(120);
  const last = toPublic(timeline.last);
  assert.ok(last.status === 'rejected');
  assert.equal(last.reason.rule, 'run/server-error');
});

test.each(kinds)('an app %s keeps its release if a new one responds with errors', (_, spec) => {
  const timeline = play(spec, ['good', 100]);
  assert.equal(listLive([timeline.last]), 'a');
  timeline.push('faulty');
  const moments = timeline.run(200);
  assert.equal(listLive(moments), 'a');
  assert.equal(timeline.last.runs, '1 a');
  const last = toPublic(timeline.last);
  assert.ok(last.status === 'live');
  assert.equal(last.problem?.rule, 'run/server-error');
  assert.match(last.problem.message, /HTTP 500 at \/\..* Rolled back to commit aaaaaaa\.$/);
  timeline.push('good');
  timeline.run(200);
  assert.deepEqual([timeline.last.runs, listLive([timeline.last])], ['1 c', 'c']);
});

test('rolls back a new release that fades, and past one that never worked', () => {
  assert.equal(play({}, ['good', 100], ['fading', 200]).last.runs, '1 a');
  assert.equal(play({}, ['good', 100], ['faulty', 200], ['fading', 200]).last.runs, '1 a');
  assert.equal(play({}, ['faulty', 1000], ['faulty', 200]).last.runs, '1 b', 'nothing works, so the newest runs');
});

test('never rolls back to a release whose URL did not work', () => {
  const timeline = play({}, ['faulty', 100], ['broken', 300]);
  assert.equal(timeline.last.runs, '0 b');
  assert.equal(toPublic(timeline.last).status, 'rejected');
});

test('a release that has worked for long is not rolled back when it responds with errors', () => {
  const timeline = play({}, ['good', 700], ['good', 700]);
  assert.equal(timeline.last.status.answer?.rejection, undefined);
  assert.notEqual(timeline.last.status.answer?.confirmedAt, undefined);
  assert.equal(
    timeline.last.status.releases?.every(({ answers }) => answers === true),
    true,
  );
});
