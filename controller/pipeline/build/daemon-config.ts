// Writes buildkitd.toml and the source policy: what a build may use, and from where.
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { platformFolders } from '../../../crds/image-names.ts';
import type { PipelineInput } from '../contract.ts';

type ConfigInput = Pick<PipelineInput, 'plainHosts' | 'mirror' | 'mirrorOf'>;

/** Where the daemon keeps its state and listens. */
export interface DaemonPaths {
  readonly root: string;
  readonly socket: string;
}

/** Runs the steps, with less than runc would give them. */
const stepRuntime = fileURLToPath(new URL('step-runtime.sh', import.meta.url));

/**
 * TOML of a daemon for a single build: nothing is collected, nobody else's frontend runs, no entitlement can be asked
 * for.
 */
export function daemonConfig(input: ConfigInput, paths: DaemonPaths, processors: number): string {
  const quoted = JSON.stringify;
  return [
    `root = ${quoted(paths.root)}`,
    'insecure-entitlements = []',
    '[log]',
    '  format = "text"',
    '  level = "warn"',
    '[grpc]',
    `  address = [${quoted(`unix://${paths.socket}`)}]`,
    '[otel]',
    `  socketPath = ${quoted(`${paths.root}/otel.sock`)}`,
    '[cdi]',
    '  disabled = true',
    '[history]',
    '  maxEntries = 2',
    '[worker.containerd]',
    '  enabled = false',
    '[worker.oci]',
    '  enabled = true',
    '  snapshotter = "overlayfs"',
    '  gc = false',
    '  networkMode = "host"',
    `  binary = ${quoted(stepRuntime)}`,
    '  noProcessSandbox = false',
    `  max-parallelism = ${Math.max(1, processors)}`,
    '[frontend."gateway.v0"]',
    '  enabled = false',
    '[frontend."dockerfile.v0"]',
    '  enabled = true',
    ...mirrored(input).flatMap((host) => [`[registry.${quoted(host)}]`, `  mirrors = [${quoted(input.mirror)}]`]),
    ...input.plainHosts.flatMap((host) => [`[registry.${quoted(host)}]`, '  http = true']),
    '',
  ].join('\n');
}

/** Registry hosts that a mirror stands in for. */
export function mirrored({ mirror, mirrorOf }: Pick<PipelineInput, 'mirror' | 'mirrorOf'>): readonly string[] {
  return mirror === undefined ? [] : mirrorOf;
}

/** Registry host of an image name, with its port. */
export function registryHost(image: string): string {
  const [first = '', ...rest] = image.split('/');
  return rest.length > 0 && /[.:]|^localhost$/.test(first) ? first : 'docker.io';
}

/**
 * A source policy in BuildKit's JSON. A build must not read what the platform keeps in its registry, which its token
 * does not open either; where the registry proxy stands in for others, the same repositories could also be named as if
 * they were there. And no git: BuildKit would run it beside the daemon, outside of the sandbox of the steps.
 */
export function sourcePolicy({
  image,
  push,
  ...mirroring
}: Pick<PipelineInput, 'image' | 'push' | 'mirror' | 'mirrorOf'>): string {
  const host = registryHost(push);
  // The registry itself is out of a build's reach; naming it is refused at once, without waiting for an answer.
  const hosts = new Set([host, registryHost(image), ...(host === mirroring.mirror ? mirrored(mirroring) : [])]);
  const closed = [...hosts].flatMap((each) => platformFolders.map((folder) => `docker-image://${each}/${folder}/*`));
  return JSON.stringify({
    rules: [...closed, 'git://*'].map((identifier) => ({
      action: 'DENY',
      selector: { identifier, matchType: 'WILDCARD' },
    })),
  });
}

/** What buildctl leaves behind about an image that it pushed. */
export const buildMetadata = z.object({
  'containerimage.digest': z.string().regex(/^sha256:[0-9a-f]{64}$/),
  'containerimage.config.digest': z
    .string()
    .regex(/^sha256:[0-9a-f]{64}$/)
    .optional(),
});
