// Starts Python frameworks that render their own pages, on $PORT behind a gateway that terminates HTTPS.
import { posix } from 'node:path';
import type { Tree } from '../../../tree.ts';
import { quoteShellWord } from '../../recipe.ts';
import { findPortInFile } from '../../port-literal.ts';
import { locateModule } from './application.ts';
import type { PythonStart } from './find.ts';
import { hasImport, isScript, selectLikeliest, toPythonArguments, type Source } from './sources.ts';

interface Screen {
  readonly framework: string;
  /** Module that its files import. */
  readonly library: string;
  /** Code that a file contains if it is started rather than imported. */
  readonly starts: RegExp;
  /** Files without it are not pages. */
  readonly required?: true;
  readonly start: (
    found: ScreenContext,
  ) => Pick<PythonStart, 'command' | 'environment' | 'port'> & { needs?: readonly string[] };
}

interface ScreenContext {
  readonly tree: Tree;
  readonly source: Source;
  readonly sources: readonly Source[];
  /** The path, quoted for a shell command. */
  readonly path: string;
}

const formatScriptCommand = ({ tree, source }: ScreenContext): string =>
  `exec python ${toPythonArguments(tree, source).map(quoteShellWord).join(' ')}`;

const screens: readonly Screen[] = [
  {
    framework: 'Chainlit',
    library: 'chainlit',
    starts: /@(?:cl|chainlit)\.on_(?:message|chat_start)/,
    start: ({ path }) => ({ command: `exec chainlit run ${path} --headless --host 0.0.0.0 --port $PORT` }),
  },
  {
    framework: 'Streamlit',
    library: 'streamlit',
    starts: /\.set_page_config\(|\.navigation\(/,
    start: ({ path }) => ({
      command: `exec streamlit run ${path} --server.port $PORT --server.address 0.0.0.0 --server.headless true --browser.gatherUsageStats false`,
    }),
  },
  {
    framework: 'NiceGUI',
    library: 'nicegui',
    starts: /\bui\.run\(/,
    required: true,
    // The framework's own default, regardless of $PORT.
    start: (found) => ({ command: formatScriptCommand(found), port: findPortInFile(found.source.text) ?? 8080 }),
  },
  {
    framework: 'Dash',
    library: 'dash',
    starts: /=\s{0,9}(?:dash\.)?Dash\(/,
    required: true,
    start: createDashStart,
  },
  {
    framework: 'Mesop',
    library: 'mesop',
    starts: /@(?:me|mesop)\.page\(/,
    start: (at) => {
      const { source, sources } = at;
      // The page is mounted into an application that the same file serves.
      if (/\buvicorn\.run\(/.test(source.text))
        return { command: formatScriptCommand(at), port: findPortInFile(source.text) };
      const { folder, module } = locateModule(source, sources);
      const name = /^[ \t]{0,9}import mesop as (\w{1,40})/m.exec(source.text)?.[1] ?? 'mesop';
      return {
        command: `exec gunicorn --bind 0.0.0.0:$PORT --threads 8${folder === '.' ? '' : ` --chdir ${quoteShellWord(folder)}`} ${quoteShellWord(`${module}:${name}`)}`,
        needs: ['gunicorn'],
      };
    },
  },
  {
    framework: 'marimo',
    library: 'marimo',
    starts: /=\s{0,9}(?:marimo|mo)\.App\(/,
    required: true,
    start: ({ path }) => ({
      command: `exec marimo run ${path} --headless --no-token --host 0.0.0.0 --port $PORT`,
    }),
  },
  {
    framework: 'Shiny',
    library: 'shiny',
    starts: /^app\s{0,9}=\s{0,9}App\(|from shiny\.express/m,
    required: true,
    start: ({ path }) => ({ command: `exec shiny run --host 0.0.0.0 --port $PORT ${path}` }),
  },
  {
    framework: 'Solara',
    library: 'solara',
    starts: /@(?:solara|sl)\.component\s{0,9}\ndef Page\b/,
    required: true,
    start: ({ path }) => ({ command: `exec solara run ${path} --host 0.0.0.0 --port $PORT --production` }),
  },
  {
    framework: 'Panel',
    library: 'panel',
    starts: /\.servable\(/,
    required: true,
    start: ({ path }) => ({
      command: `exec panel serve ${path} --address 0.0.0.0 --port $PORT --allow-websocket-origin='*' --use-xheaders`,
    }),
  },
  {
    framework: 'Bokeh',
    library: 'bokeh',
    starts: /\bcurdoc\(\)/,
    required: true,
    start: ({ path }) => ({
      command: `exec bokeh serve ${path} --address 0.0.0.0 --port $PORT --allow-websocket-origin='*' --use-xheaders`,
    }),
  },
  {
    framework: 'FastHTML',
    library: 'fasthtml',
    starts: /\bserve\(/,
    required: true,
    start: (found) => ({ command: formatScriptCommand(found), port: findPortInFile(found.source.text) }),
  },
  {
    framework: 'Gradio',
    library: 'gradio',
    starts: /\.launch\(/,
    start: (found) => ({
      command: `export GRADIO_SERVER_PORT=$PORT; ${formatScriptCommand(found)}`,
      environment: { GRADIO_SERVER_NAME: '0.0.0.0', GRADIO_ANALYTICS_ENABLED: 'False' },
      port: findPortInFile(found.source.text),
    }),
  },
];

/**
 * Uses the module's server object if there is one; otherwise the module's application runs itself on the given port.
 */
function createDashStart({ source, sources }: ScreenContext): ReturnType<Screen['start']> {
  const { folder, module } = locateModule(source, sources);
  const at = folder === '.' ? '' : ` --chdir ${quoteShellWord(folder)}`;
  const server =
    /^(\w{1,40})\s{0,9}=\s{0,9}\w{1,40}\.server\b/m.exec(source.text)?.[1] ??
    /^from [\w.]{1,100} import [^\n]{0,200}\b(server)\b/m.exec(source.text)?.[1];
  if (server !== undefined)
    return {
      command: `exec gunicorn --bind 0.0.0.0:$PORT --threads 8${at} ${quoteShellWord(`${module}:${server}`)}`,
      needs: ['gunicorn'],
    };
  const app = /^(\w{1,40})\s{0,9}=\s{0,9}(?:dash\.)?Dash\(/m.exec(source.text)?.[1] ?? 'app';
  const code = `import os, sys; sys.path.insert(0, '${folder}'); from ${module} import ${app} as it; it.run(host='0.0.0.0', port=int(os.environ['PORT']))`;
  // The last argument only identifies the app in process lists.
  return { command: `exec python -c ${quoteShellWord(code)} ${quoteShellWord(source.path)}` };
}

/** Finds the first framework whose library a likely file imports. A file that starts it scores higher than a helper. */
export function findScreen(
  tree: Tree,
  sources: readonly Source[],
  names: ReadonlySet<string>,
): PythonStart | undefined {
  for (const each of screens) {
    const best = selectLikeliest(sources, (source) => {
      const starts = each.starts.test(source.text);
      if (!isScreenSource(each, source, starts, names)) return undefined;
      return { score: (starts ? 25 : 0) + (isScript(source.text) ? 10 : 0), found: starts };
    });
    if (best !== undefined)
      return toPythonStart(each, createScreenContext(tree, sources, findLeader(best.source, sources)), names);
  }
  return findVoilaStart(tree, names);
}

function createScreenContext(tree: Tree, sources: readonly Source[], source: Source): ScreenContext {
  return { tree, source, sources, path: quoteShellWord(source.path) };
}

function isScreenSource(
  { library, required }: Screen,
  { path, text, weight }: Source,
  starts: boolean,
  names: ReadonlySet<string>,
): boolean {
  if (path.split('/').includes('pages') || (!starts && required === true)) return false;
  // A main file may launch pages that its other modules define.
  const launches = starts && library === 'gradio' && names.has('gradio') && (isScript(text) || weight > 5);
  return launches || hasImport(text, library);
}

function toPythonStart(
  { framework, library, start }: Screen,
  at: ScreenContext,
  names: ReadonlySet<string>,
): PythonStart {
  const { needs = [], ...how } = start(at);
  const packageName = library === 'fasthtml' ? 'python-fasthtml' : library;
  return {
    ...how,
    framework,
    because: `${at.source.path} imports ${library}.`,
    weight: at.source.weight,
    known: names.has(packageName),
    needs: [packageName, ...needs].filter((each) => !names.has(each)),
  };
}

/** Voilà serves notebooks, so it has no Python file. */
function findVoilaStart(tree: Tree, names: ReadonlySet<string>): PythonStart | undefined {
  if (!names.has('voila')) return undefined;
  const notebooks = tree.entries.filter(
    (each) => each.kind === 'file' && /^(?:notebooks\/)?[^/]+\.ipynb$/.test(each.path),
  );
  const [first] = notebooks;
  if (first === undefined) return undefined;
  const what = notebooks.length === 1 ? first.path : posix.dirname(first.path);
  return {
    command: `exec voila --no-browser --Voila.ip=0.0.0.0 --port=$PORT ${quoteShellWord(what)}`,
    framework: 'Voilà',
    because: `voila is among its packages, and ${what === '.' ? 'its notebooks are' : `${what} is`} served.`,
    needs: [],
  };
}

/** Typical names of files that are started rather than imported. */
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

/** Returns the main file that imports this file, or the file itself if there is none. */
function findLeader(source: Source, sources: readonly Source[]): Source {
  let leader = source;
  const passed = new Set([source.path]);
  for (let step = 0; step < maximumSteps; step += 1) {
    const next = sources.find((each) => !passed.has(each.path) && shouldPrecede(each, leader));
    if (next === undefined) return leader;
    passed.add(next.path);
    leader = next;
  }
  return leader;
}

function shouldPrecede(source: Source, otherSource: Source): boolean {
  const isAbove = source.path.split('/').length <= otherSource.path.split('/').length;
  return (
    isAbove &&
    leading.has(posix.basename(source.path)) &&
    listModuleNames(source, otherSource).some((name) => hasImport(source.text, name))
  );
}

/** Lists the names under which a file can import another: from the root, from src, and from its own folder. */
function listModuleNames(source: Source, otherSource: Source): string[] {
  const dotted = otherSource.path.replace(/(?:\/__init__)?\.py$/, '').replaceAll('/', '.');
  const folder = posix.dirname(source.path).replaceAll('/', '.');
  const names = [dotted, dotted.replace(/^src\./, ''), folder === '.' ? dotted : dotted.replace(`${folder}.`, '')];
  return [...new Set(names)].filter((name) => name !== '').map((name) => name.replaceAll('.', String.raw`\.`));
}
