// Images of backing services that the node builds from Debian's packages.
import type { ImageRecipe } from './recipe.ts';

function fromDebian(name: string, ...tags: string[]): ImageRecipe {
  return {
    name,
    repository: `library/${name}`,
    tags,
    folder: name,
    bases: ['debian-trixie'],
    parts: [],
    fill: () => Promise.resolve(),
  };
}

/** Those that every `up` builds: small, and asked for by most apps that ask for any. */
export const serviceImages: readonly ImageRecipe[] = [
  // Debian's own version, so this is what the tags say.
  fromDebian('postgres', '17-trixie', '17'),
  fromDebian('redis', '8-trixie', '8'),
];
