// An app that comes with a compose file: its database and cache run beside it, keep what they are given over a new
// commit, and no other app reaches them.
import assert from 'node:assert/strict';
import { afterAll, test } from 'vitest';
import { z } from 'zod';
import {
  appsNamespace,
  appUrl,
  deleteApps,
  edit,
  waitFor,
  get,
  runKubectl,
  submit,
  runWithFiles,
} from '../support/cluster.ts';

const shop = 'e2e-services';
/** The sample app. */
const stranger = 'hello';
afterAll(() => deleteApps(shop));

const compose = `
services:
  web:
    build: .
    ports: ["8080:8080"]
    environment:
      DATABASE_URL: postgres://app:\${DB_PASSWORD}@db:5432/shop
      CACHE_HOST: cache
  db:
    image: postgres:17
    environment: {POSTGRES_USER: app, POSTGRES_PASSWORD: "\${DB_PASSWORD}", POSTGRES_DB: shop}
    volumes: [db:/var/lib/postgresql/data]
  cache: {image: "redis:8"}
volumes: {db: {}}
`;
const dockerfile = `FROM python:3.13-slim-trixie
RUN pip install --no-cache-dir --no-compile 'psycopg[binary]' redis
COPY app.py /srv/app.py
USER 1000
CMD ["python", "-u", "/srv/app.py"]
`;
/** GET /add adds a row and counts in the cache; GET / says what both hold. */
const app = `
import http.server, json, os, psycopg, redis
version = 1
cache = redis.Redis(host=os.environ['CACHE_HOST'])
def answer(path):
    with psycopg.connect(os.environ['DATABASE_URL']) as db:
        db.execute('create table if not exists rows (id serial, at timestamptz default now())')
        if path == '/add':
            db.execute('insert into rows default values')
            cache.incr('rows')
        rows = db.execute('select count(*) from rows').fetchone()[0]
    return {'version': version, 'rows': rows, 'cached': int(cache.get('rows') or 0)}
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
`;
/** Prints which of the addresses can be connected to, as JSON. */
const probe = `const net = require('node:net');
const reach = (address) => new Promise((resolve) => {
  const at = address.lastIndexOf(':');
  const socket = net.connect({ host: address.slice(0, at), port: Number(address.slice(at + 1)), timeout: 3000 });
  const end = (answer) => { socket.destroy(); resolve(answer); };
  socket.once('connect', () => end([address])).once('timeout', () => end([])).once('error', () => end([]));
});
Promise.all(process.argv.slice(1).map(reach)).then((reached) => console.log(JSON.stringify(reached.flat())));
`;

const report = z.object({ version: z.number(), rows: z.number(), cached: z.number() });
async function ask(path = '/'): Promise<z.infer<typeof report> | undefined> {
  const { status, body } = await get(appUrl(shop, path));
  return status === 200 ? report.parse(JSON.parse(body)) : undefined;
}

async function submitted(folder: string): Promise<void> {
  const { exitCode, all } = await submit(folder);
  assert.equal(exitCode, 0, all);
}

async function addressesOf(name: string, kind: string, path: string): Promise<string[]> {
  const selector = `moorage.dev/app=${name},app.kubernetes.io/component=service`;
  return (await runKubectl('get', kind, '-n', appsNamespace, '-l', selector, '-o', `jsonpath={.items[*]${path}}`))
    .split(' ')
    .filter((text) => text !== '');
}

test('an app with a database and a cache keeps its rows across a new commit, and other apps reach neither', async () => {
  await runWithFiles(shop, { 'compose.yaml': compose, Dockerfile: dockerfile, 'app.py': app }, async (folder) => {
    await submitted(folder);
    await waitFor('a row', () => ask('/add'), 120);
    await ask('/add');
    const before = await ask();
    assert.deepEqual(before, { version: 1, rows: before?.rows, cached: before?.rows });
    assert.ok(before.rows >= 2);
    edit(folder, 'app.py', (text) => text.replace('version = 1', 'version = 2'));
    await submitted(folder);
    const after = await waitFor('the second version', async () => {
      const said = await ask();
      return said?.version === 2 ? said : undefined;
    });
    assert.deepEqual(after, { version: 2, rows: before.rows, cached: before.rows });
  });
  const targets = [
    ...(await addressesOf(shop, 'service', '.spec.clusterIP')),
    ...(await addressesOf(shop, 'pod', '.status.podIP')),
  ];
  assert.equal(targets.length, 4);
  const addresses = targets.flatMap((address) => [5432, 6379].map((port) => `${address}:${port}`));
  // Its own address shows that the probe works.
  const own = '127.0.0.1:8080';
  const inStranger = ['exec', '-n', appsNamespace, `deploy/${stranger}`, '--', 'node', '-e', probe];
  assert.deepEqual(JSON.parse(await runKubectl(...inStranger, own, ...addresses)), [own]);
  await deleteApps(shop);
  await waitFor('its volumes to be gone', async () =>
    (await addressesOf(shop, 'pvc', '.metadata.name')).length === 0 ? true : undefined,
  );
});
