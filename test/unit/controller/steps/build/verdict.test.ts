// How a pipeline's Job and pods are read, hostile ones included.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import type { Pod } from '../../../../../controller/objects/kinds.ts';
import { hasImageName, judgePipeline, type Verdict } from '../../../../../controller/steps/build/verdict.ts';
import {
  createCloneEnd,
  complete,
  digest,
  createEndedContainer,
  first,
  job,
  createFailedStatus,
  pipelinePod,
  createBuildEnd,
  reviewed,
  createRunningContainer,
  second,
} from '../../../../support/operator/scenario.ts';

const image = 'registry.test/apps/hello.uid-1';
const done = job(first, complete);
const finding = { rule: 'licence/missing', severity: 'error', message: 'None.', fix: 'Add one.' };

function word(verdict: Verdict): string {
  if (verdict.kind === 'rejected') return `rejected ${verdict.rejection.rule}`;
  return verdict.kind;
}

function judged(of: typeof done, statuses: Parameters<typeof pipelinePod>[1], status?: Pod['status'] & object): string {
  return word(judgePipeline(of, [pipelinePod(of, statuses, status)], image));
}

test('accepts a success only with the requested commit and an image with the requested name', () => {
  const ends = (statuses: Parameters<typeof pipelinePod>[1]): string => judged(done, statuses, { phase: 'Succeeded' });
  assert.equal(ends([createCloneEnd(first), reviewed, createBuildEnd(digest('a'))]), 'succeeded');
  assert.equal(ends([createCloneEnd(second), reviewed, createBuildEnd(digest('a'))]), 'faulted');
  assert.equal(
    ends([createCloneEnd(first), reviewed, createBuildEnd(`registry.test/apps/other@sha256:${'a'.repeat(64)}`)]),
    'faulted',
  );
  assert.equal(ends([createCloneEnd(first), reviewed, createBuildEnd('registry.test/apps/hello:latest')]), 'faulted');
  assert.equal(ends([createCloneEnd(first), reviewed]), 'faulted');
  assert.equal(word(judgePipeline(done, [], image)), 'faulted');
});

test('waits for space if the node evicted a pod for lack of disk, because the Job creates another one', () => {
  const message = 'The node was low on resource: ephemeral-storage.';
  const conditions = [{ type: 'DisruptionTarget', status: 'True' }];
  const evicted = { phase: 'Failed', reason: 'Evicted', message, conditions };
  const verdict = judgePipeline(
    job(first),
    [pipelinePod(job(first), [createCloneEnd(first), createRunningContainer('build')], evicted)],
    image,
  );
  assert.deepEqual([verdict.kind, 'noRoom' in verdict && verdict.noRoom], ['queued', message]);
});

test("waits for the end of a complete Job's pod, which the watch may report later", () => {
  assert.equal(
    judged(done, [createCloneEnd(first), reviewed, createRunningContainer('build')], { phase: 'Running' }),
    'running',
  );
  assert.equal(judged(done, [], { phase: 'Pending' }), 'running');
  assert.equal(judged(done, [createCloneEnd(first), reviewed], { phase: 'Failed' }), 'faulted');
});

test('accepts a finished pod even if the Job reports it later', () => {
  const under = job(first);
  assert.equal(
    judged(under, [createCloneEnd(first), reviewed, createBuildEnd(digest('a'))], { phase: 'Succeeded' }),
    'succeeded',
  );
  assert.equal(
    judged(under, [createCloneEnd(first), reviewed, createBuildEnd(digest('a'))], { phase: 'Running' }),
    'succeeded',
  );
  assert.equal(
    judged(under, [createCloneEnd(first), reviewed, createRunningContainer('build')], { phase: 'Running' }),
    'running',
  );
  assert.equal(
    judged(under, [createCloneEnd(first), createRunningContainer('review'), createBuildEnd(digest('a'))], {
      phase: 'Running',
    }),
    'running',
  );
  assert.equal(
    judged(
      job(first, createFailedStatus('DeadlineExceeded')),
      [createCloneEnd(first), reviewed, createBuildEnd(digest('a'))],
      {
        phase: 'Succeeded',
      },
    ),
    'rejected build/timeout',
  );
});

test('accepts only name@sha256:digest as an image with that name', () => {
  for (const bad of [
    image,
    `${image}:a`,
    `${image}@sha256:${'g'.repeat(64)}`,
    `${image}@sha256:${'a'.repeat(63)}`,
    `${image}@sha256:${'a'.repeat(64)} --x`,
    `${image}evil@sha256:${'a'.repeat(64)}`,
  ]) {
    assert.ok(!hasImageName(bad, image), bad);
  }
  assert.ok(hasImageName(digest('a'), image));
});

test('treats only exit code 42 as a rejection', () => {
  const failed = job(first, createFailedStatus('PodFailurePolicy'));
  assert.equal(
    judged(failed, [
      createCloneEnd(first),
      createEndedContainer('review', 42, { rejected: true, findings: [finding] }),
    ]),
    'rejected licence/missing',
  );
  assert.equal(
    judged(failed, [createCloneEnd(first), createEndedContainer('review', 1, { rejected: true, findings: [finding] })]),
    'faulted',
  );
  assert.equal(judged(failed, [createCloneEnd(first), createEndedContainer('review', 42, 'not JSON')]), 'faulted');
});

test("treats limits that the author can raise as rejections, and the node's own shortages as faults", () => {
  const failed = job(first, createFailedStatus('PodFailurePolicy'));
  assert.equal(
    judged(failed, [createCloneEnd(first), reviewed, createEndedContainer('build', 137, '', 'OOMKilled')]),
    'rejected build/out-of-memory',
  );
  assert.equal(
    judged(failed, [createCloneEnd(first), reviewed, createEndedContainer('build', 137, '')], {
      reason: 'Evicted',
      message: 'Usage of EmptyDir volume "layers" exceeds the limit "10Gi".',
    }),
    'rejected build/out-of-disk',
  );
  assert.equal(
    judged(failed, [createCloneEnd(first), reviewed, createEndedContainer('build', 137, '')], {
      reason: 'Evicted',
      message:
        'The node was low on resource: ephemeral-storage. Container build was using 1Gi, request is 0, has larger consumption (exceeds).',
    }),
    'faulted',
  );
  assert.equal(judged(failed, [createEndedContainer('clone', 137, '', 'OOMKilled')]), 'rejected source/too-large');
  assert.equal(judged(failed, [createEndedContainer('clone', 137, '', 'Error')]), 'faulted');
  assert.equal(
    word(judgePipeline(job(first, createFailedStatus('DeadlineExceeded')), [], image)),
    'rejected build/timeout',
  );
});

test('property: reaches a verdict whatever a pod leaves, and never accepts an image that was not requested', () => {
  const text = fc.oneof(fc.string(), fc.json(), fc.string({ maxLength: 20_000 }));
  fc.assert(
    fc.property(
      text,
      text,
      text,
      fc.constantFrom(0, 1, 42, 137),
      fc.constantFrom(done, job(first, createFailedStatus('BackoffLimitExceeded')), job(first)),
      (clone, review, built, code, of) => {
        const verdict = judgePipeline(
          of,
          [
            pipelinePod(
              of,
              [
                createEndedContainer('clone', 0, clone),
                createEndedContainer('review', code, review),
                createEndedContainer('build', code, built),
              ],
              {
                phase: 'Succeeded',
              },
            ),
          ],
          image,
        );
        assert.ok(verdict.kind !== 'succeeded' || hasImageName(verdict.result.image, image));
        assert.ok(verdict.kind !== 'faulted' || verdict.message.length <= 1_000);
      },
    ),
  );
});
