// An app whose repository becomes private: everybody gets its deploy key, nobody its source any more, and it keeps serving. The
// cluster's git server speaks no SSH; integration/git/deploy-keys reads from one that does.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
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
} from '../support/cluster.ts';

const name = 'e2e-private';
let folder: string;
beforeAll(() => {
  folder = writeFiles(name, { 'index.html': '<!doctype html><title>private</title><p>It serves.</p>' });
});
afterAll(async () => {
  removeFiles(folder);
  await deleteApps(name);
});

const deployKey = z.object({ public_key: z.string(), fingerprint: z.string(), page: z.string() });

test('the operator derives one key for each repository of a known forge, and none for another server', async () => {
  const read = async (path: string): Promise<{ readonly status: number; readonly body: string }> =>
    get(new URL(`/api/deploy-keys/${path}`, baseUrl));
  const [one, same, other] = await Promise.all(
    ['octo/one', 'Octo/One', 'octo/other'].map(async (path) =>
      deployKey.parse(JSON.parse((await read(`${path}?host=github.com`)).body)),
    ),
  );
  assert.match(one?.public_key ?? '', /^ssh-ed25519 AAAA\S+ moorage$/);
  assert.equal(one?.public_key, same?.public_key);
  assert.notEqual(one?.public_key, other?.public_key);
  const none = await read(`local/${name}?host=git.moorage-git.svc.cluster.local`);
  assert.equal(none.status, 404, none.body);
  assert.match(none.body, /no-deploy-key/);
});

test('once its repository is private, an app serves, and shows nothing of its source', async () => {
  const { exitCode, all } = await submit(folder);
  assert.equal(exitCode, 0, all);
  const { host, pathname } = new URL((await readApp(name)).spec.source.repo);
  const statusUrl = new URL(`/api/submit-status${pathname}?host=${host}`, baseUrl);
  const logUrl = new URL(`/api/submit-status${pathname}/log?host=${host}`, baseUrl);
  const plain = { headers: { accept: 'text/plain' } };
  assert.equal((await get(logUrl, plain)).status, 200);
  const patch = JSON.stringify({ spec: { source: { private: true } } });
  await runKubectl('-n', appsNamespace, 'patch', 'hostedapp', name, '--type=merge', '-p', patch);
  await waitFor('the source to be closed', async () => (await get(logUrl, plain)).status === 401 || undefined);
  const { body } = await get(statusUrl);
  assert.match(body, /"private":\s*true/);
  assert.doesNotMatch(body, /"plan"|"findings"|"settings"|"page"/);
  // There is no host key of this server. The commit that is known keeps serving.
  await waitFor('the operator to try SSH', async () => {
    const { conditions = [] } = (await readApp(name)).status ?? {};
    return conditions.find(({ message }) => message.includes('no SSH host key'));
  });
  assert.match((await get(appUrl(name))).body, /It serves/);
});
