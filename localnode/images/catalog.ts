// Lists the images that the node builds itself, for backing services and for the services behind tools, under their
// Docker Hub names.
import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { getBinaryPath } from '../binaries/build.ts';
import { getRecipe, type Part } from '../binaries/recipes.ts';
import { computeContentKey, computeFolderKey } from '../files.ts';
import { paths } from '../paths.ts';
import { run } from '../shell.ts';
import { createDebianImage, createNodeImage, createPythonImage } from './languages/makers.ts';
import { onDemand } from './languages/on-demand.ts';
import type { Report } from '../steps.ts';

export interface ImageRecipe {
  name: string;
  /**
   * Built when an app first needs it or by `up --base-images` (`demand`), or as a service behind tools by `up --tools`
   * (`tools`). No part of the cluster needs it to start.
   */
  on?: 'demand' | 'tools';
  /** Registry in its name; Docker Hub if absent. */
  host?: string;
  /** Repository and tags; Docker Hub's official images are under library/. */
  repository: string;
  tags: readonly string[];
  /** Tags that it has only as long as no other image uses them. */
  standInFor?: readonly string[];
  /** Folder here with the Dockerfile. */
  folder: string;
  arguments?: Record<string, string>;
  /** Base images. */
  bases: readonly string[];
  /** Parts whose binaries it contains. */
  parts: readonly Part[];
  /** Other inputs that its content depends on. */
  computeKey?: () => Promise<string>;
  /** Adds the files that the Dockerfile copies to the build context. */
  fill: (context: string, report?: Report) => Promise<void>;
}

const copyBinaries =
  (part: Part, ...names: string[]) =>
  async (context: string): Promise<void> => {
    for (const name of names) await copyFile(getBinaryPath(part, name), join(context, name));
  };

function createInfrastructureImage(part: Part, repository: string, tag: string): ImageRecipe {
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

/** Everything that the git server imports, at the same paths in its image. */
export const gitServerFiles = ['localnode/git-server/server.ts', 'lib/git/read-token.ts', 'lib/sealed-text.ts'];

function createBaseImage(base: string, name: string, ...tags: string[]): ImageRecipe {
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

/** Built by every `up`: small, and used by most apps that need any. */
export const serviceImages: readonly ImageRecipe[] = [
  createBaseImage('debian-trixie', 'postgres', '17-trixie', '17'),
  createBaseImage('debian-trixie', 'redis', '8-trixie', '8'),
];

const chromaVersion = '1.0.20';

/** Each comes after its base images, which are built on request too. */
export const servicesOnDemand: readonly ImageRecipe[] = [
  createBaseImage('ubuntu-resolute', 'mysql', '8.4'),
  // The last version that a distribution packages.
  createBaseImage('ubuntu-focal', 'mongo', '3.6'),
  {
    ...createBaseImage('python-3.13', 'chroma', chromaVersion),
    repository: 'chromadb/chroma',
    arguments: { VERSION: chromaVersion },
  },
].map((image): ImageRecipe => ({ ...image, on: 'demand' }));

const addNothing = (): Promise<void> => Promise.resolve();
const translator = join(import.meta.dirname, 'pdf-translator');

/** Each is named like its folder; the tag is the program's version. */
function createToolImage(
  name: string,
  tag: string,
  rest: Pick<ImageRecipe, 'bases'> & Partial<Pick<ImageRecipe, 'folder' | 'parts' | 'computeKey' | 'fill'>>,
): ImageRecipe {
  return {
    name,
    on: 'tools',
    repository: `moorage/${name}`,
    tags: [tag],
    folder: name,
    parts: [],
    fill: addNothing,
    ...rest,
  };
}

export const toolImages: readonly ImageRecipe[] = [
  createToolImage('speech', 'whisper-tiny.en', { bases: ['python-3.11'] }),
  createToolImage('languagetool', '6.6', { bases: ['debian-bookworm'] }),
  createToolImage('pdf-translator', 'babeldoc-0.6.4', {
    folder: 'pdf-translator-offline',
    bases: ['python-3.11'],
    computeKey: async () => computeContentKey([await computeFolderKey(translator)]),
    fill: async (context) => {
      for (const file of ['requirements.txt', 'server.py']) await copyFile(join(translator, file), join(context, file));
    },
  }),
  createToolImage('gotenberg', getRecipe('gotenberg').version.slice(1), {
    bases: ['debian-bookworm'],
    parts: ['gotenberg'],
    fill: async (context) => {
      await copyFile(getBinaryPath('gotenberg', 'gotenberg'), join(context, 'gotenberg'));
    },
  }),
];

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
  createInfrastructureImage('coredns', 'coredns/coredns', getRecipe('coredns').version.slice(1)),
  createInfrastructureImage(
    'local-path-provisioner',
    'rancher/local-path-provisioner',
    getRecipe('local-path-provisioner').version,
  ),
  createInfrastructureImage('traefik', 'library/traefik', getRecipe('traefik').version),
  createInfrastructureImage('mcp-bridge', 'moorage/mcp-bridge', getRecipe('mcp-bridge').version),
  createInfrastructureImage('gitleaks', 'zricethezav/gitleaks', getRecipe('gitleaks').version),
  createDebianImage('bookworm', '12', '12-slim', 'oldstable', 'oldstable-slim'),
  createDebianImage('trixie', '13', '13-slim', 'stable', 'stable-slim', 'latest'),
  {
    name: 'buildkit',
    repository: 'moby/buildkit',
    tags: [getRecipe('buildkit').version],
    folder: 'buildkit',
    bases: ['debian-bookworm'],
    parts: ['buildkit', 'runc'],
    fill: async (context) => {
      await copyBinaries('buildkit', 'buildkitd', 'buildctl')(context);
      await copyBinaries('runc', 'runc')(context);
    },
  },
  createNodeImage('slim', '24.21.0', '11.6.4', 'lts'),
  createNodeImage('slim', '22.23.3', '10.9.4'),
  createPythonImage('slim', '3.11', 'bookworm'),
  createPythonImage('slim', '3.13', 'trixie', '3-slim', '3-slim-trixie', 'slim', 'slim-trixie'),
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
    computeKey: async () =>
      computeContentKey(await Promise.all(gitServerFiles.map((file) => readFile(join(paths.root, file), 'utf8')))),
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
