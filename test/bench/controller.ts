// Measures the real operator process with 1000 apps on a real API server: no-op resync, change to applied child,
// memory.
// Simulated: commits (written to status), and what kubelet, job and deployment controllers and gateway would write.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  deployments,
  hostedApps,
  jobs,
  pods,
  routes,
  type Deployment,
  type HttpRoute,
  type Job,
} from '../../controller/objects/kinds.ts';
import { identifySource } from '../../controller/steps/source/source.ts';
import { applyStatus } from '../../lib/kubernetes/index.ts';
import { hostedApp } from '../../crds/hosted-app.ts';
import { readCommandLine, parseWholeNumber } from '../../lib/command-line.ts';
import { acceptRoute, buildWell, formatImage, rollOut } from '../support/operator/stand-in.ts';
import { listAll, startWorld, waitFor, type Operator, type World } from '../support/operator/world.ts';

const usage = `usage: npm run bench:controller -- [--apps N]

  --apps N   how many HostedApps to create (default: BENCH_APPS, else 1000)`;

const apps = readCommandLine(
  { usage, options: { apps: { type: 'string', default: process.env['BENCH_APPS'] ?? '1000' } } },
  ({ values }) => parseWholeNumber('--apps', values.apps),
);
const changes = Math.min(apps, 300);
const namespace = 'moorage-apps';
const commit = 'c'.repeat(40);
const aims = { resyncSeconds: 10, changeP95Ms: 250, rssMiB: 150 };

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Runs `work` over all items, some at a time. */
async function each<T>(items: readonly T[], work: (item: T) => Promise<unknown>, width = 16): Promise<void> {
  const rest = [...items];
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item);
    }),
  );
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function fill(world: World, names: readonly string[]): Promise<void> {
  await each(names, async (name) => {
    await world.submit(name, { source: { interval: '24h' } });
    const app = hostedApp.parse(await world.app(name));
    const polledAt = `${new Date().toISOString().slice(0, 19)}Z`;
    const source = { commit, reference: 'refs/heads/main', polledAt, polledFor: identifySource(app) };
    await applyStatus(world.client, hostedApps, app.metadata, { source });
  });
}

/** Plays the rest of the world until every app is live. */
async function bringLive(world: World, names: readonly string[]): Promise<void> {
  const { client } = world;
  const isOpen = (job: Job): boolean => job.spec?.suspend !== true && job.status?.conditions === undefined;
  const isUnrolled = (deployment: Deployment): boolean =>
    (deployment.status?.observedGeneration ?? 0) < (deployment.metadata.generation ?? 0);
  const isUnanswered = (route: HttpRoute): boolean => route.status === undefined;
  await waitFor(
    `${names.length} live apps`,
    async () => {
      await each((await listAll(client, jobs, 'moorage-builds')).filter(isOpen), (job) =>
        buildWell(client, job, commit, formatImage(job, 'a')),
      );
      await each((await listAll(client, deployments, namespace)).filter(isUnrolled), (deployment) =>
        rollOut(client, deployment),
      );
      await each((await listAll(client, routes, namespace)).filter(isUnanswered), (route) =>
        acceptRoute(world, route.metadata.name),
      );
      const live = (await listAll(client, hostedApps, namespace)).filter((app) => app.status?.phase === 'Live').length;
      return live === names.length;
    },
    900,
  );
}

/** Reconciles of HostedApps so far, as the process itself counts them. */
async function reconciles(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { connection: 'close' } })).text();
  return text
    .split('\n')
    .filter((line) => line.startsWith('moorage_reconcile_total{') && line.includes('hosted-apps'))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

async function memory(operator: Operator): Promise<{ rss: number; peak: number }> {
  const text = await readFile(`/proc/${operator.process.pid ?? 0}/status`, 'utf8');
  const mebibytes = (field: string): number =>
    Math.round(Number(new RegExp(`${field}:\\s+(\\d+)`).exec(text)?.[1]) / 1024);
  return { rss: mebibytes('VmRSS'), peak: mebibytes('VmHWM') };
}

async function versions(world: World): Promise<string> {
  const lists = [
    await listAll(world.client, hostedApps, namespace),
    await listAll(world.client, deployments, namespace),
    await listAll(world.client, routes, namespace),
  ];
  return JSON.stringify(
    lists
      .flat()
      .map(({ kind, metadata }) => `${kind} ${metadata.name} ${metadata.resourceVersion}`)
      .sort(),
  );
}

/** Seconds from the first reconcile of a resync to its last, warm, by the process's own counter. */
async function measureResync(port: number): Promise<number> {
  let [before, startedAt] = [await reconciles(port), performance.now()];
  await waitFor(
    'a resync to begin',
    async () => {
      const count = await reconciles(port);
      if (count > before) return true;
      [before, startedAt] = [count, performance.now()];
      return false;
    },
    120,
  );
  await waitFor('the resync to end', async () => (await reconciles(port)) >= before + apps, 120);
  return (performance.now() - startedAt) / 1000;
}

/** Milliseconds from each accepted change of a spec to the Deployment that carries it, sorted. */
async function measureChanges(world: World, names: readonly string[]): Promise<number[]> {
  const pending = new Map<string, number>();
  const took: number[] = [];
  const stop = new AbortController();
  const page = await world.client.list(deployments, { namespace, limit: 1 });
  const watching = (async () => {
    for await (const event of world.client.watch(deployments, {
      namespace,
      resourceVersion: page.resourceVersion,
      timeoutSeconds: 600,
      signal: stop.signal,
    })) {
      if (event.type !== 'MODIFIED' || !JSON.stringify(event.object.spec).includes('"BENCH"')) continue;
      const at = pending.get(event.object.metadata.name);
      if (at === undefined) continue;
      pending.delete(event.object.metadata.name);
      took.push(performance.now() - at);
    }
  })().catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });
  for (const name of names) {
    const at = performance.now();
    pending.set(name, at);
    await world.client.patch(
      hostedApps,
      { name, namespace },
      { spec: { run: { env: [{ name: 'BENCH', value: '1' }] } } },
      { type: 'application/merge-patch+json' },
    );
    await sleep(Math.max(0, 50 - (performance.now() - at)));
  }
  await waitFor('every change to be applied', () => Promise.resolve(pending.size === 0), 60);
  stop.abort();
  await watching;
  return took.sort((a, b) => a - b);
}

function percentile(sorted: readonly number[], share: number): number {
  return Math.round(sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? NaN);
}

async function bench(world: World): Promise<void> {
  const names = Array.from({ length: apps }, (_, index) => `app-${index}`);
  const port = await freePort();
  // As the image starts it: memory goes back to the system, and code has been stripped of its types before.
  const allocator = { MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '131072', MALLOC_TRIM_THRESHOLD_: '131072' };
  const cache = await mkdtemp(join(tmpdir(), 'moorage-compiled-'));
  const variables: Record<string, string> = {
    MOORAGE_INTERNAL_PORT: String(port),
    MOORAGE_BUILDS_CONCURRENCY: String(apps),
    LOG_LEVEL: 'warn',
    NODE_ENV: 'production',
    ...allocator,
    NODE_COMPILE_CACHE: cache,
  };
  let startedAt = performance.now();
  const since = (): string => `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
  await fill(world, names);
  say(`${apps} HostedApps created in ${since()}`);
  startedAt = performance.now();
  const first = world.startOperator(variables);
  await bringLive(world, names);
  say(`all live in ${since()}; operator ${JSON.stringify(await memory(first))} MiB while filling`);
  await first.end();

  const before = await versions(world);
  startedAt = performance.now();
  const operator = world.startOperator({ ...variables, MOORAGE_RESYNC: '20s' });
  await waitFor('the new operator', async () => (await reconciles(port).catch(() => 0)) >= apps, 120);
  say(`cold: process start, caches, lease, ${apps} reconciles in ${since()}`);
  const resync = await measureResync(port);
  assert.equal(await versions(world), before, 'a resync that changes nothing must write nothing');
  const idle = await memory(operator);
  const took = await measureChanges(world, names.slice(0, changes));
  const busy = await memory(operator);
  const p95 = percentile(took, 0.95);
  say(`no-op resync of ${apps}: ${resync.toFixed(2)} s (aim <= ${aims.resyncSeconds})`);
  say(
    `spec change to applied Deployment, ${took.length} changes at 20/s: p50 ${percentile(took, 0.5)} ms, p95 ${p95} ms, max ${percentile(took, 1)} ms (aim p95 <= ${aims.changeP95Ms})`,
  );
  say(
    `RSS: ${idle.rss} MiB after the resync, ${busy.rss} MiB after the changes, peak ${busy.peak} MiB (aim <= ${aims.rssMiB})`,
  );
  say(
    `objects cached: ${apps} HostedApps, ${(await listAll(world.client, jobs, 'moorage-builds')).length} Jobs, ${(await listAll(world.client, pods, 'moorage-builds')).length} + ${(await listAll(world.client, pods, namespace)).length} pods, and ${apps} each of Deployment, Service, NetworkPolicy, HTTPRoute`,
  );
  await operator.end();
  await rm(cache, { recursive: true, force: true });
  if (resync > aims.resyncSeconds || p95 > aims.changeP95Ms || busy.rss > aims.rssMiB) process.exitCode = 1;
}

const world = await startWorld();
try {
  await bench(world);
} finally {
  await world.stop();
}
