// Facts about the services behind tools, as the chart renders them: off unless switched on, shut in, and where the API
// looks for them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { beforeAll, test } from 'vitest';
import { z } from 'zod';
import { backingServices, explainServiceOff, type ServiceName } from '../../../api/tools/services/backing-services.ts';
import { readToolSettings } from '../../../api/tools/config.ts';
import { readFetchConfig } from '../../../api/tools/fetch/guard.ts';
import {
  readEnvironment,
  runHelm,
  findNamed,
  selectKind,
  readPodSpec,
  render,
  required,
  writeValuesFile,
  chart,
  type Rendered,
} from '../../support/chart.ts';

const names = Object.keys(backingServices) as ServiceName[];
const network = { podCidrs: ['10.244.0.0/16'], nodeCidrs: ['192.0.2.1/32'] };
const tools = {
  ...Object.fromEntries(names.map((name) => [name, { enabled: true }])),
  pdftranslator: { enabled: true, image: 'registry.example.org/moorage-pdf-translator:1' },
};
let plain: Rendered[] = [];
let full: Rendered[] = [];
beforeAll(async () => {
  [plain, full] = [await render(required), await render({ ...required, network, tools })];
});

const fileOf = (name: string): string => readFileSync(join(chart, 'files', name), 'utf8');
const labelsOf = (component: string): object => ({
  matchLabels: {
    'app.kubernetes.io/name': 'moorage',
    'app.kubernetes.io/instance': 'moorage',
    'app.kubernetes.io/component': component,
  },
});
const target = z.looseObject({ ipBlock: z.object({ cidr: z.string(), except: z.array(z.string()) }).optional() });
const policy = z.looseObject({
  spec: z.object({
    podSelector: z.unknown(),
    policyTypes: z.tuple([z.literal('Ingress'), z.literal('Egress')]),
    ingress: z
      .array(
        z.object({ from: z.array(z.unknown()), ports: z.array(z.object({ protocol: z.string(), port: z.int() })) }),
      )
      .length(1),
    egress: z.array(
      z.object({ to: z.array(target), ports: z.array(z.object({ protocol: z.string(), port: z.int() })) }),
    ),
  }),
});
const policyOf = (objects: readonly Rendered[], name: string): z.infer<typeof policy>['spec'] =>
  policy.parse(findNamed(objects, 'NetworkPolicy', `moorage-${name}`)).spec;
/** What a policy lets out to, in words. */
const outOf = (objects: readonly Rendered[], name: string): string[] =>
  policyOf(objects, name).egress.map(({ to, ports }) => {
    const where = to.map((one) => (one.ipBlock === undefined ? JSON.stringify(one) : `internet`));
    return `${[...new Set(where)].join()} ${ports.map(({ port }) => port).join()}`;
  });
const dns =
  '{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"kube-system"}},"podSelector":{"matchLabels":{"k8s-app":"kube-dns"}}} 53,53';

const pod = z.looseObject({
  automountServiceAccountToken: z.literal(false),
  enableServiceLinks: z.literal(false),
  hostUsers: z.literal(false),
  securityContext: z.looseObject({
    runAsNonRoot: z.literal(true),
    runAsUser: z.int().min(1),
    seccompProfile: z.object({ type: z.literal('RuntimeDefault') }),
  }),
  containers: z
    .array(
      z.looseObject({
        image: z.string().min(1),
        args: z.array(z.string()).optional(),
        env: z.array(z.looseObject({ name: z.string(), value: z.string().optional() })),
        resources: z.object({
          requests: z.object({ cpu: z.string(), memory: z.string() }),
          limits: z.object({ cpu: z.string(), memory: z.string() }),
        }),
        securityContext: z.object({
          allowPrivilegeEscalation: z.literal(false),
          readOnlyRootFilesystem: z.literal(true),
          capabilities: z.object({ drop: z.tuple([z.literal('ALL')]) }),
        }),
        startupProbe: z.looseObject({}),
        livenessProbe: z.looseObject({}),
        readinessProbe: z.looseObject({}),
        ports: z.array(z.object({ name: z.literal('http'), containerPort: z.int() })).length(1),
      }),
    )
    .length(1),
  initContainers: z
    .array(
      z.looseObject({
        command: z.array(z.string()),
        securityContext: z.object({
          allowPrivilegeEscalation: z.literal(false),
          readOnlyRootFilesystem: z.literal(true),
          capabilities: z.unknown(),
        }),
      }),
    )
    .optional(),
});
const podOf = (objects: readonly Rendered[], name: string): z.infer<typeof pod> =>
  pod.parse(readPodSpec(findNamed(objects, 'Deployment', `moorage-${name}`)));

test('runs none of them unless enabled, and configures none in the API', () => {
  assert.deepEqual(
    selectKind(plain, 'Deployment')
      .map(({ metadata }) => metadata.name)
      .sort(),
    ['moorage-activator', 'moorage-api', 'moorage-operator', 'moorage-registry-proxy', 'moorage-workers'],
  );
  assert.deepEqual(readToolSettings(readEnvironment(plain, 'api')).urls, {});
});

test('gives each a Deployment, a Service, probes, limits, no token, no root and no capability', async () => {
  for (const name of [...names, 'gotenberg-proxy']) {
    const [container] = podOf(full, name).containers;
    const service = z
      .looseObject({
        spec: z.looseObject({
          selector: z.unknown(),
          ports: z.array(z.looseObject({ targetPort: z.literal('http') })).length(1),
        }),
      })
      .parse(findNamed(full, 'Service', `moorage-${name}`));
    assert.deepEqual(service.spec.selector, (labelsOf(name) as { matchLabels: unknown }).matchLabels);
    assert.match(container?.image ?? '', /^[^:]+\.[^:]+\/.+:[^:]*\d/, name);
    assert.deepEqual(policyOf(full, name).podSelector, labelsOf(name));
  }
  assert.match(
    await runHelm(['lint', '--strict', chart, '--values', writeValuesFile({ ...required, tools })]),
    /0 chart\(s\) failed/,
  );
});

test('lets the API find and reach each, and nothing else', () => {
  const { urls, speechModel } = readToolSettings(readEnvironment(full, 'api'));
  assert.deepEqual(
    urls,
    Object.fromEntries(names.map((name) => [name, `http://moorage-${name}.moorage-system.svc.cluster.local`])),
  );
  assert.equal(speechModel, 'Systran/faster-whisper-small');
  const { egress } = z
    .looseObject({ spec: z.looseObject({ egress: z.array(z.unknown()) }) })
    .parse(findNamed(full, 'NetworkPolicy', 'moorage-api')).spec;
  for (const name of names) {
    const port = podOf(full, name).containers[0]?.ports[0]?.containerPort;
    assert.deepEqual(
      policyOf(full, name).ingress,
      [{ from: [{ podSelector: labelsOf('api') }], ports: [{ protocol: 'TCP', port }] }],
      name,
    );
    assert.ok(
      egress.some((rule) =>
        isDeepStrictEqual(rule, { to: [{ podSelector: labelsOf(name) }], ports: [{ protocol: 'TCP', port }] }),
      ),
      name,
    );
  }
  assert.deepEqual(policyOf(full, 'gotenberg-proxy').ingress, [
    { from: [{ podSelector: labelsOf('gotenberg') }], ports: [{ protocol: 'TCP', port: 3128 }] },
  ]);
});

test('lets each reach what it needs and no more', () => {
  assert.deepEqual(outOf(full, 'searxng'), [dns, 'internet 80,443']);
  assert.deepEqual(
    outOf(full, 'gotenberg').map((out) => out.replace(/"matchLabels":\{[^}]*gotenberg-proxy[^}]*\}/, 'proxy')),
    [dns, '{"podSelector":{proxy}} 3128'],
  );
  assert.deepEqual(outOf(full, 'gotenberg-proxy'), [dns, 'internet 80,443,8080,8443']);
  assert.deepEqual(outOf(full, 'speech'), [dns, 'internet 443']);
  for (const name of ['languagetool', 'pdftranslator']) assert.deepEqual(outOf(full, name), []);
  for (const name of ['searxng', 'gotenberg-proxy', 'speech']) {
    const except = policyOf(full, name)
      .egress.flatMap(({ to }) => to)
      .flatMap(({ ipBlock }) => ipBlock?.except ?? []);
    for (const cidr of ['10.0.0.0/8', '169.254.0.0/16', '10.244.0.0/16', '192.0.2.1/32', 'fc00::/7'])
      assert.ok(except.includes(cidr), `${name} reaches ${cidr}`);
  }
});

test("runs Gotenberg with the flags and the Chromium of its tests, behind the proxy that applies the API's rules", () => {
  const args = podOf(full, 'gotenberg').containers[0]?.args ?? [];
  const flags = fileOf('gotenberg-flags')
    .split('\n')
    .filter((line) => line.startsWith('--'));
  assert.ok(flags.includes('--webhook-disable') && flags.includes('--libreoffice-deny-list=.*'));
  assert.deepEqual(args.slice(0, -1), ['gotenberg', ...flags]);
  assert.equal(
    args.at(-1),
    '--chromium-proxy-server=http://moorage-gotenberg-proxy.moorage-system.svc.cluster.local:3128',
  );
  assert.equal(readEnvironment(full, 'gotenberg')['CHROMIUM_BIN_PATH'], '/etc/moorage/chromium');
  assert.deepEqual(findNamed(full, 'ConfigMap', 'moorage-gotenberg')['data'], {
    chromium: fileOf('gotenberg-chromium'),
  });
  assert.deepEqual(
    readFetchConfig(readEnvironment(full, 'gotenberg-proxy')),
    readFetchConfig(readEnvironment(full, 'api')),
  );
});

test('SearXNG returns JSON, with a secret that survives upgrades or is given', async () => {
  assert.match(JSON.stringify(findNamed(full, 'ConfigMap', 'moorage-searxng')), /formats: \[html, json\]/);
  assert.equal(findNamed(full, 'Secret', 'moorage-searxng').metadata.annotations?.['helm.sh/resource-policy'], 'keep');
  const given = await render({ ...required, tools: { searxng: { enabled: true, secretKeySecret: 'mine' } } });
  assert.deepEqual(
    selectKind(given, 'Secret').filter(({ metadata }) => metadata.name === 'moorage-searxng'),
    [],
  );
  assert.match(JSON.stringify(findNamed(given, 'Deployment', 'moorage-searxng')), /"name":"mine"/);
});

test('SearXNG drops a slow engine before the API times out, and has threads for its probe in addition to searches', () => {
  assert.match(JSON.stringify(findNamed(full, 'ConfigMap', 'moorage-searxng')), /max_request_timeout: 15\b/);
  assert.deepEqual(
    podOf(full, 'searxng').containers[0]?.env.find(({ name }) => name === 'GRANIAN_BLOCKING_THREADS')?.value,
    '32',
  );
});

test('a speech server with its model on a volume downloads nothing', async () => {
  assert.equal(podOf(full, 'speech').initContainers?.[0]?.command.at(-1), 'Systran/faster-whisper-small');
  const claimed = await render({ ...required, tools: { speech: { enabled: true, modelClaim: 'whisper' } } });
  assert.deepEqual([podOf(claimed, 'speech').initContainers, outOf(claimed, 'speech')], [undefined, []]);
});

test('a speech server with the model in its image downloads nothing', async () => {
  const held = await render({ ...required, tools: { speech: { enabled: true, modelInImage: true } } });
  assert.deepEqual([podOf(held, 'speech').initContainers, outOf(held, 'speech')], [undefined, []]);
});

test('passes the API the reason why a service is off, and none for one that runs', async () => {
  const cause = 'this machine has no internet, so there is nothing to search';
  const some = await render({
    ...required,
    tools: { searxng: { offBecause: cause }, gotenberg: { enabled: true, offBecause: 'it is being started' } },
  });
  const { offCauses, urls } = readToolSettings(readEnvironment(some, 'api'));
  assert.deepEqual([offCauses, Object.keys(urls)], [{ searxng: cause }, ['gotenberg']]);
  assert.match(
    explainServiceOff('searxng', offCauses.searxng),
    /which is off: this machine has no internet, so there is nothing to search\. The operator .* tools\.searxng\.enabled/,
  );
});

test('the PDF translator finds the models in its image', () => {
  const dockerfile = readFileSync(
    new URL('../../../localnode/images/pdf-translator/Dockerfile', import.meta.url),
    'utf8',
  );
  const {
    containers: [container],
    securityContext,
  } = podOf(full, 'pdftranslator');
  const [, home, user, port] = [/HOME=(\S+)/, /USER (\d+)/, /EXPOSE (\d+)/].reduce<string[]>(
    (found, pattern) => [...found, pattern.exec(dockerfile)?.[1] ?? ''],
    [''],
  );
  assert.deepEqual(
    [
      readEnvironment(full, 'pdftranslator')['HOME'],
      String(securityContext.runAsUser),
      String(container?.ports[0]?.containerPort),
    ],
    [home, user, port],
  );
});

test("passes an external service's address to the API and runs nothing", async () => {
  const objects = await render({
    ...required,
    tools: {
      searxng: { enabled: true, url: 'https://search.example.org' },
      gotenberg: { url: 'http://gotenberg.print.svc.cluster.local', namespaceLabels: { name: 'print' }, port: 3000 },
    },
  });
  assert.deepEqual(readToolSettings(readEnvironment(objects, 'api')).urls, {
    searxng: 'https://search.example.org',
    gotenberg: 'http://gotenberg.print.svc.cluster.local',
  });
  assert.deepEqual(
    selectKind(objects, 'Deployment')
      .map(({ metadata }) => metadata.name)
      .sort(),
    ['moorage-activator', 'moorage-api', 'moorage-operator', 'moorage-registry-proxy', 'moorage-workers'],
  );
  assert.match(
    JSON.stringify(findNamed(objects, 'NetworkPolicy', 'moorage-api')),
    /\{"to":\[\{"namespaceSelector":\{"matchLabels":\{"name":"print"\}\}\}\],"ports":\[\{"protocol":"TCP","port":3000\}\]\}/,
  );
});

test('rejects by name what cannot run', async () => {
  await assert.rejects(
    render({ ...required, tools: { pdftranslator: { enabled: true } } }),
    /tools\.pdftranslator\.image is missing/,
  );
  await assert.rejects(
    render({ ...required, tools: { gotenberg: { enable: true } } }),
    /additional properties 'enable' not allowed/,
  );
});

test('LanguageTool becomes ready once it has loaded a language, since the first check is slow', () => {
  const probe = z.looseObject({ httpGet: z.looseObject({ path: z.string() }), timeoutSeconds: z.int() });
  const [container] = podOf(full, 'languagetool').containers;
  assert.equal(probe.parse(container?.startupProbe).httpGet.path, '/v2/check?language=de-DE&text=Das+ist+ein+Fehlerr.');
  assert.equal(probe.parse(container?.readinessProbe).httpGet.path, '/v2/healthcheck');
});
