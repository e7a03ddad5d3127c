// An author's week, with the author key alone: from a missing secret to a live app, pushes, a broken commit, a rollback, a
// restart, and the end. Requests go to the app all the time wherever none of them may fail.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { readInstallation } from '../../cli/submit/installation.ts';
import { pushSnapshot, takeSnapshot } from '../../cli/submit/snapshot.ts';
import { requestSteadily, type RequestLog } from '../support/steady-requests.ts';
import {
  appUrl,
  baseUrl,
  deleteApps,
  get,
  readApp,
  removeFiles,
  listPods,
  submit,
  waitFor,
  writeFiles,
} from '../support/cluster.ts';

const name = 'e2e-author';
const secret = 'swordfish-4711';
const script = (version: string): string => `import http.server, os
token = os.environ['API_TOKEN']
print('${version} has', token, flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write('${version} {}'.format(len(token)).encode())
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('', int(os.environ['PORT'])), Handler).serve_forever()
`;

let folder: string;
let key = '';
beforeAll(() => {
  folder = writeFiles(name, { 'app.py': script('v1'), 'requirements.txt': '' });
});
afterAll(async () => {
  removeFiles(folder);
  await deleteApps(name);
});

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** A request of the author. */
async function ask(method: Method, path: string, json?: unknown, accept = 'application/json'): Promise<string> {
  const { status, body } = await get(new URL(`/api/apps/${name}${path}`, baseUrl), {
    method,
    headers: {
      accept,
      authorization: `Bearer ${key}`,
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  });
  assert.ok(status < 300, `${method} ${path}: ${status} ${body}`);
  return body;
}

/** Waits until the app answers with this version, and no pod of another one is left to answer. */
async function becomes(text: string, seconds = 120): Promise<void> {
  let times = 0;
  await waitFor(
    `the app to answer ${text}`,
    async () => {
      times = (await get(appUrl(name))).body === text ? times + 1 : 0;
      return times > 4 ? true : undefined;
    },
    seconds,
  );
}

function assertNoneFailed(what: string, { count, failures, longestMs }: RequestLog): void {
  process.stdout.write(`${what}: ${count} requests, ${failures.length} failed, slowest ${Math.round(longestMs)} ms\n`);
  assert.deepEqual(failures, [], `${what}: ${failures.length} of ${count} requests failed`);
  assert.ok(count > 10, `${what}: ${count} requests`);
}

/** Pushes the folder, and requests nothing of the API. */
async function push(): Promise<{ commit: string; repo: string }> {
  const snapshot = await takeSnapshot(folder);
  try {
    const repo = await pushSnapshot(snapshot, name, await readInstallation());
    return { commit: snapshot.commit, repo };
  } finally {
    await snapshot.remove();
  }
}

const refused = z.looseObject({ type: z.string() });

test('a missing secret is named, set by its author, and the app goes live', async () => {
  const { repo } = await push();
  const json = { method: 'POST', headers: { 'content-type': 'application/json' } } as const;
  const submitted = await get(new URL('/api/submit', baseUrl), { ...json, body: JSON.stringify({ repo }) });
  assert.equal(submitted.status, 200, submitted.body);
  // Each replica of the API sees the app a moment later.
  const issued = await waitFor('a key', async () => {
    const { body } = await get(new URL(`/api/apps/${name}/keys`, baseUrl), { method: 'POST' });
    return z.looseObject({ key: z.string(), line: z.string() }).safeParse(JSON.parse(body)).data;
  });
  ({ key } = issued);
  writeFileSync(join(folder, '.moorage-owner'), `${issued.line}\n`);
  // The commit without the line is not built to its end.
  const { exitCode, all } = await submit(folder);
  assert.equal(exitCode, 1, all);
  assert.match(all, /API_TOKEN/);
  const { missing } = z
    .looseObject({ missing: z.array(z.looseObject({ name: z.string() })) })
    .parse(JSON.parse(await ask('GET', '/secrets')));
  assert.deepEqual(
    missing.map((variable) => variable.name),
    ['API_TOKEN'],
  );
  await ask('PUT', '/secrets/API_TOKEN', { value: secret });
  await becomes(`v1 ${secret.length}`);
});

test('its log reaches the author with the secret masked, and the secret is nowhere else', async () => {
  const text = await waitFor('the line of the start', async () => {
    const log = await ask('GET', '/logs?tail=50', undefined, 'text/plain');
    return log.includes('v1 has') ? log : undefined;
  });
  assert.equal(text.includes(secret), false, text);
  for (const path of ['', '/secrets', '/settings', '/audit', '/export'])
    assert.equal((await ask('GET', path)).includes(secret), false, path);
  assert.equal(JSON.stringify(await readApp(name)).includes(secret), false);
  const crashes = z
    .looseObject({ crashes: z.array(z.looseObject({ exit_code: z.int() })) })
    .parse(JSON.parse(await ask('GET', '/crashes')));
  assert.equal(crashes.crashes.at(-1)?.exit_code, 1, 'the KeyError of the first start');
});

test('a restart and another value of the secret fail no request', async () => {
  const { startedAt } = await readStart();
  const restart = ask('POST', '/restart').then(() => waitForRestart(startedAt));
  assertNoneFailed('restart', await requestSteadily(appUrl(name), restart));
  const change = ask('PUT', '/secrets/API_TOKEN', { value: `${secret}-2` }).then(() =>
    becomes(`v1 ${secret.length + 2}`),
  );
  assertNoneFailed('secret', await requestSteadily(appUrl(name), change));
});

async function readStart(): Promise<{ startedAt: string }> {
  const pods = await listPods(`moorage.dev/app=${name}`);
  return {
    startedAt:
      pods
        .map(({ metadata }) => metadata.creationTimestamp)
        .sort()
        .at(-1) ?? '',
  };
}

async function waitForRestart(before: string): Promise<void> {
  await waitFor('a newer pod', async () => ((await readStart()).startedAt > before ? true : undefined));
  await waitFor('the rollout', async () => {
    const { status } = await readApp(name);
    return status?.phase === 'Live' ? true : undefined;
  });
  await sleep(2_000);
}

test('a push is built as soon as its webhook arrives', async () => {
  const hook = z
    .looseObject({ url: z.string(), secret: z.string() })
    .parse(JSON.parse(await ask('POST', '/push-hook-secret')));
  writeFileSync(join(folder, 'app.py'), script('v2'));
  const { commit } = await push();
  const body = JSON.stringify({ ref: 'refs/heads/main', after: commit });
  const signature = `sha256=${createHmac('sha256', hook.secret).update(body).digest('hex')}`;
  const sentAt = performance.now();
  const { status } = await get(new URL(hook.url), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-github-event': 'push', 'x-hub-signature-256': signature },
    body,
  });
  assert.equal(status, 202);
  await waitFor('the commit to be noticed', async () =>
    (await readApp(name)).status?.source?.commit === commit ? true : undefined,
  );
  process.stdout.write(`push to notice: ${Math.round(performance.now() - sentAt)} ms\n`);
  await becomes(`v2 ${secret.length + 2}`);
});

test('a commit with a syntax error never serves, and the log names its line', async () => {
  writeFileSync(join(folder, 'app.py'), `${script('v3')}\ndef broken(:\n`);
  const rejection = submit(folder);
  assertNoneFailed('broken commit', await requestSteadily(appUrl(name), rejection));
  assert.match((await rejection).all, /app\.py/);
  const text = await ask('GET', '/logs?tail=100', undefined, 'text/plain');
  assert.match(text, /SyntaxError/);
});

test('a rollback runs a kept release without a build, and stays until the next deploy', async () => {
  const { releases } = z
    .looseObject({ releases: z.array(z.looseObject({ commit: z.string() })) })
    .parse(JSON.parse(await ask('GET', '')));
  const number = (await readApp(name)).status?.history?.[0]?.number;
  // Both first commits have this code.
  const oldest = releases.at(-1)?.commit ?? '';
  const rollback = ask('POST', '/rollback', { commit: oldest.slice(0, 12) }).then(() =>
    becomes(`v1 ${secret.length + 2}`),
  );
  assertNoneFailed('rollback', await requestSteadily(appUrl(name), rollback));
  writeFileSync(join(folder, 'app.py'), script('v4'));
  await submit(folder);
  await sleep(5_000);
  assert.equal((await get(appUrl(name))).body, `v1 ${secret.length + 2}`, 'a push does not replace a pinned release');
  assert.equal((await readApp(name)).status?.history?.[0]?.number, number, 'nothing was built');
  const deploy = ask('POST', '/deploy').then(() => becomes(`v4 ${secret.length + 2}`));
  assertNoneFailed('deploy', await requestSteadily(appUrl(name), deploy));
});

test('an app is suspended, resumed, deleted and restored, and the audit log has all of it', async () => {
  await ask('POST', '/suspend');
  await waitFor('the app to stop', async () => ((await get(appUrl(name))).status >= 500 ? true : undefined));
  await ask('POST', '/resume');
  await becomes(`v4 ${secret.length + 2}`);
  await ask('DELETE', '');
  const shown = z.looseObject({ control: z.looseObject({ deleteAfter: z.string() }) });
  // The other replica of the API sees the change a moment later.
  const { control } = await waitFor(
    'the deletion to be shown',
    async () => shown.safeParse(JSON.parse(await ask('GET', ''))).data,
  );
  assert.ok(Date.parse(control.deleteAfter) > Date.now() + 3_600_000);
  await waitFor('the app to stop', async () => ((await get(appUrl(name))).status >= 500 ? true : undefined));
  await ask('POST', '/restore');
  await becomes(`v4 ${secret.length + 2}`);
  const { entries } = z
    .looseObject({ entries: z.array(z.looseObject({ action: z.string(), outcome: z.string() })) })
    .parse(JSON.parse(await ask('GET', '/audit?limit=100')));
  assert.deepEqual(entries.map(({ action }) => action).reverse(), [
    ...['set-secret', 'restart', 'set-secret', 'show-push-hook-secret', 'rollback', 'deploy'],
    ...['suspend', 'resume', 'delete', 'restore'],
  ]);
});

test('attack: the key of an author whose line was removed changes nothing any more', async () => {
  writeFileSync(join(folder, '.moorage-owner'), '');
  await push();
  const { status, body } = await get(new URL(`/api/apps/${name}/suspend`, baseUrl), {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
  });
  assert.equal(status, 403, body);
  assert.match(refused.parse(JSON.parse(body)).type, /not-author$/);
});
