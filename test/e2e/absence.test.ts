// Each component is scaled to zero in turn: `npm run status` and kubectl say so. Which alert fires for each is tested in
// test/integration/monitoring/firing-absence.test.ts.
import assert from 'node:assert/strict';
import { beforeAll, onTestFinished, test } from 'vitest';
import { execa } from 'execa';
import { z } from 'zod';
import { routes } from '../../controller/objects/kinds.ts';
import {
  appsNamespace,
  appUrl,
  connect,
  waitFor,
  get,
  runKubectl,
  readApp,
  systemNamespace,
} from '../support/cluster.ts';

const gatewayNamespace = 'moorage-gateway';

/** By component: its workload, and whether apps that may rest are reached through it. */
const components = [
  ['registry proxy', systemNamespace, 'deployment/moorage-registry-proxy', false],
  ['workers', systemNamespace, 'deployment/moorage-workers', false],
  ['API', systemNamespace, 'deployment/moorage-api', false],
  ['PostgreSQL', systemNamespace, 'statefulset/moorage-postgres', false],
  ['activators', systemNamespace, 'deployment/moorage-activator', true],
  ['gateway', gatewayNamespace, 'deployment/traefik', true],
  ['operator', systemNamespace, 'deployment/moorage-operator', false],
] as const;

async function status(): Promise<{ exitCode: number | undefined; all: string }> {
  const options = { all: true, reject: false, timeout: 120_000 } as const;
  const { exitCode, all } = await execa('sh', ['cli/bootstrap.sh', 'status'], options);
  return { exitCode, all };
}

async function phase(): Promise<string | undefined> {
  return (await readApp('hello')).status?.phase;
}

const backends = z.object({
  spec: z.object({ rules: z.array(z.object({ backendRefs: z.array(z.object({ name: z.string() })) })) }),
});

async function readBackends(): Promise<readonly string[]> {
  const route = await (await connect()).get(routes, { name: 'hello', namespace: appsNamespace });
  return backends.parse(route).spec.rules.flatMap(({ backendRefs }) => backendRefs.map(({ name }) => name));
}

/** Apps are routed past activators that are gone, so one that fails meanwhile does so for a moment only. */
async function isFailingOrBypassed(): Promise<true | undefined> {
  if ((await phase()) === 'Failing')
    return /^hello +\S+ +Failing /m.test(await runKubectl('get', 'happ', 'hello', '-n', appsNamespace)) || undefined;
  if ((await readBackends()).includes('moorage-activator')) return undefined;
  return (await get(appUrl('hello'))).status === 200 && (await phase()) === 'Live' ? true : undefined;
}

async function patchHello(idleAfter: string | null): Promise<void> {
  const patch = JSON.stringify({ spec: { run: { idleAfter } } });
  await runKubectl('patch', 'happ', 'hello', '-n', appsNamespace, '--type=merge', '-p', patch);
}

beforeAll(async () => {
  // Its route then leads through the activators.
  await patchHello('1h');
  await waitFor('the route to the activators', async () => {
    return (await readBackends()).includes('moorage-activator') ? true : undefined;
  });
  await waitFor('hello is live', async () => ((await phase()) === 'Live' ? true : undefined), 120);
  return () => patchHello(null);
});

test('with every component present, status reports that everything is running', async () => {
  // What ran before may have restarted all of it.
  const { exitCode, all } = await waitFor(
    'everything is running',
    async () => {
      const seen = await status();
      assert.equal(seen.exitCode, 0, seen.all);
      return seen;
    },
    300,
  );
  assert.match(all, /ok replicas +as installed/);
  assert.equal(exitCode, 0);
});

for (const [component, namespace, workload, carriesApps] of components) {
  test(`${component} at zero replicas: status and kubectl report it`, async () => {
    const inNamespace = ['-n', namespace, workload] as const;
    const installed = await runKubectl('get', ...inNamespace, '-o', 'jsonpath={.spec.replicas}');
    onTestFinished(async () => {
      await runKubectl('scale', ...inNamespace, `--replicas=${installed}`);
      await runKubectl('rollout', 'status', ...inNamespace, '--timeout=180s');
      await waitFor('hello is live again', async () => ((await phase()) === 'Live' ? true : undefined), 120);
    });
    await runKubectl('scale', ...inNamespace, '--replicas=0');
    const name = workload.split('/')[1] ?? '';
    const { exitCode, all } = await status();
    assert.equal(exitCode, 1, all);
    const problem = `${namespace}/${name}: 0 of ${installed} replicas are ready; it was scaled from ${installed} to 0`;
    assert.ok(all.includes(`  -> ${problem}`), all);
    assert.ok(all.trimEnd().endsWith('not everything is running'), all);
    assert.match(await runKubectl('get', ...inNamespace), new RegExp(`^${name} +0/0 `, 'm'));
    if (carriesApps) await waitFor('hello is Failing, or reached without it', () => isFailingOrBypassed(), 150);
  });
}

test('without an operator, kubectl get happ shows how long ago the app was last checked', async () => {
  const wide = await runKubectl('get', 'happ', 'hello', '-n', appsNamespace);
  assert.match(wide.split('\n')[0] ?? '', / CHECKED +AGE$/);
  const { checkedAt = '' } = (await readApp('hello')).status ?? {};
  assert.ok(Date.now() - Date.parse(checkedAt) < 11 * 60_000, checkedAt);
});
