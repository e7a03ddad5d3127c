// Checks the one-machine node: processes, node, pods, room, disk and addresses.
import { z } from 'zod';
import { paths } from '../../localnode/paths.ts';
import { readFile, statfs } from 'node:fs/promises';
import { printLine } from '../report.ts';
import { formatHttpsUrl, readRememberedPorts } from '../../localnode/node/gateway/ports.ts';
import { probe } from '../../localnode/node/daemons/probe.ts';
import { checkWorkloads } from '../install/release.ts';
import { findProcess, listProcessNames } from '../../localnode/node/daemons/processes.ts';
import { measureRegistryBytes } from '../../localnode/node/registry/registry-cleanup.ts';
import { node, processFolders, nodeKubectl } from '../../localnode/node/settings.ts';

export const expectedProcesses = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'containerd',
  'registry',
  'registry-collector',
  'kubelet',
  'kube-proxy',
  'network-policy',
];

const podList = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ namespace: z.string(), name: z.string(), deletionTimestamp: z.string().optional() }),
      status: z.object({
        phase: z.string().optional(),
        conditions: z.array(z.object({ type: z.string(), status: z.string() })).optional(),
      }),
    }),
  ),
});

/** Pods that have not finished, are not being deleted, and are not ready, as `namespace/name (phase)`. */
export function listUnreadyPods(list: z.output<typeof podList>): string[] {
  return list.items
    .filter(
      ({ metadata, status }) =>
        metadata.deletionTimestamp === undefined && status.phase !== 'Succeeded' && status.phase !== 'Failed',
    )
    .filter(
      ({ status }) =>
        !(status.conditions ?? []).some(({ type, status: value }) => type === 'Ready' && value === 'True'),
    )
    .map(({ metadata, status }) => `${metadata.namespace}/${metadata.name} (${status.phase ?? 'unknown'})`);
}

async function checkProcesses(): Promise<string[]> {
  const problems: string[] = [];
  for (const name of expectedProcesses) {
    const record = await findProcess(processFolders, name);
    printLine(
      `  ${record === undefined ? '!!' : 'ok'} ${name.padEnd(26)} ${record === undefined ? `not running; see ${processFolders.logs}/${name}.log` : `pid ${record.pid}`}`,
    );
    if (record === undefined) problems.push(`${name} is not running`);
  }
  return problems;
}

/** Namespaces that `up` installs. */
export const platformNamespaces: ReadonlySet<string> = new Set([
  'kube-system',
  'moorage-system',
  'moorage-gateway',
  'moorage-git',
  'moorage-demo-router',
  'moorage-storage',
]);

async function checkReplicas(): Promise<string[]> {
  const problems = await checkWorkloads(nodeKubectl, platformNamespaces);
  const title = 'replicas'.padEnd(26);
  if (problems.length === 0) printLine(`  ok ${title} as installed`);
  for (const problem of problems) printLine(`  !! ${title} ${problem}`);
  return problems;
}

async function checkCluster(): Promise<string[]> {
  const ready = await nodeKubectl([
    'get',
    'node',
    node.name,
    '-o',
    'jsonpath={.status.conditions[?(@.type=="Ready")].status}',
  ]);
  printLine(
    `  ${ready === 'True' ? 'ok' : '!!'} ${'node'.padEnd(26)} ${ready === 'True' ? 'Ready' : `Ready is ${ready}`}`,
  );
  const pods = podList.parse(JSON.parse(await nodeKubectl(['get', 'pods', '--all-namespaces', '-o', 'json'])));
  const unready = listUnreadyPods({
    items: pods.items.filter(({ metadata }) => platformNamespaces.has(metadata.namespace)),
  });
  printLine(
    `  ${unready.length === 0 ? 'ok' : '!!'} ${'platform pods'.padEnd(26)} ${unready.length === 0 ? 'all ready' : unready.join(', ')}`,
  );
  const unreadyPods = listUnreadyPods({
    items: pods.items.filter(({ metadata }) => !platformNamespaces.has(metadata.namespace)),
  });
  if (unreadyPods.length > 0)
    printLine(`  .. ${'pods of apps and builds'.padEnd(26)} not ready: ${unreadyPods.join(', ')}`);
  return [...(ready === 'True' ? [] : ['the node is not Ready']), ...unready];
}

const appList = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string() }),
      status: z
        .object({ conditions: z.array(z.object({ reason: z.string(), message: z.string() })).default([]) })
        .default({ conditions: [] }),
    }),
  ),
});

/** Apps with a condition of this reason, as `name: cause`. */
function listWaiting(list: z.output<typeof appList>, wantedReason: string): string[] {
  return list.items.flatMap(({ metadata, status }) => {
    const condition = status.conditions.find(({ reason }) => reason === wantedReason);
    return condition === undefined ? [] : [`${metadata.name}: ${condition.message}`];
  });
}

/** Apps that wait for room on the node, and why. */
export function listAppsWithoutRoom(list: z.output<typeof appList>): string[] {
  return listWaiting(list, 'WaitingForRoom');
}

/** Apps whose build waits for disk space, and why. */
export function listAppsWithoutSpace(list: z.output<typeof appList>): string[] {
  return listWaiting(list, 'WaitingForSpace');
}

async function listApps(): Promise<z.output<typeof appList>> {
  return appList.parse(JSON.parse(await nodeKubectl(['get', 'hostedapps', '--all-namespaces', '-o', 'json'])));
}

/** Prints what pods request, and which apps find no room. A full node is not a fault of the platform. */
async function checkRoom(): Promise<string[]> {
  const described = await nodeKubectl(['describe', 'node', node.name]);
  const [cpu, memory] = ['cpu', 'memory'].map(
    (name) => new RegExp(`^ {2}${name} +\\S+ \\((\\d+)%\\)`, 'm').exec(described)?.[1] ?? '?',
  );
  const waiting = listAppsWithoutRoom(await listApps());
  printLine(
    `  ${waiting.length === 0 ? 'ok' : '..'} ${'room'.padEnd(26)} ${cpu}% of CPU and ${memory}% of memory requested`,
  );
  for (const each of waiting) printLine(`  .. ${'waiting for room'.padEnd(26)} ${each}`);
  return [];
}

/** Prints the free space on the disk of pods, images and the registry, and which builds wait for more. */
async function checkDisk(): Promise<string[]> {
  const { bsize, bavail, blocks } = await statfs(paths.state);
  const formatGibibytes = (bytes: number): string => `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
  const [free, total, registry] = [bavail * bsize, blocks * bsize, await measureRegistryBytes()].map(formatGibibytes);
  const waiting = listAppsWithoutSpace(await listApps());
  printLine(
    `  ${waiting.length === 0 ? 'ok' : '..'} ${'disk'.padEnd(26)} ${free} of ${total} free, ${registry} in the registry`,
  );
  for (const each of waiting) printLine(`  .. ${'waiting for disk space'.padEnd(26)} ${each}`);
  return [];
}

async function checkUrls(): Promise<string[]> {
  const ports = await readRememberedPorts();
  const ca = await readFile(paths.authority, 'utf8');
  const problems: string[] = [];
  for (const [host, path] of [
    [node.baseDomain, '/'],
    [`hello.${node.appsDomain}`, '/'],
  ] as const) {
    const url = `${formatHttpsUrl(host, ports)}${path}`;
    const outcome = await probe(url, { tls: { ca }, connect: { host: '127.0.0.1', port: ports.https } }).then(
      ({ status }) => status,
      (error: unknown) => String(error),
    );
    const fine = typeof outcome === 'number' && outcome < 500;
    printLine(`  ${fine ? 'ok' : '!!'} ${url.padEnd(40)} ${outcome}`);
    if (!fine) problems.push(`${url} does not respond`);
  }
  return problems;
}

/** Prints the status and returns the problems, if any. */
export async function checkNode(): Promise<string[]> {
  if ((await listProcessNames(processFolders)).length === 0)
    return ['the node is not running: start it with `npm run up`'];
  const problems = await checkProcesses();
  for (const check of [checkCluster, checkReplicas, checkRoom, checkDisk, checkUrls]) {
    problems.push(
      ...(await check().catch((error: unknown) => [
        error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error),
      ])),
    );
  }
  return problems;
}
