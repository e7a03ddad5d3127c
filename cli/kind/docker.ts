// The Docker engine that holds the cluster: small commands against it.
import { appendFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readText } from '../../localnode/files.ts';
import { paths } from '../../localnode/paths.ts';
import { run, succeeds } from '../../localnode/shell.ts';

/** Names of the containers. */
export const containers = { cluster: 'moorage', node: 'moorage-control-plane', registry: 'moorage-registry' } as const;

/**
 * Docker before 23 builds without BuildKit by default, and the Dockerfiles mount caches. An attestation beside an image
 * makes an index of it, which containerd refuses to import. Another builder would keep what it builds to itself.
 */
const environment = { DOCKER_BUILDKIT: '1', BUILDX_NO_DEFAULT_ATTESTATIONS: '1', BUILDX_BUILDER: 'default' };

export async function docker(
  args: readonly string[],
  options: { input?: string; env?: Record<string, string>; log?: string; onLine?: (line: string) => void } = {},
): Promise<string> {
  return await run('docker', args, { ...options, env: { ...environment, ...options.env } });
}

export async function dockerAnswers(): Promise<boolean> {
  return await succeeds('docker', ['info']);
}

export async function containerExists(name: string): Promise<boolean> {
  return await succeeds('docker', ['container', 'inspect', name]);
}

/** Starts a container that exists, such as after a restart of the machine. */
export async function startContainer(name: string): Promise<void> {
  if ((await docker(['inspect', '-f', '{{.State.Running}}', name])) !== 'true') await docker(['start', name]);
}

/** The container's address in the network that kind makes. */
export async function addressOf(name: string): Promise<string> {
  return await docker(['inspect', '-f', '{{.NetworkSettings.Networks.kind.IPAddress}}', name]);
}

export async function hasImage(reference: string): Promise<boolean> {
  return await succeeds('docker', ['image', 'inspect', reference]);
}

/** Names of the images that were downloaded for the cluster, a line each: `down --purge` removes no other. */
const downloadsFile = join(paths.cache, 'kind-downloads');

/** Downloads an image unless the engine has it. */
export async function ensurePulled(reference: string): Promise<string> {
  if (await hasImage(reference)) return 'present';
  await docker(['pull', '--quiet', reference]);
  await mkdir(paths.cache, { recursive: true });
  await appendFile(downloadsFile, `${reference}\n`);
  return 'downloaded';
}

export async function downloadedImages(): Promise<string[]> {
  return ((await readText(downloadsFile)) ?? '').split('\n').filter((line) => line !== '');
}
