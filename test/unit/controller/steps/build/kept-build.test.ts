// What an author controls while the app runs: a pinned release, restarts, and suspension.
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Control } from '../../../../../crds/control.ts';
import type { HostedAppStatus } from '../../../../../crds/hosted-app.ts';
import { toPublicStatus } from '../../../../../crds/public-status.ts';
import { keptReleases, type ReleaseRecord } from '../../../../../crds/status.ts';
import { describeStatus } from '../../../../../api/apps/status-view.ts';
import { formatJobName, hashBuildInputs } from '../../../../../controller/steps/build/job.ts';
import { updateReleases } from '../../../../../controller/steps/deploy/releases.ts';
import {
  app,
  appPod,
  complete,
  createDeployed,
  createLiveStatus,
  createSnapshot,
  decideStatus,
  digest,
  first,
  formatTime,
  job,
  listActions,
  now,
  second,
} from '../../../../support/operator/scenario.ts';
import { createTimeline, type Timeline } from '../../../../support/operator/timeline.ts';

const volumes = { run: { volumes: [{ name: 'data', path: '/data', size: '1Gi' }] } };
const third = 'c'.repeat(40);

function record(commit: string, rest: Partial<ReleaseRecord> = {}): ReleaseRecord {
  return {
    image: digest(commit.charAt(0)),
    commit,
    port: 8080,
    readyAt: formatTime(-7200),
    servedSeconds: 0,
    bestSeconds: 0,
    ...rest,
  };
}

/** Two good commits, a and then b. */
function playTwo(spec: Parameters<typeof createTimeline>[0]): Timeline {
  const timeline = createTimeline(spec);
  for (const behaviour of ['good', 'good'] as const) {
    timeline.push(behaviour);
    timeline.run(700);
  }
  assert.equal(timeline.last.runs, '1 b');
  return timeline;
}

function findCondition(status: HostedAppStatus, type: string): string {
  const condition = status.conditions?.find((each) => each.type === type);
  return `${condition?.status} ${condition?.reason}: ${condition?.message}`;
}

describe.each([
  ['without a volume', {}],
  ['with a volume', volumes],
])('an app %s', (_, spec) => {
  test('runs a pinned release without a pause, and says that the newest commit is not deployed', () => {
    const timeline = playTwo(spec);
    timeline.control({ release: first });
    const moments = timeline.run(300);
    const { runs, ready, status } = timeline.last;
    assert.deepEqual([runs, ready, status.phase, status.served?.commit], ['1 a', 'a', 'Live', first]);
    // The real activator holds requests while a pod with a volume replaces another.
    if (spec !== volumes) assert.ok(moments.every((moment) => moment.ready !== ''));
    else
      assert.ok(
        moments.some(({ tries }) => tries === 'a'),
        'it is tried before',
      );
    assert.equal(
      findCondition(status, 'Built'),
      'True Pinned: Commit aaaaaaa is pinned; the newest commit bbbbbbb is not deployed until the next deploy.',
    );
    const view = toPublicStatus({ spec: { ...app(spec).spec, control: { release: first } }, status });
    assert.deepEqual(view.pinned, { commit: first, newest: second });
    assert.equal(
      describeStatus(view, 'https://hello.apps.test/', second),
      'The app is live at https://hello.apps.test/. Commit aaaaaaa is pinned; the newest commit bbbbbbb is not deployed until the next deploy.',
    );
  });

  test('falls back from a pinned release that cannot start, and says so', () => {
    const timeline = playTwo(spec);
    timeline.behave('a', 'broken');
    timeline.control({ release: first });
    timeline.run(300);
    const { runs, ready, status } = timeline.last;
    assert.deepEqual([runs, ready, status.phase, status.served?.commit], ['1 b', 'b', 'Rejected', second]);
    assert.equal(status.rejection?.rule, 'run/crashed');
    assert.match(status.rejection.message, /(?:Rolled back to|It has not replaced) commit bbbbbbb\.$/);
    const view = toPublicStatus({ spec: { ...app(spec).spec, control: { release: first } }, status });
    assert.match(
      describeStatus(view, 'URL', second),
      /^The app is live at URL, running another commit than the pinned/,
    );
    assert.ok(
      status.releases?.some(({ commit }) => commit === first),
      'it stays among the releases',
    );
  });

  test('keeps the pinned release until the newest commit is built, once the pin is removed', () => {
    const timeline = playTwo(spec);
    timeline.control({ release: first });
    timeline.run(300);
    timeline.control({ release: undefined });
    timeline.run(100);
    const { runs, ready, status } = timeline.last;
    assert.deepEqual([runs, ready, status.phase], ['1 a', 'a', 'Queued']);
    assert.match(findCondition(status, 'Reviewed'), /^Unknown Queued: Pipeline \d of commit bbbbbbb/);
    timeline.push('good');
    timeline.run(300);
    assert.equal(timeline.last.runs, '1 c');
  });

  test('restarts with the same release, and runs nothing while suspended', () => {
    const timeline = playTwo(spec);
    const { releases } = timeline.last.status;
    timeline.control({ restartedAt: formatTime(1400) });
    const moments = timeline.run(300);
    assert.ok(moments.some(({ status }) => status.phase === 'Deploying'));
    assert.deepEqual([timeline.last.runs, timeline.last.status.phase], ['1 b', 'Live']);
    assert.deepEqual(
      timeline.last.status.releases?.map(({ image }) => image),
      releases?.map(({ image }) => image),
    );
    timeline.control({ suspended: true });
    timeline.run(60);
    assert.deepEqual([timeline.last.runs, timeline.last.status.phase], ['0 b', 'Suspended']);
    timeline.control({ suspended: undefined });
    timeline.run(300);
    assert.deepEqual([timeline.last.runs, timeline.last.status.phase], ['1 b', 'Live']);
  });
});

/** The app of which `second` is live, with `first` among the releases. */
function createPinned(control: Control, rest: HostedAppStatus = {}): Parameters<typeof createSnapshot> {
  const releases = [record(second), record(first)];
  const of = app({ control }, createLiveStatus(second, { releases, ...rest }));
  return [of, { ...createDeployed(app({}, createLiveStatus(second))) }];
}

test('ends the pipeline in progress when a release is pinned, and starts none for a newer commit', () => {
  const [of, seen] = createPinned({ release: first });
  const { polledAt = '', polledFor = '' } = of.status?.source ?? {};
  const status = { ...of.status, source: { commit: third, polledAt, polledFor } };
  const { decision, status: next } = decideStatus(
    createSnapshot({ ...of, status }, { ...seen, jobs: [job(third, { number: 3 })] }),
  );
  assert.deepEqual(
    listActions(decision).filter((action) => action.endsWith('Job') || action.startsWith('delete')),
    [`delete ${job(third).metadata.name}`],
  );
  assert.deepEqual(
    next.history?.map(({ result, message }) => [result, message]),
    [['Superseded', 'commit aaaaaaa was pinned']],
  );
  assert.equal(next.built?.commit, first);
  assert.equal(next.pipeline, undefined);
});

test('freezes the release that serves without another rollout', () => {
  const timeline = playTwo({});
  const { built } = timeline.last.status;
  timeline.control({ release: second });
  const moments = timeline.run(100);
  assert.deepEqual([...new Set(moments.map(({ status, ready }) => `${status.phase} ${ready}`))], ['Live b']);
  assert.deepEqual(timeline.last.status.built, built);
  assert.match(
    findCondition(timeline.last.status, 'Built'),
    /^True Pinned: Commit bbbbbbb is pinned; newer commits are not/,
  );
});

test('runs the images of all components with the settings of the pinned commit', () => {
  const components = [
    { name: 'web', image: digest('d'), port: 3000 },
    { name: 'worker', image: digest('e') },
  ];
  const settings = JSON.stringify({ components: [{ name: 'web' }, { name: 'worker', kind: 'worker' }] });
  const [of, seen] = createPinned(
    { release: first },
    { releases: [record(second), record(first, { image: digest('d'), port: 3000, components, settings })] },
  );
  const { decision, status } = decideStatus(createSnapshot(of, seen));
  const { image, commit, port } = status.built ?? assert.fail();
  assert.deepEqual({ image, commit, port }, { image: digest('d'), commit: first, port: 3000 });
  assert.deepEqual(status.built?.components, components);
  assert.deepEqual(status.settings, { commit: first, values: settings });
  const applied = JSON.stringify(decision.actions.map(({ action }) => action));
  for (const component of components) assert.ok(applied.includes(component.image), component.name);
});

test('reports a pinned release that is gone, with what to do, and changes nothing that serves', () => {
  const [of, seen] = createPinned({ release: third });
  const { decision, status } = decideStatus(createSnapshot(of, seen));
  assert.equal(status.phase, 'Rejected');
  assert.equal(status.rejection?.rule, 'run/pinned-release-gone');
  assert.match(status.rejection.fix, /POST \/api\/apps\/hello\/deploy/);
  assert.equal(status.built?.commit, second);
  assert.equal(status.served?.commit, second);
  assert.ok(!listActions(decision).some((action) => action.endsWith('Job')));
  assert.equal(toPublicStatus({ spec: of.spec, status }).status, 'live');
});

test('finds a pinned release that the Deployment runs although the status was lost', () => {
  const [, seen] = createPinned({ release: second });
  const { status } = decideStatus(createSnapshot(app({ control: { release: second } }), seen));
  assert.equal(status.built?.commit, second);
  assert.equal(status.built.image, digest('b'));
});

test('never drops a pinned release from the kept ones, whatever follows', () => {
  const older = ['a', 'b', 'c', 'd'].map((letter, index) =>
    record(letter.repeat(40), {
      readyAt: formatTime(-9000 + index),
      ...(index === 0 ? {} : { goodAt: formatTime(0) }),
    }),
  );
  const newest = { image: digest('e'), commit: 'e'.repeat(40), port: 8080 };
  const run = (control: Control): string[] => {
    const built = { ...newest, inputsHash: 'x' };
    const of = app({ control }, createLiveStatus(second, { releases: older, built }));
    const deployment = createDeployed(app({}, { ...of.status, releases: undefined })).deployment;
    const pods = [appPod(deployment ?? assert.fail())];
    const { releases } = updateReleases(createSnapshot(of, { deployment, pods, now }), { releases: older }, newest);
    assert.equal(releases?.length, keptReleases);
    return releases.map(({ commit }) => commit.charAt(0)).sort();
  };
  assert.deepEqual(run({}), ['b', 'c', 'd', 'e']);
  assert.ok(run({ release: first }).includes('a'));
});

test('deploys a kept release again without a build, if its commit and its build inputs are wanted again', () => {
  const of = app({}, createLiveStatus(first));
  const name = formatJobName('hello', second, hashBuildInputs(of).hash);
  const entry = { number: 2, job: name, commit: second, reason: '', result: 'Succeeded' as const, image: digest('b') };
  const status: HostedAppStatus = {
    ...of.status,
    source: { ...of.status?.source, commit: second },
    releases: [record(second), record(first)],
    history: [entry],
  };
  const decide = (history: HostedAppStatus['history']): ReturnType<typeof decideStatus> =>
    decideStatus(createSnapshot({ ...of, status: { ...status, history } }, createDeployed(of)));
  const taken = decide([entry]);
  assert.equal(taken.status.built?.commit, second);
  assert.equal(taken.status.built.inputsHash, hashBuildInputs(of).hash);
  assert.ok(!listActions(taken.decision).includes('create Job'));
  for (const history of [
    [],
    [{ ...entry, job: 'hello-bbbbbbb-00000000' }],
    [{ ...entry, number: 3, result: 'Rejected' as const }, entry],
    [{ ...entry, image: digest('f') }],
  ])
    assert.ok(listActions(decide(history).decision).includes('create Job'), JSON.stringify(history));
  const finished = decideStatus(
    createSnapshot({ ...of, status }, { ...createDeployed(of), jobs: [job(second, complete)] }),
  );
  assert.equal(finished.status.built?.commit, second);
});
