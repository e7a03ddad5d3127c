// An app of three components under one request every 100 ms: they reach each other by name, a commit that changes one
// builds one image, and a commit that breaks one replaces none.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import {
  appUrl,
  deleteApps,
  edit,
  get,
  readApp,
  removeFiles,
  runKubectl,
  appsNamespace,
  submit,
  waitFor,
  writeFiles,
} from '../support/cluster.ts';
import { requestSteadily } from '../support/steady-requests.ts';

const name = 'e2e-components';
const files = {
  'moorage.yaml': `components:
  - name: page
    path: page
    dependsOn: [api]
  - name: api
    path: api
    route: {path: /api, stripPath: true}
  - name: beat
    kind: worker
    image: api
    command: [python, -u, beat.py]
run:
  env: [{name: GREETING, value: hello}]
services:
  - {name: cache, type: redis}
`,
  'page/package.json': '{"name":"page","private":true,"scripts":{"start":"node server.js"}}',
  'page/server.js': `const version = 1;
require('node:http').createServer(async (request, response) => {
  const api = await fetch('http://api:8000' + request.url).then((answer) => answer.json(), (error) => String(error));
  response.setHeader('content-type', 'text/html');
  response.end('<pre>' + JSON.stringify({ page: version, greeting: process.env.GREETING, api }) + '</pre>');
}).listen(process.env.PORT);
`,
  'api/Dockerfile': `FROM python:3.13-slim-trixie
RUN pip install --no-cache-dir --no-compile redis
WORKDIR /srv
COPY *.py ./
USER 1000
EXPOSE 8000
CMD ["python", "-u", "api.py"]
`,
  'api/api.py': `import http.server, json, os, redis
version = 1
cache = redis.Redis.from_url(os.environ['REDIS_URL'])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({'version': version, 'path': self.path, 'beats': int(cache.get('beats') or 0) > 0}).encode()
        self.send_response(200)
        self.send_header('content-type', 'application/json')
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(('', 8000), Handler).serve_forever()
`,
  'api/beat.py': `import os, redis, time
cache = redis.Redis.from_url(os.environ['REDIS_URL'])
while True:
    cache.incr('beats')
    print('beat', flush=True)
    time.sleep(1)
`,
};
let folder: string;

const page = z.object({
  page: z.number(),
  greeting: z.string(),
  api: z.object({ version: z.number(), path: z.string(), beats: z.boolean() }),
});
async function readPage(): Promise<z.infer<typeof page> | undefined> {
  const { status, body } = await get(appUrl(name));
  if (status !== 200) return undefined;
  return page.safeParse(JSON.parse(body.replace(/^<pre>|<\/pre>$/g, ''))).data;
}

async function submitFolder(): Promise<void> {
  const { exitCode, all } = await submit(folder);
  assert.equal(exitCode, 0, all);
}

async function readImages(): Promise<Readonly<Record<string, string>>> {
  const { components = [] } = (await readApp(name)).status?.built ?? {};
  return Object.fromEntries(components.map((each) => [each.name, each.image]));
}

beforeAll(async () => {
  folder = writeFiles(name, files);
  await submitFolder();
});
afterAll(async () => {
  removeFiles(folder);
  await deleteApps(name);
});

test('the page, the API and the worker are one app, and reach each other by name', async () => {
  const seen = await waitFor('a beat', async () => {
    const read = await readPage();
    return read?.api.beats === true ? read : undefined;
  });
  assert.deepEqual(seen, { page: 1, greeting: 'hello', api: { version: 1, path: '/', beats: true } });
  const direct = await get(appUrl(name, '/api/users'));
  assert.deepEqual(JSON.parse(direct.body), { version: 1, path: '/users', beats: true });

  const images = await readImages();
  assert.deepEqual(Object.keys(images).sort(), ['api', 'beat', 'page']);
  assert.equal(images['beat'], images['api']);
  assert.notEqual(images['page'], images['api']);

  const { status } = await readApp(name);
  assert.deepEqual(status?.components?.map((each) => [each.name, each.kind, each.ready]).sort(), [
    ['api', 'web', true],
    ['beat', 'worker', true],
    ['page', 'web', true],
  ]);
  assert.match(await runKubectl('logs', '-n', appsNamespace, `deploy/${name}`, '-c', 'beat', '--tail=1'), /^beat$/m);
});

test('a commit that changes one component builds one image, and no request fails', async () => {
  const before = await readImages();
  edit(folder, 'api/api.py', (text) => text.replace('version = 1', 'version = 2'));
  const seen = await requestSteadily(appUrl(name), submitFolder());
  assert.deepEqual(seen.failures, []);
  assert.equal((await readPage())?.api.version, 2);
  const after = await readImages();
  assert.equal(after['page'], before['page']);
  assert.notEqual(after['api'], before['api']);
});

test('a commit that breaks one component replaces none, and its author reads which', async () => {
  edit(folder, 'api/beat.py', (text) => `raise SystemExit('no heart')\n${text}`);
  edit(folder, 'page/server.js', (text) => text.replace('version = 1', 'version = 2'));
  const seen = await requestSteadily(
    appUrl(name),
    submit(folder).then(({ exitCode, all }) => {
      assert.equal(exitCode, 1, all);
      assert.match(all, /no heart/);
    }),
  );
  assert.deepEqual(seen.failures, []);
  assert.equal((await readPage())?.page, 1);
  assert.match((await readApp(name)).status?.rejection?.message ?? '', /[Cc]omponent beat/);
});
