// Sets up the network of a kind node: first the node's own rules and the NetworkPolicy enforcer, then a network for pods.
import { access, copyFile, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { z } from 'zod';
import { readConfig } from '../../../lib/config.ts';
import { renderCniConfig } from '../../../localnode/node/network/cni.ts';
import { renderNodeRules } from '../../../localnode/node/network/rules.ts';

const config = readConfig(
  z.object({
    POD_BRIDGE: z.string(),
    POD_CIDR: z.string(),
    NODE_POD_CIDR: z.string(),
    SERVICE_CIDR: z.string(),
    /** Where the container runtime looks for the pod network. A restart of the node empties this folder. */
    CNI_CONFIG: z.string(),
    CNI_PLUGINS: z.string(),
    STATUS_FILE: z.string(),
  }),
);

async function replaceFile(path: string, write: (draft: string) => Promise<void>): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const draft = join(dirname(path), `.draft-${process.pid}`);
  await write(draft);
  await rename(draft, path);
}

async function isExistingPath(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

/** Built into some kernels, modules of others. The enforcer reports what is missing. */
async function loadModules(): Promise<void> {
  await execa('modprobe', ['-q', '-a', 'br_netfilter', 'nf_tables'], { reject: false });
}

async function applyNodeRules(): Promise<void> {
  const network = { bridge: config.POD_BRIDGE, podCidr: config.POD_CIDR, serviceCidr: config.SERVICE_CIDR };
  const open = [
    'fib daddr type local tcp dport 6443 accept',
    // Docker's resolver, which the node redirects to its own loopback address.
    'ct status dnat meta l4proto { tcp, udp } ct original proto-dst 53 accept',
  ];
  await execa('nft', ['-f', '-'], { input: renderNodeRules(network, open) });
}

/** The kind image has the other plugins. */
async function installBridgePlugin(): Promise<void> {
  await replaceFile(join(config.CNI_PLUGINS, 'bridge'), (draft) => copyFile('/usr/lib/cni/bridge', draft));
}

/** Pods get a network once the enforcer's tables are in the kernel, closed or with the policies' rules. */
async function openPodNetwork(): Promise<void> {
  while (!(await isExistingPath(config.STATUS_FILE))) await sleep(100);
  const text = renderCniConfig(
    { bridge: config.POD_BRIDGE, nodePodCidr: config.NODE_POD_CIDR },
    '/run/moorage/addresses',
  );
  await replaceFile(join(config.CNI_CONFIG, '10-moorage.conflist'), (draft) => writeFile(draft, text));
}

// The status of an earlier run does not apply to this one.
await rm(config.STATUS_FILE, { force: true });
await loadModules();
await applyNodeRules();
await installBridgePlugin();
await Promise.all([openPodNetwork(), import('../../../localnode/network-policy/main.ts')]);
