// Fetches what base images hold beside Debian's packages: Go, Rust, Maven, Bun, Deno and uv, each from its own registry.
import { createHash } from 'node:crypto';
import { copyFile, cp, mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { paths } from '../../paths.ts';
import { run } from '../../shell.ts';
import { unpackNpm } from '../npm.ts';
import type { ImageRecipe } from '../recipe.ts';
import { findGo } from '../../binaries/toolchain.ts';

type Fill = ImageRecipe['fill'];

const folder = join(paths.cache, 'languages');

/** A file of the cache, fetched unless it is there. `digest` is the address of the file with its checksum. */
async function download(
  name: string,
  address: string,
  digest: string,
  algorithm: 'sha256' | 'sha512',
): Promise<string> {
  const file = join(folder, name);
  if (
    await readFile(`${file}.done`).then(
      () => true,
      () => false,
    )
  )
    return file;
  await mkdir(folder, { recursive: true });
  const [bytes, sums] = await Promise.all([bytesOf(address), bytesOf(digest)]);
  const wanted = /^[0-9a-f]{64,128}/.exec(sums.toString('utf8').trim())?.[0];
  const actual = createHash(algorithm).update(bytes).digest('hex');
  if (actual !== wanted) throw new Error(`${address} has the ${algorithm} ${actual}, not ${wanted ?? 'known'}`);
  await writeFile(`${file}.draft`, bytes);
  await rename(`${file}.draft`, file);
  await writeFile(`${file}.done`, '');
  return file;
}

async function bytesOf(address: string): Promise<Buffer> {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} answers ${answer.status} ${answer.statusText}`);
  return Buffer.from(await answer.arrayBuffer());
}

/** The toolchain that Go itself would switch to: the go command fetches it as a module and checks it. */
export function fillGo(version: string): Fill {
  return async (context) => {
    const go = await findGo();
    const env = { GOTOOLCHAIN: `go${version}`, GOMODCACHE: join(folder, 'go'), GOFLAGS: '-modcacherw' };
    const root = (await run(go, ['env', 'GOROOT'], { env, cwd: context })).trim();
    await cp(root, join(context, 'go'), { recursive: true });
  };
}

const rustTarget: Partial<Record<NodeJS.Architecture, string>> = {
  x64: 'x86_64-unknown-linux-gnu',
  arm64: 'aarch64-unknown-linux-gnu',
};

export function fillRust(version: string): Fill {
  return async (context) => {
    const name = `rust-${version}-${rustTarget[process.arch] ?? process.arch}.tar.xz`;
    const address = `https://static.rust-lang.org/dist/${name}`;
    await mkdir(join(context, 'rust'), { recursive: true });
    await copyFile(await download(name, address, `${address}.sha256`, 'sha256'), join(context, 'rust', 'rust.tar.xz'));
  };
}

export function fillMaven(version: string): Fill {
  return async (context) => {
    const name = `apache-maven-${version}-bin.tar.gz`;
    const address = `https://repo.maven.apache.org/maven2/org/apache/maven/apache-maven/${version}/${name}`;
    await copyFile(await download(name, address, `${address}.sha512`, 'sha512'), join(context, 'maven.tar.gz'));
  };
}

/** A program that npm has as a package for each kind of machine. */
export function fillNpmProgram(prefix: string, version: string, program: string): Fill {
  return async (context) => {
    const suffix = prefix.startsWith('@deno') ? '-glibc' : '';
    const machine = process.arch === 'arm64' && !prefix.startsWith('@deno') ? 'aarch64' : process.arch;
    const unpacked = await unpackNpm(`${prefix}-${machine}${suffix}`, version);
    const bin = (await readdir(unpacked)).includes('bin') ? join(unpacked, 'bin', program) : join(unpacked, program);
    await copyFile(bin, join(context, program));
  };
}

/** uv and uvx out of the wheel, which pip checks. */
export function fillUv(version: string): Fill {
  return async (context) => {
    const target = join(context, 'wheel');
    await run('python3', ['-m', 'pip', 'install', '--quiet', '--no-deps', '--target', target, `uv==${version}`]);
    for (const program of ['uv', 'uvx']) await copyFile(join(target, 'bin', program), join(context, program));
    await rm(target, { recursive: true });
  };
}
