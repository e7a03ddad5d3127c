// The gateway faces the internet: whoever takes it over reads its certificate, and no Secret of an app or of the platform.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { runKubectl } from '../support/cluster.ts';

const asGateway = '--as=system:serviceaccount:moorage-gateway:traefik';

async function may(...words: string[]): Promise<string> {
  return (await runKubectl('auth', 'can-i', asGateway, ...words).catch((error: unknown) => String(error))).includes(
    'yes',
  )
    ? 'yes'
    : 'no';
}

test('the gateway can read one Secret, by name', async () => {
  assert.equal(await may('get', 'secrets/moorage-wildcard', '-n', 'moorage-system'), 'yes');
  for (const namespace of ['moorage-system', 'moorage-apps', 'moorage-builds', 'moorage-git', 'kube-system']) {
    for (const verb of ['get', 'list', 'watch'])
      assert.equal(await may(verb, 'secrets', '-n', namespace), 'no', `${verb} in ${namespace}`);
  }
  assert.equal(await may('get', 'secrets/moorage-caller-salt', '-n', 'moorage-system'), 'no');
  assert.equal(await may('list', 'secrets', '--all-namespaces'), 'no');
});
