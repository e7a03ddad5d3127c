// The database as the chart sets it up: two roles, of which each container has what it needs, and TLS.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import {
  addGatewayTypes,
  install,
  findNamed,
  selectKind,
  render,
  required,
  type Rendered,
} from '../../support/chart.ts';
import { startApiServer, type ApiServer } from '../../support/kubernetes/api-server.ts';

const withPostgres = { ...required, postgres: { enabled: true } };

const container = z.looseObject({
  name: z.string(),
  args: z.array(z.string()).optional(),
  command: z.array(z.string()).optional(),
  env: z
    .array(
      z.looseObject({
        name: z.string(),
        value: z.string().optional(),
        valueFrom: z.looseObject({ secretKeyRef: z.looseObject({ name: z.string() }).optional() }).optional(),
      }),
    )
    .default([]),
  volumeMounts: z.array(z.looseObject({ name: z.string(), mountPath: z.string() })).default([]),
});
const podSpec = z.looseObject({
  initContainers: z.array(container).default([]),
  containers: z.array(container),
  volumes: z.array(z.looseObject({ name: z.string(), secret: z.looseObject({ secretName: z.string() }).optional() })),
});
const workload = z.looseObject({ spec: z.looseObject({ template: z.looseObject({ spec: podSpec }) }) });
const cronJob = z.looseObject({ spec: z.looseObject({ jobTemplate: workload }) });
const secret = z.looseObject({ stringData: z.object({ url: z.string(), password: z.string() }) });

type Container = z.infer<typeof container>;
const podOf = (objects: readonly Rendered[], kind: string, name: string): z.infer<typeof podSpec> =>
  workload.parse(findNamed(objects, kind, name)).spec.template.spec;
const secretsOf = ({ env }: Container): string[] =>
  env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef?.name ?? []).filter((name) => /postgres|database/.test(name));

test("gives the serving process the runtime role, and only the init container the migrator's credentials", async () => {
  const objects = await render(withPostgres);
  const { initContainers, containers } = podOf(objects, 'Deployment', 'moorage-api');
  assert.deepEqual(containers.map(secretsOf), [['moorage-database']]);
  assert.deepEqual(initContainers.map(secretsOf), [
    ['moorage-database', 'moorage-database-migrator', 'moorage-postgres'],
  ]);
  assert.deepEqual(initContainers[0]?.command, ['node', 'api/billing/database/prepare.ts']);
  const others = objects.filter(({ kind, metadata }) => kind !== 'Secret' && metadata.name !== 'moorage-api');
  const naming = others.filter((object) => /"moorage-database(-migrator)?"/.test(JSON.stringify(object)));
  assert.deepEqual(naming, []);
  const roles = ['moorage-database', 'moorage-database-migrator'].map((name) => {
    const { url, password } = secret.parse(findNamed(objects, 'Secret', name)).stringData;
    const { username, password: given, hostname, search } = new URL(url);
    assert.equal(given, password);
    assert.equal(hostname, 'moorage-postgres.moorage-system.svc.cluster.local');
    assert.equal(search, '?sslmode=verify-full&sslrootcert=/etc/moorage-database/ca.crt');
    return username;
  });
  assert.deepEqual(roles, ['moorage_api', 'moorage_migrator']);
  const passwords = ['moorage-database', 'moorage-database-migrator', 'moorage-postgres'].map(
    (name) => secret.parse(findNamed(objects, 'Secret', name)).stringData.password,
  );
  assert.equal(new Set(passwords).size, 3);
});

test("serves TLS with a certificate for PostgreSQL's name, whose key no other pod has", async () => {
  const objects = await render({
    ...withPostgres,
    models: { router: { baseUrl: 'https://router.example.org', keySecret: 'router' } },
    bench: { schedule: '0 3 * * *', apps: ['one'], models: ['model'] },
  });
  const { data } = z
    .looseObject({
      data: z.record(
        z.string(),
        z.base64().transform((text) => Buffer.from(text, 'base64')),
      ),
    })
    .parse(findNamed(objects, 'Secret', 'moorage-postgres-tls'));
  const [certificate, authority] = ['tls.crt', 'ca.crt'].map((name) => new X509Certificate(data[name] ?? ''));
  assert.ok(certificate !== undefined && authority !== undefined);
  assert.ok(certificate.checkIssued(authority) && certificate.verify(authority.publicKey));
  assert.equal(
    certificate.checkHost('moorage-postgres.moorage-system.svc.cluster.local'),
    'moorage-postgres.moorage-system.svc.cluster.local',
  );
  assert.ok(certificate.validToDate.getTime() > Date.now() + 9 * 365 * 86_400_000);
  const { containers, initContainers } = podOf(objects, 'StatefulSet', 'moorage-postgres');
  assert.deepEqual(containers[0]?.args, [
    'postgres',
    '-c',
    'ssl=on',
    '-c',
    'ssl_cert_file=/tls/tls.crt',
    '-c',
    'ssl_key_file=/tls/tls.key',
  ]);
  assert.ok(initContainers.some(({ volumeMounts }) => volumeMounts.some(({ mountPath }) => mountPath === '/tls')));
  const pods = [
    podOf(objects, 'Deployment', 'moorage-api'),
    cronJob.parse(findNamed(objects, 'CronJob', 'moorage-bench-one')).spec.jobTemplate.spec.template.spec,
  ];
  for (const { volumes, containers: served, initContainers: preparing } of pods) {
    assert.deepEqual(
      volumes.flatMap(({ secret: source }) => (source === undefined ? [] : [source])),
      [{ secretName: 'moorage-postgres-tls', items: [{ key: 'ca.crt', path: 'ca.crt' }] }],
    );
    for (const { volumeMounts } of [...served, ...preparing])
      assert.ok(volumeMounts.some(({ mountPath }) => mountPath === '/etc/moorage-database'));
  }
});

test("accepts the operator's own database with one role or two, and with its own certificate authority", async () => {
  const single = await render({ ...required, database: { urlSecret: 'ledger' } });
  const one = podOf(single, 'Deployment', 'moorage-api');
  assert.deepEqual(
    [
      one.initContainers,
      one.containers.map(({ env }) => env.find(({ name }) => name === 'DATABASE_URL')?.valueFrom?.secretKeyRef?.name),
    ],
    [[], ['ledger']],
  );
  assert.ok(one.volumes.every(({ name }) => name !== 'database-ca'));
  const double = await render({
    ...required,
    database: { urlSecret: 'ledger', migratorUrlSecret: 'ledger-owner', caSecret: 'ledger-ca' },
  });
  const two = podOf(double, 'Deployment', 'moorage-api');
  assert.deepEqual(
    two.initContainers.map(({ env }) =>
      env.flatMap(({ name, valueFrom }) =>
        valueFrom?.secretKeyRef === undefined ? [] : [[name, valueFrom.secretKeyRef.name]],
      ),
    ),
    [
      [
        ['DATABASE_URL', 'ledger'],
        ['MOORAGE_MIGRATOR_DATABASE_URL', 'ledger-owner'],
      ],
    ],
  );
  assert.ok(two.containers.every(({ env }) => env.every(({ name }) => name !== 'MOORAGE_MIGRATOR_DATABASE_URL')));
  assert.ok(two.volumes.some(({ secret: source }) => source?.secretName === 'ledger-ca'));
  assert.deepEqual(selectKind(double, 'StatefulSet'), []);
  const none = podOf(await render(required), 'Deployment', 'moorage-api');
  assert.deepEqual(none.initContainers, []);
});

let server: ApiServer;
beforeAll(async () => {
  server = await startApiServer();
  await addGatewayTypes(server);
});
afterAll(() => server.stop());

async function readSecret(name: string): Promise<string> {
  return server.kubectl('-n', 'moorage-system', 'get', 'secret', name, '-o', 'jsonpath={.data}');
}

test('keeps passwords and certificate across upgrades, and the superuser of a version with one role', async () => {
  await server.kubectl('create', 'namespace', 'moorage-system');
  await server.kubectl(
    ...['-n', 'moorage-system', 'create', 'secret', 'generic', 'moorage-postgres'],
    ...[
      '--from-literal=password=of-the-volume',
      '--from-literal=url=postgres://moorage:of-the-volume@moorage-postgres/moorage',
    ],
  );
  for (const [kind, value] of [
    ['annotate', 'meta.helm.sh/release-name=moorage'],
    ['annotate', 'meta.helm.sh/release-namespace=moorage-system'],
    ['label', 'app.kubernetes.io/managed-by=Helm'],
  ] as const)
    await server.kubectl('-n', 'moorage-system', kind, 'secret', 'moorage-postgres', value);
  await install(server, withPostgres);
  const names = ['moorage-postgres', 'moorage-database', 'moorage-database-migrator', 'moorage-postgres-tls'];
  const before = await Promise.all(names.map(readSecret));
  assert.match(before[0] ?? '', new RegExp(Buffer.from('of-the-volume').toString('base64')));
  await install(server, withPostgres);
  assert.deepEqual(await Promise.all(names.map(readSecret)), before);
});
