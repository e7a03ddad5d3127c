// Sets up and removes the node's network: the bridge, the route of the service range, an nftables table that confines
// pods, and the NetworkPolicy enforcer as a process.
import { join } from 'node:path';
import { stat } from 'node:fs/promises';
import { z } from 'zod';
import { readText, writeText, computeFolderKey } from '../../files.ts';
import { paths } from '../../paths.ts';
import { run, canRun } from '../../shell.ts';
import { renderNodeRules } from './rules.ts';
import { node, processFolders } from '../settings.ts';
import { ensureComponentKubeconfig, type ControlPlane } from '../control-plane/control-plane.ts';
import type { ProcessSpec } from '../daemons/processes.ts';

const changedSysctls = { 'net.ipv4.ip_forward': '1', 'net.bridge.bridge-nf-call-iptables': '1' } as const;

const beforeSchema = z.object({
  sysctls: z.record(z.string(), z.string()),
  tables: z.array(z.string()),
  folders: z.array(z.string()),
});
export type MachineState = z.output<typeof beforeSchema>;
const beforePath = join(paths.state, 'before.json');

/**
 * Folders and files outside the node's own that its programs write to; `down` removes those that did not exist before.
 */
const foreignFolders = [
  '/var/lib/cni',
  '/run/containerd',
  '/var/log/containers',
  '/var/log/pods',
  '/etc/cni',
  '/opt/cni',
  '/var/lib/kubelet',
  '/etc/kubernetes',
  '/var/lib/containers/cache/blob-info-cache-v1.boltdb',
];

/** Reads a kernel switch; undefined if the kernel does not have it. */
async function readSysctl(name: string): Promise<string | undefined> {
  return (await readText(`/proc/sys/${name.replaceAll('.', '/')}`))?.trim();
}

async function setSysctl(name: string, value: string): Promise<void> {
  if ((await readSysctl(name)) !== value) await run('sysctl', ['-q', '-w', `${name}=${value}`]);
}

/** Folders that other programs may write to as well: `down` removes them only if they are empty. */
const sharedFolders = [
  '/run/runc',
  '/run/nri',
  '/run/containers',
  '/var/lib/containers/cache',
  '/var/lib/containers',
  '/run/buildkit',
];

/** Reads the machine's state before the first `up`; undefined if there was none. */
export async function readBefore(): Promise<MachineState | undefined> {
  const text = await readText(beforePath);
  return text === undefined ? undefined : beforeSchema.parse(JSON.parse(text));
}

async function rememberBefore(): Promise<void> {
  if ((await readText(beforePath)) !== undefined) return;
  const sysctls: Record<string, string> = {};
  for (const name of Object.keys(changedSysctls)) {
    const value = await readSysctl(name);
    if (value !== undefined) sysctls[name] = value;
  }
  const tables = (await run('nft', ['list', 'tables'])).split('\n').filter((line) => line !== '');
  const folders: string[] = [];
  for (const folder of [...foreignFolders, ...sharedFolders])
    if (await canRun('test', ['-e', folder])) folders.push(folder);
  await writeText(beforePath, `${JSON.stringify({ sysctls, tables, folders }, null, 2)}\n`);
}

/** Lists folders that only the node's programs can have created. */
export function listNewFolders(machineBefore: MachineState): string[] {
  return foreignFolders.filter((folder) => !machineBefore.folders.includes(folder));
}

export function listNewEmptyFolders(machineBefore: MachineState | undefined): string[] {
  return sharedFolders.filter((folder) => machineBefore !== undefined && !machineBefore.folders.includes(folder));
}

async function ensureBridge(): Promise<void> {
  const { bridge, bridgeMac, address, nodePodCidr, serviceCidr } = node;
  if (!(await canRun('ip', ['link', 'show', bridge])))
    await run('ip', ['link', 'add', bridge, 'address', bridgeMac, 'type', 'bridge']);
  await setSysctl(`net.ipv6.conf.${bridge}.disable_ipv6`, '1');
  await run('ip', ['address', 'replace', `${address}/${nodePodCidr.split('/')[1] ?? '24'}`, 'dev', bridge]);
  await run('ip', ['link', 'set', bridge, 'up']);
  // Packets for a service without rules go to the bridge, where the table above rejects them, and never to the
  // machine's own network.
  await run('ip', ['route', 'replace', serviceCidr, 'dev', bridge]);
}

async function refuseTakenRange(): Promise<void> {
  for (const cidr of [node.podCidr, node.serviceCidr]) {
    const routes = (await run('ip', ['-4', 'route', 'show', 'root', cidr]))
      .split('\n')
      .filter((line) => line !== '' && !line.includes(`dev ${node.bridge}`));
    if (routes.length > 0)
      throw new Error(
        `the address range ${cidr} of pods or services is already in use on this machine: ${routes.join('; ')}. Remove that route, or choose an existing cluster with --context NAME`,
      );
  }
}

/** Sets up bridge, route, rules and kernel switches. Safe to repeat. */
export async function ensureNetwork(): Promise<undefined> {
  await rememberBefore();
  await refuseTakenRange();
  // Built into some kernels, a module in others.
  await canRun('modprobe', ['-q', '-a', 'br_netfilter', 'overlay', 'nf_tables']);
  await ensureBridge();
  for (const [name, value] of Object.entries(changedSysctls)) await setSysctl(name, value);
  const rules = renderNodeRules(node, [
    // The kubelet authenticates every request; NetworkPolicies ensure that only the operator can reach it.
    `ip daddr ${node.address} tcp dport { ${node.apiPort}, ${node.registryPort}, ${node.kubeletPort} } accept`,
  ]);
  await run('nft', ['-f', '-'], { input: rules });
  return undefined;
}

async function removeChains(table: string): Promise<void> {
  const rules = (await run('iptables', ['-t', table, '-S']).catch(() => '')).split('\n');
  const isOwn = (rule: string): boolean => / -j (CNI|KUBE)-/.test(rule) || /^-A (CNI|KUBE)-/.test(rule);
  for (const rule of rules.filter((line) => line.startsWith('-A') && isOwn(line))) {
    await run('sh', ['-c', `iptables -t ${table} ${rule.replace(/^-A/, '-D')}`]);
  }
  for (const rule of rules.filter((line) => /^-N (CNI|KUBE)-/.test(line)))
    await canRun('iptables', ['-t', table, '-X', rule.slice(3)]);
}

/** Returns true if a table's listing contains no rules, and no chains other than base chains. */
export function isEmptyTable(listing: string): boolean {
  return listing.split('\n').every((line) => /^(table .*|\tchain .*|\t\ttype .* hook .*|\t?\}|)$/.test(line));
}

async function removeTables(machineBefore: MachineState | undefined): Promise<void> {
  const present = (await run('nft', ['list', 'tables'])).split('\n').filter((line) => line !== '');
  const tablesBefore = new Set(machineBefore?.tables ?? present);
  for (const line of present) {
    const isOwn = /^table \S+ (moorage\S*|kube-proxy)$/.test(line);
    const leftEmpty =
      !tablesBefore.has(line) &&
      /^table ip6? (nat|filter|mangle|raw)$/.test(line) &&
      isEmptyTable(await run('nft', ['list', ...line.split(' ')]));
    if (isOwn || leftEmpty) await canRun('nft', ['delete', ...line.split(' ')]);
  }
}

const linksSchema = z.array(z.object({ ifname: z.string() }));

/**
 * Removes the pods' ends of the bridge. The kernel removes a pod's network some time after its last process, so one of
 * them could otherwise outlive the bridge.
 */
async function removePorts(): Promise<void> {
  const links = await run('ip', ['-json', 'link', 'show', 'master', node.bridge]).catch(() => '');
  for (const { ifname } of linksSchema.parse(JSON.parse(links.trim() === '' ? '[]' : links)))
    await canRun('ip', ['link', 'delete', ifname]);
}

/** Reverts every network change that the node made. */
export async function removeNetwork(machineBefore: MachineState | undefined): Promise<void> {
  for (const table of ['nat', 'filter', 'mangle']) await removeChains(table);
  await removeTables(machineBefore);
  await removePorts();
  await canRun('ip', ['link', 'delete', node.bridge]);
  for (const [name, value] of Object.entries(machineBefore?.sysctls ?? {})) await setSysctl(name, value);
}

const status = z.object({ state: z.string() });
const statusFile = join(paths.run, 'network-policy.json');

async function getModifiedTime(file: string): Promise<number> {
  return (await stat(file).catch(() => undefined))?.mtimeMs ?? 0;
}

async function isEnforcing(): Promise<boolean> {
  const text = await readText(statusFile);
  return text !== undefined && status.parse(JSON.parse(text)).state === 'enforcing';
}

export async function buildNetworkPolicySpec(plane: ControlPlane): Promise<ProcessSpec> {
  const kubeconfig = await ensureComponentKubeconfig(plane, paths.state, {
    name: 'network-policy',
    commonName: 'moorage:network-policy',
  });
  const sources = ['localnode/network-policy', 'lib'];
  return {
    name: 'network-policy',
    command: process.execPath,
    args: [join(paths.root, 'localnode', 'network-policy', 'main.ts')],
    env: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      KUBECONFIG: kubeconfig.path,
      NODE_NAME: node.name,
      POD_BRIDGE: node.bridge,
      POD_CIDR: node.podCidr,
      STATUS_FILE: statusFile,
    },
    inputs: [
      kubeconfig.text,
      ...(await Promise.all(sources.map((folder) => computeFolderKey(join(paths.root, folder))))),
    ],
    // A file from before this start belongs to another process.
    isReady: async () =>
      (await getModifiedTime(statusFile)) > (await getModifiedTime(join(processFolders.run, 'network-policy.pid'))) &&
      (await isEnforcing()),
  };
}
