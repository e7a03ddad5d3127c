// Builds images with BuildKit on the node itself, caches them as OCI archives, and pushes them to the registry.
import { cp, mkdir, mkdtemp, readFile, readdir, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { getBinariesFolder, getBinaryPath } from '../binaries/build.ts';
import { computeContentKey, computeFolderKey, readText } from '../files.ts';
import { writeConfigFile, ensureProcess, stopProcess } from '../node/daemons/processes.ts';
import { findDigest, ensureDockerConfigFolder, registryAddress } from '../node/registry/registry.ts';
import { processFolders } from '../node/settings.ts';
import { paths } from '../paths.ts';
import { run, canRun } from '../shell.ts';
import { ignoreReport, type Report } from '../steps.ts';
import { images, type ImageRecipe } from './catalog.ts';

const socket = `unix://${join(paths.run, 'buildkit', 'buildkitd.sock')}`;
const index = z.object({ manifests: z.array(z.object({ digest: z.string() })).min(1) });

export interface Build {
  name: string;
  /** Changes with the content. */
  key: string;
  /** Folder that the Dockerfile copies from. */
  context: string;
  dockerfile?: string;
  target?: string;
  arguments?: Record<string, string>;
}

let started: Promise<void> | undefined;

/** Images that are built in parallel share one daemon. */
function startBuildkit(): Promise<void> {
  started ??= launchBuildkit();
  return started;
}

async function launchBuildkit(): Promise<void> {
  const config = join(paths.state, 'buildkitd.toml');
  const text = await writeConfigFile(
    config,
    `root = "${join(paths.state, 'buildkit')}"
[grpc]
address = ["${socket}"]
[worker.oci]
enabled = true
binary = "${getBinaryPath('runc', 'runc')}"
snapshotter = "overlayfs"
networkMode = "host"
gc = true
maxUsedSpace = "8GB"
[worker.containerd]
enabled = false
[registry."docker.io"]
mirrors = ["${registryAddress}"]
[registry."${registryAddress}"]
http = true
`,
  );
  await ensureProcess(processFolders, {
    name: 'buildkitd',
    command: getBinaryPath('buildkit', 'buildkitd'),
    args: ['--config', config],
    env: { PATH: `${getBinariesFolder('runc')}:/usr/sbin:/usr/bin:/sbin:/bin` },
    inputs: [text],
    isReady: () => canRun(getBinaryPath('buildkit', 'buildctl'), ['--addr', socket, 'debug', 'workers']),
  });
}

/** Stops BuildKit, which uses memory and is needed only while images are built. */
export async function stopBuildkit(): Promise<void> {
  started = undefined;
  await stopProcess(processFolders, 'buildkitd');
}

function getArchivePath(build: Pick<Build, 'name' | 'key'>): string {
  return join(paths.cache, 'images', `${build.name}-${build.key}.tar`);
}

/**
 * Builds the image into the cache, unless one with this key is there. Returns the archive's path and whether it was
 * cached.
 */
export async function ensureArchive(
  build: Build,
  fill?: (context: string, report: Report) => Promise<void>,
  report: Report = ignoreReport,
): Promise<{ archive: string; cached: boolean }> {
  const archive = getArchivePath(build);
  if (await canRun('test', ['-e', archive])) return { archive, cached: true };
  await startBuildkit();
  await mkdir(join(paths.cache, 'images'), { recursive: true });
  await mkdir(paths.logs, { recursive: true });
  const scratch = fill === undefined ? undefined : await mkdtemp(join(tmpdir(), 'moorage-image-'));
  try {
    const context = scratch ?? build.context;
    if (scratch !== undefined) {
      await cp(build.context, scratch, { recursive: true });
      await fill?.(scratch, report);
    }
    await run(
      getBinaryPath('buildkit', 'buildctl'),
      [
        ...['--addr', socket, 'build', '--progress=plain', '--frontend=dockerfile.v0'],
        ...[`--local=context=${context}`, `--local=dockerfile=${context}`],
        ...buildOptions(build).flatMap((option) => ['--opt', option]),
        ...['--output', `type=oci,dest=${archive}.draft,compression=${compression}`],
      ],
      {
        env: { DOCKER_CONFIG: await ensureDockerConfigFolder() },
        log: join(paths.logs, `image-${build.name}.log`),
        onLine: buildProgress(report),
      },
    );
  } finally {
    if (scratch !== undefined) await rm(scratch, { recursive: true, force: true });
  }
  await rename(`${archive}.draft`, archive);
  await removeOlder(build);
  return { archive, cached: false };
}

function buildOptions({ arguments: values = {}, target }: Build): string[] {
  const buildArguments = Object.entries(values).map(([name, value]) => `build-arg:${name}=${value}`);
  return target === undefined ? buildArguments : [...buildArguments, `target=${target}`];
}

/** Each build of an app reads its base image again, which takes half the processor time of gzip, and three quarters of the bytes. */
const compression = 'zstd';

/** Reports the instruction that BuildKit is running: `#8 [build 3/7] RUN npm ci` in its plain output. */
export function buildProgress(report: Report): (line: string) => void {
  return (line) => {
    const instruction = /^#\d+ (\[[^\]]*\d\/\d+\] .+)$/.exec(line)?.[1];
    if (instruction !== undefined) report(instruction);
  };
}

async function removeOlder({ name, key }: Pick<Build, 'name' | 'key'>): Promise<void> {
  const folder = join(paths.cache, 'images');
  const pattern = new RegExp(`^${name}-[0-9a-f]{16}\\.tar`);
  for (const file of await readdir(folder)) if (pattern.test(file) && !file.includes(key)) await rm(join(folder, file));
}

async function readDigest(archive: string): Promise<string> {
  const [first] = index.parse(JSON.parse(await run('tar', ['-xOf', archive, 'index.json']))).manifests;
  return first?.digest ?? '';
}

/**
 * Ensures that the registry has the archive's image under all these tags. Returns its digest and the number of tags
 * pushed.
 */
export async function pushArchive(
  archive: string,
  repository: string,
  tags: readonly string[],
): Promise<{ digest: string; pushed: number }> {
  const digest = await readDigest(archive);
  let pushed = 0;
  for (const tag of tags) {
    if ((await findDigest(repository, tag)) === digest) continue;
    const authfile = join(await ensureDockerConfigFolder(), 'config.json');
    await run('skopeo', [
      'copy',
      '--quiet',
      '--preserve-digests',
      '--insecure-policy',
      '--dest-tls-verify=false',
      '--authfile',
      authfile,
      `oci-archive:${archive}`,
      `docker://${registryAddress}/${repository}:${tag}`,
    ]);
    pushed += 1;
  }
  return { digest, pushed };
}

/** Computes the content key of a catalog image. It changes with the keys of the image's bases. */
export async function computeImageKey(image: ImageRecipe): Promise<string> {
  const parts = await Promise.all(image.parts.map((part) => readFile(join(getBinariesFolder(part), '.key'))));
  const bases = await Promise.all(image.bases.map((name) => computeImageKey(getImage(name))));
  const ownKey = image.computeKey === undefined ? '' : await image.computeKey();
  return computeContentKey([
    await computeFolderKey(join(import.meta.dirname, image.folder)),
    JSON.stringify(image.arguments ?? {}),
    ownKey,
    compression,
    ...parts,
    ...bases,
  ]);
}

/** Returns the image with that name. */
export function getImage(name: string): ImageRecipe {
  const image = images.find((candidate) => candidate.name === name);
  if (image === undefined) throw new Error(`there is no image ${name} in the catalog`);
  return image;
}

/** Returns true if the cache already has everything that building the image would produce. */
export async function isImageBuilt(name: string): Promise<boolean> {
  // Keys depend on parts that an empty cache does not have.
  const key = await computeImageKey(getImage(name)).catch(() => undefined);
  return key !== undefined && (await canRun('test', ['-e', getArchivePath({ name, key })]));
}

/** Builds and pushes a catalog image if needed. Returns what was done. */
export async function ensureImage(image: ImageRecipe, report: Report = ignoreReport): Promise<string> {
  const build: Build = {
    name: image.name,
    key: await computeImageKey(image),
    context: join(import.meta.dirname, image.folder),
    ...(image.arguments === undefined ? {} : { arguments: image.arguments }),
  };
  const { archive, cached } = await ensureArchive(build, image.fill, report);
  report('pushing');
  const absent = await listAbsentTags(image);
  const { pushed } = await pushArchive(archive, image.repository, [...image.tags, ...absent]);
  return `${image.repository.replace(/^library\//, '')}:${image.tags[0] ?? ''} ${cached ? 'cached' : 'built'}${pushed === 0 ? '' : ', pushed'}`;
}

/** Lists the tags for which it is a substitute and that the registry does not have yet. */
async function listAbsentTags({ repository, standInFor = [] }: ImageRecipe): Promise<string[]> {
  const digests = await Promise.all(standInFor.map((tag) => findDigest(repository, tag)));
  return standInFor.filter((_, index) => digests[index] === undefined);
}

/** Returns the text of a build's log, for error messages. */
export async function buildLog(name: string): Promise<string> {
  return (await readText(join(paths.logs, `image-${name}.log`))) ?? '';
}

/** Returns the size of its archive, compressed as in the registry. */
export async function measureImageBytes(name: string): Promise<number> {
  return (await stat(getArchivePath({ name, key: await computeImageKey(getImage(name)) }))).size;
}

/**
 * Returns the reference with its tag, like postgres:17-trixie@sha256:…. The digest decides what is pulled; the tag
 * shows the version, with which the operator chooses among service images.
 */
export async function resolveTaggedReference(name: string): Promise<string> {
  const { repository, tags } = getImage(name);
  const [, digest = ''] = (await resolveImageReference(name)).split('@');
  return `${repository.replace(/^library\//, '')}:${tags[0] ?? 'latest'}@${digest}`;
}

/** Returns the catalog image by digest, for a manifest: the reference changes with the content. */
export async function resolveImageReference(name: string): Promise<string> {
  const image = getImage(name);
  const archive = getArchivePath({ name, key: await computeImageKey(image) });
  return `docker.io/${image.repository}@${await readDigest(archive)}`;
}
