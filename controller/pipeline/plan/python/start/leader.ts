// Finds the file that imports the one in which a framework was found: an app in several files is started by its first.
import { posix } from 'node:path';
import { imports, type Source } from './sources.ts';

/** How a file is called that is started, rather than imported. */
const leading: ReadonlySet<string> = new Set([
  'index.py',
  'app.py',
  'main.py',
  'run.py',
  'server.py',
  'wsgi.py',
  'streamlit_app.py',
  'Home.py',
]);
const maximumSteps = 4;

/** The file itself, where none that leads imports it. */
export function leaderOf(source: Source, sources: readonly Source[]): Source {
  let leader = source;
  const passed = new Set([source.path]);
  for (let step = 0; step < maximumSteps; step += 1) {
    const next = sources.find((each) => !passed.has(each.path) && leads(each, leader));
    if (next === undefined) return leader;
    passed.add(next.path);
    leader = next;
  }
  return leader;
}

function leads(one: Source, other: Source): boolean {
  const isAbove = one.path.split('/').length <= other.path.split('/').length;
  return (
    isAbove && leading.has(posix.basename(one.path)) && modulesOf(one, other).some((name) => imports(one.text, name))
  );
}

/** Names by which a file can import another: from the top, from src, and from its own folder. */
function modulesOf(one: Source, other: Source): string[] {
  const dotted = other.path.replace(/(?:\/__init__)?\.py$/, '').replaceAll('/', '.');
  const folder = posix.dirname(one.path).replaceAll('/', '.');
  const names = [dotted, dotted.replace(/^src\./, ''), folder === '.' ? dotted : dotted.replace(`${folder}.`, '')];
  return [...new Set(names)].filter((name) => name !== '').map((name) => name.replaceAll('.', String.raw`\.`));
}
