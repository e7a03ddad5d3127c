// The images that the node builds for itself, under their names on Docker Hub.
import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { binary } from '../binaries/build.ts';
import { recipeOf, type Part } from '../binaries/recipes.ts';
import { contentKey } from '../files.ts';
import { paths } from '../paths.ts';
import { run } from '../shell.ts';
import { debian, nodeImage, python } from './languages/makers.ts';
import { onDemand } from './languages/on-demand.ts';
import type { ImageRecipe } from './recipe.ts';
import { serviceImages, servicesOnDemand } from './services.ts';
import { toolImages } from './tools.ts';

export type { ImageRecipe } from './recipe.ts';

const copyBinaries =
  (part: Part, ...names: string[]) =>
  async (context: string): Promise<void> => {
    for (const name of names) await copyFile(binary(part, name), join(context, name));
  };

function infrastructure(part: Part, repository: string, tag: string): ImageRecipe {
  return {
    name: part,
    repository,
    tags: [tag],
    folder: part,
    bases: [],
    parts: [part],
    fill: copyBinaries(part, part),
  };
}

/** What the git server is made of, at the same paths in its image. */
export const gitServerFiles = ['localnode/git-server/server.ts', 'lib/git/read-token.ts'];

/** Each comes after its base images. */
export const images: readonly ImageRecipe[] = [
  {
    name: 'pause',
    repository: 'moorage/pause',
    tags: ['1'],
    folder: 'pause',
    bases: [],
    parts: [],
    fill: async (context) => {
      await run('gcc', ['-Os', '-static', '-s', '-o', join(context, 'pause'), join(context, 'pause.c')]);
    },
  },
  infrastructure('coredns', 'coredns/coredns', recipeOf('coredns').version.slice(1)),
  infrastructure(
    'local-path-provisioner',
    'rancher/local-path-provisioner',
    recipeOf('local-path-provisioner').version,
  ),
  infrastructure('traefik', 'library/traefik', recipeOf('traefik').version),
  infrastructure('gitleaks', 'zricethezav/gitleaks', recipeOf('gitleaks').version),
  debian('bookworm', '12', '12-slim', 'oldstable', 'oldstable-slim'),
  debian('trixie', '13', '13-slim', 'stable', 'stable-slim', 'latest'),
  {
    name: 'buildkit',
    repository: 'moby/buildkit',
    tags: [recipeOf('buildkit').version],
    folder: 'buildkit',
    bases: ['debian-bookworm'],
    parts: ['buildkit', 'runc'],
    fill: async (context) => {
      await copyBinaries('buildkit', 'buildkitd', 'buildctl')(context);
      await copyBinaries('runc', 'runc')(context);
    },
  },
  nodeImage('slim', '24.21.0', '11.6.4', 'lts'),
  nodeImage('slim', '22.23.3', '10.9.4'),
  python('slim', '3.11', 'bookworm'),
  python('slim', '3.13', 'trixie', '3-slim', '3-slim-trixie', 'slim', 'slim-trixie'),
  {
    name: 'nginx',
    repository: 'library/nginx',
    tags: ['stable-bookworm', 'stable', 'stable-bookworm-slim', 'latest', '1', '1.22'],
    folder: 'nginx',
    bases: ['debian-bookworm'],
    parts: [],
    fill: () => Promise.resolve(),
  },
  ...serviceImages,
  {
    name: 'git-server',
    repository: 'moorage/git-server',
    tags: ['1'],
    folder: 'git-server',
    bases: ['node-24'],
    parts: [],
    key: async () =>
      contentKey(await Promise.all(gitServerFiles.map((file) => readFile(join(paths.root, file), 'utf8')))),
    fill: async (context) => {
      for (const file of gitServerFiles) {
        await mkdir(join(context, 'srv', dirname(file)), { recursive: true });
        await copyFile(join(paths.root, file), join(context, 'srv', file));
      }
    },
  },
  ...onDemand,
  ...servicesOnDemand,
  ...toolImages,
];
