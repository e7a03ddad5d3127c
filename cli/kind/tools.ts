// How a kind cluster has the images of services behind tools: the recipes of the one-machine node, built by Docker.
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { imageOf } from '../../localnode/images/build.ts';
import { searxngImage } from '../install/searxng.ts';
import type { ToolHost, ToolImage } from '../install/tool-steps.ts';
import { paths } from '../../localnode/paths.ts';
import { registryBytes } from '../../localnode/registry/manifests.ts';
import type { Report } from '../../localnode/steps.ts';
import { nodeKubectl as kubectl } from './cluster.ts';
import { buildImage, publishProduct, seed } from './images.ts';
import { askRegistry } from './registry.ts';

async function sizeOf(repository: string, reference: string): Promise<number> {
  return await registryBytes(reference, async (each) => {
    return (await askRegistry(`/v2/${repository}/manifests/${each}`)).body;
  });
}

async function build(name: string, report: Report): Promise<ToolImage> {
  const recipe = imageOf(name);
  const scratch = await mkdtemp(join(tmpdir(), 'moorage-image-'));
  try {
    await cp(join(paths.root, 'localnode', 'images', recipe.folder), scratch, { recursive: true });
    await recipe.fill(scratch, report);
    const values = Object.entries(recipe.arguments ?? {}).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`]);
    const built = await buildImage(name, [...values, scratch], report);
    report('pushing');
    const reference = await publishProduct(name, built);
    return { reference, bytes: await sizeOf(`moorage/${name}`, reference.split('@')[1] ?? '') };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Its name is that of Docker Hub, for which the node asks the cluster's own registry first. */
async function bringSearxng(): Promise<ToolImage> {
  const { reference, repository, tag } = await searxngImage();
  await seed(`${repository}:${tag}`);
  return { reference, bytes: await sizeOf(repository, tag) };
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
