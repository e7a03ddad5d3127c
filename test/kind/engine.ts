// A Docker engine for the kind tests: the machine's own where one answers, else Debian's, run apart from the machine.
import { spawn } from 'node:child_process';
import { chmod, copyFile, mkdir, open, readdir, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { execa } from 'execa';
import { readText } from '../../localnode/files.ts';
import { hasSysResource } from '../../localnode/node/daemons/containerd.ts';
import { paths } from '../../localnode/paths.ts';
import { run, canRun, waitFor } from '../../localnode/shell.ts';

/** Where programs run so that they see the engine, and the ports that it publishes. */
export interface Engine {
  /** Whether it was started here, with nothing in it but what these tests put there. */
  own: boolean;
  /** Puts before a command what makes it run there. */
  enter: (command: readonly string[]) => readonly string[];
  env: Readonly<Record<string, string>>;
  close: () => Promise<void>;
}

/** Outside of the source, and kept: packages, images, build cache. */
export const lab = join(paths.cache, 'test-kind');

const packages = ['docker.io', 'containerd', 'runc', 'tini'];
const network = {
  namespace: 'moorage-kind',
  outside: 'moorage-kind0',
  inside: 'eth0',
  range: '172.30.99.0/30',
  gateway: '172.30.99.1',
  address: '172.30.99.2',
  table: 'kind-test-nat',
};
const unpacked = join(lab, 'docker');
const pidFile = (name: string): string => join(lab, `${name}.pid`);
const socket = `unix://${join(lab, 'docker.sock')}`;

async function unpackPackages(): Promise<void> {
  if (await canRun('test', ['-e', join(unpacked, '.complete')])) return;
  const draft = join(lab, 'packages');
  await rm(unpacked, { recursive: true, force: true });
  await mkdir(draft, { recursive: true });
  // apt drops its rights for downloads; its user must be able to write here.
  await chmod(draft, 0o777);
  await run('apt-get', ['download', ...packages], { cwd: draft });
  for (const file of await readdir(draft)) await run('dpkg-deb', ['-x', join(draft, file), unpacked]);
  await rm(draft, { recursive: true });
  await writeFile(join(unpacked, '.complete'), '');
}

/**
 * A machine may lack CAP_SYS_RESOURCE, for which Docker asks in every privileged container: a runtime in front of the
 * real one removes it from what is asked for.
 */
async function wrapRuntime(): Promise<string[]> {
  if (hasSysResource((await readText('/proc/self/status')) ?? '')) return [];
  const folder = join(lab, 'runtime');
  await mkdir(folder, { recursive: true });
  await copyFile(join(import.meta.dirname, 'runtime.sh'), join(folder, 'runc'));
  await chmod(join(folder, 'runc'), 0o755);
  return [folder];
}

/** Starts a program that outlives its starter, with its output in a log. Returns its process id. */
async function launch(name: string, [file = '', ...args]: readonly string[], env: Record<string, string>) {
  const log = await open(join(lab, `${name}.log`), 'w');
  const child = spawn(file, args, {
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
    env: { ...process.env, ...env },
  });
  child.unref();
  await log.close();
  await writeFile(pidFile(name), String(child.pid));
  return child.pid ?? 0;
}

async function stop(name: string): Promise<void> {
  const pid = Number(await readText(pidFile(name)));
  // A number that was given to another program since is left alone.
  const command = pid > 0 ? ((await readText(`/proc/${pid}/cmdline`)) ?? '') : '';
  if (command.includes(name === 'holder' ? 'sleep' : 'dockerd')) {
    process.kill(pid, 'SIGTERM');
    await waitFor(`the end of ${name}`, async () => (await readText(`/proc/${pid}/cmdline`)) === undefined, {
      seconds: 30,
    });
  }
  await rm(pidFile(name), { force: true });
}

async function makeNetwork(): Promise<void> {
  const { namespace, outside, inside, range, gateway, address, table } = network;
  await run('ip', ['netns', 'add', namespace]);
  await run('ip', ['link', 'add', outside, 'type', 'veth', 'peer', 'name', inside, 'netns', namespace]);
  await run('ip', ['address', 'add', `${gateway}/30`, 'dev', outside]);
  await run('ip', ['link', 'set', outside, 'up']);
  const within = ['-n', namespace];
  await run('ip', [...within, 'address', 'add', `${address}/30`, 'dev', inside]);
  for (const device of [inside, 'lo']) await run('ip', [...within, 'link', 'set', device, 'up']);
  await run('ip', [...within, 'route', 'add', 'default', 'via', gateway]);
  await run('ip', ['netns', 'exec', namespace, 'sysctl', '-qw', 'net.ipv4.ip_forward=1']);
  await run('sysctl', ['-qw', 'net.ipv4.ip_forward=1']);
  await run('nft', ['-f', '-'], {
    input: `table ip ${table} {
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${range} oifname != "${outside}" masquerade
  }
}
`,
  });
}

/** Takes back whatever an earlier run left. */
async function clear(): Promise<void> {
  for (const name of ['dockerd', 'holder']) await stop(name);
  await canRun('ip', ['netns', 'delete', network.namespace]);
  await canRun('ip', ['link', 'delete', network.outside]);
  await canRun('nft', ['delete', 'table', 'ip', network.table]);
}

/** A mount namespace in which neither the one-machine node's state nor this checkout's `.moorage` can be seen. */
async function holdNamespaces(): Promise<readonly string[]> {
  const sleep = ['unshare', '--mount', '--propagation', 'slave', 'sleep', 'infinity'];
  const holder = await launch('holder', ['nsenter', `--net=/run/netns/${network.namespace}`, ...sleep], {});
  const enter = ['nsenter', '--target', String(holder), '--net', '--mount', 'env', '-C', paths.root];
  await waitFor(
    'namespaces of the engine',
    async () => {
      const [own, its] = await Promise.all(['self', holder].map((pid) => run('readlink', [`/proc/${pid}/ns/mnt`])));
      return own !== its && ((await readText(`/proc/${holder}/cmdline`)) ?? '').startsWith('sleep');
    },
    { seconds: 10 },
  );
  const local = join(lab, 'local');
  await rm(local, { recursive: true, force: true });
  for (const folder of [local, paths.local]) await mkdir(folder, { recursive: true });
  const script = [
    `mount --bind '${local}' '${paths.local}'`,
    ...[paths.state, paths.run].map((folder) => `mkdir -p '${folder}' && mount -t tmpfs none '${folder}'`),
  ].join(' && ');
  await run('nsenter', [...enter.slice(1), 'sh', '-c', script]);
  return enter;
}

async function startDocker(enter: readonly string[], path: string): Promise<void> {
  const data = [
    '--data-root',
    join(lab, 'data'),
    '--exec-root',
    join(lab, 'exec'),
    '--pidfile',
    join(lab, 'docker.pid'),
  ];
  await launch('dockerd', [...enter, `PATH=${path}`, 'dockerd', ...data, '--host', socket], {});
  await waitFor(
    'an answer of dockerd',
    () => canRun('curl', ['-sf', '--unix-socket', socket.slice(7), 'http://d/_ping']),
    {
      seconds: 60,
      readHint: async () => (await readText(join(lab, 'dockerd.log')))?.slice(-1500) ?? '',
    },
  );
}

async function startEngine(): Promise<Engine> {
  if (process.getuid?.() !== 0) throw new Error('no Docker engine answers, and to start one this must be run as root');
  await mkdir(join(lab, 'config'), { recursive: true });
  await unpackPackages();
  await clear();
  await makeNetwork();
  const enter = await holdNamespaces();
  const binaries = [...(await wrapRuntime()), join(unpacked, 'usr/bin'), join(unpacked, 'usr/sbin')];
  const path = [...binaries, process.env['PATH'] ?? ''].join(delimiter);
  await startDocker(enter, path);
  const env = { PATH: path, DOCKER_HOST: socket, DOCKER_CONFIG: join(lab, 'config') };
  return {
    own: true,
    enter: (command) => [...enter, ...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...command],
    env,
    close: clear,
  };
}

/** The machine's engine, or one of its own. */
export async function findEngine(): Promise<Engine> {
  if (await canRun('docker', ['info']))
    return { own: false, enter: (command) => command, env: {}, close: () => Promise.resolve() };
  return await startEngine();
}

/** Runs a command where the engine is and returns what it printed. */
export async function runIn(engine: Engine, command: readonly string[], input?: string): Promise<string> {
  const [file = '', ...args] = engine.enter(command);
  return await run(file, args, { ...(input === undefined ? {} : { input }), env: { DOCKER_BUILDKIT: '1' } });
}

/** Runs a command there with its output shown as it comes. Returns its exit code. */
export async function showIn(
  engine: Engine,
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<number | undefined> {
  const [file = '', ...args] = engine.enter(command);
  const result = await execa(file, args, { reject: false, stdio: ['ignore', 'inherit', 'inherit'], env: { ...env } });
  return result.exitCode;
}
