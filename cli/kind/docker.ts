// Runs commands of the Docker engine that holds the cluster, decides the published ports, and pins the images.
import { appendFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { defaultNode, languages } from '../../crds/languages.ts';
import { readText } from '../../localnode/files.ts';
import { paths } from '../../localnode/paths.ts';
import { run, canRun } from '../../localnode/shell.ts';
import type { GatewayPorts } from '../../localnode/node/gateway/ports.ts';
import { getRecipe } from '../../localnode/binaries/recipes.ts';

/** Names of the containers. */
export const containers = { cluster: 'moorage', node: 'moorage-control-plane', registry: 'moorage-registry' } as const;

/**
 * Docker before 23 builds without BuildKit by default, and the Dockerfiles mount caches. An attestation turns an image into
 * an index, which containerd refuses to import. Another builder would not load its images into the engine.
 */
const environment = { DOCKER_BUILDKIT: '1', BUILDX_NO_DEFAULT_ATTESTATIONS: '1', BUILDX_BUILDER: 'default' };

export async function runDocker(
  args: readonly string[],
  options: { input?: string; env?: Record<string, string>; log?: string; onLine?: (line: string) => void } = {},
): Promise<string> {
  return await run('docker', args, { ...options, env: { ...environment, ...options.env } });
}

export async function isDockerAnswering(): Promise<boolean> {
  return await canRun('docker', ['info']);
}

export async function hasContainer(name: string): Promise<boolean> {
  return await canRun('docker', ['container', 'inspect', name]);
}

/** Starts a container that exists, such as after a restart of the machine. */
export async function startContainer(name: string): Promise<void> {
  if ((await runDocker(['inspect', '-f', '{{.State.Running}}', name])) !== 'true') await runDocker(['start', name]);
}

/** The container's address in the network that kind makes. */
export async function readAddress(name: string): Promise<string> {
  return await runDocker(['inspect', '-f', '{{.NetworkSettings.Networks.kind.IPAddress}}', name]);
}

export async function hasImage(reference: string): Promise<boolean> {
  return await canRun('docker', ['image', 'inspect', reference]);
}

/** Names of the images that were downloaded for the cluster, one per line: `down --purge` removes only these. */
const downloadsFile = join(paths.cache, 'kind-downloads');

/** Downloads an image unless the engine has it. */
export async function ensurePulled(reference: string): Promise<string> {
  if (await hasImage(reference)) return 'present';
  await runDocker(['pull', '--quiet', reference]);
  await mkdir(paths.cache, { recursive: true });
  await appendFile(downloadsFile, `${reference}\n`);
  return 'downloaded';
}

export async function listDownloadedImages(): Promise<string[]> {
  return ((await readText(downloadsFile)) ?? '').split('\n').filter((line) => line !== '');
}

// The gateway's two ports on this machine. Docker publishes them when the node is created, and cannot change them later.

const bindings = z.record(z.string(), z.array(z.object({ HostPort: z.string() })).nullable());

/** Reads the ports from a node's port bindings, as `docker inspect` prints them. */
export function readBindings(text: string): GatewayPorts | undefined {
  const published = bindings.parse(JSON.parse(text));
  const [http, https] = ['80/tcp', '443/tcp'].map((port) => published[port]?.[0]?.HostPort);
  return http === undefined || https === undefined ? undefined : { http: Number(http), https: Number(https) };
}

/** The ports of the existing cluster; undefined if there is none. */
export async function readPublishedPorts(): Promise<GatewayPorts | undefined> {
  if (!(await hasContainer(containers.node))) return undefined;
  return readBindings(await runDocker(['inspect', '-f', '{{json .HostConfig.PortBindings}}', containers.node]));
}

/** The ports to use. Throws if the existing cluster publishes ports other than the requested ones. */
export function decidePorts(
  wantedPorts: { http: number | undefined; https: number | undefined },
  published: GatewayPorts | undefined,
): GatewayPorts {
  const current = published ?? { http: 80, https: 443 };
  const ports = { http: wantedPorts.http ?? current.http, https: wantedPorts.https ?? current.https };
  if (ports.http === ports.https)
    throw new Error(
      `HTTP and HTTPS cannot share port ${ports.http}: choose another one with --http-port or --https-port`,
    );
  if (published !== undefined && !isDeepStrictEqual(ports, published))
    throw new Error(
      `the kind cluster publishes ports ${published.http} (http) and ${published.https} (https), which cannot change while it exists: remove it with \`npm run down\` first, or leave out --http-port and --https-port`,
    );
  return ports;
}

/** Whether something accepts connections on this port. Trying to listen on 443 instead would need root. */
async function isPortOpen(port: number): Promise<boolean> {
  return await new Promise((done) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: 1000 });
    const end = (answer: boolean) => () => {
      socket.destroy();
      done(answer);
    };
    socket.once('connect', end(true)).once('error', end(false)).once('timeout', end(false));
  });
}

/** Throws if another program uses one of the ports of a new cluster. */
export async function requireFreePorts(ports: GatewayPorts): Promise<void> {
  for (const name of ['https', 'http'] as const) {
    if (await isPortOpen(ports[name]))
      throw new Error(
        `port ${ports[name]} is already in use by another program: choose a free one with --${name}-port N`,
      );
  }
}

// Pinned versions, and the cost of their download.

export const kindVersion = 'v0.32.0';

/** Published with that release of kind. Set another image if Docker Hub cannot be reached. */
export const nodeImage =
  process.env['MOORAGE_KIND_NODE_IMAGE'] ??
  'kindest/node:v1.35.5@sha256:ce977ae6d65918d0b58a5f8b5e940429c2ce42fa3a5619ec2bbc60b949c0ac95';

export const registryImage =
  process.env['MOORAGE_KIND_REGISTRY_IMAGE'] ??
  'registry:2.8.3@sha256:a3d8aaa63ed8681a604f1dea0aa03f100d5895b6a58ace528858a7b332415373';

export const traefikImage = `traefik:${getRecipe('traefik').version}`;

/** The chart's default, which pods pull by this name. */
const postgresImage = 'postgres:17-trixie';

/**
 * Images of Docker Hub that are put into the cluster's own registry once, so that neither a pod nor a build downloads
 * them again.
 */
export const seeds: readonly string[] = [
  traefikImage,
  postgresImage,
  defaultNode,
  ...[...languages.static.images, ...languages.python.images].map(({ image }) => image),
];

/** What the first `up` downloads, in human terms. */
export const downloads =
  'about 1.4 GB, and 1.8 GB more for the services of tools: some 10 minutes at 100 Mbit/s, and 20 GB of disk';
