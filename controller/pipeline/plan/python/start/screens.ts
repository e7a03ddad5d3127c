// Starts Python frameworks that render their own pages, on $PORT behind a gateway that terminates HTTPS.
import { posix } from 'node:path';
import type { Tree } from '../../../tree.ts';
import { quoteShellWord } from '../../recipe.ts';
import { hasCall, hasDecorator, hasImport, type PythonModule } from '../../syntax/python.ts';
import { findPythonPort } from '../port.ts';
import { locateModule } from './application.ts';
import type { PythonStart } from './find.ts';
import { hasLibraryImport, selectLikeliest, toPythonArguments, type Source } from './sources.ts';

interface Screen {
  readonly framework: string;
  /** Module that its files import. */
  readonly library: string;
  /** Code that a file contains if it is started rather than imported. */
  readonly starts: (module: PythonModule) => boolean;
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
    starts: (module) => hasDecorator(module, /^(?:cl|chainlit)\.on_(?:message|chat_start)$/),
    start: ({ path }) => ({ command: `exec chainlit run ${path} --headless --host 0.0.0.0 --port $PORT` }),
  },
  {
    framework: 'Streamlit',
    library: 'streamlit',
    starts: (module) => hasCall(module, /\.(?:set_page_config|navigation)$/),
    start: ({ path }) => ({
      command: `exec streamlit run ${path} --server.port $PORT --server.address 0.0.0.0 --server.headless true --browser.gatherUsageStats false`,
    }),
  },
  {
    framework: 'NiceGUI',
    library: 'nicegui',
    starts: (module) => hasCall(module, /^(?:ui|nicegui\.ui)\.run$/),
    required: true,
    // The framework's own default, regardless of $PORT.
    start: (found) => ({ command: formatScriptCommand(found), port: findPythonPort(found.source.module) ?? 8080 }),
  },
  {
    framework: 'Dash',
    library: 'dash',
    starts: (module) => hasCall(module, /^(?:dash\.)?Dash$/),
    required: true,
    start: createDashStart,
  },
  {
    framework: 'Mesop',
    library: 'mesop',
    starts: (module) => hasDecorator(module, /^(?:me|mesop)\.page$/),
    start: (at) => {
      const { source, sources } = at;
      // The page is mounted into an application that the same file serves.
      if (hasCall(source.module, /^uvicorn\.run$/))
        return { command: formatScriptCommand(at), port: findPythonPort(source.module) };
      const { folder, module } = locateModule(source, sources);
      const name = source.module.imports.find((each) => each.module === 'mesop')?.as ?? 'mesop';
      return {
        command: `exec gunicorn --bind 0.0.0.0:$PORT --threads 8${folder === '.' ? '' : ` --chdir ${quoteShellWord(folder)}`} ${quoteShellWord(`${module}:${name}`)}`,
        needs: ['gunicorn'],
      };
    },
  },
  {
    framework: 'marimo',
    library: 'marimo',
    starts: (module) => hasCall(module, /^(?:marimo|mo)\.App$/),
    required: true,
    start: ({ path }) => ({
      command: `exec marimo run ${path} --headless --no-token --host 0.0.0.0 --port $PORT`,
    }),
  },
  {
    framework: 'Shiny',
    library: 'shiny',
    starts: (module) => hasAppVariable(module, /^(?:shiny\.)?App$/) || hasImport(module, 'shiny.express'),
    required: true,
    start: ({ path }) => ({ command: `exec shiny run --host 0.0.0.0 --port $PORT ${path}` }),
  },
  {
    framework: 'Solara',
    library: 'solara',
    starts: (module) =>
      hasDecorator(module, /^(?:solara|sl)\.component$/) &&
      (module.variables.has('Page') || module.functions.some(({ name }) => name === 'Page')),
    required: true,
    start: ({ path }) => ({ command: `exec solara run ${path} --host 0.0.0.0 --port $PORT --production` }),
  },
  {
    framework: 'Panel',
    library: 'panel',
    starts: (module) => hasCall(module, /\.servable$/),
    required: true,
    start: ({ path }) => ({
      command: `exec panel serve ${path} --address 0.0.0.0 --port $PORT --allow-websocket-origin='*' --use-xheaders`,
    }),
  },
  {
    framework: 'Bokeh',
    library: 'bokeh',
    starts: (module) => hasCall(module, /(?:^|\.)curdoc$/),
    required: true,
    start: ({ path }) => ({
      command: `exec bokeh serve ${path} --address 0.0.0.0 --port $PORT --allow-websocket-origin='*' --use-xheaders`,
    }),
  },
  {
    framework: 'FastHTML',
    library: 'fasthtml',
    starts: (module) => hasCall(module, /(?:^|\.)serve$/),
    required: true,
    start: (found) => ({ command: formatScriptCommand(found), port: findPythonPort(found.source.module) }),
  },
  {
    framework: 'Gradio',
    library: 'gradio',
    starts: (module) => hasCall(module, /\.launch$/),
    start: (found) => ({
      command: `export GRADIO_SERVER_PORT=$PORT; ${formatScriptCommand(found)}`,
      environment: { GRADIO_SERVER_NAME: '0.0.0.0', GRADIO_ANALYTICS_ENABLED: 'False' },
      port: findPythonPort(found.source.module),
    }),
  },
];

/** Returns whether the module itself holds an object of this class. */
function hasAppVariable({ variables }: PythonModule, callee: RegExp): boolean {
  return [...variables.values()].some(({ value }) => value.kind === 'call' && callee.test(value.call.callee));
}

/**
 * Uses the module's server object if there is one, or lets the module's application run itself on the given port. An
 * application that only a function has cannot be imported, so its file is run.
 */
function createDashStart(found: ScreenContext): ReturnType<Screen['start']> {
  const { source, sources } = found;
  const { folder, module } = locateModule(source, sources);
  const at = folder === '.' ? '' : ` --chdir ${quoteShellWord(folder)}`;
  const server = findDashServer(source.module);
  if (server !== undefined)
    return {
      command: `exec gunicorn --bind 0.0.0.0:$PORT --threads 8${at} ${quoteShellWord(`${module}:${server}`)}`,
      needs: ['gunicorn'],
    };
  const own = source.module.assignments.find(
    ({ value }) => value.kind === 'call' && /^(?:dash\.)?Dash$/.test(value.call.callee),
  )?.name;
  const app = own ?? (isImported(source.module, 'app') ? 'app' : undefined);
  // Dash reads HOST and PORT, unless its call of run has others.
  if (app === undefined)
    return {
      command: formatScriptCommand(found),
      environment: { HOST: '0.0.0.0' },
      port: findPythonPort(source.module),
    };
  const code = `import os, sys; sys.path.insert(0, '${folder}'); from ${module} import ${app} as it; it.run(host='0.0.0.0', port=int(os.environ['PORT']))`;
  // The last argument only identifies the app in process lists.
  return { command: `exec python -c ${quoteShellWord(code)} ${quoteShellWord(source.path)}` };
}

/** Finds the variable `server = app.server`, or a server that is imported. */
function findDashServer({ variables, imports }: PythonModule): string | undefined {
  const own = [...variables].find(
    ([, { value }]) => value.kind === 'name' && /^\w{1,40}\.server$/.test(value.name),
  )?.[0];
  return own ?? (isImported({ imports }, 'server') ? 'server' : undefined);
}

function isImported({ imports }: Pick<PythonModule, 'imports'>, name: string): boolean {
  return imports.some(({ names }) => names.some(({ as }) => as === name));
}

/** Finds the first framework whose library a likely file imports. A file that starts it scores higher than a helper. */
export function findScreen(
  tree: Tree,
  sources: readonly Source[],
  names: ReadonlySet<string>,
): PythonStart | undefined {
  for (const each of screens) {
    const best = selectLikeliest(sources, (source) => {
      // Naming the library is cheaper to check than parsing; launching pages of other modules is Gradio's alone.
      if (!source.text.includes(each.library) && each.library !== 'gradio') return undefined;
      if (each.library === 'gradio' && !/gradio|\.launch\b/.test(source.text)) return undefined;
      const starts = each.starts(source.module);
      if (!isScreenSource(each, source, starts, names)) return undefined;
      return { score: (starts ? 25 : 0) + (source.module.isScript ? 10 : 0), found: starts };
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
  source: Source,
  starts: boolean,
  names: ReadonlySet<string>,
): boolean {
  if (source.path.split('/').includes('pages') || (!starts && required === true)) return false;
  // A main file may launch pages that its other modules define.
  const launches =
    starts && library === 'gradio' && names.has('gradio') && (source.module.isScript || source.weight > 5);
  return launches || hasLibraryImport(source, library);
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
    file: at.source.path,
    weight: at.source.weight,
    known: names.has(packageName),
    certainty: names.has(packageName) ? 'likely' : 'guessed',
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
    listModuleNames(source, otherSource).some((name) => hasLibraryImport(source, name))
  );
}

/** Lists the names under which a file can import another: from the root, from src, and from its own folder. */
function listModuleNames(source: Source, otherSource: Source): string[] {
  const dotted = otherSource.path.replace(/(?:\/__init__)?\.py$/, '').replaceAll('/', '.');
  const folder = posix.dirname(source.path).replaceAll('/', '.');
  const names = [dotted, dotted.replace(/^src\./, ''), folder === '.' ? dotted : dotted.replace(`${folder}.`, '')];
  return [...new Set(names)].filter((name) => name !== '');
}
