// Tasks of an app in the cluster: on a schedule, by hand with the output and the exit code of the command, and once per request.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import {
  baseUrl,
  deleteApps,
  get,
  readApp,
  removeFiles,
  runKubectl,
  submit,
  waitFor,
  writeFiles,
} from '../support/cluster.ts';

const name = 'e2e-tasks';
const script = `import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'ok')
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('', int(os.environ['PORT'])), Handler).serve_forever()
`;
const manifest = `tasks:
  - name: tick
    schedule: "* * * * *"
    command: [python, -c, "print('tick in', __import__('os').environ['GREETING'])"]
    timeout: 1m
  - name: fails
    command: [python, -c, "print('no'); raise SystemExit(7)"]
run:
  env:
    - name: GREETING
      value: hello
`;

let folder: string;
let key = '';
beforeAll(() => {
  folder = writeFiles(name, { 'app.py': script, 'requirements.txt': '', 'moorage.yaml': manifest });
});
afterAll(async () => {
  removeFiles(folder);
  await deleteApps(name);
});

const answer = z.looseObject({ id: z.string().optional(), state: z.string().optional() });

async function ask(method: 'GET' | 'POST', path: string, json?: unknown, idempotencyKey?: string): Promise<string> {
  const { status, body } = await get(new URL(`/api/apps/${name}${path}`, baseUrl), {
    method,
    headers: {
      ...{ accept: 'application/json', authorization: `Bearer ${key}` },
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  });
  assert.ok(status < 300, `${method} ${path}: ${status} ${body}`);
  return body;
}

async function waitForRun(id: string): Promise<z.output<typeof answer>> {
  return waitFor(
    `the run ${id} to end`,
    async () => {
      const run = answer.parse(JSON.parse(await ask('GET', `/runs/${id}`)));
      return run['ended_at'] === undefined ? undefined : run;
    },
    120,
  );
}

test('hosts an app with tasks', async () => {
  assert.equal((await submit(folder)).exitCode, 0);
  const issued = z
    .looseObject({ key: z.string(), line: z.string() })
    .parse(JSON.parse((await get(new URL(`/api/apps/${name}/keys`, baseUrl), { method: 'POST' })).body));
  ({ key } = issued);
  writeFileSync(join(folder, '.moorage-owner'), `${issued.line}\n`);
  assert.equal((await submit(folder)).exitCode, 0);
  const { tasks } = z
    .looseObject({ tasks: z.array(z.looseObject({ name: z.string() })) })
    .parse(JSON.parse(await ask('GET', '/tasks')));
  assert.deepEqual(
    tasks.map((task) => task.name),
    ['tick', 'fails'],
  );
});

test('runs a command once per request, and shows its output and its exit code', async () => {
  const command = ['python', '-c', "import os; print('from', os.environ['GREETING'], '$HOME'); raise SystemExit(5)"];
  const idempotencyKey = crypto.randomUUID();
  const start = async (): Promise<string> =>
    answer.parse(JSON.parse(await ask('POST', '/runs', { command }, idempotencyKey))).id ?? '';
  const id = await start();
  assert.equal(await start(), id);
  const run = await waitForRun(id);
  assert.deepEqual([run.state, run['exit_code'], run['trigger']], ['failed', 5, 'manual']);
  const lines = await waitFor('its log', async () => {
    const body = await ask('GET', `/logs?run=${id}`);
    return body.includes('from hello') ? body : undefined;
  });
  assert.match(lines, /from hello \$HOME/);
  assert.equal(await start(), id, 'also after its end');
  const jobs = await runKubectl('get', 'jobs', '-n', 'moorage-apps', '-l', `moorage.dev/app=${name}`, '-o', 'name');
  assert.equal(jobs.split('\n').filter((line) => line.endsWith(id)).length, 1);
});

test('runs a task by its name, and reports how it failed', async () => {
  const { id = '' } = answer.parse(JSON.parse(await ask('POST', '/tasks/fails/runs')));
  const run = await waitForRun(id);
  assert.deepEqual([run.state, run['exit_code'], run['task']], ['failed', 7, 'fails']);
});

test('runs a task on its schedule with the variables of the app, and keeps the history', async () => {
  const run = await waitFor(
    'a scheduled run',
    async () => {
      const { runs } = z
        .looseObject({ runs: z.array(z.looseObject({ id: z.string(), trigger: z.string(), state: z.string() })) })
        .parse(JSON.parse(await ask('GET', '/tasks/tick/runs')));
      return runs.find(({ trigger, state }) => trigger === 'schedule' && state === 'succeeded');
    },
    180,
  );
  await waitFor('its log', async () =>
    (await ask('GET', `/logs?run=${run.id}`)).includes('tick in hello') ? true : undefined,
  );
  const app = await readApp(name);
  assert.equal(app.status?.conditions?.some(({ type }) => type === 'TasksFailing') ?? false, false);
});
