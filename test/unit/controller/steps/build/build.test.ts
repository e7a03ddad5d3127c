// When a pipeline is started, why, in what order, how often it is tried, and what of it is kept.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { sortQueue } from '../../../../../controller/build-queue/build-queue.ts';
import { approvalRule, pipelineInput } from '../../../../../controller/pipeline/contract.ts';
import type { Snapshot } from '../../../../../controller/reconcile/snapshot.ts';
import { formatJobName, hashBuildInputs } from '../../../../../controller/steps/build/job.ts';
import { computeFaultDelayMs } from '../../../../../controller/steps/build/records.ts';
import { markPrivate, parseRepository } from '../../../../../lib/repository.ts';
import type { HistoryEntry, HostedApp } from '../../../../../crds/hosted-app.ts';
import { annotations, formatRebuildRequest } from '../../../../../crds/names.ts';
import {
  app,
  listActions,
  formatTime,
  createCloneEnd,
  complete,
  config,
  createEndedContainer,
  digest,
  first,
  job,
  createFailedStatus,
  now,
  decideStatus,
  pipelinePod,
  plan,
  createPolledStatus,
  reviewed,
  second,
  createSnapshot,
} from '../../../../support/operator/scenario.ts';

function reasonOf(snapshot: Snapshot): string | undefined {
  return decideStatus(snapshot).status.pipeline?.reason;
}

function entry(number: number, result: HistoryEntry['result'], rest: Partial<HistoryEntry> = {}): HistoryEntry {
  return {
    number,
    job: job(first).metadata.name,
    commit: first,
    reason: 'first build',
    result,
    finishedAt: formatTime(-7200),
    ...rest,
  };
}

test('states the reason for a build', () => {
  const before = [job(first, complete)];
  assert.equal(reasonOf(createSnapshot(app({}, createPolledStatus(first)))), 'first build');
  assert.equal(
    reasonOf(createSnapshot(app({}, createPolledStatus(second)), { jobs: before })),
    'new commit bbbbbbb (was aaaaaaa)',
  );
  const changed = { build: { args: [{ name: 'A', value: '1' }], strategy: 'python' as const } };
  assert.equal(
    reasonOf(createSnapshot(app(changed, createPolledStatus(first)), { jobs: before })),
    'changed build settings: spec.build.strategy, spec.build.args',
  );
  assert.equal(
    reasonOf(createSnapshot(app({}, createPolledStatus(first), { [annotations.rebuild]: '1' }), { jobs: before })),
    'rebuild requested',
  );
  assert.equal(
    reasonOf(createSnapshot(app({ source: { path: 'web' } }, createPolledStatus(second)), { jobs: before })),
    'new commit bbbbbbb (was aaaaaaa); changed build settings: spec.source.path',
  );
});

test('gives the pipeline of a private repository its deploy key until it has cloned, and no other pipeline', () => {
  const of = app({}, createPolledStatus(first));
  const repository = markPrivate(parseRepository(of.spec.source.repo, config.gitHosts), true);
  const { hostname: host } = new URL(repository.url);
  const hostKeys = [{ host, port: 22, key: `ssh-ed25519 ${'A'.repeat(68)}` }];
  const keys = { ...config, gitAccess: { deployKeys: { secret: 'k'.repeat(32), hostKeys } } };
  const pipeline = job(first, { suspend: true });
  const running = job(first);
  const cloning = pipelinePod(running, []);
  const building = pipelinePod(running, [createCloneEnd(first), reviewed]);
  const decideFor = (rest: Partial<Snapshot>): string[] =>
    listActions(decideStatus(createSnapshot(of, { config: keys, repository, ...rest })).decision);
  assert.deepEqual(decideFor({}), ['create Job'], 'the Job comes first, which is the owner');
  assert.deepEqual(decideFor({ jobs: [pipeline] }), ['create Secret']);
  assert.deepEqual(decideFor({ jobs: [running], pipelinePods: [cloning] }), ['create Secret']);
  assert.deepEqual(decideFor({ jobs: [running], pipelinePods: [building] }), []);
  assert.deepEqual(decideFor({ jobs: [pipeline], repository: { ...repository, isPrivate: false } }), []);
});

test('does not rebuild for a new pipeline image, nor for run settings', () => {
  const hash = (of: HostedApp): string => hashBuildInputs(of).hash;
  assert.equal(hash(app({ run: { replicas: 3, env: [{ name: 'A', value: '1' }] } })), hash(app()));
  assert.notEqual(hash(app({ run: { port: 9000 } })), hash(app()));
  const status = {
    ...createPolledStatus(first),
    built: { image: 'registry.test/apps/hello.uid-1@sha256:0', commit: first, inputsHash: hash(app()) },
  };
  const upgraded = { ...config, pipeline: { ...config.pipeline, image: 'registry.test/pipeline:2' } };
  assert.ok(
    !listActions(decideStatus(createSnapshot(app({}, status), { config: upgraded })).decision).includes('create Job'),
  );
});

test('rebuilds an app that pins a default, and keeps the hash of one that does not', () => {
  const pinning = (...pinned: string[]): HostedApp => ({ ...app(), pinned });
  const hash = (of: HostedApp): string => hashBuildInputs(of).hash;
  assert.equal(hash(pinning('run.resources.memory', 'agents.enabled')), hash(app()));
  assert.notEqual(hash(pinning('build.strategy')), hash(app()));
  assert.notEqual(hash(pinning('run.command')), hash(app()));
});

test("keeps Job names within the length of a label, whatever the app's name", () => {
  assert.ok(formatJobName('x'.repeat(40), first, hashBuildInputs(app()).hash).length <= 63);
});

test('retries a fault after a delay that doubles, by deleting the Job', () => {
  const failed = job(first, { ...createFailedStatus('BackoffLimitExceeded'), number: 1 });
  const recorded = createPolledStatus(first, { history: [entry(1, 'Faulted', { finishedAt: formatTime(-10) })] });
  assert.deepEqual(listActions(decideStatus(createSnapshot(app({}, recorded), { jobs: [failed] })).decision), []);
  const later = new Date(now.getTime() + computeFaultDelayMs(1));
  assert.deepEqual(
    listActions(decideStatus(createSnapshot(app({}, recorded), { jobs: [failed], now: later })).decision),
    [`delete ${failed.metadata.name}`],
  );
  assert.equal(reasonOf(createSnapshot(app({}, recorded))), 'retry after a platform fault (attempt 2 of 5)');
  assert.deepEqual([1, 2, 3, 10].map(computeFaultDelayMs), [30_000, 60_000, 120_000, 1_800_000]);
});

test('gives a fault that the app could have staged one pod and one more Job, and does not trust it after that', () => {
  const failed = job(first, { ...createFailedStatus('PodFailurePolicy'), number: 1 });
  const staged = createEndedContainer('build', 43, {
    fault: 'a package registry failed during the build: ECONNRESET',
    doubtful: true,
  });
  const pod = pipelinePod(failed, [createCloneEnd(first), reviewed, staged], { phase: 'Failed' });
  const { status } = decideStatus(
    createSnapshot(app({}, createPolledStatus(first)), { jobs: [failed], pipelinePods: [pod] }),
  );
  assert.deepEqual(
    status.history?.map(({ result, doubtful }) => [result, doubtful]),
    [['Faulted', true]],
  );
  const created = (of: Snapshot): string =>
    JSON.stringify(
      decideStatus(of).decision.actions.map(({ action }) => (action.kind === 'create' ? action.manifest : {})),
    );
  const doubted = String.raw`\"doubted\":true`;
  const history = [entry(1, 'Faulted', { doubtful: true })];
  assert.ok(created(createSnapshot(app({}, createPolledStatus(first, { history })))).includes(doubted));
  // A rebuild has another Job, but is of the same commit.
  const rebuilt = createSnapshot(app({}, createPolledStatus(first, { history }), { [annotations.rebuild]: 'now' }));
  assert.ok(created(rebuilt).includes(doubted));
  assert.ok(!created(createSnapshot(app({}, createPolledStatus(second, { history })))).includes(doubted));
  // The Job makes no second pod of its own.
  assert.match(created(rebuilt), /"action":"FailJob","onExitCodes":\{"operator":"In","values":\[42,43,44\]\}/);
});

test('asks a person after five faults, and starts over on a rebuild', () => {
  const faults = [5, 4, 3, 2, 1].map((number) => entry(number, 'Faulted'));
  const given = createSnapshot(app({}, createPolledStatus(first, { history: faults })));
  assert.equal(decideStatus(given).status.rejection?.rule, 'platform/fault');
  assert.deepEqual(listActions(decideStatus(given).decision), []);
  const rebuilt = createSnapshot(
    app({}, createPolledStatus(first, { history: faults }), { [annotations.rebuild]: 'now' }),
  );
  assert.deepEqual(listActions(decideStatus(rebuilt).decision), ['create Job']);
  assert.equal(decideStatus(rebuilt).status.pipeline?.number, 6);
});

test('names the same Job with the same number if the cache does not show it yet', () => {
  const once = decideStatus(createSnapshot(app({}, createPolledStatus(first))));
  const again = decideStatus(createSnapshot(app({}, once.status)));
  const manifests = [once, again].map(({ decision }) =>
    decision.actions.map(({ action }) => (action.kind === 'create' ? action.manifest : undefined)),
  );
  assert.deepEqual(manifests[0], manifests[1]);
});

test('keeps a limited number of finished Jobs, and always the current one', () => {
  const past = [1, 2, 3, 4, 5].map((number) => ({
    ...job(first, { ...complete, number }),
    metadata: {
      ...job(first).metadata,
      name: `old-${number}`,
      annotations: { [annotations.number]: String(number), [annotations.appUid]: 'uid-1' },
    },
  }));
  const present = job(second, { ...createFailedStatus('DeadlineExceeded'), number: 6 });
  assert.deepEqual(
    listActions(
      decideStatus(createSnapshot(app({}, createPolledStatus(second)), { jobs: [...past, present] })).decision,
    ),
    ['delete old-2', 'delete old-1'],
  );
});

test('deletes a Job of an earlier app with the same name, and ignores its result', () => {
  const stranger = job(first, complete);
  const foreign = {
    ...stranger,
    metadata: {
      ...stranger.metadata,
      annotations: { ...stranger.metadata.annotations, [annotations.appUid]: 'another' },
    },
  };
  const { decision, status } = decideStatus(createSnapshot(app({}, createPolledStatus(first)), { jobs: [foreign] }));
  assert.deepEqual(listActions(decision), [`delete ${foreign.metadata.name}`]);
  assert.equal(status.built, undefined);
});

test('does not replace, count or delete Jobs of another app with this name', () => {
  const foreign = (name: string, state: Parameters<typeof job>[1]): ReturnType<typeof job> => {
    const made = job(second, state);
    const noted = { ...made.metadata.annotations, [annotations.appUid]: 'another', [annotations.number]: '7' };
    return { ...made, metadata: { ...made.metadata, name, annotations: noted } };
  };
  const theirs = [foreign('running', {}), ...['a', 'b', 'c', 'd', 'e'].map((name) => foreign(name, complete))];
  const { decision, status } = decideStatus(createSnapshot(app({}, createPolledStatus(first)), { jobs: theirs }));
  assert.deepEqual(listActions(decision), ['create Job']);
  assert.equal(status.pipeline?.number, 1);
  const suspended = decideStatus(createSnapshot(app({ suspend: true }, createPolledStatus(first)), { jobs: theirs }));
  assert.ok(!listActions(suspended.decision).some((each) => each.startsWith('delete')));
});

test('orders the queue by time of arrival, to the millisecond', () => {
  const queued = (name: string, time: string): ReturnType<typeof job> => ({
    ...job(first, { suspend: true }),
    metadata: { ...job(first).metadata, name, annotations: { [annotations.queuedAt]: time } },
  });
  const jobs = [
    queued('a', '2026-11-21T12:00:00.900Z'),
    queued('b', '2026-11-21T12:00:00.100Z'),
    job(second, { suspend: false }),
    { ...queued('c', formatTime(0)), ...{ status: complete } },
  ];
  assert.deepEqual(
    sortQueue(jobs).map(({ metadata }) => metadata.name),
    ['b', 'a'],
  );
});

test("reports a review that needs the operator's approval in its condition, and runs it again after a waiver", () => {
  const failed = job(first, { ...createFailedStatus('PodFailurePolicy'), number: 1 });
  const finding = {
    rule: approvalRule,
    severity: 'error',
    file: 'LICENSE',
    message: 'It is Elastic-2.0.',
    fix: 'Ask.',
  };
  const review = createEndedContainer('review', 42, { rejected: true, findings: [finding] });
  const pods = { jobs: [failed], pipelinePods: [pipelinePod(failed, [createCloneEnd(first), review])] };
  const { status, decision } = decideStatus(createSnapshot(app({}, createPolledStatus(first)), pods));
  assert.equal(status.conditions?.find(({ type }) => type === 'Reviewed')?.reason, 'ApprovalNeeded');
  assert.equal(status.rejection?.rule, approvalRule);
  assert.deepEqual(listActions(decision), []);
  const waivers = [{ rule: approvalRule, reason: 'Agreed with the author.' }];
  const allowed = decideStatus(createSnapshot(app({ review: { waivers } }, createPolledStatus(first)), pods));
  assert.deepEqual(listActions(allowed.decision), ['create Job']);
  assert.match(allowed.status.pipeline?.reason ?? '', /changed build settings: spec\.review\.waivers/);
});

const listed = { components: [{ name: 'web' }, { name: 'api', kind: 'worker' as const, path: 'api' }] } as object;
const componentImages = [
  { name: 'web', image: digest('a'), port: 8080, sourceHash: 'v1:w' },
  { name: 'api', image: digest('b'), sourceHash: 'v1:a' },
];

function endBuild(
  spec: object,
  components: readonly object[] | undefined,
  said: object = {},
): ReturnType<typeof decideStatus> {
  const of = app(spec, createPolledStatus(first));
  const done = job(first, complete, of);
  const result = { image: digest('a'), port: 8080, findings: [], ...(components === undefined ? {} : { components }) };
  const ends = [
    createCloneEnd(first),
    createEndedContainer('review', 0, { findings: [], plan, ...said }),
    createEndedContainer('build', 0, result),
  ];
  return decideStatus(
    createSnapshot(of, { jobs: [done], pipelinePods: [pipelinePod(done, ends, { phase: 'Succeeded' })] }),
  );
}

test('records the images of the components that the app lists, wherever it lists them', () => {
  assert.deepEqual(endBuild(listed, componentImages).status.built?.components, componentImages);
  const settings = { components: [{ name: 'api', kind: 'web', path: '.' }] };
  assert.deepEqual(
    endBuild({}, componentImages, { settings }).status.built?.components,
    componentImages.filter(({ name }) => name === 'api'),
  );
  const { built } = endBuild({}, componentImages).status;
  assert.equal(built?.image, digest('a'));
  assert.ok(!('components' in built));
});

test('counts a pipeline that reports no image for a component, or one of another app, as a fault', () => {
  for (const components of [
    undefined,
    componentImages.slice(0, 1),
    [...componentImages, { name: 'more', image: `registry.test/apps/other@sha256:${'a'.repeat(64)}` }],
  ]) {
    const { built, history } = endBuild(listed, components).status;
    assert.equal(built, undefined);
    assert.equal(history?.[0]?.result, 'Faulted');
  }
});

test('offers the images of the last build for reuse, and none of them to a rebuild', () => {
  const offer = (attempt: string | undefined, rebuild: Record<string, string>): unknown => {
    const built = {
      image: digest('a'),
      commit: first,
      inputsHash: 'x',
      components: componentImages,
      ...(attempt === undefined ? {} : { attempt }),
    };
    const { decision } = decideStatus(createSnapshot(app(listed, { ...createPolledStatus(second), built }, rebuild)));
    const made = decision.actions.map(({ action }) => action).find(({ kind }) => kind === 'create');
    const text = JSON.stringify(made);
    return /builtImages\\":(\[.*?\])/.exec(text)?.[1]?.replaceAll('\\', '');
  };
  const images = componentImages.map(({ image, sourceHash }) => ({ image, sourceHash }));
  assert.deepEqual(JSON.parse(String(offer(undefined, {}))), images);
  assert.deepEqual(JSON.parse(String(offer('1', { [annotations.rebuild]: '1' }))), images);
  assert.equal(offer(undefined, { [annotations.rebuild]: '1' }), undefined);
  assert.equal(offer('1', { [annotations.rebuild]: '2' }), undefined);
});

test('ignores the cache for the build that was requested without it, until one has succeeded', () => {
  const value = formatRebuildRequest(now, true);
  const build = (rebuild: string, built: Partial<NonNullable<HostedApp['status']>['built'] & object> = {}): unknown => {
    const status = createPolledStatus(second, {
      built: { image: digest('a'), commit: first, inputsHash: 'x', ...built },
      attempt: rebuild,
    });
    const { decision } = decideStatus(createSnapshot(app({}, status, { [annotations.rebuild]: rebuild })));
    const created = decision.actions.find(({ action }) => action.kind === 'create' && action.manifest.kind === 'Job');
    const text = /MOORAGE_PIPELINE","value":("(?:[^"\\]|\\.)*")/.exec(JSON.stringify(created))?.[1];
    return pipelineInput.parse(JSON.parse(String(JSON.parse(text ?? assert.fail('no Job'))))).noCache;
  };
  assert.equal(build(value), true);
  assert.equal(build(value, { attempt: value }), undefined);
  assert.equal(build(formatRebuildRequest(now, false)), undefined);
  assert.equal(build('whatever-somebody-wrote'), undefined);
});
