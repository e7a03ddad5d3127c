// Whose build runs next: turns by submitter, one build each, and nobody holds up the others.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  computeRetryTime,
  explainNoRoom,
  findRoomless,
  formatNoRoom,
  readNoRoom,
  selectNext,
  sortQueue,
} from '../../../../controller/build-queue/build-queue.ts';
import type { Job } from '../../../../controller/objects/kinds.ts';
import { annotations } from '../../../../crds/names.ts';
import { formatTime, complete, first, job, now, pipelinePod } from '../../../support/operator/scenario.ts';

interface Build {
  readonly of: string;
  /** Seconds after now. */
  readonly queuedAt: number;
  readonly state?: 'queued' | 'running' | 'complete';
  readonly startedAt?: number;
}

function build(name: string, { of, queuedAt, state = 'queued', startedAt }: Build): Job {
  const made = job(first);
  return {
    ...made,
    metadata: {
      ...made.metadata,
      name,
      uid: name,
      annotations: { [annotations.queuedAt]: formatTime(queuedAt), [annotations.submitter]: of },
    },
    spec: { suspend: state === 'queued' },
    status: {
      ...(startedAt === undefined ? {} : { startTime: formatTime(startedAt) }),
      ...(state === 'complete' ? complete : {}),
    },
  };
}

const names = (jobs: readonly Job[]): string[] => jobs.map(({ metadata }) => metadata.name);
const limits = { concurrency: 2, perSubmitter: 1 };
const flood = (of: string, count: number): Job[] =>
  Array.from({ length: count }, (_, index) => build(`${of}${index}`, { of, queuedAt: -100 + index }));

test('gives a submitter with a hundred builds one of two slots', () => {
  assert.deepEqual(names(selectNext(flood('flood', 100), limits, now.getTime())), ['flood0']);
  const running = build('held', { of: 'flood', queuedAt: -500, state: 'running', startedAt: -400 });
  assert.deepEqual(names(selectNext([running, ...flood('flood', 100)], limits, now.getTime())), []);
  const other = build('other', { of: 'other', queuedAt: -1 });
  assert.deepEqual(names(selectNext([running, ...flood('flood', 100), other], limits, now.getTime())), ['other']);
});

test('alternates between submitters: the first build of each, then the second of each', () => {
  const jobs = [...flood('a', 3), build('b', { of: 'b', queuedAt: -2 }), build('c', { of: 'c', queuedAt: -1 })];
  assert.deepEqual(names(sortQueue(jobs)), ['a0', 'b', 'c', 'a1', 'a2']);
});

test('puts a submitter who just had a turn behind those who came earlier', () => {
  const done = build('done', { of: 'a', queuedAt: -900, state: 'complete', startedAt: -5 });
  const jobs = [done, ...flood('a', 2), build('b', { of: 'b', queuedAt: -10 }), build('c', { of: 'c', queuedAt: -1 })];
  assert.deepEqual(names(sortQueue(jobs)), ['b', 'a0', 'c', 'a1']);
});

test('a build that new commits keep replacing does not move ahead', () => {
  const waiting = build('honest', { of: 'honest', queuedAt: -60 });
  const served = build('earlier', { of: 'honest', queuedAt: -4000, state: 'complete', startedAt: -3600 });
  const replaced = build('replaced', { of: 'attacker', queuedAt: -1 });
  assert.deepEqual(names(sortQueue([replaced, waiting, served])), ['honest', 'replaced']);
});

test('lets others go ahead of a build that found no space, and makes it wait longer each time', () => {
  const time = now.getTime();
  const held = build('held', { of: 'a', queuedAt: -60 });
  const withNote = (text: string): Job => ({
    ...held,
    metadata: { ...held.metadata, annotations: { ...held.metadata.annotations, [annotations.noRoom]: text } },
  });
  const once = withNote(formatNoRoom(held, '0/1 nodes are available: 1 Insufficient memory.', time));
  const twice = withNote(formatNoRoom(once, 'the same', time));
  const other = build('other', { of: 'b', queuedAt: -1 });
  const one = { concurrency: 1, perSubmitter: 1 };
  assert.deepEqual(names(selectNext([once, other], one, time + 1_000)), ['other']);
  assert.deepEqual(names(selectNext([once, other], one, time + 30_000)), ['held']);
  assert.deepEqual(
    [once, twice].map((each) => computeRetryTime(readNoRoom(each) ?? assert.fail('no note')) - time),
    [30_000, 60_000],
  );
});

test('reports what keeps a build from a node: the scheduler, or that no pod was created', () => {
  const running = build('running', { of: 'a', queuedAt: -600, state: 'running', startedAt: -90 });
  const condition = {
    type: 'PodScheduled',
    status: 'False',
    reason: 'Unschedulable',
    lastTransitionTime: formatTime(-80),
  };
  const pending = pipelinePod(running, [], {
    phase: 'Pending',
    conditions: [{ ...condition, message: '0/1 nodes are available: 1 Insufficient memory.' }],
  });
  assert.deepEqual(findRoomless(running, [pending]), {
    since: Date.parse(formatTime(-80)),
    reason: '0/1 nodes are available: 1 Insufficient memory.',
  });
  assert.match(findRoomless(running, [])?.reason ?? '', /has not created its pod/);
  const placed = pipelinePod(running, [], { phase: 'Running', conditions: [{ ...condition, status: 'True' }] });
  assert.equal(findRoomless(running, [placed]), undefined);
});

test("names the cause of a lack of space without the scheduler's attempts, and what helps", () => {
  assert.equal(
    explainNoRoom('0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes.'),
    'Waiting for room: 0/1 nodes are available: 1 Insufficient cpu. There is room when another build ends, or an app is deleted or suspended, or when the operator of this installation adds a node.',
  );
  assert.match(explainNoRoom('0/1 nodes are available: 1 Too many pods.'), /room when an app is deleted or suspended/);
});
