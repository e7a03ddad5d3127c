// The pod of a release: one container for each component, and for an app of one process the same as ever.
import assert from 'node:assert/strict';
import type { V1Container, V1PodSpec } from '@kubernetes/client-node';
import { expect, test } from 'vitest';
import {
  buildClaims,
  buildDeployment,
  buildPolicy,
  buildService,
} from '../../../../../controller/steps/deploy/objects.ts';
import { buildPodTemplate } from '../../../../../controller/steps/deploy/pod-template.ts';
import { limitToRelease } from '../../../../../controller/steps/deploy/components.ts';
import { computeHash, type Wire } from '../../../../../lib/kubernetes/index.ts';
import type { HostedApp } from '../../../../../crds/hosted-app.ts';
import { app, config, digest, first } from '../../../../support/operator/scenario.ts';
import { components, createComposite, listImages } from '../../../../support/operator/components.ts';

const owned = { claims: [], addresses: new Map([['db', '10.0.0.9']]) };

test('an app of one process keeps the objects of earlier versions, so that an upgrade restarts none', () => {
  const rich = app({
    run: {
      ...{ port: 3000, command: ['node', 'server.js'], healthPath: '/healthz', startupTime: '90s' },
      env: [
        { name: 'A', value: '1' },
        { name: 'KEY', value: '${{secret}}' },
        { name: 'U', value: '${{app.url}}' },
      ],
      secrets: [{ name: 'S', secret: 's', key: 'k' }],
      resources: { cpu: '500m', memory: '256Mi', disk: '2Gi' },
      volumes: [{ name: 'data', path: '/data', size: '2Gi' }],
    },
    services: [{ name: 'db', type: 'postgres' }] as never,
  });
  const { hash, template } = buildPodTemplate(rich, config, { image: digest('a'), commit: first, port: 3000 }, owned);
  const objects = [
    template,
    buildDeployment(rich, template, {}),
    ...buildClaims(rich, config, []),
    buildPolicy(rich, config, [3000]),
    buildService(rich),
  ];
  assert.deepEqual(
    [hash, ...objects.map(computeHash)],
    [
      ...['21b7934003bea4df', '5bbdf8148650188a', '432b1b321de533f9', 'a20323ae62adeb7e', '1de0a76336ff0974'],
      'b6e4e4a8c193d61d',
    ],
  );
});

function build(of: HostedApp): ReturnType<typeof buildPodTemplate>['template'] {
  const { built } = of.status ?? {};
  assert.ok(built !== undefined);
  return buildPodTemplate(of, config, { ...built, port: built.port ?? 8080 }, owned).template;
}

/** The containers of a pod by name, and its annotations. */
function read(of: HostedApp): {
  containers: Map<string, Wire<V1Container>>;
  spec: Wire<V1PodSpec>;
  noted: Record<string, string>;
} {
  const { spec, metadata } = build(of);
  assert.ok(spec !== undefined && metadata?.annotations !== undefined);
  const all = [...(spec.initContainers ?? []), ...spec.containers];
  return { containers: new Map(all.map((each) => [each.name, each])), spec, noted: metadata.annotations };
}

test('runs each component in a container with its own image, command, port and probes', () => {
  const { containers } = read(createComposite(first));
  expect(containers.get('web')).toMatchObject({
    image: digest('a'),
    ports: [{ name: 'http', containerPort: 3000, protocol: 'TCP' }],
    startupProbe: { tcpSocket: { port: 'http' } },
  });
  expect(containers.get('api')).toMatchObject({
    image: digest('c'),
    ports: [{ name: 'api', containerPort: 8000, protocol: 'TCP' }],
    startupProbe: { httpGet: { path: '/ready', port: 'api' } },
  });
  const worker = containers.get('worker');
  expect(worker).toMatchObject({ image: digest('c'), command: ['python', 'worker.py'], env: [] });
  for (const field of ['ports', 'startupProbe', 'lifecycle'])
    assert.ok(!(field in (worker ?? {})), `a worker without a port has no ${field}`);
  // A worker that exits after a moment must not make its pod ready for that moment.
  expect(worker?.readinessProbe).toMatchObject({ tcpSocket: { port: 3000 }, initialDelaySeconds: 10 });
});

test('gives a component the address of another one that has a subdomain', () => {
  const list = [
    { ...components[0], env: [{ name: 'API_URL', value: '${{app.api.url}}/v1' }] },
    { ...components[1], route: { subdomain: 'api' } },
    components[2],
  ];
  const { spec } = read(createComposite(first, { list }));
  const web = spec.containers.find(({ name }) => name === 'web');
  assert.equal(web?.env?.find(({ name }) => name === 'API_URL')?.value, 'https://hello--api.apps.test/v1');
});

test('starts a component after those that it depends on, and lets each find the others at their names', () => {
  const { spec, noted } = read(createComposite(first));
  expect(spec.initContainers).toMatchObject([{ name: 'api', restartPolicy: 'Always' }]);
  assert.deepEqual(
    spec.containers.map(({ name }) => name),
    ['worker', 'web'],
  );
  assert.deepEqual(spec.hostAliases, [{ ip: '127.0.0.1', hostnames: ['api', 'worker', 'web'] }]);
  assert.equal(noted['moorage.dev/port'], '3000');
  expect(JSON.parse(noted['moorage.dev/components'] ?? '')).toMatchObject([
    { name: 'api', port: 8000, healthPath: '/ready', route: { path: '/api', stripPath: true } },
    { name: 'worker' },
    { name: 'web', port: 3000, route: { path: '/' } },
  ]);
});

test('gives a component its own variables over those of all, and one generated secret to all that ask for it', () => {
  const list = [
    {
      ...components[0],
      dependsOn: [],
      env: [
        { name: 'MODE', value: 'page' },
        { name: 'KEY', value: '${{secret}}' },
      ],
    },
    { ...components[1], env: [{ name: 'KEY', value: '${{secret}}' }] },
  ];
  const spec = { run: { env: [{ name: 'MODE', value: 'all' }] } };
  const { spec: pod } = build(createComposite(first, { spec, list, images: listImages({ web: 'a', api: 'c' }) }));
  const [web, api] = pod?.containers ?? [];
  const find = (name: string, env = web?.env): unknown => env?.find((each) => each.name === name);
  assert.deepEqual(
    [find('MODE'), find('MODE', api?.env)],
    [
      { name: 'MODE', value: 'page' },
      { name: 'MODE', value: 'all' },
    ],
  );
  assert.ok(find('KEY') !== undefined);
  assert.deepEqual(find('KEY'), find('KEY', api?.env));
});

test('mounts a volume that two components name in both, as large as the larger one asks for', () => {
  const list = [
    { ...components[0], dependsOn: [], volumes: [{ name: 'data', path: '/data' }] },
    { ...components[1], volumes: [{ name: 'data', path: '/srv/data', size: '3Gi' }] },
  ];
  const of = createComposite(first, { list, images: listImages({ web: 'a', api: 'c' }) });
  const { spec } = build(of);
  assert.deepEqual(
    spec?.containers.map(({ volumeMounts }) => volumeMounts),
    [[{ name: 'data', mountPath: '/data' }], [{ name: 'data', mountPath: '/srv/data' }]],
  );
  assert.equal(spec.volumes?.length, 1);
  const [claim, other] = buildClaims(of, config, []);
  assert.equal(other, undefined);
  expect(claim).toMatchObject({ spec: { resources: { requests: { storage: '3Gi' } } } });
  expect(buildDeployment(of, build(of), {})).toMatchObject({ spec: { strategy: { type: 'Recreate' } } });
});

test('annotates the pod with the largest disk, and waits as long as its components take one after another', () => {
  const list = [
    { ...components[0], startupTime: '30s', resources: { disk: '3Gi' } },
    { ...components[1], startupTime: '1m' },
  ];
  const of = createComposite(first, { list, images: listImages({ web: 'a', api: 'c' }) });
  const template = build(of);
  assert.equal(template.metadata?.annotations?.['moorage.dev/disk'], String(3 * 1024 ** 3));
  expect(buildDeployment(of, template, {})).toMatchObject({ spec: { progressDeadlineSeconds: 690 } });
});

test('a change of a route alone makes another template, since its pods are reached differently', () => {
  const hash = (path: string): string => {
    const list = [
      { ...components[0], dependsOn: [] },
      { ...components[1], route: { path } },
    ];
    const { metadata } = build(createComposite(first, { list, images: listImages({ web: 'a', api: 'c' }) }));
    return metadata?.annotations?.['moorage.dev/template'] ?? '';
  };
  assert.notEqual(hash('/api'), hash('/v1'));
});

test('gives the Service a port for each web component, named as in its pod', () => {
  const of = createComposite(first);
  const listed = JSON.parse(build(of).metadata?.annotations?.['moorage.dev/components'] ?? '') as never;
  const { ports } = buildService(of, listed)['spec'] as { ports: { name: string; port: number; targetPort: string }[] };
  assert.deepEqual(
    ports.map(({ name, targetPort }) => [name, targetPort]),
    [
      ['http', 'http'],
      ['api', 'api'],
    ],
  );
  assert.equal(ports[0]?.port, 80);
  assert.ok((ports[1]?.port ?? 0) >= 20_000);
});

test('runs only components that the release has images of, and one process if it has none at /', () => {
  const of = createComposite(first);
  const names = (images: ReturnType<typeof listImages>): string[] =>
    limitToRelease(of, { components: images }).spec.components.map(({ name }) => name);
  assert.deepEqual(names(listImages({ web: 'a', api: 'c' })), ['web', 'api']);
  assert.deepEqual(names(listImages({ api: 'c', worker: 'c' })), []);
  assert.deepEqual(limitToRelease(of, {}).spec.components, []);
  const [web] = limitToRelease(of, { components: listImages({ web: 'a' }) }).spec.components;
  assert.deepEqual(web?.dependsOn, []);
});
