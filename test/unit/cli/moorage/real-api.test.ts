// The program against the API itself: a key, its first uses, and the audit log of what was done.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, test } from 'vitest';
import type { App } from '../../../../api/apps/hosted-apps.ts';
import { findAuthorKeyHashes } from '../../../../lib/ownership-file.ts';
import { MoorageHome, type ProgramRun } from '../../../support/moorage-program.ts';
import { buildPreview, sampleAppsServer, type AppsSample } from '../../../support/apps/sample.ts';

const home = new MoorageHome();
let sample: AppsSample;
let mine: App;
let server: Server;
let url = '';
/** What the newest commit has in .moorage-owner. */
let owners = '';
const writes: object[] = [];

beforeAll(async () => {
  sample = await sampleAppsServer({
    author: {
      createSecret: () => Promise.resolve(),
      maximumReplicas: 3,
      lookUpKeys: () =>
        Promise.resolve({
          ok: true,
          commit: 'c'.repeat(40),
          reference: 'refs/heads/main',
          authorKeys: findAuthorKeyHashes(owners),
        }),
      writeControl: (app, change) => {
        writes.push(change({}));
        return Promise.resolve(app);
      },
    },
  });
  mine = await sample.host('mine', (_request, response) => response.end('ok'));
  server = createServer(sample.app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await sample.stop();
  home.remove();
});

async function run(...args: readonly string[]): Promise<ProgramRun> {
  return home.run(args, { environment: { MOORAGE_API: url } });
}

test('a key is issued, committed, used, and its actions are in the audit log', async () => {
  const without = await run('restart', 'mine');
  assert.equal(without.code, 1);
  assert.match(without.stderr, /^error: Author key required\n[^]* {2}fix: `moorage login APP`[^]* {2}request: \S+\n$/);

  const login = await run('login', 'mine', '--new-key');
  assert.equal(login.code, 0, login.stderr);
  const [line = ''] = /moorage-author-sha256-[0-9a-f]{64}/.exec(login.stdout) ?? [];
  const early = await run('suspend', 'mine');
  assert.match(early.stderr, /^error: Not the author of the app\n/);
  assert.deepEqual([early.code, writes], [1, []]);

  owners = `${line}\n`;
  sample.store.set({
    ...mine,
    metadata: { ...mine.metadata, resourceVersion: '2' },
    status: { ...mine.status, authorKeys: findAuthorKeyHashes(owners) },
  });
  for (const action of ['restart', 'suspend', 'resume']) {
    const { code, stdout, stderr } = await run(action, 'mine');
    assert.deepEqual([code, stderr, stdout.includes('in a moment')], [0, '', true], action);
  }
  assert.deepEqual(
    writes.map((write) => Object.keys(write).join()),
    ['restartedAt', 'suspended', 'suspended'],
  );
  const audit = await run('audit', 'mine', '--limit', '2');
  assert.deepEqual(
    [audit.code, audit.stdout.split('\n').map((row) => row.split(/ {2,}/)[1])],
    [0, ['ACTION', 'resume', 'suspend', undefined]],
  );
  assert.match(audit.stderr, /^Older entries: moorage audit mine --before \d+\n$/);
  assert.match((await run('releases', 'mine')).stdout, /^(COMMIT|No release is kept)/);
});

test('previews are a table, in which text of strangers is harmless', async () => {
  assert.match((await run('previews', 'mine')).stdout, /^Previews are off\. Add `previews: \{pullRequests: true\}`/);
  const { status } = mine;
  const served = { ...status?.served, commit: 'ab'.repeat(20), image: 'x', since: '2026-11-01T08:00:00Z' };
  const wakes = { count: 1, number: 1, p50Ms: 1_849, p95Ms: 1_849, recentMs: [1_849] };
  const idle = { state: 'Asleep' as const, since: '2026-11-01T08:10:00Z', number: 2, afterSeconds: 600, wakes };
  const source = { ...status?.source, commit: served.commit };
  sample.store.set(buildPreview(mine, 'pr-12', 'refs/pull/12/head', { source, served, idle }));
  const rejection = { rule: 'x', message: 'The file \u001b[31mx has no licence.\nMore.', fix: '' };
  const nothing = { source: undefined, served: undefined };
  sample.store.set(buildPreview(mine, 'br-login', 'refs/heads/login', { ...nothing, phase: 'Rejected', rejection }));
  assert.equal(
    (await run('previews', 'mine')).stdout,
    `SHOWS  COMMIT        STATE     STARTED               WAKES IN  URL OR REASON
login  -             rejected  -                     -         The file x has no licence.
#12    abababababab  asleep    2026-11-01 08:00:00Z  1.8 s     https://mine--pr-12.moorage.test/
`,
  );
});

test('an unknown app has similar names, and an endpoint that is not built says so', async () => {
  assert.match((await run('restart', 'mien')).stderr, /Unknown app "mien"\. Did you mean mine\?/);
  const missing = await run('rollback', 'c'.repeat(40), '--app', 'mine');
  assert.equal(missing.code, 1);
});
