// Images of the cluster: Moorage's own, built by Docker, and those of Docker Hub that are put into the registry.
import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildProgress } from '../../localnode/images/build.ts';
import { gitServerFiles } from '../../localnode/images/catalog.ts';
import { paths } from '../../localnode/paths.ts';
import { noReport, type Report } from '../../localnode/steps.ts';
import { docker, ensurePulled } from './docker.ts';
import { askRegistry, push } from './registry.ts';

/** The tags of images that are built here begin so; `down --purge` removes them. */
export const ownPrefix = 'moorage-kind';

/**
 * Builds an image, with what the build prints in a log in `logs`. Returns its name in the Docker engine, which changes
 * with the content.
 */
export async function buildImage(
  name: string,
  args: readonly string[],
  report: Report = noReport,
  logs = paths.kind,
): Promise<string> {
  const [log, idFile] = [join(logs, `image-${name}.log`), join(logs, `image-${name}.id`)];
  await mkdir(logs, { recursive: true });
  for (const file of [log, idFile]) await rm(file, { force: true });
  await docker(['build', '--progress=plain', `--iidfile=${idFile}`, ...args], { log, onLine: buildProgress(report) });
  const id = (await readFile(idFile, 'utf8')).trim();
  const image = `${ownPrefix}/${name}:${id.replace(/^sha256:/, '').slice(0, 16)}`;
  await docker(['tag', id, image]);
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

/** What the image of the node's network is made of: paths in the image, and in this repository. */
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

/** Puts an image of Docker Hub into the registry, unless it is there. */
export async function seed(image: string): Promise<string> {
  const [repository = '', tag = 'latest'] = image.split(':');
  const path = repository.includes('/') ? repository : `library/${repository}`;
  if ((await askRegistry(`/v2/${path}/manifests/${tag}`)).status === 200) return 'present';
  const done = await ensurePulled(image);
  await push(image, path, tag);
  return done;
}
