// What hostile code in a worker would find around it, as the chart renders it: nothing of the API.
import assert from 'node:assert/strict';
import { beforeAll, test } from 'vitest';
import { z } from 'zod';
import { readToolSettings } from '../../../api/tools/config.ts';
import { environment } from '../../../api/tools/engine/workers/remote/worker-server.ts';
import { readConfig } from '../../../lib/config.ts';
import {
  readEnvironment,
  findNamed,
  selectKind,
  readPodSpec,
  render,
  required,
  type Rendered,
} from '../../support/chart.ts';

let objects: Rendered[] = [];
beforeAll(async () => {
  objects = await render({
    ...required,
    models: { listConfigMap: 'models', router: { baseUrl: 'https://router.example.org', keySecret: 'router' } },
    postgres: { enabled: true },
    network: { metricsNamespaceLabels: { team: 'metrics' } },
  });
});

const user = z.looseObject({ securityContext: z.looseObject({ runAsUser: z.int(), runAsGroup: z.int() }) });
const labels = (component: string): unknown => ({
  matchLabels: {
    'app.kubernetes.io/name': 'moorage',
    'app.kubernetes.io/instance': 'moorage',
    'app.kubernetes.io/component': component,
  },
});

test('gives workers no token, no Secret, only an empty volume, and a separate user', () => {
  const spec = readPodSpec(findNamed(objects, 'Deployment', 'moorage-workers'));
  assert.deepEqual(
    [spec['automountServiceAccountToken'], spec['serviceAccountName'], spec['volumes'], spec['shareProcessNamespace']],
    [false, undefined, [{ name: 'tmp', emptyDir: { sizeLimit: '512Mi' } }], undefined],
  );
  assert.doesNotMatch(JSON.stringify(spec), /secret|valueFrom|envFrom|configMap|projected/i);
  const { runAsUser, runAsGroup } = user.parse(spec).securityContext;
  for (const component of ['api', 'operator']) {
    const other = user.parse(readPodSpec(findNamed(objects, 'Deployment', `moorage-${component}`))).securityContext;
    assert.ok(runAsUser !== other.runAsUser && runAsGroup !== other.runAsGroup);
  }
  assert.ok(runAsUser > 0);
});

test('uses a separate image for workers if given', async () => {
  const imageOf = (rendered: Rendered[]): unknown =>
    z
      .looseObject({ containers: z.array(z.looseObject({ image: z.string() })) })
      .parse(readPodSpec(findNamed(rendered, 'Deployment', 'moorage-workers')))
      .containers.map(({ image }) => image);
  assert.deepEqual(imageOf(objects), ['registry.example.org/moorage:1']);
  const own = await render({ ...required, workers: { image: 'registry.example.org/moorage-workers:1' } });
  assert.deepEqual(imageOf(own), ['registry.example.org/moorage-workers:1']);
});

test('sets exactly the environment that workers read, without anything confidential', () => {
  const variables = readEnvironment(objects, 'workers');
  assert.deepEqual(Object.keys(variables).sort(), ['LOG_LEVEL', 'MOORAGE_INTERNAL_PORT', 'MOORAGE_PORT']);
  assert.equal(readConfig(environment, variables).MOORAGE_PORT, 8090);
});

test('lets only the API reach them, and lets them reach nothing', () => {
  const { spec } = z.looseObject({ spec: z.unknown() }).parse(findNamed(objects, 'NetworkPolicy', 'moorage-workers'));
  assert.deepEqual(spec, {
    podSelector: labels('workers'),
    policyTypes: ['Ingress', 'Egress'],
    ingress: [
      { from: [{ podSelector: labels('api') }], ports: [{ protocol: 'TCP', port: 8090 }] },
      {
        from: [{ namespaceSelector: { matchLabels: { team: 'metrics' } } }],
        ports: [{ protocol: 'TCP', port: 9090 }],
      },
    ],
    egress: [],
  });
  const opened = selectKind(objects, 'NetworkPolicy').filter((policy) =>
    JSON.stringify(policy['spec']).includes('"app.kubernetes.io/component":"workers"'),
  );
  assert.deepEqual(opened.map(({ metadata }) => metadata.name).sort(), ['moorage-api', 'moorage-workers']);
});

test('lets the API resolve each of their pods, at the port that they listen on', () => {
  const { workersUrl } = readToolSettings(readEnvironment(objects, 'api'));
  const { spec } = z
    .looseObject({ spec: z.looseObject({ clusterIP: z.literal('None'), selector: z.unknown(), ports: z.unknown() }) })
    .parse(findNamed(objects, 'Service', 'moorage-workers'));
  assert.equal(workersUrl, 'http://moorage-workers.moorage-system.svc.cluster.local:8090');
  assert.deepEqual({ matchLabels: spec.selector }, labels('workers'));
  assert.deepEqual(spec.ports, [{ name: 'tasks', port: 8090, targetPort: 'tasks' }]);
});
