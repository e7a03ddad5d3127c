// Reads the configuration of a built image, from the builder or from the registry: the port that it exposes, and the volumes
// that it declares.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Finding } from '../../../crds/hosted-app.ts';
import type { PipelineInput } from '../contract.ts';
import { keepHead, toOneLine } from '../text.ts';
import { parseRegistryHost, requestRegistry } from './buildkit.ts';

const imageConfig = z.object({
  config: z
    .object({
      ExposedPorts: z.record(z.string(), z.unknown()).nullish(),
      Volumes: z.record(z.string(), z.unknown()).nullish(),
    })
    .nullish(),
});

/** Reads an image's configuration from buildkitd's store, by digest. */
export async function readBuiltConfig(root: string, digest: string | undefined): Promise<unknown> {
  if (digest === undefined) return undefined;
  const file = join(root, 'runc-overlayfs', 'content', 'blobs', 'sha256', digest.replace(/^sha256:/, ''));
  return JSON.parse(await readFile(file, 'utf8')) as unknown;
}

const imageManifest = z.object({ config: z.object({ digest: z.string().regex(/^sha256:[0-9a-f]{64}$/) }) });
const requestMs = 10_000;
const maximumConfigBytes = 1024 * 1024;

/**
 * Reads the configuration of an image that an earlier pipeline pushed; undefined if the registry does not have it any more,
 * or does not answer.
 */
export async function readPushedConfig(
  { push, plainHosts }: Pick<PipelineInput, 'push' | 'plainHosts'>,
  digest: string,
  token: string | undefined,
): Promise<object | undefined> {
  const host = parseRegistryHost(push);
  const name = { host, repository: push.slice(host.length + 1) };
  const read = async (kind: 'manifests' | 'blobs', tag: string, accept: string): Promise<unknown> => {
    const answer = await requestRegistry(plainHosts, { ...name, kind, tag }, token, { accept, timeoutMs: requestMs });
    const isReadable = answer.ok && Number(answer.headers.get('content-length') ?? 0) <= maximumConfigBytes;
    if (isReadable) return await answer.json();
    await answer.body?.cancel();
    return undefined;
  };
  try {
    const manifest = imageManifest.parse(await read('manifests', digest, 'application/vnd.oci.image.manifest.v1+json'));
    const config = await read('blobs', manifest.config.digest, 'application/octet-stream');
    return typeof config === 'object' && config !== null ? config : undefined;
  } catch {
    return undefined;
  }
}

/** Ports that HTTP is most often served on, most likely first. */
const likelyPorts = [8080, 8000, 3000, 80, 5000, 8501, 7860, 8888, 4000, 5173];

/**
 * Returns the TCP port that an image exposes, or the most likely HTTP port if there are several; undefined if it
 * exposes none.
 */
export function findExposedPort(config: unknown): number | undefined {
  const parsed = imageConfig.safeParse(config);
  const ports = Object.keys(parsed.data?.config?.ExposedPorts ?? {})
    .flatMap((each) => {
      const match = /^(\d{1,5})(?:\/tcp)?$/.exec(each);
      const port = Number(match?.[1] ?? 0);
      return port >= 1 && port <= 65_535 ? [port] : [];
    })
    .sort((one, other) => one - other);
  return likelyPorts.find((each) => ports.includes(each)) ?? ports[0];
}

/**
 * Warns about volumes that an image declares and that get no disk. Nodes do not create them, because nothing would
 * limit what is written there. `disks`: the paths where the app has one.
 */
export function warnAboutVolumes(config: unknown, file: string, disks: ReadonlySet<string>): Finding[] {
  const declaredVolumes = Object.keys(imageConfig.safeParse(config).data?.config?.Volumes ?? {});
  const volumes = declaredVolumes.filter((path) => !disks.has(path.replace(/(?!^)\/+$/, '')));
  if (volumes.length === 0) return [];
  const volumeList = keepHead(toOneLine(volumes.join(', ')), 200);
  return [
    {
      rule: 'dockerfile/volume',
      severity: 'warning',
      file,
      message: `VOLUME (${volumeList}) has no effect: files written there go to the app's temporary disk, and a folder that is missing in the image is not created.`,
      fix: 'Create the folder in the Dockerfile (RUN mkdir -p …); for persistent data, add a volume (run.volumes in moorage.yaml).',
    },
  ];
}
