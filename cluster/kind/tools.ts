// How a kind cluster has the images of services behind tools: the recipes of the one-machine node, built by Docker.
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { imageOf } from '../images/build.ts';
import { searxngImage } from '../images/searxng.ts';
import type { ToolHost, ToolImage } from '../install/tool-steps.ts';
import { paths } from '../paths.ts';
import type { Report } from '../steps.ts';
import { nodeKubectl as kubectl } from './cluster.ts';
import { docker } from './docker.ts';
import { buildImage, publishProduct, seed } from './images.ts';

async function sizeOf(image: string): Promise<number> {
  return Number(await docker(['image', 'inspect', '--format', '{{.Size}}', image]));
}

async function build(name: string, report: Report): Promise<ToolImage> {
  const recipe = imageOf(name);
  const scratch = await mkdtemp(join(tmpdir(), 'moorage-image-'));
  try {
    await cp(join(paths.root, 'cluster', 'images', recipe.folder), scratch, { recursive: true });
    await recipe.fill(scratch, report);
    const values = Object.entries(recipe.arguments ?? {}).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`]);
    const built = await buildImage(name, [...values, scratch]);
    return { reference: await publishProduct(name, built), bytes: await sizeOf(built) };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Its name is that of Docker Hub, for which the node asks the cluster's own registry first. */
async function bringSearxng(): Promise<ToolImage> {
  const { reference, repository, tag } = await searxngImage();
  const name = `${repository}:${tag}`;
  await seed(name);
  return { reference, bytes: await sizeOf(name) };
}

export function kindToolHost(release: Pick<ToolHost, 'values' | 'install'>): ToolHost {
  return {
    kubectl,
    build,
    searxng: bringSearxng,
    values: () => release.values(),
    install: (settings) => release.install(settings),
  };
}
