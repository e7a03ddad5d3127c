// What two pods report, and whether policies hold by it; and which policies `up` installs.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readFile } from 'node:fs/promises';
import { parseAllDocuments } from 'yaml';
import { judgeIsolation } from '../../../../cli/kind/isolation.ts';
import { KindRelease, createSteps } from '../../../../cli/kind/target.ts';
import { fillIn } from '../../../../localnode/kubectl.ts';

const api = '10.96.0.1:443';

test('a closed pod that reaches nothing, next to an open one that does, is isolated', () => {
  assert.equal(
    judgeIsolation(`${api} reached\n172.18.0.2:6443 reached`, `${api} closed\n172.18.0.2:6443 closed`, api),
    undefined,
  );
});

test('names every address that a closed pod reaches', () => {
  const problem = judgeIsolation(`${api} reached`, `${api} closed\n172.18.0.2:6443 reached`, api);
  assert.match(problem ?? '', /not enforced: .* reached 172\.18\.0\.2:6443$/);
});

test('a network without any connection proves nothing', () => {
  assert.match(judgeIsolation(`${api} closed`, `${api} closed`, api) ?? '', /pod network does not work/);
});

test('a pod that printed nothing proves nothing', () => {
  assert.match(judgeIsolation(`${api} reached`, '', api) ?? '', /printed no result/);
});

test('closes the namespaces of gateway, storage and DNS on kind before anything runs in them', async () => {
  const steps = createSteps('kind', new KindRelease('helm', { http: 80, https: 443 }), []);
  assert.ok(steps.find(({ name }) => name === 'isolation')?.needs?.includes('network policies'));
  assert.ok(steps.some(({ name }) => name === 'network policies'));
  const file = new URL('../../../../localnode/manifests/platform-policies.yaml', import.meta.url);
  const values = { API_SERVER: '172.18.0.2', STORAGE: 'local-path-storage' };
  const policies = parseAllDocuments(fillIn(await readFile(file, 'utf8'), values)).map(
    (document) =>
      document.toJS() as { metadata: { namespace: string }; spec: { podSelector: object; policyTypes: string[] } },
  );
  assert.deepEqual(
    policies.map(({ metadata, spec }) => [metadata.namespace, spec.podSelector, spec.policyTypes.length]),
    ['moorage-gateway', 'local-path-storage', 'kube-system'].map((namespace) => [namespace, {}, 2]),
  );
});
