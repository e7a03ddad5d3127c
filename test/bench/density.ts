// `npm run bench:density`: fills the running cluster with small apps, and measures what each costs and how long a new
// submission takes among them.
import { counts } from './density-options.ts';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { z } from 'zod';
import { parseUsage } from '../../controller/usage/usage.ts';
import { parseMilli } from '../../controller/objects/kinds.ts';
import { readInstallation } from '../../cli/submit/installation.ts';
import { pushSnapshot, takeSnapshot } from '../../cli/submit/snapshot.ts';
import { appsNamespace, deleteApps, waitFor, runKubectl } from '../support/cluster.ts';
import { median, submitToLive, withRepository } from './submission.ts';

/** Each a small app as people write them: files behind nginx, Flask behind gunicorn, Express. */
const kinds = ['static', 'flask', 'express'] as const;
const rounds = 3;
/** Requests follow the use a minute and a half after an app has begun. */
const settleMs = 100_000;
const mebibyte = 1024 * 1024;

interface Density {
  readonly apps: number;
  /** Working set of an app, in MiB: mean of all. */
  readonly memory: number;
  /** Memory of the machine that an app costs with all that is needed around it, in MiB. */
  readonly machine: number;
  /** CPU that all apps together request, in thousandths. */
  readonly cpu: number;
  readonly live: readonly number[];
}

const appList = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string() }),
      status: z.object({ phase: z.string().optional() }).default({}),
    }),
  ),
});
const podList = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string() }),
      spec: z.object({
        containers: z.array(z.object({ resources: z.object({ requests: z.object({ cpu: z.string() }) }) })),
      }),
    }),
  ),
});

const nameOf = (index: number): string => `density-${process.pid}-${index}`;
const made: string[] = [];

async function pushKinds(): Promise<string[]> {
  const installation = await readInstallation();
  const repos: string[] = [];
  for (const kind of kinds) {
    const snapshot = await takeSnapshot(join(import.meta.dirname, '..', 'fixtures', kind));
    repos.push(await pushSnapshot(snapshot, `density-${kind}`, installation));
    await snapshot.remove();
  }
  return repos;
}

/** Has that many apps live, those of before included. */
async function fill(count: number, repos: readonly string[]): Promise<void> {
  const manifests: object[] = [];
  for (let index = made.length; index < count; index += 1) {
    made.push(nameOf(index));
    manifests.push({
      apiVersion: 'moorage.dev/v1alpha1',
      kind: 'HostedApp',
      metadata: { name: nameOf(index), namespace: appsNamespace },
      spec: { source: { repo: repos[index % repos.length], interval: '168h' } },
    });
  }
  if (manifests.length > 0) await apply(manifests);
  await waitFor(
    `${count} live apps`,
    async () => {
      const { items } = appList.parse(
        JSON.parse(await runKubectl('get', 'hostedapps', '-n', appsNamespace, '-o', 'json')),
      );
      const live = items.filter(({ metadata, status }) => made.includes(metadata.name) && status.phase === 'Live');
      return live.length === count ? true : undefined;
    },
    3_600,
  );
}

async function apply(manifests: readonly object[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'moorage-density-'));
  const file = join(folder, 'apps.yaml');
  try {
    await writeFile(file, manifests.map((each) => stringify(each)).join('---\n'));
    await runKubectl('apply', '-f', file);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function usedMebibytes(): Promise<number> {
  const text = await readFile('/proc/meminfo', 'utf8');
  const value = (name: string): number => Number(new RegExp(`^${name}: +(\\d+) kB`, 'm').exec(text)?.[1]) / 1024;
  return value('MemTotal') - value('MemAvailable');
}

async function look(count: number, before: number): Promise<Density> {
  await sleep(settleMs);
  const nodes = (await runKubectl('get', 'nodes', '-o', 'name')).trim().split('\n');
  const texts = await Promise.all(
    nodes.map((node) =>
      runKubectl('get', '--raw', `/api/v1/nodes/${node.replace('node/', '')}/proxy/metrics/resource`),
    ),
  );
  const uses = texts.flatMap((text) => parseUsage(text, appsNamespace));
  const own = uses.filter(({ pod }) => pod.startsWith(`density-${process.pid}-`));
  const { items } = podList.parse(JSON.parse(await runKubectl('get', 'pods', '-n', appsNamespace, '-o', 'json')));
  const live: number[] = [];
  const machine = ((await usedMebibytes()) - before) / count;
  for (let round = 0; round < rounds; round += 1)
    live.push(await submitOne(`density-new-${process.pid}-${count}-${round}`));
  return {
    apps: count,
    memory: own.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0) / own.length / mebibyte,
    machine,
    cpu: items
      .filter(({ metadata }) => metadata.name.startsWith('density-'))
      .reduce((sum, { spec }) => sum + parseMilli(spec.containers[0]?.resources.requests.cpu ?? '0'), 0),
    live,
  };
}

function submitOne(name: string): Promise<number> {
  return withRepository(name, async (submission) => {
    try {
      return await submitToLive(submission);
    } finally {
      await deleteApps(name);
    }
  });
}

function row(values: readonly (string | number)[]): string {
  return values.map((value) => (typeof value === 'number' ? value.toFixed(1) : value).padStart(14)).join(' ');
}

process.stdout.write(
  `${row(['apps', 'MiB each', 'of the machine', 'mCPU requested', 'submit to live', 'over the first'])}\n`,
);
try {
  const repos = await pushKinds();
  const before = await usedMebibytes();
  let first: number | undefined;
  for (const count of counts) {
    await fill(count, repos);
    const { apps, memory, machine, cpu, live } = await look(count, before);
    first ??= median(live);
    process.stdout.write(`${row([apps, memory, machine, cpu, median(live), median(live) - first])}\n`);
  }
} finally {
  if (made.length > 0) await deleteApps(...made);
}
process.exit(0);
