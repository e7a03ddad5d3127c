// How the operator takes up what moorage.yaml says, and what a second try of a rejected commit does.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import type { Job } from '../../../../../controller/objects/kinds.ts';
import { readOwnership } from '../../../../../controller/pipeline/clone/clone.ts';
import { cloneResult, terminationMessageLimit } from '../../../../../controller/pipeline/contract.ts';
import { formatTermination } from '../../../../../controller/pipeline/message.ts';
import { applyPatch, type StatusFields } from '../../../../../controller/reconcile/outcome.ts';
import type { Snapshot } from '../../../../../controller/reconcile/snapshot.ts';
import { recordOwnership } from '../../../../../controller/steps/build/records.ts';
import { buildPodTemplate } from '../../../../../controller/steps/deploy/pod-template.ts';
import type { HistoryEntry, HostedApp, HostedAppStatus } from '../../../../../crds/hosted-app.ts';
import { annotations } from '../../../../../crds/names.ts';
import { toPublicStatus } from '../../../../../crds/public-status.ts';
import { ownershipFile, sealContact } from '../../../../../lib/ownership-file.ts';
import {
  app,
  listActions,
  formatTime,
  createBuiltStatus,
  createCloneEnd,
  complete,
  config,
  createDeployed,
  digest,
  createEndedContainer,
  first,
  job,
  createFailedStatus,
  decideStatus,
  pipelinePod,
  plan,
  createPolledStatus,
  createBuildEnd,
  createRunningContainer,
  second,
  createSnapshot,
} from '../../../../support/operator/scenario.ts';

const filed = { run: { port: 9123, env: [{ name: 'GREETING', value: 'hi' }] } };
const reviewedWith = (said: object): ReturnType<typeof createEndedContainer> =>
  createEndedContainer('review', 0, { findings: [], plan, settings: said });

function created(decision: ReturnType<typeof decideStatus>['decision']): {
  name: string;
  memory: string;
  deadline: number;
} {
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

test('runs the app by the settings that the review reported, and shows them in the status', () => {
  const done = job(first, complete);
  const { status, decision } = decideStatus(
    createSnapshot(app({}, createPolledStatus(first)), {
      jobs: [done],
      pipelinePods: [
        pipelinePod(done, [createCloneEnd(first), reviewedWith(filed), createBuildEnd(digest('a'))], {
          phase: 'Succeeded',
        }),
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

test("keeps the served commit's settings while a newer commit is not served yet", () => {
  const running = job(second, {});
  const of = app(
    {},
    createBuiltStatus(
      first,
      createPolledStatus(second, {
        built: { ...createBuiltStatus(first).built, settings: JSON.stringify({ run: { port: 8000 } }) },
      } as never),
    ),
  );
  const { status, decision } = decideStatus(
    createSnapshot(of, {
      jobs: [running],
      pipelinePods: [
        pipelinePod(running, [createCloneEnd(second), reviewedWith(filed), createRunningContainer('build')]),
      ],
    }),
  );
  assert.equal(status.settings?.commit, second);
  assert.match(JSON.stringify(decision.actions), /"containerPort":8000/);
});

test('starts one new pipeline for other build limits', () => {
  const greedy = { build: { resources: { memory: '8Gi' }, timeout: '40m' } };
  const started = job(first, {});
  const one = decideStatus(
    createSnapshot(app({}, createPolledStatus(first)), {
      jobs: [started],
      pipelinePods: [
        pipelinePod(started, [createCloneEnd(first), reviewedWith(greedy), createRunningContainer('build')]),
      ],
    }),
  );
  assert.deepEqual(listActions(one.decision), ['create Job', `delete ${started.metadata.name}`]);
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
  const two = decideStatus(
    createSnapshot(app({}, one.status), {
      jobs: [next],
      pipelinePods: [pipelinePod(next, [createCloneEnd(first), reviewedWith(greedy), createRunningContainer('build')])],
    }),
  );
  assert.deepEqual(listActions(two.decision), []);
  assert.equal(two.status.phase, 'Building');
  const whole: Job = { ...next, status: complete };
  const three = decideStatus(
    createSnapshot(app({}, two.status), {
      jobs: [whole],
      pipelinePods: [
        pipelinePod(whole, [createCloneEnd(first), reviewedWith(greedy), createBuildEnd(digest('a'))], {
          phase: 'Succeeded',
        }),
      ],
    }),
  );
  assert.ok(three.status.built !== undefined);
  assert.ok(
    !listActions(decideStatus(createSnapshot(app({}, three.status))).decision).includes('create Job'),
    'nor when the Job is gone',
  );
});

test('keeps an explicit limit of the HostedApp despite the file', () => {
  const of = app({ build: { resources: { memory: '1Gi' } } });
  const started = job(first, {}, of);
  const seen = createSnapshot(app({ build: { resources: { memory: '1Gi' } } }, createPolledStatus(first)), {
    jobs: [started],
    pipelinePods: [
      pipelinePod(started, [
        createCloneEnd(first),
        reviewedWith({ build: { resources: { memory: '8Gi' } } }),
        createRunningContainer('build'),
      ]),
    ],
  });
  assert.deepEqual(listActions(decideStatus(seen).decision), []);
  assert.equal(decideStatus(seen).status.effective?.[0]?.from, 'HostedApp');
});

const again = '2026-11-21T11:59:59.000Z';
const resubmitted = { [annotations.poll]: again, [annotations.rebuild]: again };
function rejectedApp(noted: Record<string, string>): HostedApp {
  const failed = job(first, createFailedStatus('DeadlineExceeded'));
  const { status } = decideStatus(createSnapshot(app({}, createPolledStatus(first)), { jobs: [failed] }));
  assert.equal(status.phase, 'Rejected');
  return app({}, status, noted);
}

test('is in the pipeline immediately after another submission, with one pipeline for the commit that the poll finds', () => {
  const of = rejectedApp(resubmitted);
  assert.equal(toPublicStatus(rejectedApp({})).status, 'rejected');
  assert.equal(toPublicStatus(of).status, 'in_pipeline');
  const old = [job(first, createFailedStatus('DeadlineExceeded'))];
  const asking = decideStatus(createSnapshot(of, { jobs: old }));
  assert.deepEqual(listActions(asking.decision), ['poll']);
  assert.equal(toPublicStatus({ ...of, status: asking.status }).status, 'in_pipeline');
  for (const commit of [first, second]) {
    const found = decideStatus(
      createSnapshot(
        { ...of, status: asking.status },
        { jobs: old, poll: { ok: true, commit, reference: 'refs/heads/main' } },
      ),
    );
    assert.deepEqual(listActions(found.decision), ['create Job']);
    assert.match(found.status.pipeline?.reason ?? '', /rebuild requested/);
    assert.equal(found.status.attempt, again);
  }
});

test('starts new pods on a second attempt even if the image is the same', () => {
  const of = app();
  const release = { image: digest('a'), commit: first, port: 8080 };
  const hash = (attempt?: string): string =>
    buildPodTemplate(
      of,
      config,
      { ...release, ...(attempt === undefined ? {} : { attempt }) },
      { claims: [], addresses: new Map() },
    ).hash;
  assert.notEqual(hash(again), hash());
  assert.equal(hash(), hash());
});

// Which tokens of a repository are believed, and what of it stays with the next commits.

const secret = 's'.repeat(32);
const hosted = app();
const { repo } = hosted.spec.source;
const ours = sealContact('me@example.org', repo, secret);
const since = '2025-01-01T00:00:00Z';

function recorded(
  review: Parameters<typeof recordOwnership>[2],
  before?: StatusFields['ownership'],
): StatusFields['ownership'] {
  const snapshot = createSnapshot(hosted);
  const fields = before === undefined ? {} : { ownership: before };
  return recordOwnership({ ...snapshot, config: { ...snapshot.config, ownershipSecret: secret } }, fields, review)
    .ownership;
}

test('accepts a token for this repository, and skips tokens for others', () => {
  const copied = sealContact('other@example.org', 'https://git.test/else/where', secret);
  const forged = sealContact('mallory@example.org', repo, 'x'.repeat(32));
  assert.equal(recorded({ ownership: [copied, forged, ours] })?.contact, 'me@example.org');
  assert.equal(recorded({ ownership: [copied, forged, 'moorage-owner-'] }), undefined);
  assert.equal(recorded({}), undefined);
});

test('attack: the commit of a branch, a tag or a pull request does not prove who owns the app', () => {
  const kept = { authorKeys: ['a'.repeat(64)], ownership: { since } };
  for (const revision of ['refs/pull/5/head', 'feature', 'f'.repeat(40)]) {
    const snapshot = createSnapshot({
      ...hosted,
      spec: { ...hosted.spec, source: { ...hosted.spec.source, revision } },
    });
    const patch = recordOwnership({ ...snapshot, config: { ...snapshot.config, ownershipSecret: secret } }, kept, {
      ownership: [ours],
      authorKeys: ['b'.repeat(64)],
    });
    assert.deepEqual(applyPatch(kept, patch), kept, revision);
  }
});

test('accepts no token without the secret', () => {
  const { config, ...snapshot } = createSnapshot(hosted);
  const { ownershipSecret: _none, ...without } = config;
  const patch = recordOwnership({ ...snapshot, config: without }, {}, { ownership: [ours] });
  assert.equal(patch.ownership, undefined);
});

test('keeps the time of the first verification, and takes the contact from the newest commit', () => {
  assert.deepEqual(recorded({ ownership: [ours] }, { since }), { since, contact: 'me@example.org' });
  assert.deepEqual(recorded({}, { since, contact: 'old@example.org' }), { since });
  const settings = { author: { contact: 'file@example.org' } };
  assert.equal(recorded({ settings })?.contact, undefined);
  assert.ok(recorded({ settings })?.since !== undefined);
});

test('the clone reads the file itself, never through a link, and limits what it reports', () => {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-ownership-'));
  try {
    const file = join(folder, ownershipFile);
    assert.deepEqual(readOwnership(folder), {});
    const longest = sealContact(`https://${'€'.repeat(192)}`, repo, secret);
    writeFileSync(file, [longest, longest, longest, ours].join('\n'));
    const { ownership = [] } = readOwnership(folder);
    assert.equal(ownership.length, 3);
    const message = formatTermination({ commit: 'a'.repeat(64), files: 1e9, bytes: 1e15, ownership });
    assert.ok(Buffer.byteLength(message) <= terminationMessageLimit);
    assert.deepEqual(cloneResult.parse(JSON.parse(message)).ownership, ownership);
    writeFileSync(join(folder, 'elsewhere'), ours);
    rmSync(file);
    symlinkSync('elsewhere', file);
    assert.deepEqual(readOwnership(folder), {});
    rmSync(file);
    mkdirSync(file);
    assert.deepEqual(readOwnership(folder), {});
  } finally {
    rmSync(folder, { recursive: true });
  }
});

// The history keeps apart what was built and what was released: a build whose app does not start has not succeeded as a whole.

const entry = (number: number, commit: string, rest: Partial<HistoryEntry> = {}): HistoryEntry => ({
  ...{ number, job: `hello-${number}`, commit, reason: 'new commit', result: 'Succeeded', finishedAt: formatTime(-60) },
  ...{ image: digest(commit.charAt(0)), ...rest },
});

function listReleases(status: HostedAppStatus, rest: (of: ReturnType<typeof app>) => Partial<Snapshot>): string[] {
  const of = app({}, status);
  const { history = [] } = decideStatus(createSnapshot(of, rest(of))).status;
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

test('keeps an image pending until it is ready, then releases it', () => {
  const status = createBuiltStatus(first, { history: [entry(1, first)] });
  const starting = { ready: false, started: false, state: { running: { startedAt: formatTime(-1) } } };
  assert.deepEqual(
    listReleases(status, (of) => createDeployed(of, unfinished, starting)),
    ['1 Succeeded Pending'],
  );
  assert.deepEqual(
    listReleases(status, (of) => createDeployed(of)),
    ['1 Succeeded Released'],
  );
});

test('records an image that does not start as built and not released, with the reason', () => {
  const status = createBuiltStatus(first, { history: [entry(1, first)] });
  assert.deepEqual(
    listReleases(status, (of) => createDeployed(of, unfinished, crashed)),
    ['1 Succeeded Failed The app crashed'],
  );
});

test('marks an image overtaken by a newer one before it is ready as skipped, and keeps older records', () => {
  const history = [
    entry(3, second),
    entry(2, first, { image: digest('c'), release: 'Pending' }),
    entry(1, first, { release: 'Released' }),
  ];
  const status = createBuiltStatus(second, { history });
  assert.deepEqual(
    listReleases(status, (of) => createDeployed(of)),
    ['3 Succeeded Released', '2 Succeeded Skipped', '1 Succeeded Released'],
  );
});
