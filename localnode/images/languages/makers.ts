// Creates the recipes of base images: Debian and Ubuntu releases, with contents from packages and other registries.
import { cp, copyFile, mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createHash } from 'node:crypto';
import { computeContentKey } from '../../files.ts';
import { unpackNpm } from '../../npm.ts';
import type { ImageRecipe } from '../catalog.ts';
import { ensureRootfs, computeRootfsKey } from '../rootfs.ts';
import { paths } from '../../paths.ts';
import { run } from '../../shell.ts';
import { findGo } from '../../binaries/toolchain.ts';

const addNothing = (): Promise<void> => Promise.resolve();

export function createDebianImage(suite: string, ...tags: string[]): ImageRecipe {
  return createReleaseBase('debian', suite, [`${suite}-slim`, suite, ...tags]);
}

/** An Ubuntu release, for language versions that no Debian release has. */
export function createUbuntuImage(suite: string, ...tags: string[]): ImageRecipe {
  return createReleaseBase('ubuntu', suite, [suite, ...tags]);
}

function createReleaseBase(distribution: 'debian' | 'ubuntu', suite: string, tags: readonly string[]): ImageRecipe {
  return {
    name: `${distribution}-${suite}`,
    repository: `library/${distribution}`,
    tags,
    folder: 'debian',
    bases: [],
    parts: [],
    computeKey: () => computeRootfsKey(suite),
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
function getSlimBase({ distribution, suite }: Base): Pick<ImageRecipe, 'arguments' | 'bases'> {
  const tag = distribution === 'debian' ? `${suite}-slim` : suite;
  return { arguments: { BASE: `${distribution}:${tag}` }, bases: [`${distribution}-${suite}`] };
}

/** The base of images that are not slim: compilers, git and headers on a release. */
export function createBuildpackDepsImage(distribution: 'debian' | 'ubuntu', suite: string): ImageRecipe {
  return {
    name: `buildpack-deps-${suite}`,
    repository: 'library/buildpack-deps',
    tags: [suite],
    folder: 'buildpack-deps',
    ...getSlimBase({ distribution, suite }),
    parts: [],
    fill: addNothing,
  };
}

/** `slim` has no compilers and git, and is the substitute for `full`, which has them; `any` has no full variant. */
type Kind = 'slim' | 'full' | 'any';

function chooseBase(kind: Kind, base: Base): Pick<ImageRecipe, 'arguments' | 'bases'> {
  return kind === 'full'
    ? { arguments: { BASE: `buildpack-deps:${base.suite}` }, bases: [`buildpack-deps-${base.suite}`] }
    : getSlimBase(base);
}

const formatName = (language: string, kind: Kind): string => `${language}${kind === 'full' ? '-full' : ''}`;

/** Node on Debian 12; `moreTags` are other names of the version. */
export function createNodeImage(kind: Kind, version: string, npm: string, ...moreTags: readonly string[]): ImageRecipe {
  const major = version.split('.')[0] ?? '';
  const names = [version, major, ...moreTags];
  const slim = names.flatMap((name) => [`${name}-slim`, `${name}-bookworm-slim`]);
  const full = names.flatMap((name) => [name, `${name}-bookworm`]);
  return {
    name: formatName(`node-${major}`, kind),
    repository: 'library/node',
    tags: [...(kind === 'full' ? [] : slim), ...(kind === 'slim' ? [] : full)],
    ...(kind === 'slim' ? { standInFor: full } : {}),
    folder: 'node',
    ...chooseBase(kind, { distribution: 'debian', suite: 'bookworm' }),
    parts: [],
    computeKey: () => Promise.resolve(computeContentKey([version, npm])),
    fill: async (context) => {
      await cp(await unpackNpm(`node-linux-${process.arch}`, version), join(context, 'node-bin'), { recursive: true });
      await cp(await unpackNpm('npm', npm), join(context, 'npm'), { recursive: true });
    },
  };
}

/** A Debian release's Python; `moreTags` are further tags. */
export function createPythonImage(kind: Kind, version: string, suite: string, ...moreTags: string[]): ImageRecipe {
  return createReleaseImage(kind, version, { distribution: 'debian', suite }, suite, moreTags);
}

/**
 * An Ubuntu release's Python, for versions that no Debian release has. Dockerfiles that combine such a version with a
 * Debian release get it too, because this node has no other.
 */
export function createUbuntuPythonImage(kind: Kind, version: string, suite: string): ImageRecipe {
  return createReleaseImage(kind, version, { distribution: 'ubuntu', suite }, 'bookworm', []);
}

function createReleaseImage(
  kind: Kind,
  version: string,
  base: Base,
  suiteTag: string,
  moreTags: readonly string[],
): ImageRecipe {
  const { arguments: args, bases } = chooseBase(kind, base);
  const full = [`${version}-${suiteTag}`, version];
  return {
    name: formatName(`python-${version}`, kind),
    repository: 'library/python',
    tags: [
      ...(kind === 'full' ? [] : [`${version}-slim-${suiteTag}`, `${version}-slim`]),
      ...(kind === 'slim' ? [] : full),
      ...moreTags,
    ],
    ...(kind === 'slim' ? { standInFor: full } : {}),
    folder: 'python',
    arguments: { ...args, ...(kind === 'full' ? { PACKAGES: 'python3-dev' } : {}) },
    bases,
    parts: [],
    fill: addNothing,
  };
}

export interface PackagedImageOptions {
  name: string;
  repository: string;
  tags: readonly string[];
  folder: string;
  /** Debian release. */
  suite: string;
  arguments?: Record<string, string>;
  key?: readonly string[];
  fill?: ImageRecipe['fill'];
}

/** Creates an image of Debian packages, or of files downloaded for it. */
export function createPackagedImage({ suite, key, fill = addNothing, ...rest }: PackagedImageOptions): ImageRecipe {
  const { arguments: base, bases } = getSlimBase({ distribution: 'debian', suite });
  return {
    ...rest,
    arguments: { ...base, ...rest.arguments },
    bases,
    parts: [],
    ...(key === undefined ? {} : { computeKey: () => Promise.resolve(computeContentKey([...key])) }),
    fill,
  };
}

// Contents that Debian does not package: Go, Rust, Maven, Bun, Deno and uv, each from its own registry.

type Fill = ImageRecipe['fill'];

const folder = join(paths.cache, 'languages');

/** Returns a cached file, downloading it if needed, and verifies its pinned checksum. */
async function download(name: string, address: string, digest: string): Promise<string> {
  const file = join(folder, name);
  const present = await readFile(file).catch(() => undefined);
  if (present !== undefined && computeDigest(present, digest) === digest) return file;
  await mkdir(folder, { recursive: true });
  const answer = await fetch(address).catch((error: unknown) => {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    throw new Error(`${address} cannot be downloaded: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause: error,
    });
  });
  if (!answer.ok) throw new Error(`${address} answers ${answer.status} ${answer.statusText}`);
  const bytes = Buffer.from(await answer.arrayBuffer());
  const actual = computeDigest(bytes, digest);
  if (actual !== digest) throw new Error(`${address} has the checksum ${actual}, not ${digest}`);
  await writeFile(`${file}.draft`, bytes);
  await rename(`${file}.draft`, file);
  return file;
}

/** Computes SHA-256 or SHA-512, depending on the length of the expected digest. */
function computeDigest(bytes: Buffer, digest: string): string {
  return createHash(digest.length === 128 ? 'sha512' : 'sha256')
    .update(bytes)
    .digest('hex');
}

/** Installs the toolchain that Go itself would switch to: the go command downloads it as a module and verifies it. */
export function fillGo(version: string): Fill {
  return async (context) => {
    const go = await findGo();
    const env = { GOTOOLCHAIN: `go${version}`, GOMODCACHE: join(folder, 'go'), GOFLAGS: '-modcacherw' };
    const root = (await run(go, ['env', 'GOROOT'], { env, cwd: context })).trim();
    await cp(root, join(context, 'go'), { recursive: true });
  };
}

/** A Rust release, from the dist folder of its release date. */
const rust = {
  version: '1.99.1',
  day: '2026-10-15',
  machines: {
    x64: ['x86_64-unknown-linux-gnu', '231fcae47ee950621374725b5fc3b5441d2fbda2955ac45dd7dc816d8876cfe7'],
    arm64: ['aarch64-unknown-linux-gnu', 'a48fb1e853be56ce9b8e2751f5464dbd5e16440cd81e237920f3a5e7e806333e'],
  } as Partial<Record<NodeJS.Architecture, readonly [target: string, sha256: string]>>,
};
export const rustVersion = rust.version;

export async function fillRust(context: string): Promise<void> {
  const [target, sha256] = rust.machines[process.arch] ?? [];
  if (target === undefined || sha256 === undefined) throw new Error(`there is no pinned Rust for ${process.arch}`);
  const name = `rust-${rust.version}-${target}.tar.xz`;
  const file = await download(name, `https://static.rust-lang.org/dist/${rust.day}/${name}`, sha256);
  await copyFile(file, join(context, 'rust.tar.xz'));
}

const maven = {
  version: '3.9.16',
  sha512:
    '831a8591fe20c8243b1dbe7d71e3244f31d1665b0804b2e825e38cbbe5ce0cafb8338851f90780735568773e0a6cd07bbec107cda0b896b008b861075358b6f6',
};
export const mavenVersion = maven.version;

export async function fillMaven(context: string): Promise<void> {
  const name = `apache-maven-${maven.version}-bin.tar.gz`;
  const address = `https://repo.maven.apache.org/maven2/org/apache/maven/apache-maven/${maven.version}/${name}`;
  await copyFile(await download(name, address, maven.sha512), join(context, 'maven.tar.gz'));
}

/** Installs a program that npm has as one package per platform. */
export function fillNpmProgram(prefix: string, version: string, program: string): Fill {
  return async (context) => {
    const suffix = prefix.startsWith('@deno') ? '-glibc' : '';
    const machine = process.arch === 'arm64' && !prefix.startsWith('@deno') ? 'aarch64' : process.arch;
    const unpacked = await unpackNpm(`${prefix}-${machine}${suffix}`, version);
    const bin = (await readdir(unpacked)).includes('bin') ? join(unpacked, 'bin', program) : join(unpacked, program);
    await copyFile(bin, join(context, program));
  };
}

/** Installs uv and uvx from the wheel, which pip verifies. */
export function fillUv(version: string): Fill {
  return async (context) => {
    const target = join(context, 'wheel');
    await run('python3', ['-m', 'pip', 'install', '--quiet', '--no-deps', '--target', target, `uv==${version}`]);
    for (const program of ['uv', 'uvx']) await copyFile(join(target, 'bin', program), join(context, program));
    await rm(target, { recursive: true });
  };
}
