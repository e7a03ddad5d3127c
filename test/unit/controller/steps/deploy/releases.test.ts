// Which release serves after good, restless and broken commits in every order: the newest one that has proven itself.
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { toPublicStatus } from '../../../../../crds/public-status.ts';
import { app } from '../../../../support/operator/scenario.ts';
import { createTimeline, type Behaviour, type Moment, type Timeline } from '../../../../support/operator/timeline.ts';

const behaviours: readonly Behaviour[] = ['good', 'restless', 'broken'];
const volumes = { run: { volumes: [{ name: 'data', path: '/data', size: '1Gi' }] } };
const kinds = [
  ['without a volume', {}],
  ['with a volume', volumes],
] as const;

/** All sequences of up to `length` commits. */
function sequences(length: number): Behaviour[][] {
  if (length === 0) return [[]];
  const shorter = sequences(length - 1);
  const longest = shorter.filter((sequence) => sequence.length === length - 1);
  return [...shorter, ...longest.flatMap((sequence) => behaviours.map((next) => [...sequence, next]))];
}

/** Letters of the commits of which one has to run in the end; none where none can. */
function expectedReleases(sequence: readonly Behaviour[]): string[] {
  const letters = (wanted: Behaviour): string[] =>
    sequence.flatMap((behaviour, index) =>
      behaviour === wanted ? [String.fromCharCode('a'.charCodeAt(0) + index)] : [],
    );
  const newestGood = letters('good').slice(-1);
  if (newestGood.length > 0) return newestGood;
  // Among those that have all crashed, a few seconds of service decide, unless the wanted one is among them.
  return sequence.at(-1) === 'restless' ? letters('restless').slice(-1) : letters('restless');
}

const played = new Map<string, Timeline>();

/** Pushes one commit after another, each after so many seconds. What begins alike is simulated once. */
function play(spec: Parameters<typeof createTimeline>[0], sequence: readonly Behaviour[], seconds = 700): Timeline {
  if (sequence.length === 0) return createTimeline(spec);
  const key = JSON.stringify([spec, sequence, seconds]);
  const known = played.get(key);
  if (known !== undefined) return known.fork();
  const timeline = play(spec, sequence.slice(0, -1), seconds);
  timeline.push(sequence.at(-1) ?? assert.fail());
  timeline.run(seconds);
  played.set(key, timeline);
  return timeline.fork();
}

describe.each(kinds)('an app %s', (_, spec) => {
  test.each(
    sequences(3)
      .filter((sequence) => sequence.length > 0)
      .map((sequence) => [sequence.join(', '), sequence] as const),
  )('%s: serves the newest good release', (_name, sequence) => {
    const { runs, status } = play(spec, sequence).last;
    const expected = expectedReleases(sequence);
    if (expected.length === 0) assert.match(runs, /^0 /);
    else assert.ok(expected.includes(runs.replace(/^1 /, '')), `runs ${runs}, not one of ${expected.join(', ')}`);
    const last = String.fromCharCode('a'.charCodeAt(0) + sequence.length - 1);
    const [, letter = ''] = runs.split(' ');
    if (letter !== last)
      assert.match(
        status.rejection?.message ?? '',
        new RegExp(`(?:Rolled back to|It has not replaced) commit ${letter.repeat(7)}\\.$`),
      );
  });

  test('with no good release, prefers one that has never crashed to one that has', () => {
    const timeline = createTimeline(spec);
    timeline.push('restless');
    timeline.run(300);
    timeline.push('good');
    timeline.run(120);
    timeline.push('broken');
    timeline.run(300);
    assert.equal(timeline.last.runs, '1 b');
  });

  test('keeps restarting a release that was good once', () => {
    const timeline = play(spec, ['good', 'good']);
    const good = timeline.last.status.releases?.find(({ commit }) => commit.startsWith('b'));
    assert.ok(good?.goodAt !== undefined);
  });
});

test('prefers an older good release to one that has served for less than ten minutes', () => {
  const timeline = play({}, ['good']);
  timeline.push('good');
  timeline.run(120);
  timeline.push('broken');
  timeline.run(400);
  assert.equal(timeline.last.runs, '1 a');
});

test('with a volume, a commit that does not start never stops the serving release, however new that is', () => {
  const timeline = play(volumes, ['good']);
  timeline.push('good');
  timeline.run(120);
  timeline.push('broken');
  const moments = timeline.run(400);
  assert.ok(moments.every(({ runs, ready, status }) => runs === '1 b' && ready === 'b' && status.served !== undefined));
  assert.ok(moments.some(({ tries }) => tries === 'c'));
  assert.deepEqual([timeline.last.tries, timeline.last.status.rejection?.rule], ['', 'run/crashed']);
  assert.match(timeline.last.status.rejection?.message ?? '', /It has not replaced commit bbbbbbb\.$/);
});

test('with a volume, a commit replaces the serving one once it has started next to it', () => {
  const timeline = play(volumes, ['good']);
  timeline.push('good');
  const moments = timeline.run(120);
  const swap = moments.findIndex(({ runs }) => runs === '1 b');
  assert.ok(moments.slice(0, swap).every(({ runs, ready }) => runs === '1 a' && ready === 'a'));
  assert.ok(moments.slice(0, swap).some(({ tries }) => tries === 'b'));
  assert.deepEqual([timeline.last.runs, timeline.last.ready, timeline.last.tries], ['1 b', 'b', '']);
});

/** The public status of each moment, without repetitions. */
function changes(moments: readonly Moment[]): string[] {
  const seen = moments.map(({ status }) => toPublicStatus({ spec: app().spec, status }).status);
  return seen.filter((status, index) => status !== seen[index - 1]);
}

test('reports a crash loop as one rejection, however often the app is briefly ready', () => {
  const timeline = createTimeline();
  timeline.push('restless');
  assert.deepEqual(changes(timeline.run(900)), ['in_pipeline', 'live', 'rejected']);
  assert.equal(timeline.last.status.rejection?.rule, 'run/crashed');
});

test('ends a crash loop once the app has served for ten minutes without a crash', () => {
  const timeline = createTimeline();
  timeline.push('shaky');
  const moments = timeline.run(1_200);
  assert.deepEqual(changes(moments), ['in_pipeline', 'live', 'rejected', 'live']);
  const lastDown = moments.findLastIndex(({ ready }) => ready === '');
  const back = moments.findLastIndex(({ status }) => status.phase === 'Rejected');
  const seconds = (moments[back]?.second ?? 0) - (moments[lastDown]?.second ?? 0);
  assert.ok(seconds >= 570 && seconds <= 630, `${seconds} s`);
});

test("reports a newer commit's crash loop as a problem of the app, which stays live with the previous commit", () => {
  const timeline = play({}, ['good']);
  timeline.push('restless');
  const moments = timeline.run(600);
  assert.deepEqual(changes(moments), ['live', 'rejected', 'live']);
  assert.equal(timeline.last.status.phase, 'Rejected');
});
