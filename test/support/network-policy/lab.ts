// A node in the small, out of network namespaces: pods on a bridge, an outside world, and the NAT that a real node
// does.
import { spawn, type ChildProcess } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { execa } from 'execa';
import type { Ask, Reply } from './agent.ts';

/** Where things are. Pods have podAddress(0..) of the unit tests' worlds. */
export const NODE_BRIDGE = '10.244.0.1';
export const NODE_OUTSIDE = '192.0.2.1';
export const WORLD = ['192.0.2.7', '192.0.2.200', '169.254.169.254'] as const;

/** Ports that the node itself listens on. */
export const NODE_PORTS = { ssh: 22, kubelet: 10250, api: 6443 };

/** One namespace with an agent in it. */
export interface NetworkHost {
  readonly name: string;
  ask(ask: Ask): Promise<Reply>;
  /** Sends one Ethernet frame as it is. */
  sendFrame(frame: Uint8Array): Promise<void>;
  /** Runs `ip` with these words in the namespace. */
  ip(...words: string[]): Promise<void>;
  /** Sets a kernel switch in the namespace. */
  sysctl(setting: string): Promise<void>;
}

/** A pod, seen as a host. */
export interface PodHost extends NetworkHost {
  readonly port: string;
  readonly mac: string;
  readonly address: string;
}

/** The lab. */
export interface Lab {
  readonly node: NetworkHost;
  readonly outside: NetworkHost;
  readonly pods: readonly PodHost[];
  /** Runs nft in the node's namespace. */
  readonly nft: readonly [string, ...string[]];
  close(): Promise<void>;
}

const PREFIX = 'moorage-lab-';

/** Installs what is missing: a fresh machine has none of it. */
export async function installTools(): Promise<void> {
  const found = await execa(
    'sh',
    ['-c', 'command -v nft && command -v socat && command -v conntrack && command -v ip'],
    { reject: false },
  );
  if (found.exitCode === 0) return;
  await execa('apt-get', ['update', '-qq']);
  await execa(
    'apt-get',
    ['install', '-y', '-qq', '--no-install-recommends', 'nftables', 'socat', 'conntrack', 'iproute2'],
    { env: { DEBIAN_FRONTEND: 'noninteractive' } },
  );
}

async function run([file, ...args]: readonly [string, ...string[]], input?: Uint8Array): Promise<void> {
  await execa(file, args, input === undefined ? {} : { input });
}

/** Builds the lab with pods at these addresses. */
export async function openLab(addresses: readonly string[]): Promise<Lab> {
  await removeLeftovers();
  const prefix = `${PREFIX}${process.pid}-`;
  const nodeNamespace = `${prefix}node`;
  const closers: (() => Promise<void>)[] = [];
  const host = async (suffix: string): Promise<NetworkHost> => {
    const namespace = `${prefix}${suffix}`;
    await execa('ip', ['netns', 'add', namespace]);
    closers.unshift(async () => run(['ip', 'netns', 'del', namespace]));
    await execa('ip', ['-n', namespace, 'link', 'set', 'lo', 'up']);
    const agent = await startAgent(namespace);
    closers.unshift(async () => agent.stop());
    return {
      name: namespace,
      ask: agent.ask,
      sendFrame: async (frame) => run(['ip', 'netns', 'exec', namespace, 'socat', '-u', '-', 'INTERFACE:eth0'], frame),
      sysctl: async (setting) => run(['ip', 'netns', 'exec', namespace, 'sysctl', '-qw', setting]),
      ip: async (...words) => run(['ip', '-n', namespace, ...words]),
    };
  };
  const close = async (): Promise<void> => {
    for (const closer of closers) await closer();
  };
  try {
    const node = await host('node');
    await node.ip('link', 'add', 'moorage0', 'type', 'bridge');
    await node.ip('addr', 'add', `${NODE_BRIDGE}/24`, 'dev', 'moorage0');
    await node.ip('link', 'set', 'moorage0', 'up');
    for (const setting of [
      'net.ipv4.ip_forward=1',
      'net.bridge.bridge-nf-call-iptables=1',
      'net.ipv4.conf.all.route_localnet=1',
    ])
      await node.sysctl(setting);
    const outside = await host('outside');
    await connectOutside(node, outside);
    const pods: PodHost[] = [];
    for (const [index, address] of addresses.entries())
      pods.push(await connectPod(node, await host(`pod${index}`), index, address));
    await node.ask({ op: 'listen', ports: Object.values(NODE_PORTS) });
    return { node, outside, pods, nft: ['ip', 'netns', 'exec', nodeNamespace, 'nft', '-f', '-'], close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function connectOutside(node: NetworkHost, outside: NetworkHost): Promise<void> {
  await node.ip('link', 'add', 'uplink', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', outside.name);
  await node.ip('addr', 'add', `${NODE_OUTSIDE}/24`, 'dev', 'uplink');
  await node.ip('link', 'set', 'uplink', 'up');
  for (const address of WORLD) await outside.ip('addr', 'add', `${address}/24`, 'dev', 'eth0');
  await outside.ip('link', 'set', 'eth0', 'up');
  await outside.ip('route', 'add', '10.244.0.0/16', 'via', NODE_OUTSIDE);
  await node.ip('route', 'add', '169.254.0.0/16', 'via', WORLD[0]);
}

async function connectPod(node: NetworkHost, pod: NetworkHost, index: number, address: string): Promise<PodHost> {
  const port = `veth${index}`;
  const mac = `0a:58:0a:f4:00:${(index + 2).toString(16).padStart(2, '0')}`;
  await node.ip('link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'address', mac, 'netns', pod.name);
  await node.ip('link', 'set', port, 'master', 'moorage0', 'up');
  await node.ip('link', 'set', port, 'type', 'bridge_slave', 'hairpin', 'on');
  await pod.ip('addr', 'add', `${address}/24`, 'dev', 'eth0');
  await pod.ip('link', 'set', 'eth0', 'up');
  await pod.ip('route', 'add', 'default', 'via', NODE_BRIDGE);
  return { ...pod, port, mac, address };
}

async function startAgent(namespace: string): Promise<{ ask: NetworkHost['ask']; stop: () => Promise<void> }> {
  const script = new URL('agent.ts', import.meta.url).pathname;
  const child = spawn('ip', ['netns', 'exec', namespace, process.execPath, script], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const waiting = new Map<number, (reply: Reply) => void>();
  const ready = new Promise<Reply>((resolve, reject) => {
    waiting.set(-1, resolve);
    child.once('exit', () => {
      reject(new Error(`the agent of ${namespace} ended`));
    });
  });
  child.on('message', (message: { id: number; reply: Reply }) => waiting.get(message.id)?.(message.reply));
  await ready;
  let next = 0;
  const ask = async (question: Ask): Promise<Reply> =>
    new Promise((resolve) => {
      const id = next++;
      waiting.set(id, resolve);
      child.send({ id, ask: question });
    });
  return { ask, stop: async () => stop(child) };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}

/** Namespaces of a run that was killed before it could clean up. */
async function removeLeftovers(): Promise<void> {
  const names = await readdir('/run/netns').catch(() => []);
  for (const name of names.filter((each) => each.startsWith(PREFIX))) {
    const pid = Number(name.slice(PREFIX.length).split('-')[0]);
    if (!isAlive(pid)) await execa('ip', ['netns', 'del', name], { reject: false });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
