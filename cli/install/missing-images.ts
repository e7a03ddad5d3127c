// Finds out what the registry of the node has: base images of planned builds, and images of backing services.
import { baseImages } from '../../controller/pipeline/plan/recipe.ts';
import { digestAt } from '../../localnode/node/registry/registry.ts';
import { taggedReference } from '../../localnode/images/build.ts';
import type { ImageRecipe } from '../../localnode/images/recipe.ts';
import { namesOf } from './select-images.ts';
import { serviceImages, servicesOnDemand } from '../../localnode/images/services.ts';

/** Names as they stand in FROM; `coming` are the images that this run builds, and earlier runs left others. */
export async function missingImages(coming: readonly ImageRecipe[]): Promise<string[]> {
  const built = new Set(coming.flatMap(namesOf));
  const absent = baseImages.filter((image) => !built.has(image));
  const there = await Promise.all(absent.map((image) => findDigest(image)));
  return absent.filter((_, index) => there[index] === undefined);
}

/** Chart settings of the images of PostgreSQL and backing services that every node builds, by digest. */
export async function builtServices(): Promise<string[]> {
  const images = await Promise.all(
    serviceImages.map(async ({ name }) => `services.images.${name}=${await taggedReference(name)}`),
  );
  return [...images, `postgres.image=${await taggedReference('postgres')}`];
}

/** Chart settings that offer the backing services whose images are made on demand, and there. */
export async function offeredServices(coming: readonly ImageRecipe[]): Promise<string[]> {
  const offers = await Promise.all(
    servicesOnDemand.map(async (image) => {
      const [reference = ''] = namesOf(image);
      const isComing = coming.some((each) => each.name === image.name);
      const digest = isComing ? undefined : await findDigest(reference);
      if (digest !== undefined) return `services.images.${image.name}=${reference}@${digest}`;
      return `services.images.${image.name}=${isComing ? await taggedReference(image.name) : ''}`;
    }),
  );
  return offers;
}

async function findDigest(image: string): Promise<string | undefined> {
  // The node's registry has those of other registries under the same paths.
  const [name = '', tag = 'latest'] = image.replace(/^[^/]+\.[^/]+\//, '').split(':');
  const repository = name.includes('/') ? name : `library/${name}`;
  return await digestAt(repository, tag);
}
