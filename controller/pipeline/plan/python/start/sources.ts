// Lists the Python files that may start the app, with the evidence for each.
import { posix } from 'node:path';
import type { Tree } from '../../../tree.ts';
import { hasImport, hasRelativeImport, parsePython, type PythonModule } from '../../syntax/python.ts';

export interface Source {
  readonly path: string;
  readonly text: string;
  /** Parsed when it is first read: most files of a repository never are. */
  readonly module: PythonModule;
  /** Higher is more likely: based on location, name, and whether the README starts it. */
  readonly weight: number;
}

const maximumSources = 80;
const sourceBytes = 200 * 1024;
const preferred = [
  'main.py',
  'app.py',
  'server.py',
  'asgi.py',
  'wsgi.py',
  'streamlit_app.py',
  'webui.py',
  'api.py',
  'run.py',
  'web.py',
  'demo.py',
  'Home.py',
  '__main__.py',
  '__init__.py',
];
const aside =
  /(?:^|\/)(?:tests?|docs?|examples?|samples?|scripts?|migrations|notebooks?|benchmarks?|evals?|tools|\.[^/]+|venv|node_modules)\/|(?:^|\/)(?:test_[^/]*|[^/]*_test|conftest|setup)\.py$/;
/** README commands that start a file. */
const starting =
  /(?:\bpython3?|\b(?:streamlit|chainlit|marimo|shiny|solara|uv)\s{1,3}run|\b(?:gradio|mesop|voila)|\b(?:panel|bokeh)\s{1,3}serve)\s{1,3}(?:python3?\s{1,3})?(?:\.\/)?([\w./-]{1,100}\.py)\b/g;

/** Lists files at most two folders deep, most likely first. */
export function listPythonSources(tree: Tree): Source[] {
  const named = listReadmeStarts(tree);
  return tree.entries
    .filter(
      (each) =>
        each.kind === 'file' && each.path.endsWith('.py') && each.path.split('/').length <= 4 && !aside.test(each.path),
    )
    .map(({ path }) => ({ path, weight: weigh(path) + (named.has(path) ? 30 : 0) }))
    .toSorted((one, other) => other.weight - one.weight || (one.path < other.path ? -1 : 1))
    .slice(0, maximumSources)
    .map(({ path, weight }) => createSource(path, weight, tree.readFile(path, sourceBytes) ?? ''));
}

/** Makes a function that finds one of the sources by its path. */
export function createSourceLookup(sources: readonly Source[]): (path: string) => Source | undefined {
  const known = new Map(sources.map((source) => [source.path, source]));
  return (path) => known.get(path);
}

/** Reads one file, which may be in a folder that is not searched for a start; undefined if there is none. */
export function readSource(tree: Tree, path: string): Source | undefined {
  const text = tree.readFile(path, sourceBytes);
  return text === undefined ? undefined : createSource(path, weigh(path), text);
}

function createSource(path: string, weight: number, text: string): Source {
  return {
    path,
    weight,
    text,
    get module() {
      return parsePython(text);
    },
  };
}

/** Names of examples and experiments. */
const trial = /(?:^|[_-])(?:demo|example|sample|old|backup|copy|poc|playground)s?\.py$/i;

function weigh(path: string): number {
  const name = posix.basename(path);
  const index = preferred.indexOf(name);
  const depth = path.split('/').length - 1;
  return (index < 0 ? 0 : 20 - index) - 15 * depth - (index < 0 && trial.test(name) ? 12 : 0);
}

function listReadmeStarts(tree: Tree): ReadonlySet<string> {
  const readme = ['README.md', 'README.rst', 'README.txt', 'readme.md', 'README'].find((each) => tree.has(each));
  const content = readme === undefined ? '' : (tree.readFile(readme, 128 * 1024) ?? '');
  return new Set([...content.matchAll(starting)].map((match) => match[1] ?? ''));
}

/** Selects the most likely source by its weight and the score of its text; the first if several are equal. */
export function selectLikeliest<T>(
  sources: readonly Source[],
  look: (source: Source) => { readonly score: number; readonly found: T } | undefined,
): { readonly source: Source; readonly found: T } | undefined {
  let best: { source: Source; found: T; score: number } | undefined;
  for (const source of sources) {
    const seen = look(source);
    if (seen === undefined) continue;
    const score = source.weight + seen.score;
    if (best === undefined || score > best.score) best = { source, found: seen.found, score };
  }
  return best;
}

/** Returns whether the file imports a library. Most files do not name it at all, so few are parsed. */
export function hasLibraryImport(source: Source, library: string): boolean {
  return source.text.includes(library.split('.').at(-1) ?? library) && hasImport(source.module, library);
}

/** Returns how python starts the file: as a module of its package if it imports its neighbours that way. */
export function toPythonArguments(tree: Tree, source: Source): string[] {
  const folder = posix.dirname(source.path);
  const inPackage = folder !== '.' && tree.has(`${folder}/__init__.py`);
  const top = folder.split('/')[0] ?? '';
  const asModule = inPackage && (hasRelativeImport(source.module) || hasImport(source.module, top.replace(/\W/g, '')));
  return asModule
    ? [
        '-m',
        source.path
          .slice(0, -3)
          .replaceAll('/', '.')
          .replace(/\.__main__$/, ''),
      ]
    : [source.path];
}
