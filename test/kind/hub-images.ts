// Images of the catalog in the Docker engine, under the names that they have on Docker Hub, where that is out of reach.
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildPart } from '../../localnode/binaries/build.ts';
import { computeImageKey, getImage } from '../../localnode/images/build.ts';
import { images, type ImageRecipe } from '../../localnode/images/catalog.ts';
import { listNames } from '../../cli/install/product.ts';
import { seeds } from '../../cli/kind/docker.ts';
import { paths } from '../../localnode/paths.ts';
import { runIn, type Engine } from './engine.ts';

/** Of the node, and of Dockerfiles that `up` builds. */
const parts = ['pause', 'coredns', 'local-path-provisioner', 'gitleaks', 'debian-bookworm', 'buildkit'];

/** With what `up` puts into the registry and what that starts from; in the catalog each comes after its base. */
export function hubImages(): readonly ImageRecipe[] {
  const chosen = new Set([
    ...parts.map(getImage),
    ...images.filter((image) => listNames(image).some((name) => seeds.includes(name))),
  ]);
  for (const { bases } of [...chosen]) for (const base of bases) chosen.add(getImage(base));
  return images.filter((image) => chosen.has(image));
}

export async function hasImage(engine: Engine, name: string): Promise<boolean> {
  return await runIn(engine, ['docker', 'image', 'inspect', name]).then(
    () => true,
    () => false,
  );
}

async function build(engine: Engine, recipe: ImageRecipe, name: string): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), 'moorage-kind-image-'));
  try {
    await cp(join(paths.root, 'localnode', 'images', recipe.folder), scratch, { recursive: true });
    await recipe.fill(scratch);
    const args = Object.entries(recipe.arguments ?? {}).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`]);
    await runIn(engine, ['docker', 'build', '--quiet', '--tag', name, ...args, scratch]);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Builds what the engine does not have. */
export async function ensureHubImages(engine: Engine): Promise<void> {
  for (const recipe of hubImages()) {
    for (const part of recipe.parts) await buildPart(part);
    const name = `moorage-hub/${recipe.name}:${await computeImageKey(recipe)}`;
    if (!(await hasImage(engine, name))) await build(engine, recipe, name);
    const repository = recipe.repository.replace(/^library\//, '');
    for (const tag of recipe.tags) await runIn(engine, ['docker', 'tag', name, `${repository}:${tag}`]);
  }
}
