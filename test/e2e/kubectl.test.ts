// What an operator of the platform reads with kubectl.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { appsNamespace, runKubectl } from '../support/cluster.ts';

test('kubectl wait --for=condition=Ready', async () => {
  assert.match(
    await runKubectl('wait', '--for=condition=Ready', 'happ/hello', '-n', appsNamespace, '--timeout=60s'),
    /condition met/,
  );
});

test('kubectl get happ shows repository, phase, URL, commit, when the operator checked it, and age', async () => {
  const [header = '', row = ''] = (await runKubectl('get', 'happ', 'hello', '-n', appsNamespace)).split('\n');
  for (const column of ['NAME', 'REPO', 'PHASE', 'URL', 'COMMIT', 'CHECKED', 'AGE'])
    assert.ok(header.includes(column), `${column} in ${header}`);
  assert.match(row, /^hello\s+\S+\/local\/hello\s+Live\s+https:\/\/hello\.\S+\s+[0-9a-f]{7,40}\s+\S+\s+\S+$/);
});

test('kubectl describe happ lists the transitions as events', async () => {
  const text = await runKubectl('describe', 'happ', 'hello', '-n', appsNamespace);
  for (const type of ['SourceResolved', 'Reviewed', 'Built', 'Deployed', 'Routed', 'Ready'])
    assert.ok(text.includes(type), `${type} in conditions`);
});

test('kubectl explain describes every field', async () => {
  const text = await runKubectl('explain', 'happ.spec.run');
  for (const field of [
    'port',
    'command',
    'env',
    'secrets',
    'resources',
    'replicas',
    'healthPath',
    'volumes',
    'startupTime',
  ])
    assert.match(text, new RegExp(`${field}\\t`));
  assert.match(text, /TCP port on which the app listens/);
  assert.doesNotMatch(text, /<no description>|<empty>/);
});
