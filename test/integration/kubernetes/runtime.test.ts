// The controller runtime on a real API server: what a server made for tests cannot vouch for.
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test, type TestContext } from 'vitest';
import {
  apply,
  applyIfChanged,
  applyStatus,
  createLabelIndexer,
  createClient,
  createController,
  createEventRecorder,
  createLeaderElection,
  createReflector,
  createStore,
  defineResource,
  deleteObject,
  done,
  readFileConnection,
  toObjectKey,
  createWatch,
  type Client,
  type KubeObject,
  type KubeType,
  type LeaderElection,
} from '../../../lib/kubernetes/index.ts';
import type { ApiServer } from '../../support/kubernetes/api-server.ts';
import { startApiServer } from '../../support/kubernetes/api-server.ts';
import { waitUntil } from '../../support/kubernetes/until.ts';

type ConfigMap = KubeType<{ data?: Record<string, string> }>;
interface Deployment extends KubeObject {
  spec?: {
    replicas?: number;
    template?: { spec?: { containers: { resources?: { limits?: Record<string, string> } }[] } };
  };
  status?: { observedGeneration?: number };
}

const configMaps = defineResource<ConfigMap>({
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
});
const deployments = defineResource<Deployment>({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
});
const namespaces = defineResource({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
});

let api: ApiServer;
let client: Client;
let count = 0;

beforeAll(async () => {
  api = await startApiServer();
  client = createClient(await readFileConnection(api.kubeconfig));
});

afterAll(async () => {
  client.close();
  await api.stop();
});

async function newNamespace(): Promise<string> {
  const name = `runtime-${(count += 1)}`;
  await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  return name;
}

const configMap = (
  namespace: string,
  name: string,
  data: Record<string, string>,
  labels: Record<string, string> = {},
) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace, labels }, data });

function versions(objects: Iterable<KubeObject>): string[] {
  return [...objects]
    .map((object) => `${toObjectKey(object)} ${object.metadata.uid} ${object.metadata.resourceVersion}`)
    .toSorted();
}

/** Runs something until the test ends. */
function during(t: TestContext, run: (signal: AbortSignal) => Promise<void>): { end: () => Promise<void> } {
  const ending = new AbortController();
  const running = run(ending.signal);
  const end = async (): Promise<void> => {
    ending.abort();
    await running;
  };
  t.onTestFinished(end);
  return { end };
}

describe('apply', () => {
  test('creates, updates, and removes the fields that are no longer in the manifest', async () => {
    const namespace = await newNamespace();
    const first = await apply(client, configMaps, configMap(namespace, 'a', { one: '1', two: '2' }));
    assert.deepEqual(first.data, { one: '1', two: '2' });
    const second = await apply(client, configMaps, configMap(namespace, 'a', { two: '3' }));
    assert.deepEqual([second.data, second.metadata.uid], [{ two: '3' }, first.metadata.uid]);
  });

  test('detects that a Deployment written with other units is up to date, and reverts a foreign change', async () => {
    const namespace = await newNamespace();
    const labels = { app: 'a' };
    const container = {
      name: 'a',
      image: 'example/a',
      env: [],
      command: ['a'],
      resources: { limits: { cpu: '1000m', memory: '1024Mi' } },
      ports: [{ containerPort: 80 }],
    };
    const manifest = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'a', namespace, labels },
      spec: {
        replicas: 0,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { hostUsers: false, enableServiceLinks: false, containers: [container] },
        },
      },
    };
    const { object } = await applyIfChanged(client, deployments, undefined, manifest);
    assert.equal(
      object.spec?.template?.spec?.containers[0]?.resources?.limits?.['cpu'],
      '1',
      'the server writes quantities its own way',
    );
    const cached = await client.get(deployments, object.metadata);
    assert.equal((await applyIfChanged(client, deployments, cached, manifest)).changed, false);
    await api.kubectl('-n', namespace, 'scale', 'deployment/a', '--replicas=3');
    const fixed = await applyIfChanged(client, deployments, await client.get(deployments, object.metadata), manifest);
    assert.deepEqual([fixed.changed, fixed.object.spec?.replicas], [true, 0]);
  });

  test('of a status does not change the spec', async () => {
    const namespace = await newNamespace();
    const labels = { app: 'a' };
    const spec = {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'x' }] } },
    };
    await apply(client, deployments, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'a', namespace },
      spec,
    });
    const after = await applyStatus(client, deployments, { name: 'a', namespace }, { observedGeneration: 7 });
    assert.deepEqual([after.status?.observedGeneration, after.spec?.replicas, after.metadata.generation], [7, 2, 1]);
  });

  test('reports the field if the server rejects the object', async () => {
    const namespace = await newNamespace();
    await assert.rejects(
      apply(client, configMaps, { ...configMap(namespace, 'a', {}), data: { 'not/allowed': 'x' } }),
      { name: 'ApiError', status: 422, reason: 'Invalid', message: /data\[not\/allowed\]/ },
    );
    await assert.rejects(client.create(configMaps, configMap('no-such-namespace', 'a', {})), {
      status: 404,
      reason: 'NotFound',
    });
  });

  test('and delete change only the intended object', async () => {
    const namespace = await newNamespace();
    const old = await apply(client, configMaps, configMap(namespace, 'a', {}));
    assert.equal(await deleteObject(client, configMaps, old), true);
    const namesake = await apply(client, configMaps, configMap(namespace, 'a', {}));
    assert.equal(await deleteObject(client, configMaps, old), false);
    assert.equal((await client.get(configMaps, namesake.metadata))?.metadata.uid, namesake.metadata.uid);
  });
});

describe('reflector', () => {
  test(
    'pages through a list, follows changes, and continues after the API server was killed',
    { timeout: 120_000 },
    async (t) => {
      const namespace = await newNamespace();
      const make = (name: string): Promise<ConfigMap> =>
        apply(client, configMaps, configMap(namespace, name, { at: name }, { parity: String(name.length % 2) }));
      for (let n = 0; n < 25; n += 1) await make(`c${n}`);
      const reflector = createReflector({
        client,
        resource: configMaps,
        namespace,
        pageSize: 10,
        indexers: { parity: createLabelIndexer('parity') },
        backoffMs: [50, 500],
      });
      const broken = createStore<ConfigMap>({ freeze: false });
      reflector.store.subscribe(({ type, object }) => {
        broken[type === 'deleted' ? 'remove' : 'set'](object);
      });
      during(t, (signal) => reflector.run(signal));
      await reflector.store.waitUntilSynced();
      assert.equal(reflector.store.size, 25);
      assert.equal(reflector.store.listByIndex('parity', '0').length, 10);
      assert.deepEqual(
        [
          ...new Set(
            reflector.store
              .list()
              .map(({ kind, apiVersion, metadata }) => `${apiVersion} ${kind} ${typeof metadata.managedFields}`),
          ),
        ],
        ['v1 ConfigMap undefined'],
      );
      const old = reflector.store.get(`${namespace}/c0`);
      await make('late');
      await waitUntil(() => reflector.store.get(`${namespace}/late`) !== undefined);
      await api.restart();
      await client.delete(configMaps, { namespace, name: 'c0' });
      await make('c0');
      await make('after');
      const same = async (): Promise<boolean> => {
        const { items } = await client.list(configMaps, { namespace });
        return JSON.stringify(versions(items)) === JSON.stringify(versions(reflector.store.list()));
      };
      await waitUntil(same);
      assert.notEqual(reflector.store.get(`${namespace}/c0`)?.metadata.uid, old?.metadata.uid);
      assert.deepEqual(
        versions(broken.list()),
        versions(reflector.store.list()),
        'the reported changes give the cache',
      );
    },
  );

  test('reports a watch from an old version as expired', { timeout: 180_000 }, async () => {
    const namespace = await newNamespace();
    const watch = async (): Promise<void> => {
      for await (const event of client.watch(configMaps, { namespace, resourceVersion: '1', timeoutSeconds: 5 }))
        assert.ok(event);
    };
    // The server compacts every 30 s here; until then version 1 may still be there.
    await waitUntil(async () => {
      await apply(client, configMaps, configMap(namespace, 'a', { at: String(Date.now()) }));
      return watch().then(
        () => false,
        (error: unknown) => {
          assert.deepEqual(
            [(error as { status?: number }).status, (error as { reason?: string }).reason],
            [410, 'Expired'],
          );
          return true;
        },
      );
    });
  });
});

describe('events', () => {
  test('appear in kubectl describe, with their count', async () => {
    const namespace = await newNamespace();
    const about = await apply(client, configMaps, configMap(namespace, 'a', {}));
    const recorder = createEventRecorder({ client, controller: 'moorage.dev/operator' });
    for (let n = 0; n < 3; n += 1)
      recorder.record(about, {
        type: 'Warning',
        reason: 'BuildFailed',
        message: 'requirements.txt, line 3: no such package.',
      });
    await recorder.flush();
    const text = await api.kubectl('-n', namespace, 'describe', 'configmap', 'a');
    assert.match(
      text,
      /Warning\s+BuildFailed\s+\S+ \(x3 over \S+\)\s+moorage.dev\/operator\s+requirements.txt, line 3: no such package\./,
    );
  });
});

/** They wait for time to pass, each in a namespace of its own. */
describe('leader election', { concurrent: true }, () => {
  test('replaces a killed leader, with the default durations', { timeout: 120_000 }, async (t) => {
    const namespace = await newNamespace();
    const start = async (identity: string): Promise<{ child: ChildProcess; leads: () => boolean }> => {
      const child = spawn(
        process.execPath,
        [join(import.meta.dirname, '../../support/kubernetes/leader.ts'), api.kubeconfig, namespace, identity],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      );
      t.onTestFinished(() => {
        child.kill('SIGKILL');
      });
      let said = '';
      child.stdout.on('data', (chunk: Buffer) => {
        said += chunk.toString();
      });
      await once(child, 'spawn');
      return { child, leads: () => said.includes('leads') };
    };
    const first = await start('first');
    await waitUntil(() => first.leads());
    const second = await start('second');
    // The second has been there for a while when the first dies.
    await delay(5000);
    assert.equal(second.leads(), false);
    first.child.kill('SIGKILL');
    const killed = performance.now();
    await waitUntil(() => second.leads());
    await t.annotate(`taken over ${Math.round(performance.now() - killed)} ms after the kill`);
    const third = await start('third');
    await delay(5000);
    second.child.kill('SIGTERM');
    const ended = performance.now();
    await waitUntil(() => third.leads());
    await t.annotate(`taken over ${Math.round(performance.now() - ended)} ms after an orderly end`);
  });

  test('elects one of three, and another when it stops', { timeout: 120_000 }, async (t) => {
    const namespace = await newNamespace();
    const lost: string[] = [];
    const start = (identity: string): { election: LeaderElection; end: () => Promise<void> } => {
      const election = createLeaderElection({
        client,
        namespace,
        name: 'operator',
        identity,
        onLost: (reason) => lost.push(reason),
        leaseDurationMs: 3000,
        renewDeadlineMs: 2000,
        retryPeriodMs: 500,
      });
      return { election, ...during(t, (signal) => election.run(signal)) };
    };
    const replicas = ['a', 'b', 'c'].map(start);
    const leader = (): (typeof replicas)[number] | undefined => replicas.find(({ election }) => election.isLeader);
    await waitUntil(() => leader() !== undefined);
    assert.equal(replicas.filter(({ election }) => election.isLeader).length, 1);
    const first = leader();
    await first?.end();
    await waitUntil(() => leader() !== undefined);
    assert.notEqual(leader(), first);
    const lease = JSON.parse(await api.kubectl('-n', namespace, 'get', 'lease', 'operator', '-o', 'json')) as {
      spec: { holderIdentity: string; leaseTransitions: number };
    };
    assert.equal(lease.spec.holderIdentity, leader()?.election.leader);
    assert.equal(lease.spec.leaseTransitions, 1);
    assert.deepEqual(lost, []);
  });
});

describe('controller', () => {
  test('reconciles many objects, and writes nothing on a resync without changes', { timeout: 120_000 }, async (t) => {
    const namespace = await newNamespace();
    const [owners, copies] = ['source', 'copy'].map((role) =>
      createReflector({ client, resource: configMaps, namespace, labelSelector: `role=${role}` }),
    );
    assert.ok(owners !== undefined && copies !== undefined);
    for (let n = 0; n < 50; n += 1)
      await apply(client, configMaps, configMap(namespace, `s${n}`, { value: String(n) }, { role: 'source' }));
    let [written, reconciled] = [0, 0];
    const controller = createController({
      name: 'copies',
      watches: [
        createWatch(owners.store),
        createWatch(copies.store, ({ metadata }) => [`${namespace}/${metadata.name.replace('copy-', '')}`]),
      ],
      async reconcile(key, { signal }) {
        reconciled += 1;
        const source = owners.store.get(key);
        if (source === undefined) return done;
        const name = `copy-${source.metadata.name}`;
        const { changed } = await applyIfChanged(
          client,
          configMaps,
          copies.store.get(`${namespace}/${name}`),
          configMap(namespace, name, source.data ?? {}, { role: 'copy' }),
          { signal },
        );
        if (changed) written += 1;
        return done;
      },
    });
    for (const part of [owners, copies, controller]) during(t, (signal) => part.run(signal));
    const settled = (): boolean => copies.store.size === 50 && controller.idle;
    await waitUntil(settled);
    assert.ok(copies.store.list().every(({ metadata, data }) => metadata.name === `copy-s${data?.['value'] ?? ''}`));
    const [before, begun] = [written, reconciled];
    controller.resync();
    await waitUntil(() => reconciled >= begun + 50 && settled());
    assert.equal(written, before);
    await api.kubectl(
      '-n',
      namespace,
      'patch',
      'configmap',
      'copy-s7',
      '--type=merge',
      '-p',
      '{"data":{"value":"wrong"}}',
    );
    await waitUntil(() => written > before && copies.store.get(`${namespace}/copy-s7`)?.data?.['value'] === '7');
  });
});
