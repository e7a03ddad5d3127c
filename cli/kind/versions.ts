// What a kind cluster is made of, by pinned version, and what it costs to download.
import { recipeOf } from '../../localnode/binaries/recipes.ts';
import { defaultNode, images as bases } from '../../controller/pipeline/plan/recipe.ts';

export const kindVersion = 'v0.32.0';

/** Published with that release of kind. Another image can stand in where Docker Hub is out of reach. */
export const nodeImage =
  process.env['MOORAGE_KIND_NODE_IMAGE'] ??
  'kindest/node:v1.35.5@sha256:ce977ae6d65918d0b58a5f8b5e940429c2ce42fa3a5619ec2bbc60b949c0ac95';

export const registryImage =
  process.env['MOORAGE_KIND_REGISTRY_IMAGE'] ??
  'registry:2.8.3@sha256:a3d8aaa63ed8681a604f1dea0aa03f100d5895b6a58ace528858a7b332415373';

export const traefikImage = `traefik:${recipeOf('traefik').version}`;

/** The chart's default, which pods pull by this name. */
const postgresImage = 'postgres:17-trixie';

/**
 * Images of Docker Hub that are put into the cluster's own registry once, so that neither a pod nor a build downloads
 * them again.
 */
export const seeds: readonly string[] = [
  traefikImage,
  postgresImage,
  defaultNode,
  bases.nginx,
  ...bases.python.map(({ image }) => image),
];

/** What the first `up` downloads, as a person plans it. */
export const downloads =
  'about 1.4 GB, and 1.8 GB more for the services of tools: some 10 minutes at 100 Mbit/s, and 20 GB of disk';
