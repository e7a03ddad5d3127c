// Chooses the images to build: those of the cluster itself, and the base images that are asked for.
import { UsageError } from '../../lib/command-line.ts';
import { baseImages } from '../../controller/pipeline/plan/recipe.ts';
import { images, type ImageRecipe } from '../../localnode/images/catalog.ts';

/**
 * The images of the catalog that are always built, and those that are asked for, with what they start from. In the
 * catalog's order, in which each comes after its base images.
 *
 * @throws UsageError for a name that is not in the catalog
 */
export function selectImages(wanted: readonly string[]): readonly ImageRecipe[] {
  const chosen = new Set(images.filter((image) => image.on === undefined));
  for (const name of wanted) for (const image of called(name)) chosen.add(image);
  // From the last to the first, so that the base image of a base image is found too.
  for (const image of images.toReversed())
    if (chosen.has(image))
      for (const base of images.filter((each) => image.bases.includes(each.name))) chosen.add(base);
  return images.filter((image) => chosen.has(image));
}

function called(name: string): readonly ImageRecipe[] {
  const demanded = images.filter((image) => image.on === 'demand');
  if (name === 'all') return demanded;
  if (name === 'planned') return demanded.filter(isPlanned);
  const found = demanded.filter((image) => image.name === name || image.name.startsWith(`${name}-`));
  if (found.length === 0)
    throw new UsageError(
      `--base-images: there is no "${name}"; there are all, planned, ${demanded.map((image) => image.name).join(', ')}`,
    );
  return found;
}

/** Does a plan of some language start from it? */
function isPlanned(image: ImageRecipe): boolean {
  return namesOf(image).some((name) => baseImages.includes(name));
}

/** The names of an image as they stand in FROM. */
export function namesOf({
  host,
  repository,
  tags,
}: Pick<ImageRecipe, 'host' | 'repository' | 'tags'>): readonly string[] {
  const name = host === undefined ? repository.replace(/^library\//, '') : `${host}/${repository}`;
  return tags.map((tag) => `${name}:${tag}`);
}
