// The preview of a stranger's pull request that prints its environment: nothing of the app is in it, no list has it, and it goes
// when previews are switched off.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { readInstallation } from '../../cli/submit/installation.ts';
import { pushSnapshot, takeSnapshot } from '../../cli/submit/snapshot.ts';
import {
  appUrl,
  baseUrl,
  deleteApps,
  get,
  removeFiles,
  runKubectl,
  submit,
  waitFor,
  writeFiles,
} from '../support/cluster.ts';

const name = 'e2e-previews';
const preview = `${name}--pr-12`;
const secret = 'swordfish-4712';
const script = (answer: string): string => `import http.server, json, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(${answer}.encode())
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('', int(os.environ['PORT'])), Handler).serve_forever()
`;

let folder: string;
let stranger: string;
let key = '';
beforeAll(() => {
  const common = { 'requirements.txt': '', 'moorage.yaml': 'previews: {pullRequests: true, limit: 1}\n' };
  folder = writeFiles(name, {
    ...common,
    'app.py': script(`('production ' + str(len(os.environ.get('API_TOKEN', ''))))`),
  });
  stranger = writeFiles(preview, { ...common, 'app.py': script('json.dumps(dict(os.environ))') });
});
afterAll(async () => {
  removeFiles(folder);
  removeFiles(stranger);
  await deleteApps(name);
});

const ask = (method: 'GET' | 'PUT', path: string, json?: unknown): ReturnType<typeof get> =>
  get(new URL(`/api/apps/${name}${path}`, baseUrl), {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  });

async function requestLook(): Promise<void> {
  const value = `moorage.dev/poll=${Date.now()}`;
  await runKubectl('annotate', 'happ', name, '-n', 'moorage-apps', '--overwrite', value);
}

const issued = z.looseObject({ key: z.string(), line: z.string() });

test('shows a pull request without the secrets of the app', async () => {
  const submitted = await submit(folder);
  assert.equal(submitted.exitCode, 0, submitted.all);
  const { body } = await get(new URL(`/api/apps/${name}/keys`, baseUrl), { method: 'POST' });
  const given = issued.parse(JSON.parse(body));
  ({ key } = given);
  writeFileSync(join(folder, '.moorage-owner'), `${given.line}\n`);
  assert.equal((await submit(folder)).exitCode, 0);
  assert.ok((await ask('PUT', '/secrets/API_TOKEN', { value: secret })).status < 300);
  await waitFor(
    'the secret in production',
    async () => (await get(appUrl(name))).body === `production ${secret.length}` || undefined,
    120,
  );

  const snapshot = await takeSnapshot(stranger);
  try {
    await pushSnapshot(snapshot, name, await readInstallation(), 'refs/pull/12/head');
  } finally {
    await snapshot.remove();
  }
  await requestLook();
  const answer = await waitFor(
    'the preview',
    async () => {
      const response = await get(appUrl(preview)).catch(() => undefined);
      return response?.status === 200 && response.body.includes('"PORT"') ? response : undefined;
    },
    300,
  );
  assert.equal(answer.headers['x-robots-tag'], 'noindex');
  const environment = z.record(z.string(), z.string()).parse(JSON.parse(answer.body));
  assert.doesNotMatch(answer.body, new RegExp(secret));
  for (const variable of ['API_TOKEN', 'OPENAI_API_KEY', 'MOORAGE_PUSH_TOKEN'])
    assert.equal(environment[variable], undefined);

  const listed = await ask('GET', '/previews');
  assert.match(listed.body, /"label":"#12"/);
  for (const path of [`/api/projects/${preview}`, `/apps/${preview}`, `/api/apps/${preview}`])
    assert.ok((await get(new URL(path, baseUrl))).status >= 400, path);
  for (const path of ['/agent-capabilities.json', '/llms.txt'])
    assert.doesNotMatch((await get(new URL(path, baseUrl))).body, new RegExp(preview));
}, 900_000);

test('removes the preview when moorage.yaml of the default branch switches previews off', async () => {
  writeFileSync(join(folder, 'moorage.yaml'), 'previews: {pullRequests: false}\n');
  assert.equal((await submit(folder)).exitCode, 0);
  await waitFor(
    'the preview to be gone',
    async () =>
      (await runKubectl('get', 'happ', preview, '-n', 'moorage-apps', '--ignore-not-found', '-o', 'name')) === '' ||
      undefined,
    120,
  );
}, 600_000);
