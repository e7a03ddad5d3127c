// Installs Moorage's chart with Helm, waits until it is ready, checks its workloads, and submits the sample app.
import { join } from 'node:path';
import { lookup } from 'node:dns/promises';
import { gunzipSync } from 'node:zlib';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { waitForRollout, type Kubectl } from '../../localnode/kubectl.ts';
import { paths } from '../../localnode/paths.ts';
import { run, waitFor } from '../../localnode/shell.ts';
import { closedCidrs, createSubnetMatcher } from '../../lib/subnets.ts';
import { computeFolderKey, readText, writeText } from '../../localnode/files.ts';
import { formatHttpsUrl } from '../../localnode/node/gateway/ports.ts';
import { isAnswering } from '../../localnode/node/daemons/probe.ts';
import { node } from '../../localnode/node/settings.ts';
import { ignoreReport, type Report } from '../../localnode/steps.ts';
import { createApiClient } from '../submit/api-client.ts';
import { Fault, readInstallation } from '../submit/installation.ts';
import { createOutput } from '../submit/output.ts';
import { submit } from '../submit/submit.ts';

export const release = { name: 'moorage', namespace: 'moorage-system' } as const;

export interface HelmTarget {
  helm: string;
  kubeconfig: string;
  context?: string;
}

/**
 * Installs or upgrades the release. `values` are files, `settings` single values such as `image=...`; later ones win.
 */
export async function installChart(
  target: HelmTarget,
  values: readonly string[],
  settings: readonly string[],
): Promise<void> {
  const scope = [
    '--kubeconfig',
    target.kubeconfig,
    ...(target.context === undefined ? [] : ['--kube-context', target.context]),
  ];
  await run(target.helm, [
    ...[
      'upgrade',
      release.name,
      join(paths.root, 'charts', 'moorage'),
      '--install',
      '--namespace',
      release.namespace,
      '--create-namespace',
    ],
    ...['--history-max', '5', '--force-conflicts', ...scope],
    ...values.flatMap((file) => ['--values', file]),
    ...settings.flatMap((setting) => ['--set', setting]),
  ]);
}

/** The values that the release was last installed with; empty if there is no release. */
export async function readReleaseValues({ helm, kubeconfig }: HelmTarget): Promise<unknown> {
  const scope = ['--kubeconfig', kubeconfig, '--namespace', release.namespace];
  const text = await run(helm, ['get', 'values', release.name, '--output', 'json', ...scope]).catch(() => '{}');
  return JSON.parse(text);
}

/** Waits until every workload of the release serves its current template, except the named Deployments. */
export async function waitForRelease(kubectl: Kubectl, except: readonly string[] = []): Promise<undefined> {
  const names = await kubectl([
    '-n',
    release.namespace,
    'get',
    'deployments,statefulsets',
    '-l',
    `app.kubernetes.io/instance=${release.name}`,
    '-o',
    'name',
  ]);
  for (const name of names.split('\n').filter((line) => line !== '')) {
    if (except.some((each) => name === `deployment.apps/${each}`)) continue;
    await waitForRollout(kubectl, release.namespace, name, 180);
  }
  return undefined;
}

// Package registries at closed addresses, such as those of an internal mirror: builds may reach them only if the chart is
// given their addresses.

const hosts = [
  'pypi.org',
  'files.pythonhosted.org',
  'registry.npmjs.org',
  'registry.yarnpkg.com',
  'deb.debian.org',
  'security.debian.org',
  'proxy.golang.org',
  'index.crates.io',
  'static.crates.io',
  'github.com',
];
const isClosed = createSubnetMatcher(closedCidrs);

/** Closed addresses of package registries, for the chart's `builds.packageCidrs`. Pods cannot use loopback addresses. */
export async function findClosedPackages(resolve = resolveAll): Promise<string[]> {
  const addresses = (await Promise.all(hosts.map(resolve))).flat();
  const closed = addresses.filter((address) => isClosed(address) && !/^127\.|^::1$/.test(address));
  return [...new Set(closed)].sort().map((address) => `${address}/${address.includes(':') ? 128 : 32}`);
}

/** The chart's setting for these addresses, if there are any. */
export async function formatPackageSettings(): Promise<string[]> {
  const cidrs = await findClosedPackages();
  return cidrs.length === 0 ? [] : [`builds.packageCidrs={${cidrs.join(',')}}`];
}

async function resolveAll(host: string): Promise<string[]> {
  const answers = await lookup(host, { all: true }).catch(() => []);
  return answers.map(({ address }) => address);
}

// Workloads, compared with what was installed: kubectl calls a workload that was scaled to zero available, so its own
// status does not show that it is missing.

const kinds = ['Deployment', 'StatefulSet', 'DaemonSet'] as const;

const manifest = z.object({
  kind: z.enum(kinds),
  metadata: z.object({ name: z.string(), namespace: z.string().default(release.namespace) }),
  spec: z.object({ replicas: z.int().default(1) }),
});

const workload = manifest.extend({
  status: z
    .object({
      observedGeneration: z.int().optional(),
      readyReplicas: z.int().default(0),
      updatedReplicas: z.int().optional(),
      // Of DaemonSets.
      desiredNumberScheduled: z.int().optional(),
      numberReady: z.int().default(0),
    })
    .prefault({}),
});

/** A workload as it was installed. */
export interface WantedWorkload {
  readonly kind: (typeof kinds)[number];
  readonly namespace: string;
  readonly name: string;
  readonly replicas: number;
}

/** The workloads of a manifest with several documents. */
export function readWorkloads(text: string): WantedWorkload[] {
  return parseAllDocuments(text).flatMap((document) => {
    const read = manifest.safeParse(document.toJS());
    if (!read.success) return [];
    const { kind, metadata, spec } = read.data;
    return [{ kind, ...metadata, replicas: spec.replicas }];
  });
}

/**
 * The problems of the workloads, one line each. `list` is the output of `kubectl get deployments,statefulsets,daemonsets
 * -o json`. A workload in it that was not installed with the release must have at least one replica.
 */
export function compareWorkloads(wantedWorkloads: readonly WantedWorkload[], list: unknown): string[] {
  const { items } = z.object({ items: z.array(workload) }).parse(list);
  const keyed = new Map(items.map((item) => [formatKey(item.kind, item.metadata.namespace, item.metadata.name), item]));
  const missing = wantedWorkloads
    .filter(({ kind, namespace, name, replicas }) => replicas > 0 && !keyed.has(formatKey(kind, namespace, name)))
    .map(({ kind, namespace, name }) => `${namespace}/${name} does not exist (${kind})`);
  const installed = new Map(
    wantedWorkloads.map((each) => [formatKey(each.kind, each.namespace, each.name), each.replicas]),
  );
  return [...missing, ...[...keyed].flatMap(([key, item]) => checkReplicas(item, installed.get(key)))];
}

function checkReplicas({ kind, metadata, spec, status }: z.output<typeof workload>, installed = 1): string[] {
  const name = `${metadata.namespace}/${metadata.name}`;
  if (kind === 'DaemonSet') {
    const { desiredNumberScheduled: nodes = 1, numberReady } = status;
    return numberReady < nodes ? [`${name}: ${numberReady} of ${nodes} pods are ready`] : [];
  }
  // Right after scaling, the status still has the earlier number.
  const ready = Math.min(status.readyReplicas, spec.replicas);
  const replicas = Math.max(installed, spec.replicas);
  if (ready >= replicas) return [];
  const how = spec.replicas < installed ? `; it was scaled from ${installed} to ${spec.replicas}` : '';
  return [`${name}: ${ready} of ${replicas} replicas are ready${how}`];
}

function formatKey(kind: string, namespace: string, name: string): string {
  return `${kind}/${namespace}/${name}`;
}

const secrets = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ labels: z.record(z.string(), z.string()) }),
      data: z.object({ release: z.base64() }),
    }),
  ),
});

/** The manifest of the newest version of the release, from Helm's Secret. @throws Error if there is none */
async function readManifest(kubectl: Kubectl): Promise<string> {
  const selector = `owner=helm,name=${release.name},status=deployed`;
  const text = await kubectl(['-n', release.namespace, 'get', 'secrets', '-l', selector, '-o', 'json']);
  const { items } = secrets.parse(JSON.parse(text));
  const readVersion = (item: (typeof items)[number] | undefined): number =>
    Number(item?.metadata.labels['version'] ?? 0);
  const newest = items.toSorted((one, other) => readVersion(other) - readVersion(one))[0];
  if (newest === undefined)
    throw new Error(`the release ${release.name} is not installed in ${release.namespace}: run \`npm run up\``);
  // Helm encodes before Kubernetes does.
  const packed = Buffer.from(Buffer.from(newest.data.release, 'base64').toString(), 'base64');
  return z.object({ manifest: z.string() }).parse(JSON.parse(gunzipSync(packed).toString())).manifest;
}

/** The problems of the release's workloads, and of all others in these namespaces. */
export async function checkWorkloads(kubectl: Kubectl, namespaces: ReadonlySet<string>): Promise<string[]> {
  const wantedWorkloads = readWorkloads(await readManifest(kubectl));
  const workloads = z
    .object({ items: z.array(z.looseObject({ metadata: z.looseObject({ namespace: z.string() }) })) })
    .parse(JSON.parse(await kubectl(['get', 'deployments,statefulsets,daemonsets', '-A', '-o', 'json'])));
  const items = workloads.items.filter(({ metadata }) => namespaces.has(metadata.namespace));
  return compareWorkloads(wantedWorkloads, { items });
}

// The sample app, which proves that a folder becomes a site.

/** Writes the addresses of the installation to a file, for `npm run submit`. */
export async function writeAddresses(ports: { https: number }): Promise<undefined> {
  const addresses = {
    baseUrl: formatHttpsUrl(node.baseDomain, ports),
    appsUrl: formatHttpsUrl(node.appsDomain, ports),
    gitUrl: formatHttpsUrl(`git.${node.baseDomain}`, ports),
    internalGitUrl: 'http://git.moorage-git.svc.cluster.local',
  };
  await writeText(paths.installation, `${JSON.stringify(addresses, null, 2)}\n`);
  return undefined;
}

async function isSampleAnswering(ports: { https: number }): Promise<boolean> {
  const ca = await readFile(paths.authority, 'utf8');
  return await isAnswering(`${formatHttpsUrl(`hello.${node.appsDomain}`, ports)}/`, {
    tls: { ca },
    connect: { host: '127.0.0.1', port: ports.https },
  });
}

/**
 * Retries while the folder cannot be submitted at all. This happens in the first minute of a new cluster, whose quotas do
 * not know the new resource yet. A rejection is final.
 */
async function submitFolder(folder: string, report: Report): Promise<void> {
  const installation = await readInstallation();
  const api = createApiClient(installation);
  const lines: string[] = [];
  const output = createOutput((line) => {
    lines.push(line);
    report(line.trim());
  });
  try {
    for (let attemptsLeft = 30; ; attemptsLeft -= 1) {
      try {
        if ((await submit({ what: folder }, { installation, api, output })) === 0) return;
      } catch (error) {
        if (attemptsLeft === 0 || !(error instanceof Fault)) throw error;
        report(error.message);
        await sleep(3000);
        continue;
      }
      throw new Error(`${folder} was rejected:\n${lines.join('\n')}`);
    }
  } finally {
    await api.close();
  }
}

/** Submits manifests/samples/hello, unless the same content was submitted before and answers. */
export async function submitSample(
  ports: { https: number },
  state: string,
  report: Report = ignoreReport,
): Promise<string> {
  const folder = join(paths.root, 'manifests', 'samples', 'hello');
  const stamp = join(state, 'sample');
  const key = await computeFolderKey(folder);
  if ((await readText(stamp)) === key && (await isSampleAnswering(ports))) return 'answers';
  await submitFolder(folder, report);
  await waitFor('the sample app to answer', () => isSampleAnswering(ports), { seconds: 30 });
  await writeText(stamp, key);
  return 'submitted, built, answers';
}
