// Makes the recipes of base images: releases of Debian and Ubuntu, and what their packages put on top.
import { cp, copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { contentKey } from '../../files.ts';
import { unpackNpm } from '../npm.ts';
import type { ImageRecipe } from '../recipe.ts';
import { ensureRootfs, rootfsKey } from '../rootfs.ts';

const nothing = (): Promise<void> => Promise.resolve();

export function debian(suite: string, ...tags: string[]): ImageRecipe {
  return release('debian', suite, [`${suite}-slim`, suite, ...tags]);
}

/** An Ubuntu release, for the versions of a language that no release of Debian has. */
export function ubuntu(suite: string, ...tags: string[]): ImageRecipe {
  return release('ubuntu', suite, [suite, ...tags]);
}

function release(distribution: 'debian' | 'ubuntu', suite: string, tags: readonly string[]): ImageRecipe {
  return {
    name: `${distribution}-${suite}`,
    repository: `library/${distribution}`,
    tags,
    folder: 'debian',
    bases: [],
    parts: [],
    key: () => rootfsKey(suite),
    fill: async (context, report) => {
      await copyFile(await ensureRootfs(suite, report), join(context, 'rootfs.tar'));
    },
  };
}

export function nodeImage(version: string, npm: string): ImageRecipe {
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

/** The Python of a Debian release. */
export function python(version: string, suite: string, ...tags: string[]): ImageRecipe {
  return {
    name: `python-${version}`,
    repository: 'library/python',
    tags: [`${version}-slim-${suite}`, `${version}-slim`, `${version}-${suite}`, version, ...tags],
    folder: 'python',
    arguments: { BASE: `debian:${suite}-slim` },
    bases: [`debian-${suite}`],
    parts: [],
    fill: nothing,
  };
}

/**
 * The Python of an Ubuntu release, for the versions that no release of Debian has. Dockerfiles that name one of Debian
 * beside such a version get it too: on this node there is no other.
 */
export function ubuntuPython(version: string, suite: string): ImageRecipe {
  return {
    ...python(version, suite),
    tags: [`${version}-slim`, version, `${version}-slim-bookworm`, `${version}-bookworm`],
    arguments: { BASE: `ubuntu:${suite}` },
    bases: [`ubuntu-${suite}`],
  };
}

export interface FromPackages {
  name: string;
  repository: string;
  tags: readonly string[];
  folder: string;
  /** Release of Debian. */
  suite: string;
  arguments?: Record<string, string>;
  key?: readonly string[];
  fill?: ImageRecipe['fill'];
}

/** An image of Debian packages, or of files that are fetched for it. */
export function onDebian({ suite, key, fill = nothing, ...rest }: FromPackages): ImageRecipe {
  return {
    ...rest,
    arguments: { BASE: `debian:${suite}-slim`, ...rest.arguments },
    bases: [`debian-${suite}`],
    parts: [],
    ...(key === undefined ? {} : { key: () => Promise.resolve(contentKey([...key])) }),
    fill,
  };
}
