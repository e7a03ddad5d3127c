// Builds the images of a kind cluster with Docker, and copies images of Docker Hub into its registry.
import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildProgress, getImage } from '../../localnode/images/build.ts';
import { gitServerFiles } from '../../localnode/images/catalog.ts';
import { paths } from '../../localnode/paths.ts';
import { ignoreReport, type Report } from '../../localnode/steps.ts';
import { runDocker, ensurePulled } from './docker.ts';
import { requestRegistry, push } from './registry.ts';
import { readSearxngImage, type ToolHost, type ToolImage } from '../install/tool-services.ts';
import { computeImageBytes } from '../../localnode/registry/storage.ts';
import { runNodeKubectl as kubectl } from './cluster.ts';

/** Prefix of the tags of images built here; `down --purge` removes them. */
export const ownPrefix = 'moorage-kind';

/**
 * Builds an image, with the build output in a log in `logs`. Returns its name in the Docker engine, which changes with the
 * content.
 */
export async function buildImage(
  name: string,
  args: readonly string[],
  report: Report = ignoreReport,
  logs = paths.kind,
): Promise<string> {
  const [log, idFile] = [join(logs, `image-${name}.log`), join(logs, `image-${name}.id`)];
  await mkdir(logs, { recursive: true });
  for (const file of [log, idFile]) await rm(file, { force: true });
  await runDocker(['build', '--progress=plain', `--iidfile=${idFile}`, ...args], {
    log,
    onLine: buildProgress(report),
  });
  const id = (await readFile(idFile, 'utf8')).trim();
  const image = `${ownPrefix}/${name}:${id.replace(/^sha256:/, '').slice(0, 16)}`;
  await runDocker(['tag', id, image]);
  return image;
}

/** Builds a target of the root Dockerfile. */
export async function buildProduct(
  target: 'moorage' | 'moorage-workers' | 'moorage-pipeline',
  report: Report,
): Promise<string> {
  return await buildImage(target, ['--target', target, paths.root], report);
}

/** Pushes an image that was built here, and returns it by digest. */
export async function publishProduct(name: string, image: string): Promise<string> {
  return await push(image, `moorage/${name}`, image.split(':')[1] ?? 'latest');
}

/** An image as Docker knows it, and as pods pull it. */
export interface PublishedImage {
  built: string;
  published: string;
}

/** Builds an image from folders and files of this repository, each copied next to its Dockerfile under the given name. */
async function publishFrom(
  name: string,
  sources: Readonly<Record<string, string>>,
  args: readonly string[],
): Promise<PublishedImage> {
  const scratch = await mkdtemp(join(tmpdir(), 'moorage-image-'));
  try {
    for (const [to, from] of Object.entries(sources))
      await cp(join(paths.root, from), join(scratch, to), { recursive: true });
    const built = await buildImage(name, [...args, scratch]);
    return { built, published: await publishProduct(name, built) };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

export async function publishGitServer(): Promise<PublishedImage> {
  return await publishFrom(
    'git-server',
    {
      '.': 'localnode/images/git-server',
      ...Object.fromEntries(gitServerFiles.map((file) => [`srv/${file}`, file])),
    },
    [],
  );
}

/** Sources of the node network's image: paths in the image, and in this repository. */
export const networkSources: Readonly<Record<string, string>> = {
  Dockerfile: 'cli/kind/network/Dockerfile',
  'localnode/network-policy': 'localnode/network-policy',
  'cli/kind/network': 'cli/kind/network',
  'localnode/node/network/rules.ts': 'localnode/node/network/rules.ts',
  'localnode/node/network/cni.ts': 'localnode/node/network/cni.ts',
  'localnode/registry': 'localnode/registry',
};

/** The image of the node's network and of the registry's cleanup, on top of Moorage's own. */
export async function publishNodeNetwork(base: string): Promise<PublishedImage> {
  return await publishFrom('node-network', networkSources, ['--build-arg', `BASE=${base}`]);
}

/** Copies an image of Docker Hub into the registry, unless it is there. */
export async function ensureRegistryImage(image: string): Promise<string> {
  const [repository = '', tag = 'latest'] = image.split(':');
  const path = repository.includes('/') ? repository : `library/${repository}`;
  if ((await requestRegistry(`/v2/${path}/manifests/${tag}`)).status === 200) return 'present';
  const outcome = await ensurePulled(image);
  await push(image, path, tag);
  return outcome;
}

// Services behind tools: the recipes of the one-machine node, built by Docker.

async function readSize(repository: string, reference: string): Promise<number> {
  return await computeImageBytes(reference, async (each) => {
    return (await requestRegistry(`/v2/${repository}/manifests/${each}`)).body;
  });
}

async function buildToolImage(name: string, report: Report): Promise<ToolImage> {
  const recipe = getImage(name);
  const scratch = await mkdtemp(join(tmpdir(), 'moorage-image-'));
  try {
    await cp(join(paths.root, 'localnode', 'images', recipe.folder), scratch, { recursive: true });
    await recipe.fill(scratch, report);
    const values = Object.entries(recipe.arguments ?? {}).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`]);
    const built = await buildImage(name, [...values, scratch], report);
    report('pushing');
    const reference = await publishProduct(name, built);
    return { reference, bytes: await readSize(`moorage/${name}`, reference.split('@')[1] ?? '') };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Keeps the name of Docker Hub, for which the node asks the cluster's own registry first. */
async function bringSearxng(): Promise<ToolImage> {
  const { reference, repository, tag } = await readSearxngImage();
  await ensureRegistryImage(`${repository}:${tag}`);
  return { reference, bytes: await readSize(repository, tag) };
}

export function createToolHost(release: Pick<ToolHost, 'readValues' | 'install'>): ToolHost {
  return {
    kubectl,
    build: buildToolImage,
    bringSearxng,
    readValues: () => release.readValues(),
    install: (settings) => release.install(settings),
  };
}
