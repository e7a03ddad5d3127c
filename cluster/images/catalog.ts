// The images that the node builds for itself, under their names on Docker Hub.
import { cp, copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { binary } from '../binaries/build.ts';
import { recipeOf, type Part } from '../binaries/recipes.ts';
import { contentKey, folderKey } from '../files.ts';
import { paths } from '../paths.ts';
import { run } from '../shell.ts';
import type { Report } from '../steps.ts';
import { ensureRootfs, rootfsKey } from './rootfs.ts';
import { unpackNpm } from './npm.ts';
import { serviceImages } from './services.ts';

export interface ImageRecipe {
  name: string;
  /** Repository and tags; Docker Hub's official images live under library/. */
  repository: string;
  tags: readonly string[];
  /** Folder here with the Dockerfile. */
  folder: string;
  arguments?: Record<string, string>;
  /** Base images. */
  bases: readonly string[];
  /** Parts whose binaries it contains. */
  parts: readonly Part[];
  /** What else its content depends on. */
  key?: () => Promise<string>;
  /** Adds what the Dockerfile copies to the build context. */
  fill: (context: string, report?: Report) => Promise<void>;
}

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

function debian(suite: string, ...tags: string[]): ImageRecipe {
  return {
    name: `debian-${suite}`,
    repository: 'library/debian',
    tags: [`${suite}-slim`, suite, ...tags],
    folder: 'debian',
    bases: [],
    parts: [],
    key: () => rootfsKey(suite),
    fill: async (context, report) => {
      await copyFile(await ensureRootfs(suite, report), join(context, 'rootfs.tar'));
    },
  };
}

function nodeImage(version: string, npm: string): ImageRecipe {
  const major = version.split('.')[0] ?? '';
  const forms = [version, major].flatMap((name) => [name, `${name}-slim`, `${name}-bookworm`, `${name}-bookworm-slim`]);
  return {
    name: `node-${major}`,
    repository: 'library/node',
    tags: forms,
    folder: 'node',
    bases: ['debian-bookworm'],
    parts: [],
    key: () => Promise.resolve(contentKey([version, npm])),
    fill: async (context) => {
      await cp(await unpackNpm(`node-linux-${process.arch}`, version), join(context, 'node-bin'), { recursive: true });
      await cp(await unpackNpm('npm', npm), join(context, 'npm'), { recursive: true });
    },
  };
}

function python(version: string, suite: string, ...tags: string[]): ImageRecipe {
  return {
    name: `python-${version}`,
    repository: 'library/python',
    tags: [`${version}-slim-${suite}`, `${version}-slim`, `${version}-${suite}`, version, ...tags],
    folder: 'python',
    arguments: { BASE: `debian:${suite}-slim` },
    bases: [`debian-${suite}`],
    parts: [],
    fill: () => Promise.resolve(),
  };
}

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
  nodeImage('24.21.0', '11.6.2'),
  nodeImage('22.23.3', '10.9.4'),
  python('3.11', 'bookworm'),
  python('3.13', 'trixie', '3-slim', '3', 'slim', 'latest'),
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
    key: () => folderKey(join(paths.root, 'cluster', 'git-server')),
    fill: async (context) => {
      await copyFile(join(paths.root, 'cluster', 'git-server', 'server.ts'), join(context, 'server.ts'));
    },
  },
];
