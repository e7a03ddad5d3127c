// Who we are towards the API server: from a kubeconfig's token, from a pod's service account, or nothing to be found.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'vitest';
import { readFileConnection, readInClusterConnection } from '../../../../../lib/kubernetes/index.ts';

async function folder(t: TestContext): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'connection-'));
  t.onTestFinished(() => rm(made, { recursive: true }));
  return made;
}

test('a kubeconfig gives server, namespace and token of its current context or of the one named', async (t) => {
  const path = join(await folder(t), 'config');
  const context = (name: string) => ({ name, context: { cluster: name, user: name, namespace: `${name}-apps` } });
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'near',
    clusters: ['near', 'far'].map((name) => ({
      name,
      cluster: {
        server: `https://${name}.example:6443/`,
        'certificate-authority-data': Buffer.from('ca').toString('base64'),
      },
    })),
    contexts: ['near', 'far'].map(context),
    users: ['near', 'far'].map((name) => ({ name, user: { token: `token-${name}` } })),
  };
  await writeFile(path, JSON.stringify(config));
  for (const name of ['near', 'far']) {
    const connection = await readFileConnection(path, name === 'near' ? undefined : name);
    assert.deepEqual([connection.server, connection.namespace], [`https://${name}.example:6443`, `${name}-apps`]);
    const first = await connection.readCredentials();
    assert.equal(first.headers['authorization'], `Bearer token-${name}`);
    assert.equal((await connection.readCredentials()).agent, first.agent, 'connections are kept');
    connection.close();
  }
  await assert.rejects(readFileConnection(path, 'nowhere'), /context "nowhere" names no cluster/);
});

test('a pod uses its service account, and gets an error if there is none', async (t) => {
  const directory = await folder(t);
  for (const [name, text] of [
    ['token', 'abc\n'],
    ['namespace', 'system'],
    ['ca.crt', 'ca'],
  ] as const)
    await writeFile(join(directory, name), text);
  const before = { ...process.env };
  t.onTestFinished(() => {
    process.env = before;
  });
  delete process.env['KUBERNETES_SERVICE_HOST'];
  await assert.rejects(readInClusterConnection(directory), /Not in a pod.*KUBECONFIG/);
  Object.assign(process.env, { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' });
  const connection = await readInClusterConnection(directory);
  assert.deepEqual([connection.server, connection.namespace], ['https://[fd00::1]:443', 'system']);
  assert.deepEqual((await connection.readCredentials()).headers, { authorization: 'Bearer abc' });
  connection.close();
});
