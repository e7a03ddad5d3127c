// The data of an app that is deleted: files on a volume and rows in a database, kept, and found again by the same app.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import {
  appsNamespace,
  appUrl,
  deleteApps,
  waitFor,
  get,
  listPods,
  runKubectl,
  submit,
  runWithFiles,
} from '../support/cluster.ts';

const diary = 'e2e-data';
// Data of a run that was interrupted would be found again.
beforeAll(() => deleteApps(diary));
afterAll(() => deleteApps(diary));

const files = {
  'compose.yaml': `
services:
  web:
    build: .
    ports: ["8080:8080"]
    environment: {DATABASE_URL: "postgres://app:\${DB_PASSWORD}@db:5432/diary"}
    volumes: [files:/data]
  db:
    image: postgres:17
    environment: {POSTGRES_USER: app, POSTGRES_PASSWORD: "\${DB_PASSWORD}", POSTGRES_DB: diary}
    volumes: [db:/var/lib/postgresql/data]
volumes: {db: {}, files: {}}
`,
  Dockerfile: `FROM python:3.13-slim-trixie
RUN pip install --no-cache-dir --no-compile 'psycopg[binary]'
COPY app.py /srv/app.py
CMD ["python", "-u", "/srv/app.py"]
`,
  // GET /add writes a file and a row; GET / counts both.
  'app.py': `
import http.server, json, os, psycopg, signal, sys, uuid
# Else the kubelet would wait for its end, twice.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
def answer(path):
    with psycopg.connect(os.environ['DATABASE_URL']) as db:
        db.execute('create table if not exists rows (id serial)')
        if path == '/add':
            db.execute('insert into rows default values')
            open('/data/' + uuid.uuid4().hex + '.txt', 'w').close()
        rows = db.execute('select count(*) from rows').fetchone()[0]
    return {'files': len([name for name in os.listdir('/data') if name.endswith('.txt')]), 'rows': rows}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps(answer(self.path)).encode()
        self.send_response(200)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(('', int(os.environ['PORT'])), Handler).serve_forever()
`,
};

const counts = z.object({ files: z.number(), rows: z.number() });

async function ask(path = '/'): Promise<z.infer<typeof counts> | undefined> {
  const { status, body } = await get(appUrl(diary, path));
  return status === 200 ? counts.parse(JSON.parse(body)) : undefined;
}

/** What a person would save to apply it again. */
async function manifest(): Promise<string> {
  const repo = await runKubectl('get', 'happ', diary, '-n', appsNamespace, '-o', 'jsonpath={.spec.source.repo}');
  return JSON.stringify({
    apiVersion: 'moorage.dev/v1alpha1',
    kind: 'HostedApp',
    metadata: { name: diary, namespace: appsNamespace },
    spec: { source: { repo } },
  });
}

async function applyAgain(manifestText: string): Promise<void> {
  await runWithFiles(`${diary}-manifest`, { 'app.json': manifestText }, (folder) =>
    runKubectl('apply', '-f', `${folder}/app.json`),
  );
  assert.deepEqual(await waitFor('the app', () => ask(), 240), { files: 3, rows: 3 });
}

const names = (kind: string): Promise<string> =>
  runKubectl('get', kind, '-n', appsNamespace, '-l', `moorage.dev/app=${diary},moorage.dev/data`, '-o', 'name');

test('files and rows survive kubectl delete and kubectl apply, even without a finalizer', async () => {
  await runWithFiles(diary, files, async (folder) => {
    const { exitCode, all } = await submit(folder);
    assert.equal(exitCode, 0, all);
    await waitFor('the app', () => ask(), 240);
    for (let index = 0; index < 3; index += 1) await ask('/add');
    assert.deepEqual(await ask(), { files: 3, rows: 3 });
    const saved = await manifest();
    const kept = [await names('pvc'), await names('secret')];

    await runKubectl('delete', 'happ', diary, '-n', appsNamespace, '--timeout=120s');
    await waitFor('its pods to be gone', async () =>
      (await listPods(`moorage.dev/app=${diary}`)).length === 0 ? true : undefined,
    );
    assert.deepEqual([await names('pvc'), await names('secret')], kept, 'claims and Secrets are kept');
    await applyAgain(saved);
    assert.deepEqual([await names('pvc'), await names('secret')], kept);

    await runKubectl(
      'patch',
      'happ',
      diary,
      '-n',
      appsNamespace,
      '--type=merge',
      '-p',
      '{"metadata":{"finalizers":null}}',
    );
    await runKubectl('delete', 'happ', diary, '-n', appsNamespace, '--cascade=foreground', '--timeout=120s');
    await applyAgain(saved);
    assert.deepEqual([await names('pvc'), await names('secret')], kept);
  });
}, 900_000);
