// The preview of a stranger's pull request that prints its environment: it has nothing of the app, opens to no more visitors,
// is in no list, and goes with its reference.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { readInstallation } from '../../cli/submit/installation.ts';
import { localOwner, pushSnapshot, takeSnapshot } from '../../cli/submit/snapshot.ts';
import { annotations } from '../../crds/names.ts';
import { createAuthorKey, formatAuthorKeyLine } from '../../lib/ownership-file.ts';
import {
  appsNamespace,
  appUrl,
  baseUrl,
  deleteApps,
  get,
  readApp,
  removeFiles,
  runKubectl,
  submit,
  waitFor,
  writeFiles,
  type Answer,
} from '../support/cluster.ts';

const name = 'e2e-previews';
const preview = `${name}--pr-12`;
const reference = 'refs/pull/12/head';
const secret = 'swordfish-4712';
const key = createAuthorKey();
const script = (answer: string): string => `import http.server, json, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(${answer}.encode())
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('', int(os.environ['PORT'])), Handler).serve_forever()
`;

let folder: string;
let stranger: string;
beforeAll(() => {
  const common = { 'requirements.txt': '', 'moorage.yaml': 'previews: {pullRequests: true, limit: 1}\n' };
  folder = writeFiles(name, { ...common, 'app.py': script(`('token ' + str(len(os.environ.get('API_TOKEN', ''))))`) });
  stranger = writeFiles(preview, { ...common, 'app.py': script('json.dumps(dict(os.environ))') });
});
afterAll(async () => {
  removeFiles(folder);
  removeFiles(stranger);
  await deleteApps(name);
});

/** Pushes the stranger's folder as a pull request, or closes it. */
async function setPullRequest(isOpen: boolean): Promise<void> {
  const snapshot = await takeSnapshot(stranger);
  try {
    // Git deletes a reference that it is to set to nothing.
    const pushed = isOpen ? snapshot : { ...snapshot, commit: '' };
    await pushSnapshot(pushed, name, await readInstallation(), reference);
  } finally {
    await snapshot.remove();
  }
}

async function ask(method: 'GET' | 'PUT', path: string, json?: unknown): Promise<string> {
  const { status, body } = await get(new URL(`/api/apps/${name}${path}`, baseUrl), {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  });
  assert.ok(status < 300, `${method} ${path}: ${status} ${body}`);
  return body;
}

/** Waits for an answer, and otherwise fails with it and the conditions of the app. */
function waitForAnswer(app: string, is: (answer: Answer) => boolean, seconds: number): Promise<Answer> {
  return waitFor(
    `the answer of ${app}`,
    async () => {
      const { status } = await readApp(app);
      const answer = await get(appUrl(app));
      const conditions = status?.conditions?.map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
      assert.ok(is(answer), `${answer.status} ${answer.body.slice(0, 200)}\n${conditions?.join('\n')}`);
      return answer;
    },
    seconds,
  );
}

test('shows a pull request without the secrets of the app, and in no list', async () => {
  const { internalGitUrl } = await readInstallation();
  writeFileSync(
    join(folder, '.moorage-owner'),
    `${formatAuthorKeyLine(key, `${new URL(internalGitUrl).host}/${localOwner}/${name}`)}\n`,
  );
  await setPullRequest(true);
  const submitted = await submit(folder);
  assert.equal(submitted.exitCode, 0, submitted.all);
  await ask('PUT', '/secrets/API_TOKEN', { value: secret });
  const answer = await waitForAnswer(preview, ({ status, body }) => status === 200 && body.startsWith('{'), 240);
  assert.equal(answer.headers['x-robots-tag'], 'noindex');
  assert.doesNotMatch(answer.body, new RegExp(secret));
  const environment = z.record(z.string(), z.string()).parse(JSON.parse(answer.body));
  for (const variable of ['API_TOKEN', 'OPENAI_API_KEY', 'MOORAGE_PUSH_TOKEN'])
    assert.equal(environment[variable], undefined, variable);
  await waitForAnswer(name, ({ body }) => body === `token ${secret.length}`, 60);

  assert.match(await ask('GET', '/previews'), /"label":"#12"/);
  for (const path of [`/api/projects/${preview}`, `/apps/${preview}`, `/api/apps/${preview}`])
    assert.equal((await get(new URL(path, baseUrl))).status, 404, path);
  for (const path of ['/agent-capabilities.json', '/llms.txt', '/api/projects'])
    assert.doesNotMatch((await get(new URL(path, baseUrl))).body, new RegExp(preview), path);
}, 600_000);

test('opens the preview to nobody who may not visit the app, and removes it with its reference', async () => {
  await ask('PUT', '/access', { access: 'key' });
  await waitForAnswer(preview, ({ status }) => status === 401, 30);
  await setPullRequest(false);
  const poll = `${annotations.poll}=${new Date().toISOString()}`;
  await runKubectl('annotate', 'happ', name, '-n', appsNamespace, '--overwrite', poll);
  const list = ['get', 'happ', preview, '-n', appsNamespace, '--ignore-not-found', '-o', 'name'];
  await waitFor('the preview to be gone', async () => (await runKubectl(...list)) === '' || undefined, 90);
}, 180_000);
