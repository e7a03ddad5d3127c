// Writes buildkitd.toml and the source policy: what a build may use, and from where.
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { PipelineInput } from '../contract.ts';

type ConfigInput = Pick<PipelineInput, 'image' | 'cache' | 'insecureRegistry' | 'mirror'>;

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
    ...(input.mirror === undefined ? [] : ['[registry."docker.io"]', `  mirrors = [${quoted(input.mirror)}]`]),
    ...plainHosts(input).flatMap((host) => [`[registry.${quoted(host)}]`, '  http = true']),
    '',
  ].join('\n');
}

/** Registry host of an image name, with its port. */
export function registryHost(image: string): string {
  const [first = '', ...rest] = image.split('/');
  return rest.length > 0 && /[.:]|^localhost$/.test(first) ? first : 'docker.io';
}

/** Hosts that are spoken to without TLS: the registry where it is insecure, and the mirror where it is the same one. */
export function plainHosts(input: ConfigInput): string[] {
  if (!input.insecureRegistry) return [];
  const own = registryHost(input.image);
  const named = [
    own,
    ...(input.cache === undefined ? [] : [registryHost(input.cache)]),
    ...(input.mirror === undefined ? [] : [input.mirror]),
  ];
  return [...new Set(named)].filter((host) => host !== 'docker.io');
}

/**
 * A source policy in BuildKit's JSON. The build holds credentials for the registry that it pushes to, so a Dockerfile
 * must not
 * be able to read other apps' images or layer caches there with them. Where that registry is the mirror of Docker Hub
 * as well,
 * the same repositories could also be named as if they were on Docker Hub.
 */
export function sourcePolicy(input: Pick<PipelineInput, 'image' | 'cache' | 'mirror'>): string {
  const closed = [input.image, ...(input.cache === undefined ? [] : [input.cache])].flatMap((image) => {
    const host = registryHost(image);
    const folder = image.slice(0, image.lastIndexOf('/'));
    return host === input.mirror ? [folder, `docker.io${folder.slice(host.length)}`] : [folder];
  });
  return JSON.stringify({
    rules: [...new Set(closed)].map((folder) => ({
      action: 'DENY',
      selector: { identifier: `docker-image://${folder}/*`, matchType: 'WILDCARD' },
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
