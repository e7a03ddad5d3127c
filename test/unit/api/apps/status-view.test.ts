// The answer of submit-status for each way that an app can stand.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { HostedAppStatus } from '../../../../crds/hosted-app.ts';
import { statusView, toStatusView, type StatusView } from '../../../../api/apps/status-view.ts';
import { sampleApp, sampleServer, sampleServices, sampleApps } from '../../../support/api/sample.ts';
import { send } from '../../../support/api/send.ts';

const linkBase = {
  baseUrl: 'https://moorage.test:8443',
  site: { domain: 'apps.test', port: 8443 },
  defaultHost: 'git.test',
};
const since = '2026-01-01T00:00:05Z';
const commit = 'a'.repeat(40);
const view = (status?: HostedAppStatus): StatusView => toStatusView(sampleApp('chat', undefined, status), linkBase);
const served = {
  served: { image: 'i@sha256:1', commit, since },
  url: 'https://chat.moorage.test:8443',
  phase: 'Live' as const,
  since,
};

test('just submitted', () => {
  const { status, stage, url, status_url, log_url, message } = view();
  assert.deepEqual([status, stage], ['in_pipeline', 'pending']);
  assert.equal(url, 'https://chat.apps.test:8443/');
  assert.equal(status_url, 'https://moorage.test:8443/api/submit-status/octo/chat');
  assert.equal(log_url, `${status_url}/log`);
  assert.equal(
    message,
    'Checking the repository for its newest commit. The app will be live at https://chat.apps.test:8443/.',
  );
});

test('names the git host in links unless it is the first', () => {
  assert.equal(
    toStatusView(sampleApp('chat', 'https://other.test/octo/chat'), linkBase).status_url,
    'https://moorage.test:8443/api/submit-status/octo/chat?host=other.test',
  );
});

test('shows the position while queued', () => {
  const shown = view({ phase: 'Queued', since, source: { commit }, pipeline: { job: 'j', position: 3 } });
  assert.deepEqual([shown.stage, shown.position, shown.since, shown.commit], ['queued', 3, since, commit]);
  assert.match(shown.message, /Waiting in the build queue\. Position: 3\./);
});

test('shows which stages are done and ahead while building [spec status.in-pipeline]', () => {
  const { stages } = view({ phase: 'Building', since });
  assert.deepEqual(
    stages?.map(({ stage, state }) => `${stage} ${state}`),
    [
      'pending done',
      'queued done',
      'cloning done',
      'reviewing done',
      'building current',
      'deploying ahead',
      'routing ahead',
    ],
  );
});

test('a wait for an image replaces the sentence of the stage', () => {
  const message = 'Waiting for the image golang:1.26, which this installation makes on first use: about 1 minute.';
  const ready = {
    type: 'Ready',
    status: 'Unknown',
    reason: 'PreparingImage',
    message,
    lastTransitionTime: since,
  } as const;
  assert.equal(
    view({ phase: 'Building', since, conditions: [ready] }).message,
    `${message} The app will be live at https://chat.apps.test:8443/.`,
  );
});

test('live [spec status.live]', () => {
  const shown = view(served);
  assert.deepEqual(
    [shown.status, shown.commit, shown.since, shown.poll_after_seconds],
    ['live', commit, since, undefined],
  );
  assert.equal(shown.message, 'The app is live at https://chat.moorage.test:8443.');
});

test('shows a newer commit in the pipeline while live', () => {
  const shown = view({ ...served, phase: 'Building', source: { commit: 'b'.repeat(40) } });
  assert.equal(shown.status, 'live');
  assert.deepEqual([shown.update?.stage, shown.update?.commit], ['building', 'b'.repeat(40)]);
  assert.match(shown.message, /A newer commit is in the pipeline: building the image\./);
});

const rejection = {
  rule: 'secrets/aws-access-token',
  file: 'app/keys.py',
  line: 7,
  message: 'An AWS access token is in the source',
  fix: 'Revoke it and take it out of the history.',
  log: 'last line',
};

test('shows the reason of a rejection as a sentence and as fields [spec status.rejected]', () => {
  const shown = view({
    phase: 'Rejected',
    rejection,
    source: { commit },
    findings: [{ ...rejection, severity: 'error' }],
  });
  assert.deepEqual([shown.status, shown.reason], ['rejected', 'app/keys.py:7: An AWS access token is in the source.']);
  assert.deepEqual(shown.rejection, rejection);
  assert.equal(shown.findings?.length, 1);
  assert.match(shown.message, /Revoke it/);
});

test('shows why a newer commit was rejected while an older one is live', () => {
  const shown = view({ ...served, phase: 'Rejected', rejection });
  assert.equal(shown.status, 'live');
  assert.deepEqual(shown.problem, rejection);
  assert.match(shown.message, /older commit.*app\/keys\.py:7/);
});

test('does not call the serving commit a newer one when it is rolled out again or has a problem itself', () => {
  const again = view({ ...served, phase: 'Deploying', source: { commit } });
  assert.match(again.message, /is live at \S+\. Its commit is being rolled out again: starting the app/);
  const troubled = view({ ...served, phase: 'Rejected', rejection, source: { commit } });
  assert.match(troubled.message, /is live at \S+, with a problem: app\/keys\.py:7/);
  for (const { message } of [again, troubled]) assert.doesNotMatch(message, /newe|older/);
});

test('shows history and plan, and every view matches the schema [spec submit.free-form]', () => {
  const history = [
    {
      number: 1,
      job: 'chat-1',
      commit,
      reason: 'first commit',
      result: 'Succeeded' as const,
      release: 'Failed' as const,
      releaseMessage: 'The app crashed.',
      startedAt: since,
      finishedAt: since,
    },
  ];
  const shown = view({ ...served, history, plan: { strategy: 'python', reason: 'requirements.txt' } });
  assert.deepEqual(shown.history, [
    {
      number: 1,
      commit,
      reason: 'first commit',
      result: 'Succeeded',
      message: undefined,
      release: 'Failed',
      release_message: 'The app crashed.',
      started_at: since,
      finished_at: since,
    },
  ]);
  assert.deepEqual(statusView.parse(shown).plan, { strategy: 'python', reason: 'requirements.txt' });
});

test('resolves owner/name on several hosts to the first allowed host or the only one, and otherwise requires the host', async () => {
  const apps = [
    sampleApp('a', 'https://git.test/octo/a'),
    sampleApp('octo-a', 'https://other.test/octo/a'),
    sampleApp('b', 'https://other.test/octo/b'),
    sampleApp('c', 'https://other.test/octo/c'),
    sampleApp('octo-c', 'https://third.test/octo/c'),
  ];
  const { app } = sampleServer(sampleServices({ apps: sampleApps(...apps).apps }));
  const slug = async (path: string): Promise<unknown> =>
    ((await (await send(app, `/api/submit-status/${path}`)).json()) as { slug?: string; detail?: string }).slug;
  assert.equal(await slug('octo/a'), 'a');
  assert.equal(await slug('OCTO/A'), 'a');
  assert.equal(await slug('octo/a?host=other.test'), 'octo-a');
  assert.equal(await slug('octo/b'), 'b');
  assert.equal(await slug('octo/c?host=third.test'), 'octo-c');
  const ambiguous = await send(app, '/api/submit-status/octo/c');
  assert.equal(ambiguous.status, 400);
  assert.match(await ambiguous.text(), /Add \?host=/);
  assert.equal((await send(app, '/api/submit-status/octo/b?host=git.test')).status, 404);
});

test('attack: a status written by an older operator does not show values of the installation', () => {
  const secret = 'sk-of-the-installation';
  const values = JSON.stringify({ run: { env: [{ name: 'MINE', value: 'mine' }] } });
  const app = sampleApp('chat', undefined, {
    settings: { commit: 'a'.repeat(40), values },
    effective: [{ field: 'run.env', value: `[{"name":"KEY","value":"${secret}"}]`, from: 'HostedApp' }],
  });
  const spec = { ...app.spec, run: { ...app.spec.run, env: [{ name: 'KEY', value: secret }] } };
  const shown = toStatusView({ ...app, spec }, linkBase);
  assert.doesNotMatch(JSON.stringify(shown), /sk-of/);
  assert.deepEqual(shown.settings, [
    { field: 'run.env', value: '[{"name":"KEY"},{"name":"MINE","value":"mine"}]', from: 'moorage.yaml' },
  ]);
});

test('shows each component of an app that has several, and nothing about components otherwise', () => {
  const components = [
    { name: 'web', kind: 'web', ready: true, restarts: 0 },
    { name: 'worker', kind: 'worker', ready: false, restarts: 4, message: 'Component worker crashed.' },
  ];
  assert.deepEqual(view({ ...served, components }).components, components);
  assert.equal(view(served).components, undefined);
});

test('says of a live app why its operations do not answer', async () => {
  const store = sampleApps();
  for (const [name, status] of [
    ['live', served],
    ['waiting', undefined],
  ] as const)
    store.store.set(sampleApp(name, `https://git.test/octo/${name}`, status));
  const { app } = sampleServer(
    sampleServices({ apps: store.apps, findOperationsFault: (slug) => `${slug} does not answer` }),
  );
  const read = async (name: string): Promise<string | undefined> =>
    statusView.parse(await (await send(app, `/api/submit-status/octo/${name}`)).json()).operations_fault;
  assert.deepEqual([await read('live'), await read('waiting')], ['live does not answer', undefined]);
});
