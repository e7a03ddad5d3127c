// Pushes of a snapshot: one whose connection broke is tried again, one that was refused is not.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'vitest';
import { Fault } from '../../../../cli/submit/fault.ts';
import { pushSnapshot } from '../../../../cli/submit/push.ts';
import { takeSnapshot } from '../../../../cli/submit/snapshot.ts';

/** Pushes to a server that answers like this. Resolves with how often it was asked, and what was said. */
async function pushTo(t: TestContext, listener: RequestListener): Promise<{ asked: number; fault: unknown }> {
  let asked = 0;
  const server = createServer((request, response) => {
    asked += 1;
    listener(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.onTestFinished(() => void server.close());
  const folder = await mkdtemp(join(tmpdir(), 'moorage-push-test-'));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'index.html'), 'x');
  const snapshot = await takeSnapshot(folder);
  t.onTestFinished(() => snapshot.remove());
  const gitUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const fault: unknown = await pushSnapshot(snapshot, 'hello', {
    baseUrl: gitUrl,
    gitUrl,
    internalGitUrl: 'http://git.test',
    authority: undefined,
    gitPassword: 'secret',
  }).catch((error: unknown) => error);
  return { asked, fault };
}

test('a push whose connection breaks is tried three times, and then says what git said', async (t) => {
  const { asked, fault } = await pushTo(t, (_, response) => {
    response.writeHead(502).end();
  });
  assert.equal(asked, 3);
  assert.ok(fault instanceof Fault);
  assert.match(fault.message, /check the cluster with `npm run status`.*502/);
});

test('a push that is refused is not tried again', async (t) => {
  const { asked, fault } = await pushTo(t, (_, response) => {
    response.writeHead(403).end();
  });
  assert.equal(asked, 1);
  assert.ok(fault instanceof Fault);
});
