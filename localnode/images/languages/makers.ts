// Makes the recipes of base images: releases of Debian and Ubuntu, and what their packages put on top.
import { cp, copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { contentKey } from '../../files.ts';
import { unpackNpm } from '../../npm.ts';
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

interface Base {
  readonly distribution: 'debian' | 'ubuntu';
  readonly suite: string;
}

/** A release without compilers and git. */
function slimBase({ distribution, suite }: Base): Pick<ImageRecipe, 'arguments' | 'bases'> {
  const tag = distribution === 'debian' ? `${suite}-slim` : suite;
  return { arguments: { BASE: `${distribution}:${tag}` }, bases: [`${distribution}-${suite}`] };
}

/** What images that are not slim start from: compilers, git and headers on a release. */
export function buildpackDeps(distribution: 'debian' | 'ubuntu', suite: string): ImageRecipe {
  return {
    name: `buildpack-deps-${suite}`,
    repository: 'library/buildpack-deps',
    tags: [suite],
    folder: 'buildpack-deps',
    ...slimBase({ distribution, suite }),
    parts: [],
    fill: nothing,
  };
}

/** `slim` is without compilers and git, and stands in for `full`, which is with them; of `any` there is no full one. */
type Kind = 'slim' | 'full' | 'any';

function baseOf(kind: Kind, base: Base): Pick<ImageRecipe, 'arguments' | 'bases'> {
  return kind === 'full'
    ? { arguments: { BASE: `buildpack-deps:${base.suite}` }, bases: [`buildpack-deps-${base.suite}`] }
    : slimBase(base);
}

const nameOf = (language: string, kind: Kind): string => `${language}${kind === 'full' ? '-full' : ''}`;

/** Node on Debian 12; `more` are other names of the version. */
export function nodeImage(kind: Kind, version: string, npm: string, ...more: readonly string[]): ImageRecipe {
  const major = version.split('.')[0] ?? '';
  const names = [version, major, ...more];
  const slim = names.flatMap((name) => [`${name}-slim`, `${name}-bookworm-slim`]);
  const full = names.flatMap((name) => [name, `${name}-bookworm`]);
  return {
    name: nameOf(`node-${major}`, kind),
    repository: 'library/node',
    tags: [...(kind === 'full' ? [] : slim), ...(kind === 'slim' ? [] : full)],
    ...(kind === 'slim' ? { standInFor: full } : {}),
    folder: 'node',
    ...baseOf(kind, { distribution: 'debian', suite: 'bookworm' }),
    parts: [],
    key: () => Promise.resolve(contentKey([version, npm])),
    fill: async (context) => {
      await cp(await unpackNpm(`node-linux-${process.arch}`, version), join(context, 'node-bin'), { recursive: true });
      await cp(await unpackNpm('npm', npm), join(context, 'npm'), { recursive: true });
    },
  };
}

/** The Python of a Debian release; `more` are further tags. */
export function python(kind: Kind, version: string, suite: string, ...more: string[]): ImageRecipe {
  return onRelease(kind, version, { distribution: 'debian', suite }, suite, more);
}

/**
 * The Python of an Ubuntu release, for the versions that no release of Debian has. Dockerfiles that name one of Debian
 * beside such a version get it too: on this node there is no other.
 */
export function ubuntuPython(kind: Kind, version: string, suite: string): ImageRecipe {
  return onRelease(kind, version, { distribution: 'ubuntu', suite }, 'bookworm', []);
}

function onRelease(kind: Kind, version: string, base: Base, named: string, more: readonly string[]): ImageRecipe {
  const { arguments: args, bases } = baseOf(kind, base);
  const full = [`${version}-${named}`, version];
  return {
    name: nameOf(`python-${version}`, kind),
    repository: 'library/python',
    tags: [
      ...(kind === 'full' ? [] : [`${version}-slim-${named}`, `${version}-slim`]),
      ...(kind === 'slim' ? [] : full),
      ...more,
    ],
    ...(kind === 'slim' ? { standInFor: full } : {}),
    folder: 'python',
    arguments: { ...args, ...(kind === 'full' ? { PACKAGES: 'python3-dev' } : {}) },
    bases,
    parts: [],
    fill: nothing,
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
  const { arguments: base, bases } = slimBase({ distribution: 'debian', suite });
  return {
    ...rest,
    arguments: { ...base, ...rest.arguments },
    bases,
    parts: [],
    ...(key === undefined ? {} : { key: () => Promise.resolve(contentKey([...key])) }),
    fill,
  };
}
