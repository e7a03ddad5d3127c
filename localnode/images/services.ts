// Images of backing services that the node builds from packages. Tags say the versions that the packages have.
import type { ImageRecipe } from './recipe.ts';

function from(base: string, name: string, ...tags: string[]): ImageRecipe {
  return {
    name,
    repository: `library/${name}`,
    tags,
    folder: name,
    bases: [base],
    parts: [],
    fill: () => Promise.resolve(),
  };
}

/** Those that every `up` builds: small, and asked for by most apps that ask for any. */
export const serviceImages: readonly ImageRecipe[] = [
  from('debian-trixie', 'postgres', '17-trixie', '17'),
  from('debian-trixie', 'redis', '8-trixie', '8'),
];

const chromaVersion = '1.0.20';

/** Each comes after its base images, which are on demand as well. */
export const servicesOnDemand: readonly ImageRecipe[] = [
  from('ubuntu-resolute', 'mysql', '8.4'),
  // The last one that a distribution packages.
  from('ubuntu-focal', 'mongo', '3.6'),
  {
    ...from('python-3.13', 'chroma', chromaVersion),
    repository: 'chromadb/chroma',
    arguments: { VERSION: chromaVersion },
  },
].map((image): ImageRecipe => ({ ...image, on: 'demand' }));
