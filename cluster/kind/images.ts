// Images of the cluster: Moorage's own, built by Docker, and those of Docker Hub that are put into the registry.
import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildProgress } from '../images/build.ts';
import { gitServerFiles } from '../images/catalog.ts';
import { paths } from '../paths.ts';
import { noReport, type Report } from '../steps.ts';
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

/** Builds an image from folders and files of cluster/, each laid beside its Dockerfile under the name given. */
async function publishFrom(
  name: string,
  sources: Readonly<Record<string, string>>,
  args: readonly string[],
): Promise<PublishedImage> {
  const scratch = await mkdtemp(join(tmpdir(), 'moorage-image-'));
  try {
    for (const [to, from] of Object.entries(sources))
      await cp(join(paths.root, 'cluster', from), join(scratch, to), { recursive: true });
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
      '.': 'images/git-server',
      ...Object.fromEntries(gitServerFiles.map((file) => [`srv/${file}`, join('..', file)])),
    },
    [],
  );
}

/** What the image of the node's network is made of: paths in the image, and below `cluster/`. */
export const networkSources: Readonly<Record<string, string>> = {
  Dockerfile: 'kind/network/Dockerfile',
  'cluster/network-policy': 'network-policy',
  'cluster/kind/network': 'kind/network',
  'cluster/node/network/rules.ts': 'node/network/rules.ts',
  'cluster/node/network/cni.ts': 'node/network/cni.ts',
  'cluster/registry': 'registry',
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
