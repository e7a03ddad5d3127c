// Bundles the programs of the images. Node needs up to a millisecond for each module that it loads, and a program has
// hundreds of them: from a few files it starts in half the time. The Dockerfile runs this; development and tests run the
// sources.
//   node bundle.ts [--alone] OUTPUT PROGRAM…
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { builtinModules } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { rolldown, type OutputChunk, type Plugin } from 'rolldown';

const root = import.meta.dirname;

/** Contains all chunks, and no folders: from each chunk, the root of the image is one folder above. */
const chunkFolder = 'bundle';

/** Packages that start workers, or read files, next to their own code. They are loaded from node_modules. */
const unbundled = ['pino', '@citation-js/core', '@citation-js/plugin-bibtex', '@electric-sql/pglite'];

/** Code of a package that finds files by the place of its module, which is another one in a bundle. */
const findsFiles = /\bimport\.meta\.(?:url|dirname|filename|resolve)\b|\b__dirname\b|\brequire\.resolve\b/;

export interface BundleOptions {
  /** What becomes /app in the image. */
  readonly output: string;
  /** The image has neither sources nor packages, so the output contains everything that the program loads. */
  readonly isAlone: boolean;
}

/**
 * Writes the chunks of a program, and at the path of its source a file that loads them: one command starts either.
 *
 * @throws Error if the bundle would lack a file or find it elsewhere
 */
export async function bundleProgram(program: string, { output, isAlone }: BundleOptions): Promise<void> {
  const name = dirname(program).replaceAll('/', '-');
  const files = new Set<string>();
  const bundle = await rolldown({
    cwd: root,
    input: { [name]: join(root, program) },
    platform: 'node',
    external: isAlone ? [] : unbundled.map((each) => new RegExp(`^${each}(?:/|$)`)),
    plugins: [createPathPlugin(isAlone, files)],
    onLog: (_level, { message }) => {
      throw new Error(message);
    },
  });
  const written = await bundle.write({
    dir: output,
    entryFileNames: `${chunkFolder}/[name].js`,
    chunkFileNames: `${chunkFolder}/[name]-[hash].js`,
    // V8 keeps a source with any other character in memory with two bytes for each.
    charset: 'ascii',
    comments: { legal: true, annotation: false, jsdoc: false },
    // Classes of one name get different ones in a chunk, and errors are known by theirs.
    keepNames: true,
  });
  await bundle.close();
  await cp(join(root, 'package.json'), join(output, 'package.json'));
  for (const file of files) await cp(join(root, file), join(output, file));
  const start = `import '${toImportPath(dirname(program), join(chunkFolder, `${name}.js`))}';\n`;
  await mkdir(join(output, dirname(program)), { recursive: true });
  await writeFile(join(output, program), start);
  if (!isAlone) return;
  const chunks = written.output.filter((each) => each.type === 'chunk');
  assertComplete(chunks);
  await writeFile(join(output, chunkFolder, 'LICENSES'), await formatLicenses(chunks));
}

/**
 * Makes import.meta of a source lead to where the source is in the image; in a chunk, it would lead to the chunk.
 * For a program that is alone, adds the files that its sources read to the set.
 */
function createPathPlugin(isAlone: boolean, files: Set<string>): Plugin {
  return {
    name: 'paths',
    transform(code, id) {
      if (id.startsWith('\0')) return undefined;
      const path = relative(root, id);
      if (path.startsWith('node_modules/')) {
        if (findsFiles.test(code)) throw new Error(`${path} finds files by its place: add its package to unbundled`);
        return undefined;
      }
      if (isAlone) for (const file of listFiles(code, path)) files.add(file);
      const source = toImportPath(chunkFolder, path);
      const folder = `process.getBuiltinModule('node:path').join(import.meta.dirname, '${dirname(source)}')`;
      return code
        .replaceAll('import.meta.url', `new URL('${source}', import.meta.url).href`)
        .replaceAll('import.meta.dirname', folder)
        .replaceAll('import.meta.main', 'false');
    },
  };
}

/**
 * Lists the files that a source reads, each as `new URL('step-runtime.sh', import.meta.url)`.
 *
 * @throws Error if it uses import.meta in another way, or for a source
 */
function listFiles(code: string, path: string): string[] {
  const names = [...code.matchAll(/new URL\('([^']+)', import\.meta\.url\)/g)].map(([, name = '']) => name);
  if (names.length < code.split('import.meta.').length - 1 || names.some((name) => name.endsWith('.ts')))
    throw new Error(`${path} uses import.meta in a way that needs the sources, which the image lacks`);
  return names.map((name) => join(dirname(path), name));
}

/** @throws Error if a chunk imports a package, which the image lacks */
function assertComplete(chunks: readonly OutputChunk[]): void {
  const known = new Set([...chunks.map(({ fileName }) => fileName), ...builtinModules]);
  for (const { fileName, imports, dynamicImports } of chunks)
    for (const each of [...imports, ...dynamicImports])
      if (!known.has(each.replace(/^node:/, ''))) throw new Error(`${fileName} imports ${each}, which the image lacks`);
}

/** Formats the licences of the bundled packages: most require that copies carry them. */
async function formatLicenses(chunks: readonly OutputChunk[]): Promise<string> {
  const folders = chunks.flatMap(({ moduleIds }) =>
    moduleIds.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id) ?? []),
  );
  const texts = [...new Set(folders)].sort().map(async (folder) => {
    const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each) && !each.endsWith('s'));
    // A package without the text names its licence in package.json.
    const text = await readFile(join(folder, file ?? 'package.json'), 'utf8');
    return `${relative(join(root, 'node_modules'), folder)}\n\n${text.trim()}\n`;
  });
  return (await Promise.all(texts)).join(`\n${'-'.repeat(80)}\n\n`);
}

function toImportPath(from: string, to: string): string {
  const path = relative(from, to);
  return path.startsWith('.') ? path : `./${path}`;
}

if (import.meta.main) {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: { alone: { type: 'boolean' } } });
  const [output, ...programs] = positionals;
  if (output === undefined || programs.length === 0) throw new Error('usage: node bundle.ts [--alone] OUTPUT PROGRAM…');
  for (const program of programs) await bundleProgram(program, { output, isAlone: values.alone === true });
}
