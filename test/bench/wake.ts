// `npm run bench:wake`: thirty wakes from sleep and thirty from a nap, beside the raw start of the same pod in the same
// run, a thousand requests in one wake, and what the way through the activator costs.
import { setTimeout as sleep } from 'node:timers/promises';
import { deployments, pods, type ContainerStatus, type Pod } from '../../controller/objects/kinds.ts';
import { computePercentile } from '../../controller/steps/deploy/rest.ts';
import { createClient, readFileConnection } from '../../lib/kubernetes/index.ts';
import {
  appsNamespace,
  appUrl,
  deleteApps,
  waitFor,
  runKubectl,
  readApp,
  submit,
  runWithFiles,
} from '../support/cluster.ts';
import { sleeperFiles, measureTime, waitForState } from '../support/sleeper.ts';

const rounds = Number(process.argv[2] ?? 30);
const name = `bench-wake-${process.pid}`;
const requestsForHop = 2_000;
/** A gateway takes a moment to learn a route. */
const routedMs = 5_000;
/** One of sleep, nap and hop; without a word all of them. */
const part = process.argv[3];
const isAsked = (name: string): boolean => part === undefined || part === name;

function line(what: string, values: readonly number[]): void {
  const [p50, p95, maximum] = [computePercentile(values, 0.5), computePercentile(values, 0.95), Math.max(...values)];
  process.stdout.write(
    `${what.padEnd(34)} ${String(values.length).padStart(5)} ${[p50, p95, maximum].map((ms) => ms.toFixed(1).padStart(9)).join(' ')}\n`,
  );
}

async function patch(spec: object): Promise<void> {
  await runKubectl('patch', 'happ', name, '-n', appsNamespace, '--type=merge', '-p', JSON.stringify({ spec }));
}

async function wake(state: 'Asleep' | 'Napping'): Promise<number> {
  await waitForState(name, state, 180);
  const { status, ms } = await measureTime(appUrl(name));
  if (status !== 200) throw new Error(`a request that woke the app was answered ${status}`);
  return ms;
}

/** From the word to make the only pod of a Deployment until it runs, and until it is ready: what the cluster takes. */
async function rawStart(): Promise<{ running: number; ready: number }> {
  await scale(0);
  await waitFor('no pod', async () => ((await rawPods()).length === 0 ? true : undefined));
  const started = performance.now();
  await scale(1);
  const running = await momentOf((status) => status.state?.running !== undefined);
  const ready = await momentOf((status) => status.ready);
  await scale(0);
  return { running: running - started, ready: ready - started };
}

/** When the container of the raw pod was first seen so. */
async function momentOf(isSo: (status: ContainerStatus) => boolean): Promise<number> {
  for (;;) {
    const [pod] = await rawPods();
    if (pod?.status?.containerStatuses?.some(isSo) === true) return performance.now();
    await sleep(20);
  }
}

async function scale(replicas: number): Promise<void> {
  const ref = { name: raw, namespace: appsNamespace };
  await client.patch(deployments, ref, { spec: { replicas } }, { type: 'application/merge-patch+json' });
}

async function rawPods(): Promise<Pod[]> {
  const { items } = await client.list(pods, { namespace: appsNamespace, labelSelector: `bench=${raw}` });
  return items;
}

const raw = `${name}-raw`;
const client = createClient(await readFileConnection('.moorage/kubeconfig'));

/** The Deployment of the app under another name: its template as it is, without the operator. */
async function copyDeployment(): Promise<void> {
  const text = await runKubectl('get', 'deployment', name, '-n', appsNamespace, '-o', 'json');
  const { spec } = JSON.parse(text) as { spec: { template: { metadata: { annotations: object }; spec: object } } };
  const labels = { bench: raw };
  const manifest = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: raw, namespace: appsNamespace },
    spec: {
      replicas: 0,
      selector: { matchLabels: labels },
      // Among its annotations is the size of its disk.
      template: { metadata: { labels, annotations: spec.template.metadata.annotations }, spec: spec.template.spec },
    },
  };
  const { execa } = await import('execa');
  await execa('.moorage/kubectl', ['apply', '-f', '-'], {
    env: { KUBECONFIG: '.moorage/kubeconfig' },
    input: JSON.stringify(manifest),
  });
}

async function latencies(): Promise<number[]> {
  for (let round = 0; round < 200; round += 1) await measureTime(appUrl(name));
  const times: number[] = [];
  for (let round = 0; round < requestsForHop; round += 1) times.push((await measureTime(appUrl(name))).ms);
  return times;
}

async function benchSleep(): Promise<void> {
  await copyDeployment();
  const [asleep, starts]: [number[], Awaited<ReturnType<typeof rawStart>>[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    asleep.push(await wake('Asleep'));
    // The app is awake until its idle time is over, and has no part in this.
    starts.push(await rawStart());
  }
  line('sleep: first request to response', asleep);
  const [running, ready] = [starts.map((each) => each.running), starts.map((each) => each.ready)];
  line('raw: scale up until it runs', running);
  line('raw: scale up until it is ready', ready);
  await waitForState(name, 'Asleep', 180);
  const crowd = await Promise.all(Array.from({ length: 1_000 }, () => measureTime(appUrl(name))));
  const times = crowd.map(({ ms }) => ms);
  line('1,000 at once in a wake', times);
  const failed = crowd.filter(({ status }) => status !== 200).length;
  process.stdout.write(`  of them not answered with 200: ${failed}\n`);
}

async function benchNap(): Promise<void> {
  await patch({ run: { idle: 'nap' } });
  const naps: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    naps.push(await wake('Napping'));
    // Else the next request could find the same nap.
    await waitForState(name, 'Awake');
  }
  line('nap: request to response', naps);
}

async function benchHop(): Promise<void> {
  await patch({ run: { idle: 'sleep', idleAfter: '1h' } });
  await measureTime(appUrl(name));
  await waitForState(name, 'Awake');
  line('awake, through the activator', await latencies());
  await patch({ run: { idleAfter: 'never' } });
  await waitFor('the direct way', async () => ((await readApp(name)).status?.idle === undefined ? true : undefined));
  await sleep(routedMs);
  line('awake, directly', await latencies());
}

const [heads] = [['p50', 'p95', 'max'].map((each) => each.padStart(9)).join(' ')];
process.stdout.write(`${'milliseconds'.padEnd(34)} ${'n'.padStart(5)} ${heads}\n`);
try {
  await runWithFiles(name, sleeperFiles('10s'), async (folder) => {
    const { exitCode, all } = await submit(folder);
    if (exitCode !== 0) throw new Error(all);
  });
  await waitForState(name, 'Asleep', 180);
  if (isAsked('sleep')) await benchSleep();
  if (isAsked('nap')) await benchNap();
  const measured = (await readApp(name)).status?.idle?.wakes;
  process.stdout.write(`  as the status of the app has it: ${JSON.stringify(measured)}\n`);
  if (isAsked('hop')) await benchHop();
} finally {
  await runKubectl('delete', 'deployment', raw, '-n', appsNamespace, '--ignore-not-found');
  await deleteApps(name);
}
process.exit(0);
