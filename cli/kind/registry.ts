// The registry beside the node: a container with a password, which builds share a network with.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readText, writeText } from '../../localnode/files.ts';
import { probe, type ProbeAnswer } from '../../localnode/node/daemons/probe.ts';
import { node } from '../../localnode/node/settings.ts';
import { paths } from '../../localnode/paths.ts';
import { manifestFormats } from '../../localnode/registry/manifests.ts';
import { run } from '../../localnode/shell.ts';
import { waitFor } from '../../localnode/wait.ts';
import { containers, containerExists, docker, ensurePulled, startContainer } from './docker.ts';
import { registryImage } from './versions.ts';

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
  await docker([
    ...['run', '--detach', '--restart=always', '--name', containers.registry, '--network=kind'],
    // For pushes by the engine, which takes loopback addresses without TLS.
    '--publish=127.0.0.1::5000',
    ...Object.entries(options).flatMap(([name, value]) => ['--env', `REGISTRY_${name}=${value}`]),
    registryImage,
  ]);
}

async function passwordInLog(): Promise<string | undefined> {
  // The registry writes it to one of the two streams, by version.
  const log = await run('sh', ['-c', `docker logs ${containers.registry} 2>&1`]);
  return /password=(\S+) user=docker/.exec(log)?.[1];
}

/**
 * `user:password` in base64. The registry makes a user with a password of its own at its first start and logs it once;
 * what it keeps is a hash.
 */
async function credentials(): Promise<string> {
  const known = await readText(credentialsFile);
  if (known !== undefined) return known.trim();
  const password = await waitFor('the password in the log of the registry', passwordInLog, { seconds: 30 });
  const text = Buffer.from(`docker:${password}`).toString('base64');
  await writeText(credentialsFile, `${text}\n`, 0o600);
  return text;
}

/** The registry as this machine and its Docker engine reach it, such as `127.0.0.1:32768`. */
async function localAddress(): Promise<string> {
  const bound = await docker(['port', containers.registry, '5000/tcp']);
  const port = /:(\d+)$/m.exec(bound)?.[1];
  if (port === undefined) throw new Error(`Docker publishes no port of ${containers.registry}: ${bound}`);
  return `127.0.0.1:${port}`;
}

async function authorization(): Promise<string> {
  return `Basic ${await credentials()}`;
}

/** hosts.toml for the node's containerd: this registry first; for Docker Hub's names, the real one after that. */
async function hostsToml(server: string): Promise<string> {
  const address = `http://${containers.registry}:${node.registryPort}`;
  return `server = "${server}"

[host."${address}"]
capabilities = ["pull", "resolve"]
[host."${address}".header]
Authorization = ["${await authorization()}"]
`;
}

async function writeHosts(name: string, text: string): Promise<void> {
  const folder = `/etc/containerd/certs.d/${name}`;
  const script = `umask 077; mkdir -p '${folder}' && cat > '${folder}/hosts.toml'`;
  await docker(['exec', '-i', containers.node, 'sh', '-c', script], { input: text });
}

/** Starts the registry and lets the node pull from it. */
export async function ensureRegistry(): Promise<undefined> {
  if (!(await containerExists(containers.registry))) await runRegistry();
  await startContainer(containers.registry);
  await writeHosts(node.registryHost, await hostsToml(`http://${node.registryHost}`));
  await writeHosts('docker.io', await hostsToml('https://registry-1.docker.io'));
  const { status } = await askRegistry('/v2/');
  if (status !== 200) throw new Error(`the registry answers with status ${status} to its own password`);
  return undefined;
}

/** What the registry answers. A busy machine may need more than one try. */
export async function askRegistry(path: string): Promise<ProbeAnswer> {
  const url = `http://${await localAddress()}${path}`;
  const headers = { authorization: await authorization(), accept: manifestFormats };
  return await waitFor('an answer of the registry', () => probe(url, { headers }), { seconds: 60 });
}

/** The push password of builds, as a Docker configuration. */
export async function pushConfig(): Promise<string> {
  return JSON.stringify({ auths: { [node.registryHost]: { auth: await credentials() } } });
}

/** A configuration of its own hides the person's Docker context, so the engine's address goes with it. */
async function pushEnvironment(address: string): Promise<Record<string, string>> {
  const folder = join(paths.kind, 'docker');
  const config = JSON.stringify({ auths: { [address]: { auth: await credentials() } } });
  await writeText(join(folder, 'config.json'), config, 0o600);
  const host =
    process.env['DOCKER_HOST'] ?? (await docker(['context', 'inspect', '--format', '{{.Endpoints.docker.Host}}']));
  return { DOCKER_CONFIG: folder, DOCKER_HOST: host };
}

/**
 * Pushes an image of the Docker engine into the registry as `repository:tag`. Returns the name by digest under which
 * pods pull it.
 */
export async function push(image: string, repository: string, tag: string): Promise<string> {
  const address = await localAddress();
  const name = `${address}/${repository}:${tag}`;
  await docker(['tag', image, name]);
  const output = await docker(['push', name], { env: await pushEnvironment(address) });
  await docker(['rmi', name]);
  const digest = /digest: (sha256:[0-9a-f]{64})/.exec(output)?.[1];
  if (digest === undefined) throw new Error(`docker push ${name} printed no digest: ${output.slice(-300)}`);
  return `${node.registryHost}/${repository}@${digest}`;
}

/** Removes the registry with its images. */
export async function removeRegistry(): Promise<undefined> {
  if (await containerExists(containers.registry)) await docker(['rm', '--force', '--volumes', containers.registry]);
  return undefined;
}
