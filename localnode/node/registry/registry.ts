// Configures the node's image registry, Debian's docker-registry behind a password, and its clients.
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { readText, writeText } from '../../files.ts';
import { paths } from '../../paths.ts';
import { manifestFormats } from '../../registry/storage.ts';
import { run } from '../../shell.ts';
import { getUnpackedFolder } from '../daemons/packages.ts';
import { probe, type ProbeAnswer } from '../daemons/probe.ts';
import { writeConfigFile, type ProcessSpec } from '../daemons/processes.ts';
import { node } from '../settings.ts';

export const registryFolder = join(paths.state, 'registry');
export const registryConfig = join(registryFolder, 'config.yaml');
const folder = registryFolder;
const user = 'moorage';

export const registryUrl = `http://${node.address}:${node.registryPort}`;
/** Its address for skopeo and buildctl on the node itself. */
export const registryAddress = `${node.address}:${node.registryPort}`;

/** Creates the registry's password, once per cluster. */
export async function ensureRegistryPassword(): Promise<string> {
  const path = join(folder, 'password');
  const existing = await readText(path);
  if (existing !== undefined) return existing.trim();
  const password = randomBytes(24).toString('base64url');
  await writeText(path, `${password}\n`, 0o600);
  return password;
}

async function buildBasicCredentials(): Promise<string> {
  return Buffer.from(`${user}:${await ensureRegistryPassword()}`).toString('base64');
}

/** Builds a docker config.json with the password for every name of the registry. */
export async function buildDockerConfig(): Promise<string> {
  const auth = { auth: await buildBasicCredentials() };
  return JSON.stringify({ auths: { [node.registryHost]: auth, [registryAddress]: auth } });
}

/** Returns the folder with that config.json, for DOCKER_CONFIG. */
export async function ensureDockerConfigFolder(): Promise<string> {
  const home = join(folder, 'docker');
  await writeText(join(home, 'config.json'), await buildDockerConfig(), 0o600);
  return home;
}

/** Sends a request to the registry. */
export async function askRegistry(path: string, method = 'GET'): Promise<ProbeAnswer> {
  return await probe(`${registryUrl}${path}`, {
    method,
    headers: { authorization: `Basic ${await buildBasicCredentials()}`, accept: manifestFormats },
  });
}

/** Returns the digest of the image under a tag; undefined if the registry does not have it. */
export async function findDigest(repository: string, tag: string): Promise<string | undefined> {
  const { status, headers } = await askRegistry(`/v2/${repository}/manifests/${tag}`, 'HEAD');
  return status === 200 ? String(headers['docker-content-digest']) : undefined;
}

export async function buildRegistrySpec(): Promise<ProcessSpec> {
  const users = join(folder, 'users');
  const password = await ensureRegistryPassword();
  if ((await readText(users)) === undefined)
    await writeText(users, `${await run('htpasswd', ['-niB', user], { input: password })}\n`, 0o600);
  const text = await writeConfigFile(
    registryConfig,
    stringify({
      version: 0.1,
      log: { level: 'warn', accesslog: { disabled: true } },
      storage: {
        filesystem: { rootdirectory: join(folder, 'blobs') },
        delete: { enabled: true },
        cache: { blobdescriptor: 'inmemory' },
      },
      // A stop waits for requests in progress.
      http: { addr: registryAddress, secret: password, draintimeout: '30s' },
      auth: { htpasswd: { realm: 'moorage', path: users } },
    }),
  );
  return {
    name: 'registry',
    command: join(getUnpackedFolder('docker-registry'), 'usr/bin/docker-registry'),
    args: ['serve', registryConfig],
    inputs: [text, (await readText(users)) ?? ''],
    isReady: async () => (await askRegistry('/v2/')).status === 200,
  };
}

/**
 * Renders containerd's hosts.toml: the cluster's own images first; for Docker Hub's names, the real registry after
 * that.
 */
function renderHostsToml(credentials: string, server: string): string {
  return `server = "${server}"

[host."${registryUrl}"]
capabilities = ["pull", "resolve"]
[host."${registryUrl}".header]
Authorization = ["Basic ${credentials}"]
`;
}

/**
 * Writes containerd's registry configuration and returns its folder. containerd reads it at each pull, so no restart is
 * needed.
 */
export async function writeHosts(): Promise<string> {
  const certs = join(paths.state, 'containerd-hosts');
  const credentials = await buildBasicCredentials();
  await writeText(
    join(certs, 'docker.io', 'hosts.toml'),
    renderHostsToml(credentials, 'https://registry-1.docker.io'),
    0o600,
  );
  await writeText(join(certs, node.registryHost, 'hosts.toml'), renderHostsToml(credentials, registryUrl), 0o600);
  return certs;
}
