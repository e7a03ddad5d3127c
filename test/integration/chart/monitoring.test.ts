// What the chart makes for Prometheus: nothing unless asked, then PodMonitors of every process, the shipper beside the gateway
// among them, and the alerts.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { alertGroups } from '../../../charts/monitoring/all.ts';
import { paths } from '../../../localnode/paths.ts';
import { findNamed, object, selectKind, readPodSpec, render, required, type Rendered } from '../../support/chart.ts';
import { gatewayDeployment } from '../../support/monitoring/gateway-manifest.ts';
import { promtool } from '../../support/monitoring/programs.ts';

const values = {
  ...required,
  network: { metricsNamespaceLabels: { team: 'metrics' } },
  monitoring: { enabled: true, labels: { release: 'prometheus' }, interval: '15s' },
};
let objects: Rendered[] = [];
beforeAll(async () => {
  objects = await render(values);
});

const monitor = z.looseObject({
  spec: z.object({
    selector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
    podMetricsEndpoints: z.array(z.looseObject({ port: z.string(), path: z.string(), interval: z.string() })).length(1),
  }),
});
const shipperMonitor = object.extend({
  spec: z.object({
    namespaceSelector: z.object({ matchNames: z.array(z.string()) }),
    selector: z.unknown(),
    podMetricsEndpoints: z.array(
      z.looseObject({ port: z.string(), path: z.string(), interval: z.string(), relabelings: z.unknown() }),
    ),
  }),
});
const sidecars = z.looseObject({
  initContainers: z.array(
    z.looseObject({
      name: z.string(),
      restartPolicy: z.string(),
      ports: z.array(z.object({ name: z.string(), containerPort: z.int() })),
    }),
  ),
});
const template = z.looseObject({
  spec: z.looseObject({
    template: z.looseObject({ metadata: z.looseObject({ labels: z.record(z.string(), z.string()) }) }),
  }),
});
const ports = z.looseObject({
  containers: z.array(z.looseObject({ ports: z.array(z.looseObject({ name: z.string(), containerPort: z.int() })) })),
});

test('renders neither without monitoring.enabled, since the cluster may lack their kinds', async () => {
  const plain = await render(required);
  assert.deepEqual([selectKind(plain, 'PodMonitor'), selectKind(plain, 'PrometheusRule')], [[], []]);
});

test('the PodMonitor selects activator, operator, API, workers and registry proxy, and scrapes their internal port', () => {
  const found = findNamed(objects, 'PodMonitor', 'moorage');
  assert.equal(found.metadata.labels?.['release'], 'prometheus');
  const { selector, podMetricsEndpoints } = monitor.parse(found).spec;
  assert.deepEqual(
    podMetricsEndpoints.map(({ port, path, interval }) => [port, path, interval]),
    [['internal', '/metrics', '15s']],
  );
  const selected = selectKind(objects, 'Deployment').filter((deployment) => {
    const { labels } = template.parse(deployment).spec.template.metadata;
    return Object.entries(selector.matchLabels).every(([label, value]) => labels[label] === value);
  });
  const scraped = selected.filter((deployment) =>
    ports
      .parse(readPodSpec(deployment))
      .containers.some((container) =>
        container.ports.some(({ name, containerPort }) => name === 'internal' && containerPort === 9090),
      ),
  );
  assert.deepEqual(scraped.map(({ metadata }) => metadata.name).sort(), [
    'moorage-activator',
    'moorage-api',
    'moorage-operator',
    'moorage-registry-proxy',
    'moorage-workers',
  ]);
});

test('another PodMonitor selects the shipper next to the gateway of `npm run up`, by namespace and port name', async () => {
  const { metadata, spec } = shipperMonitor.parse(findNamed(objects, 'PodMonitor', 'moorage-shipper'));
  assert.equal(metadata.labels?.['release'], 'prometheus');
  // Gateways have labels of their own.
  assert.deepEqual(spec.selector, {});
  const [endpoint, ...others] = spec.podMetricsEndpoints;
  assert.deepEqual(
    [endpoint?.path, endpoint?.interval, endpoint?.relabelings, others],
    ['/metrics', '15s', [{ targetLabel: 'job', replacement: 'moorage-shipper' }], []],
  );
  const traefik = gatewayDeployment();
  const [shipper] = sidecars.parse(readPodSpec(traefik)).initContainers;
  assert.deepEqual(
    [shipper?.name, shipper?.restartPolicy, shipper?.ports],
    ['shipper', 'Always', [{ name: endpoint?.port, containerPort: 9091 }]],
  );
  const local = z
    .looseObject({ metering: z.looseObject({ gatewayNamespace: z.string() }) })
    .parse(parse(await readFile(join(paths.root, 'cli/values.local.yaml'), 'utf8')));
  assert.equal(local.metering.gatewayNamespace, traefik.metadata.namespace);
  const namespacesOf = async (more: object): Promise<unknown> =>
    shipperMonitor.parse(findNamed(await render({ ...values, ...more }), 'PodMonitor', 'moorage-shipper')).spec
      .namespaceSelector.matchNames;
  assert.deepEqual(await namespacesOf({ metering: local.metering }), ['moorage-gateway']);
  assert.deepEqual(await namespacesOf({ gateway: { ...required.gateway, namespace: 'edge' } }), ['edge']);
  assert.deepEqual(await namespacesOf({}), ['moorage-system']);
});

test('lets the namespace of Prometheus reach each of them', () => {
  for (const component of ['activator', 'operator', 'api', 'workers', 'registry-proxy'])
    assert.match(
      JSON.stringify(findNamed(objects, 'NetworkPolicy', `moorage-${component}`)),
      /"from":\[\{"namespaceSelector":\{"matchLabels":\{"team":"metrics"\}\}\}\],"ports":\[\{"protocol":"TCP","port":9090\}\]/,
    );
});

test('the PrometheusRule has every alert as written, including Prometheus templates', async () => {
  const { spec } = z
    .looseObject({
      spec: z.object({
        groups: z.array(
          z.looseObject({
            name: z.string(),
            rules: z.array(
              z.looseObject({
                alert: z.string(),
                expr: z.string(),
                annotations: z.looseObject({ summary: z.string() }),
              }),
            ),
          }),
        ),
      }),
    })
    .parse(findNamed(objects, 'PrometheusRule', 'moorage'));
  assert.deepEqual(
    spec.groups.map(({ name, rules }) => [
      name,
      rules.map(({ alert, expr, annotations }) => [alert, expr, annotations.summary]),
    ]),
    alertGroups.map(({ name, alerts }) => [name, alerts.map((alert) => [alert.name, alert.expr, alert.summary])]),
  );
  const folder = await mkdtemp(join(tmpdir(), 'moorage-rules-'));
  try {
    await writeFile(join(folder, 'rules.yaml'), stringify(spec));
    assert.match(await promtool('check', 'rules', join(folder, 'rules.yaml')), /SUCCESS/);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test('can omit the alerts', async () => {
  const without = await render({ ...values, monitoring: { enabled: true, rules: false } });
  assert.equal(selectKind(without, 'PodMonitor').length, 2);
  assert.deepEqual(selectKind(without, 'PrometheusRule'), []);
});

test('requires the namespace that may scrape', async () => {
  await assert.rejects(
    render({ ...required, monitoring: { enabled: true } }),
    /set network\.metricsNamespaceLabels too/,
  );
});
