// Runs the registry next to the node, in a container with a password that shares a network with builds, and frees its disk.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readText, writeText } from '../../localnode/files.ts';
import { probe, type ProbeAnswer } from '../../localnode/node/daemons/probe.ts';
import { node } from '../../localnode/node/settings.ts';
import { paths } from '../../localnode/paths.ts';
import { manifestFormats, limitBytes, extractNames, imageUsers } from '../../localnode/registry/storage.ts';
import { run, waitFor } from '../../localnode/shell.ts';
import { containers, hasContainer, runDocker, ensurePulled, startContainer, registryImage } from './docker.ts';
import { runNodeKubectl } from './cluster.ts';

const credentialsFile = join(paths.kind, 'registry-credentials');

const options = {
  AUTH: 'htpasswd',
  AUTH_HTPASSWD_REALM: 'moorage',
  AUTH_HTPASSWD_PATH: '/var/lib/registry/users',
  STORAGE_DELETE_ENABLED: 'true',
};

async function runRegistry(): Promise<void> {
  await rm(credentialsFile, { force: true });
  await ensurePulled(registryImage);
  await runDocker([
    ...['run', '--detach', '--restart=always', '--name', containers.registry, '--network=kind'],
    // For pushes by the engine, which takes loopback addresses without TLS.
    '--publish=127.0.0.1::5000',
    ...Object.entries(options).flatMap(([name, value]) => ['--env', `REGISTRY_${name}=${value}`]),
    registryImage,
  ]);
}

async function findPasswordInLog(): Promise<string | undefined> {
  // The registry writes it to one of the two streams, by version.
  const log = await run('sh', ['-c', `docker logs ${containers.registry} 2>&1`]);
  return /password=(\S+) user=docker/.exec(log)?.[1];
}

/**
 * `user:password` in base64. At its first start the registry creates a user with a random password and logs it once; it
 * keeps only a hash.
 */
async function readCredentials(): Promise<string> {
  const storedCredentials = await readText(credentialsFile);
  if (storedCredentials !== undefined) return storedCredentials.trim();
  const password = await waitFor('the password in the log of the registry', findPasswordInLog, { seconds: 30 });
  const text = Buffer.from(`docker:${password}`).toString('base64');
  await writeText(credentialsFile, `${text}\n`, 0o600);
  return text;
}

/** The registry's address for this machine and its Docker engine, such as `127.0.0.1:32768`. */
async function readLocalAddress(): Promise<string> {
  const bound = await runDocker(['port', containers.registry, '5000/tcp']);
  const port = /:(\d+)$/m.exec(bound)?.[1];
  if (port === undefined) throw new Error(`Docker publishes no port of ${containers.registry}: ${bound}`);
  return `127.0.0.1:${port}`;
}

async function formatAuthorization(): Promise<string> {
  return `Basic ${await readCredentials()}`;
}

/** hosts.toml for the node's containerd: this registry first, then the real one for names of Docker Hub. */
async function formatHosts(server: string): Promise<string> {
  const address = `http://${containers.registry}:${node.registryPort}`;
  return `server = "${server}"

[host."${address}"]
capabilities = ["pull", "resolve"]
[host."${address}".header]
Authorization = ["${await formatAuthorization()}"]
`;
}

async function writeHosts(name: string, text: string): Promise<void> {
  const folder = `/etc/containerd/certs.d/${name}`;
  const script = `umask 077; mkdir -p '${folder}' && cat > '${folder}/hosts.toml'`;
  await runDocker(['exec', '-i', containers.node, 'sh', '-c', script], { input: text });
}

/** Starts the registry and lets the node pull from it. */
export async function ensureRegistry(): Promise<undefined> {
  if (!(await hasContainer(containers.registry))) await runRegistry();
  await startContainer(containers.registry);
  await writeHosts(node.registryHost, await formatHosts(`http://${node.registryHost}`));
  await writeHosts('docker.io', await formatHosts('https://registry-1.docker.io'));
  const { status } = await requestRegistry('/v2/');
  if (status !== 200) throw new Error(`the registry answers with status ${status} to its own password`);
  return undefined;
}

/** Sends a request to the registry. A busy machine may need more than one try. */
export async function requestRegistry(path: string): Promise<ProbeAnswer> {
  const url = `http://${await readLocalAddress()}${path}`;
  const headers = { authorization: await formatAuthorization(), accept: manifestFormats };
  return await waitFor('an answer of the registry', () => probe(url, { headers }), { seconds: 60 });
}

/** The push password of builds, as a Docker configuration. */
export async function formatPushConfig(): Promise<string> {
  return JSON.stringify({ auths: { [node.registryHost]: { auth: await readCredentials() } } });
}

/** A separate configuration hides the user's Docker context, so the engine's address is passed as well. */
async function buildPushEnvironment(address: string): Promise<Record<string, string>> {
  const folder = join(paths.kind, 'docker');
  const config = JSON.stringify({ auths: { [address]: { auth: await readCredentials() } } });
  await writeText(join(folder, 'config.json'), config, 0o600);
  const host =
    process.env['DOCKER_HOST'] ?? (await runDocker(['context', 'inspect', '--format', '{{.Endpoints.docker.Host}}']));
  return { DOCKER_CONFIG: folder, DOCKER_HOST: host };
}

/**
 * Pushes an image of the Docker engine into the registry as `repository:tag`. Returns the name by digest that pods pull.
 */
export async function push(image: string, repository: string, tag: string): Promise<string> {
  const address = await readLocalAddress();
  const name = `${address}/${repository}:${tag}`;
  await runDocker(['tag', image, name]);
  const output = await runDocker(['push', name], { env: await buildPushEnvironment(address) });
  await runDocker(['rmi', name]);
  const digest = /digest: (sha256:[0-9a-f]{64})/.exec(output)?.[1];
  if (digest === undefined) throw new Error(`docker push ${name} printed no digest: ${output.slice(-300)}`);
  return `${node.registryHost}/${repository}@${digest}`;
}

/** Removes the registry with its images. */
export async function removeRegistry(): Promise<undefined> {
  if (await hasContainer(containers.registry)) await runDocker(['rm', '--force', '--volumes', containers.registry]);
  return undefined;
}

const folder = '/var/lib/registry';

async function measureSize(): Promise<number> {
  return Number((await runDocker(['exec', containers.registry, 'du', '-sk', folder])).split('\t')[0]) * 1024;
}

/** Runs a program on the registry's files. */
async function runOnFiles(args: readonly string[], input = ''): Promise<string> {
  const options = ['run', '--rm', '--interactive', '--network=none', '--volumes-from', containers.registry];
  return await runDocker([...options, ...args], { input });
}

/**
 * Removes images that neither a tag nor an object of the cluster names, if the registry exceeds the limit. The registry is
 * stopped during this, since a concurrent push could lose its layers; builds push again. `image` is that of the node's
 * network, as Docker knows it.
 */
export async function cleanRegistry(image: string, limit = limitBytes): Promise<string> {
  const bytesBefore = await measureSize();
  if (bytesBefore < limit) return `${Math.round(bytesBefore / 1024 ** 2)} MiB`;
  const used = [...extractNames(await runNodeKubectl(['get', ...imageUsers]))].join('\n');
  await runDocker(['stop', containers.registry]);
  let removed: string;
  try {
    removed = await runOnFiles(['--user=0:0', image, 'node', '/app/localnode/registry/clean.ts', folder], used);
    await runOnFiles([registryImage, 'garbage-collect', '/etc/docker/registry/config.yml']);
  } finally {
    await startContainer(containers.registry);
  }
  return `removed ${removed} images, ${Math.round((bytesBefore - (await measureSize())) / 1024 ** 2)} MiB`;
}
