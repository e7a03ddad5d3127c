// How the operator takes up what moorage.yaml says, and what a second try of a rejected commit does.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { Job } from '../../../../../controller/objects/kinds.ts';
import { podTemplate } from '../../../../../controller/steps/deploy/template.ts';
import type { HostedApp } from '../../../../../crds/hosted-app.ts';
import { annotations } from '../../../../../crds/names.ts';
import { publicStatus } from '../../../../../crds/public-status.ts';
import {
  app,
  asked,
  built,
  cloned,
  complete,
  digest,
  ended,
  first,
  job,
  jobFailed,
  snapshotOf,
  outcome,
  pipelinePod,
  plan,
  polled,
  pushed,
  runs,
  second,
  config,
} from '../../../../support/operator/scenario.ts';

const filed = { run: { port: 9123, env: [{ name: 'GREETING', value: 'hi' }] } };
const reviewedWith = (said: object): ReturnType<typeof ended> =>
  ended('review', 0, { findings: [], plan, settings: said });

function created(decision: ReturnType<typeof outcome>['decision']): { name: string; memory: string; deadline: number } {
  const action = decision.actions.map((wanted) => wanted.action).find((candidate) => candidate.kind === 'create');
  assert.ok(action?.kind === 'create');
  const { spec } = action.manifest as unknown as {
    spec: {
      activeDeadlineSeconds: number;
      template: { spec: { containers: { resources: { limits: { memory: string } } }[] } };
    };
  };
  return {
    name: action.manifest.metadata.name,
    memory: spec.template.spec.containers[0]?.resources.limits.memory ?? '',
    deadline: spec.activeDeadlineSeconds,
  };
}

test('what the review reported runs the app, and status says so', () => {
  const done = job(first, complete);
  const { status, decision } = outcome(
    snapshotOf(app({}, polled(first)), {
      jobs: [done],
      pipelinePods: [
        pipelinePod(done, [cloned(first), reviewedWith(filed), pushed(digest('a'))], { phase: 'Succeeded' }),
      ],
    }),
  );
  assert.deepEqual(JSON.parse(status.built?.settings ?? ''), filed);
  assert.deepEqual(
    status.effective?.map(({ field, from }) => `${field} ${from}`),
    ['run.port moorage.yaml', 'run.env moorage.yaml'],
  );
  const text = JSON.stringify(
    decision.actions.map(({ action }) => (action.kind === 'apply' ? action.manifest : undefined)),
  );
  assert.match(text, /"containerPort":9123/);
  assert.match(text, /"name":"GREETING","value":"hi"/);
  assert.equal(done.metadata.name, status.pipeline?.job, 'the same pipeline');
});

test('settings of a commit that is not served yet leave the served one as it is', () => {
  const running = job(second, {});
  const of = app(
    {},
    built(
      first,
      polled(second, { built: { ...built(first).built, settings: JSON.stringify({ run: { port: 8000 } }) } } as never),
    ),
  );
  const { status, decision } = outcome(
    snapshotOf(of, {
      jobs: [running],
      pipelinePods: [pipelinePod(running, [cloned(second), reviewedWith(filed), runs('build')])],
    }),
  );
  assert.equal(status.settings?.commit, second);
  assert.match(JSON.stringify(decision.actions), /"containerPort":8000/);
});

test('other limits of the build: another pipeline, once', () => {
  const greedy = { build: { resources: { memory: '8Gi' }, timeout: '40m' } };
  const started = job(first, {});
  const one = outcome(
    snapshotOf(app({}, polled(first)), {
      jobs: [started],
      pipelinePods: [pipelinePod(started, [cloned(first), reviewedWith(greedy), runs('build')])],
    }),
  );
  assert.deepEqual(asked(one.decision), ['create Job', `delete ${started.metadata.name}`]);
  const { name, deadline } = created(one.decision);
  assert.notEqual(name, started.metadata.name);
  assert.equal(deadline, 40 * 60);
  const next: Job = {
    ...started,
    metadata: {
      ...started.metadata,
      name,
      uid: 'next',
      annotations: { ...started.metadata.annotations, [annotations.number]: '2' },
    },
  };
  const two = outcome(
    snapshotOf(app({}, one.status), {
      jobs: [next],
      pipelinePods: [pipelinePod(next, [cloned(first), reviewedWith(greedy), runs('build')])],
    }),
  );
  assert.deepEqual(asked(two.decision), []);
  assert.equal(two.status.phase, 'Building');
  const whole: Job = { ...next, status: complete };
  const three = outcome(
    snapshotOf(app({}, two.status), {
      jobs: [whole],
      pipelinePods: [
        pipelinePod(whole, [cloned(first), reviewedWith(greedy), pushed(digest('a'))], { phase: 'Succeeded' }),
      ],
    }),
  );
  assert.ok(three.status.built !== undefined);
  assert.ok(
    !asked(outcome(snapshotOf(app({}, three.status))).decision).includes('create Job'),
    'nor when the Job is gone',
  );
});

test('an explicit limit of the HostedApp is not changed by the file', () => {
  const of = app({ build: { resources: { memory: '1Gi' } } });
  const started = job(first, {}, of);
  const seen = snapshotOf(app({ build: { resources: { memory: '1Gi' } } }, polled(first)), {
    jobs: [started],
    pipelinePods: [
      pipelinePod(started, [cloned(first), reviewedWith({ build: { resources: { memory: '8Gi' } } }), runs('build')]),
    ],
  });
  assert.deepEqual(asked(outcome(seen).decision), []);
  assert.equal(outcome(seen).status.effective?.[0]?.from, 'HostedApp');
});

const again = '2026-11-21T11:59:59.000Z';
const resubmitted = { [annotations.poll]: again, [annotations.rebuild]: again };
function rejectedApp(noted: Record<string, string>): HostedApp {
  const failed = job(first, jobFailed('DeadlineExceeded'));
  const { status } = outcome(snapshotOf(app({}, polled(first)), { jobs: [failed] }));
  assert.equal(status.phase, 'Rejected');
  return app({}, status, noted);
}

test('submitted again: in the pipeline at once, and one pipeline for the commit that the poll finds', () => {
  const of = rejectedApp(resubmitted);
  assert.equal(publicStatus(rejectedApp({})).status, 'rejected');
  assert.equal(publicStatus(of).status, 'in_pipeline');
  const old = [job(first, jobFailed('DeadlineExceeded'))];
  const asking = outcome(snapshotOf(of, { jobs: old }));
  assert.deepEqual(asked(asking.decision), ['poll']);
  assert.equal(publicStatus({ ...of, status: asking.status }).status, 'in_pipeline');
  for (const commit of [first, second]) {
    const found = outcome(
      snapshotOf(
        { ...of, status: asking.status },
        { jobs: old, poll: { ok: true, commit, reference: 'refs/heads/main' } },
      ),
    );
    assert.deepEqual(asked(found.decision), ['create Job']);
    assert.match(found.status.pipeline?.reason ?? '', /rebuild requested/);
    assert.equal(found.status.attempt, again);
  }
});

test('a second try starts new pods even where the image came out the same', () => {
  const of = app();
  const release = { image: digest('a'), commit: first, port: 8080 };
  const hash = (attempt?: string): string =>
    podTemplate(of, config, { ...release, ...(attempt === undefined ? {} : { attempt }) }, { claims: [], addresses: new Map() }).hash;
  assert.notEqual(hash(again), hash());
  assert.equal(hash(), hash());
});
