// Finds out what the registry of the node has: base images of planned builds, and images of backing services.
import { baseImages } from '../../controller/pipeline/plan/recipe.ts';
import { digestAt } from '../node/registry/registry.ts';
import type { ImageRecipe } from './recipe.ts';
import { namesOf } from './select.ts';
import { servicesOnDemand } from './services.ts';

/** Names as they stand in FROM; `coming` are the images that this run builds, and earlier runs left others. */
export async function missingImages(coming: readonly ImageRecipe[]): Promise<string[]> {
  const built = new Set(coming.flatMap(namesOf));
  const absent = baseImages.filter((image) => !built.has(image));
  const there = await Promise.all(absent.map((image) => isThere(image)));
  return absent.filter((_, index) => there[index] !== true);
}

/** Chart settings that offer the backing services whose images are made on demand, and there. */
export async function offeredServices(coming: readonly ImageRecipe[]): Promise<string[]> {
  const offers = await Promise.all(
    servicesOnDemand.map(async (image) => {
      const [reference = ''] = namesOf(image);
      const isOffered = coming.some((each) => each.name === image.name) || (await isThere(reference));
      return `services.images.${image.name}=${isOffered ? reference : ''}`;
    }),
  );
  return offers;
}

async function isThere(image: string): Promise<boolean> {
  // The node's registry has those of other registries under the same paths.
  const [name = '', tag = 'latest'] = image.replace(/^[^/]+\.[^/]+\//, '').split(':');
  const repository = name.includes('/') ? name : `library/${name}`;
  return (await digestAt(repository, tag)) !== undefined;
}
