// Authors start tasks and commands, each once and within limits, and see every run of their own app and of no other.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { z } from 'zod';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import { listAppRuns, TaskRunStore } from '../../../../../api/apps/tasks/run-store.ts';
import { createAuthorKey, hashAuthorKey } from '../../../../../lib/ownership-file.ts';
import { omitUndefined } from '../../../../../lib/values.ts';
import { sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';

const key = createAuthorKey();
const hash = hashAuthorKey(key, 'git.test/octo/mine');
const settings = JSON.stringify({
  tasks: [
    { name: 'clean', command: ['python', 'clean.py'], schedule: '0 3 * * *', timeZone: 'Europe/Berlin', timeout: '5m' },
    { name: 'import', command: ['python', 'import.py'] },
  ],
});
let sample: AppsSample;
/** As the cluster has it. */
let stored: App;
let writes = 0;

function store(app: App): void {
  const { resourceVersion } = app.metadata;
  stored = { ...app, metadata: { ...app.metadata, resourceVersion: String(Number(resourceVersion) + 1) } };
  sample.store.set(stored);
}

beforeAll(async () => {
  sample = await sampleAppsServer({
    author: {
      createSecret: () => Promise.resolve(),
      maximumReplicas: 3,
      lookUpKeys: () =>
        Promise.resolve({
          ok: true,
          commit: 'b'.repeat(40),
          reference: 'refs/heads/main',
          authorKeys: [hash],
        } as const),
      writeControl: (_app, change) => {
        writes += 1;
        const { spec } = stored;
        const control = omitUndefined({ ...spec.control, ...change(spec.control ?? {}) });
        store({ ...stored, spec: { ...spec, control } });
        return Promise.resolve(stored);
      },
    },
  });
});
afterAll(() => sample.stop());
let uid = 0;
beforeEach(async () => {
  writes = 0;
  uid += 1;
  stored = await sample.host(
    'mine',
    (_request, response) => response.end('ok'),
    (app): App => ({
      ...app,
      metadata: { ...app.metadata, uid: `uid-mine-${uid}` },
      status: {
        ...app.status,
        authorKeys: [hash],
        built: { image: 'r/apps/mine@sha256:a', commit: 'b'.repeat(40), inputsHash: 'x', settings },
      },
    }),
  );
});

const answer = z.looseObject({ type: z.string().optional(), detail: z.string().optional(), id: z.string().optional() });
interface Answer {
  readonly status: number;
  readonly kind: string | undefined;
  readonly body: z.output<typeof answer>;
}

async function send(
  method: string,
  path: string,
  { body, headers = {}, bearer = key }: { body?: unknown; headers?: Record<string, string>; bearer?: string } = {},
): Promise<Answer> {
  const response = await sample.request(`/api/apps/mine${path}`, {
    method,
    headers: {
      'x-forwarded-for': '203.0.113.1',
      authorization: `Bearer ${bearer}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const read = answer.parse(await response.json());
  return { status: response.status, kind: read.type?.split('/').at(-1), body: read };
}

function listRequests(): NonNullable<NonNullable<App['spec']['control']>['runs']> {
  return stored.spec.control?.runs ?? [];
}

function end(id: string, exitCode = 0): void {
  const run = { id, task: 'run', trigger: 'manual' as const, startedAt: '2026-01-01T00:00:00Z' };
  const ended = { ...run, endedAt: '2026-01-01T00:00:05Z', exitCode, reason: exitCode === 0 ? 'Completed' : 'Error' };
  store({ ...stored, status: { ...stored.status, taskRuns: [ended, ...(stored.status?.taskRuns ?? [])] } });
}

test('lists tasks with their schedule and when they are due next', async () => {
  const { status, body } = await send('GET', '/tasks');
  assert.equal(status, 200);
  const [clean, byHand] = z
    .array(z.looseObject({ name: z.string(), next_run_at: z.string().optional() }))
    .parse(body['tasks']);
  assert.deepEqual([clean?.name, clean?.['time_zone'], clean?.['timeout_seconds']], ['clean', 'Europe/Berlin', 300]);
  assert.match(clean?.next_run_at ?? '', /T0[12]:00:00\.000Z$/);
  assert.deepEqual([byHand?.name, byHand?.next_run_at], ['import', undefined]);
});

test('writes a request for a command as it is, into control alone, and shows the run', async () => {
  const command = ['sh', '-c', 'echo $(id); rm -rf /', '--flag'];
  const { status, body } = await send('POST', '/runs', { body: { command, timeout: '1h' } });
  assert.equal(status, 200, JSON.stringify(body));
  const [request] = stored.spec.control?.runs ?? [];
  assert.deepEqual([request?.command, request?.timeoutSeconds, request?.id], [command, 3_600, body.id]);
  assert.match(body.id ?? '', /^run-mine-[0-9a-f]{20}$/);
  assert.equal((await send('GET', `/runs/${body.id ?? ''}`)).body['state'], 'waiting');
  end(body.id ?? '', 3);
  const ended = (await send('GET', `/runs/${body.id ?? ''}`)).body;
  assert.deepEqual([ended['state'], ended['exit_code'], ended['command']], ['failed', 3, command]);
  const { body: audit } = await send('GET', '/audit');
  const [entry] = z.array(z.looseObject({ action: z.string(), detail: z.looseObject({}) })).parse(audit['entries']);
  assert.deepEqual([entry?.action, entry?.detail['command']], ['run-command', command]);
});

test('starts a task by its name, and refuses names that are none', async () => {
  assert.equal((await send('POST', '/tasks/import/runs')).status, 200);
  assert.deepEqual(
    stored.spec.control?.runs?.map(({ task, command }) => [task, command]),
    [['import', undefined]],
  );
  assert.equal((await send('POST', '/tasks/nothing/runs')).kind, 'unknown-task');
  for (const name of ['a;id', '$(id)', '..%2Fclean', 'clean%0aid', '--help'])
    assert.equal((await send('POST', `/tasks/${encodeURIComponent(name)}/runs`)).kind, 'invalid-request', name);
  assert.equal(listRequests().length, 1);
});

test('a request that is sent again starts nothing, also after its run has ended', async () => {
  const headers = { 'idempotency-key': 'b1946ac9-2492-4d23-8b0a-6a1f0f2c5d11' };
  const body = { command: ['true'] };
  const { body: first } = await send('POST', '/runs', { body, headers });
  assert.equal((await send('POST', '/runs', { body, headers })).body.id, first.id);
  assert.deepEqual([stored.spec.control?.runs?.length, writes], [1, 1]);
  end(first.id ?? '');
  await send('GET', '/runs');
  store({ ...stored, spec: { ...stored.spec, control: {} }, status: { ...stored.status, taskRuns: [] } });
  assert.equal((await send('POST', '/runs', { body, headers })).body.id, first.id);
  assert.equal(writes, 1);
  assert.equal((await send('POST', '/runs', { body: { command: ['false'] }, headers })).kind, 'idempotency-mismatch');
});

test('refuses a third run at a time, and keeps the requests of runs that have not ended', async () => {
  const start = async (): Promise<Answer> => send('POST', '/runs', { body: { command: ['sleep', '9'] } });
  const first = await start();
  await start();
  const third = await start();
  assert.deepEqual([third.status, third.kind], [429, 'too-many-runs']);
  assert.equal(stored.spec.control?.runs?.length, 2);
  end(first.body.id ?? '');
  assert.equal((await start()).status, 200);
  for (let count = 0; count < 12; count += 1) {
    const last = listRequests().at(-1);
    end(last?.id ?? '');
    assert.equal((await start()).status, 200);
  }
  assert.ok(listRequests().length <= 8);
});

test('refuses bad commands, suspended apps and other keys, and changes nothing', async () => {
  for (const body of [
    {},
    { command: [] },
    { command: 'ls' },
    { command: [''] },
    { command: ['x'.repeat(1_025)] },
    { command: Array.from({ length: 9 }, () => 'x'.repeat(1_000)) },
    { command: ['ls'], timeout: '2h' },
    { command: ['ls'], shell: true },
  ])
    assert.equal((await send('POST', '/runs', { body })).kind, 'invalid-request', JSON.stringify(body));
  const bearer = createAuthorKey();
  assert.equal((await send('POST', '/runs', { body: { command: ['ls'] }, bearer })).kind, 'not-author');
  assert.equal((await send('GET', '/runs', { bearer })).kind, 'app-private');
  store({ ...stored, spec: { ...stored.spec, control: { suspended: true } } });
  assert.equal((await send('POST', '/runs', { body: { command: ['ls'] } })).kind, 'run-refused');
  assert.equal(writes, 0);
});

test('does not show a run of another app', async () => {
  const { body } = await send('POST', '/runs', { body: { command: ['true'] } });
  const runs = new TaskRunStore(() => sample.models.ledger.get().database);
  await runs.record({ ...stored, metadata: { ...stored.metadata, uid: 'uid-other' } }, new Date());
  store({ ...stored, spec: { ...stored.spec, control: {} } });
  const other = { ...stored, metadata: { ...stored.metadata, uid: 'uid-third' } };
  store(other);
  const refused = await send('GET', `/runs/${body.id ?? ''}`);
  assert.deepEqual([refused.status, refused.kind], [404, 'unknown-run']);
});

test('gives up a request that no operator has started, and never opens a run again that has ended', async () => {
  const request = { id: 'run-mine-1', task: 'import', timeoutSeconds: 60, requestedAt: '2026-01-01T00:00:00Z' };
  const app = { ...stored, spec: { ...stored.spec, control: { runs: [request] } } };
  assert.equal(listAppRuns(app, new Date('2026-01-01T00:19:00Z'))[0]?.endedAt, undefined);
  assert.equal(listAppRuns(app, new Date('2026-01-01T00:21:00Z'))[0]?.reason, 'NotStarted');
  const runs = new TaskRunStore(() => sample.models.ledger.get().database);
  const run = { id: 'run-mine-1', task: 'import', trigger: 'manual' as const, startedAt: '2026-01-01T00:00:01Z' };
  const show = (ended: object): App => ({ ...app, status: { ...app.status, taskRuns: [{ ...run, ...ended }] } });
  await runs.record(show({ endedAt: '2026-01-01T00:00:09Z', exitCode: 0, reason: 'Completed' }), new Date());
  await runs.record(show({}), new Date());
  assert.equal((await runs.get(app.metadata.uid, 'run-mine-1'))?.reason, 'Completed');
  const names = await runs.list(app.metadata.uid, 'import', 10);
  assert.deepEqual([names.length, (await runs.list(app.metadata.uid, 'clean', 10)).length], [1, 0]);
});
