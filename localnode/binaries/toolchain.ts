// Finds a Go toolchain that is new enough, or downloads the pinned one from the Go module proxy.
import { createHash } from 'node:crypto';
import { access, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { paths } from '../paths.ts';
import { run } from '../shell.ts';
import { ignoreReport, type Report } from '../steps.ts';

/** The newest Go release that a module here requires; later ones work too. */
const minimum: readonly [number, number] = [1, 26];

/** The toolchain that Go itself would switch to, as a zip from the module proxy, by machine architecture. */
const pinned = {
  version: 'go1.26.8',
  sha256: {
    x64: '30c2b1bf7dcc88d3eb0a1364e47ddd9128edb3110a30e8a0ef61cd5856b31de7',
    arm64: '02b36b6787b3ac767668f630e2998df45a3b1f9ffee08d1bf3ef6487cd658d99',
  } as Partial<Record<NodeJS.Architecture, string>>,
};

/** Returns true if the output of `go version` names at least `minimum`. */
export function isNewEnough(versionLine: string): boolean {
  const found = /\bgo(\d+)\.(\d+)/.exec(versionLine);
  if (found === null) return false;
  const [major, minor] = [Number(found[1]), Number(found[2])];
  return major > minimum[0] || (major === minimum[0] && minor >= minimum[1]);
}

async function readVersion(go: string): Promise<string> {
  return await run(go, ['version'], { env: { GOTOOLCHAIN: 'local' } }).catch(() => '');
}

async function fetchPinned(report: Report): Promise<string> {
  const folder = join(paths.cache, 'go', pinned.version);
  const go = join(folder, 'bin', 'go');
  if (isNewEnough(await readVersion(go))) return go;
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  const sha256 = process.platform === 'linux' ? pinned.sha256[process.arch] : undefined;
  if (sha256 === undefined)
    throw new Error(
      `there is no pinned Go toolchain for ${process.platform} on ${process.arch}: install Go ${minimum.join('.')} or newer and try again`,
    );
  const proxy = (process.env['GOPROXY'] ?? 'https://proxy.golang.org').split(/[,|]/)[0] ?? '';
  const name = `v0.0.1-${pinned.version}.linux-${architecture}`;
  report(`downloading ${pinned.version}`);
  const response = await fetch(`${proxy}/golang.org/toolchain/@v/${name}.zip`);
  if (!response.ok)
    throw new Error(
      `the Go toolchain could not be downloaded from ${response.url}: ${response.status} ${response.statusText}`,
    );
  const bytes = Buffer.from(await response.arrayBuffer());
  const actual = createHash('sha256').update(bytes).digest('hex');
  if (actual !== sha256)
    throw new Error(`the Go toolchain from ${response.url} has the SHA-256 ${actual}, not ${sha256}`);
  const scratch = `${folder}.draft`;
  await rm(scratch, { recursive: true, force: true });
  await mkdir(scratch, { recursive: true });
  await writeFile(join(scratch, 'go.zip'), bytes);
  await run('unzip', ['-q', join(scratch, 'go.zip'), '-d', scratch]);
  const tree = join(scratch, `golang.org/toolchain@${name}`);
  await run('chmod', ['-R', '+x', join(tree, 'bin'), join(tree, 'pkg/tool')]);
  await rm(folder, { recursive: true, force: true });
  await rename(tree, folder);
  await rm(scratch, { recursive: true, force: true });
  return go;
}

async function findOnPath(): Promise<string | undefined> {
  for (const folder of [...(process.env['PATH'] ?? '').split(delimiter), '/usr/local/go/bin', '/usr/lib/go/bin']) {
    const go = join(folder, 'go');
    const exists = await access(go).then(
      () => true,
      () => false,
    );
    if (exists && isNewEnough(await readVersion(go))) return go;
  }
  return undefined;
}

/** Returns the path of a usable `go` command. */
export async function findGo(report: Report = ignoreReport): Promise<string> {
  return (await findOnPath()) ?? (await fetchPinned(report));
}
