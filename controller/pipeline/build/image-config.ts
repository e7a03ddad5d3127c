// Reads which port an image exposes and which volumes it declares, from the content store of the daemon that built it.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Finding } from '../../../crds/hosted-app.ts';
import { head, oneLine } from '../text.ts';

const imageConfig = z.object({
  config: z
    .object({
      ExposedPorts: z.record(z.string(), z.unknown()).nullish(),
      Volumes: z.record(z.string(), z.unknown()).nullish(),
    })
    .nullish(),
});

/** Ports that HTTP is most often served on, the likeliest first. */
const likely = [8080, 8000, 3000, 80, 5000, 8501, 7860, 8888, 4000, 5173];

/**
 * The TCP port that an image exposes, the likeliest for HTTP when there are several; undefined when it exposes none.
 */
export function exposedPort(config: unknown): number | undefined {
  const parsed = imageConfig.safeParse(config);
  const ports = Object.keys(parsed.data?.config?.ExposedPorts ?? {})
    .flatMap((each) => {
      const match = /^(\d{1,5})(?:\/tcp)?$/.exec(each);
      const port = Number(match?.[1] ?? 0);
      return port >= 1 && port <= 65_535 ? [port] : [];
    })
    .sort((one, other) => one - other);
  return likely.find((each) => ports.includes(each)) ?? ports[0];
}

/**
 * A warning where an image declares volumes that get no disk: no node makes them, since nothing would bound what is
 * written there. `disks`: paths at which the app has one.
 */
export function volumeWarning(config: unknown, file: string, disks: ReadonlySet<string>): Finding[] {
  const declared = Object.keys(imageConfig.safeParse(config).data?.config?.Volumes ?? {});
  const volumes = declared.filter((path) => !disks.has(path.replace(/(?!^)\/+$/, '')));
  if (volumes.length === 0) return [];
  const shown = head(oneLine(volumes.join(', ')), 200);
  return [
    {
      rule: 'dockerfile/volume',
      severity: 'warning',
      file,
      message: `VOLUME (${shown}) has no effect: files written there go to the app's temporary disk, and a folder that is missing in the image is not created.`,
      fix: 'Create the folder in the Dockerfile (RUN mkdir -p …); for persistent data, add a volume (run.volumes in moorage.yaml).',
    },
  ];
}

/** The configuration of an image in buildkitd's store, by digest. */
export async function readImageConfig(root: string, digest: string): Promise<unknown> {
  const file = join(root, 'runc-overlayfs', 'content', 'blobs', 'sha256', digest.replace(/^sha256:/, ''));
  return JSON.parse(await readFile(file, 'utf8')) as unknown;
}
