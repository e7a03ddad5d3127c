// The defaults that the CRD of earlier versions stored: removed once, but for what someone applied.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createDefaultsRemover, findFormerDefaults } from '../../../../controller/reconcile/reconcile.ts';
import type { HostedAppObject } from '../../../../controller/objects/kinds.ts';
import { layeredFields } from '../../../../crds/effective-settings.ts';
import { spec as specSchema, type StoredSpec } from '../../../../crds/hosted-app.ts';
import type { Client } from '../../../../lib/kubernetes/index.ts';

const source = { repo: 'https://git.example/a/b' };
const { signal } = new AbortController();

function stored(spec: StoredSpec, metadata: object = {}): HostedAppObject {
  return {
    apiVersion: 'moorage.dev/v1alpha1',
    kind: 'HostedApp',
    metadata: { name: 'hello', namespace: 'apps', uid: 'u', resourceVersion: '7', creationTimestamp: '', ...metadata },
    spec,
  };
}

interface Patch {
  readonly metadata: object;
  readonly spec: Readonly<Record<string, unknown>>;
}

/** A client that has this one app, and what is patched in it. */
function createClient(app: HostedAppObject, patches: Patch[]): Client {
  return {
    get: () => Promise.resolve(app),
    patch: (_resource: unknown, _ref: unknown, body: Patch) => {
      patches.push(body);
      return Promise.resolve(app);
    },
  } as unknown as Client;
}

test('keeps fields that kubectl apply recorded, client-side or server-side', () => {
  const former = specSchema.parse({
    source,
    agents: { enabled: false },
    run: { resources: { memory: '512Mi', cpu: '2' } },
  });
  const names = (app: HostedAppObject): string[] => findFormerDefaults(app).map((path) => path.join('.'));
  const all = layeredFields.map((path) => path.join('.')).filter((name) => name !== 'run.resources.cpu');
  assert.deepEqual(names(stored(former)), all);
  const onServer = [
    {
      operation: 'Apply',
      manager: 'kubectl',
      fieldsV1: { 'f:spec': { 'f:run': { 'f:resources': { 'f:memory': {} } } } },
    },
    { operation: 'Update', manager: 'kubectl-create', fieldsV1: { 'f:spec': { 'f:agents': { 'f:enabled': {} } } } },
  ];
  const onClient = {
    'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify({
      spec: { source, agents: { enabled: false } },
    }),
  };
  assert.deepEqual(
    names(stored(former, { managedFields: onServer })),
    all.filter((name) => name !== 'run.resources.memory'),
  );
  assert.deepEqual(
    names(stored(former, { annotations: onClient })),
    all.filter((name) => name !== 'agents.enabled'),
  );
});

test('patches an app only if it has every former default, and only at the resource version that was read', async () => {
  const untouched: Patch[] = [];
  const today = stored({ source, agents: { enabled: false } });
  assert.equal(await createDefaultsRemover(createClient(today, untouched))(today, signal), today);
  assert.deepEqual(untouched, []);
  const patches: Patch[] = [];
  const former = stored(specSchema.parse({ source, agents: { enabled: true } }));
  // As if the CRD still had the defaults: what is removed is there again, and the app is left alone from then on.
  const remove = createDefaultsRemover(createClient(former, patches));
  await remove(former, signal);
  await remove(former, signal);
  assert.equal(patches.length, 1);
  const { metadata, spec } = patches[0] ?? assert.fail();
  assert.deepEqual(metadata, { uid: 'u', resourceVersion: '7' });
  assert.deepEqual(spec['agents'], { openapi: null, mcp: null });
  assert.deepEqual(spec['source'], { path: null });
});
