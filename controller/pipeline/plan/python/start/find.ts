// Finds how a Python app starts: from its Procfile, its framework, its own command, or its main file.
import type { Certainty } from '../../recipe.ts';
import { readKeys, parseToml, readText } from '../../../manifest.ts';
import type { Tree } from '../../../tree.ts';
import { type PublishedPackage, readPublishedPackage } from '../../common/published.ts';
import { quoteShellWord } from '../../recipe.ts';
import { hasImport, type PythonModule } from '../../syntax/python.ts';
import { findPythonPort } from '../port.ts';
import { findDeclaredStart } from '../../platforms/start.ts';
import { findApplication } from './application.ts';
import { findDjangoStart } from './django.ts';
import { findReflexStart } from '../reflex.ts';
import { findScreen } from './screens.ts';
import {
  hasLibraryImport,
  selectLikeliest,
  toPythonArguments,
  createSourceLookup,
  listPythonSources,
  readSource,
  type Source,
} from './sources.ts';

export interface PythonStart {
  /** Shell command, with $PORT not yet expanded. */
  readonly command: string;
  readonly framework?: string;
  /** A sentence that names the file and the evidence. */
  readonly because: string;
  /** Packages that the command needs and the author may not have listed. */
  readonly needs: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Port that it listens on, regardless of $PORT. */
  readonly port?: number | undefined;
  /** Likelihood of the file; `known` states whether its framework is among the packages. */
  readonly weight?: number;
  readonly known?: boolean;
  /** It serves another framework's pages itself. */
  readonly mounts?: boolean;
  /** Its file contains a call that runs until the app is stopped. */
  readonly serves?: boolean;
  /** A second program with pages, which would not be started. */
  readonly other?: PythonStart;
  /** Bot library that its file imports. */
  readonly bot?: string | undefined;
  /** The file that is evidence of it. */
  readonly file?: string;
  /** Window toolkit that its file imports; absent if anything shows that the app answers HTTP all the same. */
  readonly windows?: string | undefined;
  /** The command belongs to the project, which must be installed first. */
  readonly ofProject?: true;
  /** Command of the project that listens to nothing as far as its code shows. */
  readonly silentCommand?: string;
  /** Absent: a file states it. */
  readonly certainty?: Certainty;
  /** A sentence about another start that the files allow. */
  readonly otherwise?: string;
}

/** Finds how the app starts; undefined if there is no evidence. `names` are the requested packages. */
export function findStart(tree: Tree, names: ReadonlySet<string>): PythonStart | undefined {
  const published = readPublishedPackage(tree);
  if (published !== undefined) return findPublishedStart(published);
  return adaptDeclaredStart(tree, names) ?? detectStart(tree, names);
}

/** Starts the command of a published package that uvx would start. */
function findPublishedStart({ main, dependencies }: PublishedPackage): PythonStart | undefined {
  if (main === undefined) return undefined;
  return {
    command: main.command,
    because: `Its command ${main.name} is started, as uvx does.`,
    needs: [],
    environment: { HOST: '0.0.0.0' },
    ofProject: true,
    certainty: 'likely',
    ...(serverPackages.some((each) => dependencies.has(each)) ? {} : { silentCommand: main.name }),
  };
}

/** Reflex's own command recompiles the pages at every start; here they are part of the image. */
function adaptDeclaredStart(tree: Tree, names: ReadonlySet<string>): PythonStart | undefined {
  const declaredStart = findDeclaredStart(tree);
  const compiled =
    declaredStart === undefined || /\breflex run\b/.test(declaredStart.command)
      ? findReflexStart(tree, names)
      : undefined;
  return compiled ?? declaredStart;
}

function detectStart(tree: Tree, names: ReadonlySet<string>): PythonStart | undefined {
  const sources = listPythonSources(tree);
  const served = findDjangoStart(tree, names) ?? findApplication(sources, names);
  const drawn = findScreen(tree, sources, names);
  if (served === undefined)
    return drawn ?? findPlainStart(tree, sources, names) ?? findProjectScript(tree, sources, names);
  if (drawn === undefined) {
    const main = findMainInstead(tree, sources, served, names);
    return main === undefined ? served : { ...main, otherwise: served.because };
  }
  return isBefore(drawn, served) ? { ...drawn, otherwise: served.because } : combineStarts(served, drawn);
}

/** A lead that only a file from the README's start command, or one much closer to the root, can have. */
const clearLead = 30;

/**
 * Returns whether a page takes precedence over an application: its framework is listed, and its name or location is
 * more typical.
 */
function isBefore(drawn: PythonStart, served: PythonStart): boolean {
  if (served.framework === 'Django' || drawn.known !== true) return false;
  const lead = (drawn.weight ?? 0) - (served.weight ?? 0);
  return served.known !== true || lead >= (served.mounts === true ? clearLead : 1);
}

/** Prefers a long-running file at the root to an application that lies deep or is only an experiment. */
function findMainInstead(
  tree: Tree,
  sources: readonly Source[],
  served: PythonStart,
  names: ReadonlySet<string>,
): PythonStart | undefined {
  if (served.framework === 'Django' || (served.weight ?? 0) > 0) return undefined;
  const main = findPlainStart(tree, sources, names);
  return main?.serves === true && (main.weight ?? 0) > 0 ? main : undefined;
}

/** Frameworks whose pages are often mounted into an application that serves them. */
const mounted: ReadonlySet<string> = new Set(['Gradio', 'NiceGUI', 'Dash', 'Voilà', 'Panel', 'Bokeh']);

/** Reports a second program: only one would be started, which is half of the app. */
function combineStarts(served: PythonStart, drawn: PythonStart): PythonStart {
  if (mounted.has(drawn.framework ?? '')) return { ...served, otherwise: drawn.because };
  return { ...served, other: drawn };
}

const mains = ['main.py', 'app.py', 'server.py', 'run.py', 'webui.py', '__main__.py'];
/** A call that runs until the app is stopped. */
const serving =
  /\.(?:run|launch|run_app|serve|serve_forever|listen|start_server|run_polling|infinity_polling|run_until_disconnected|mainloop)$|^run_app$/;
/** Calls with one of these names that only run another program to its end. */
const notServing = /^(?:subprocess|sp|shutil|os|nox|tox)\./;

function isServing(module: PythonModule): boolean {
  const served = module.calls.some(
    ({ callee, isDecorator }) => !isDecorator && serving.test(callee) && !notServing.test(callee),
  );
  return served || hasImport(module, 'http.server');
}

/** Bot libraries, which call a service and receive no requests. */
const bots = [
  'discord',
  'nextcord',
  'disnake',
  'telegram',
  'telebot',
  'aiogram',
  'telethon',
  'pyrogram',
  'tweepy',
  'nio',
];

/** Toolkits that open windows on the machine of their user. */
const toolkits = [
  'tkinter',
  'Tkinter',
  'customtkinter',
  'PySimpleGUI',
  'PyQt4',
  'PyQt5',
  'PyQt6',
  'PySide',
  'PySide2',
  'PySide6',
  'wx',
  'gtk',
  'gi.repository.Gtk',
  'kivy',
  'dearpygui',
  'pygame',
  'pyglet',
  'arcade',
  'turtle',
];

/** Programs that prepare a machine or a release, and end. READMEs start them too. */
const preparing =
  /(?:^|\/)(?:(?:un)?install(?:er)?|bootstrap|build|release|publish|deploy|upgrade|updater?|downloader?)(?:_\w{1,60})?\.py$/i;

/** Finds a file that python runs: preferably one that serves, otherwise one with a typical name. */
function findPlainStart(tree: Tree, sources: readonly Source[], names: ReadonlySet<string>): PythonStart | undefined {
  const best = selectLikeliest(sources, (source) => {
    if (preparing.test(source.path)) return undefined;
    const top = !source.path.includes('/');
    const serves = isServing(source.module);
    const script = source.module.isScript;
    if (!(top && (script || mains.includes(source.path))) && !(serves && script)) return undefined;
    return { score: (serves ? 25 : 0) + (script ? 5 : 0), found: serves };
  });
  if (best === undefined) return undefined;
  const words = toPythonArguments(tree, best.source);
  return {
    command: `exec python ${words.map(quoteShellWord).join(' ')}`,
    because: `${best.source.path} is started by python.`,
    needs: [],
    port: findPythonPort(best.source.module),
    weight: best.source.weight,
    bot: bots.find((library) => hasLibraryImport(best.source, library)),
    file: best.source.path,
    windows: findToolkit(best.source, names),
    serves: best.found,
    certainty: best.found ? 'likely' : 'guessed',
  };
}

function findToolkit(source: Source, names: ReadonlySet<string>): string | undefined {
  const toolkit = toolkits.find((library) => hasLibraryImport(source, library));
  if (toolkit === undefined || serverPackages.some((each) => names.has(each))) return undefined;
  return serverModules.some((module) => hasLibraryImport(source, module)) ? undefined : toolkit;
}

/** Modules with which a program answers requests without a framework. */
const serverModules = [
  'http.server',
  'socketserver',
  'wsgiref',
  'socket',
  'asyncio',
  'aiohttp',
  'websockets',
  'tornado',
];

/** Packages that answer HTTP. */
const serverPackages: readonly string[] = [
  ...['fastapi', 'starlette', 'flask', 'django', 'quart', 'litestar', 'sanic', 'bottle', 'falcon', 'pyramid'],
  ...['uvicorn', 'gunicorn', 'hypercorn', 'granian', 'waitress', 'cherrypy', 'cheroot', 'robyn'],
  ...['streamlit', 'gradio', 'chainlit', 'dash', 'nicegui', 'panel', 'bokeh', 'mesop', 'marimo', 'shiny', 'solara'],
  ...['voila', 'jupyterlab', 'flet', 'reflex', 'python-fasthtml', 'textual-serve'],
];

/** Finds a command in [project.scripts] whose code serves. A command that serves nothing is a tool for a terminal. */
function findProjectScript(
  tree: Tree,
  sources: readonly Source[],
  names: ReadonlySet<string>,
): PythonStart | undefined {
  const parsed = parseToml(tree.readFile('pyproject.toml'));
  const table =
    readKeys(parsed, 'project', 'scripts').length > 0 ? ['project', 'scripts'] : ['tool', 'poetry', 'scripts'];
  const scripts = readKeys(parsed, ...table).filter((each) => /^[\w.-]{1,80}$/.test(each));
  const findSource = createSourceLookup(sources);
  const readModules = (name: string): PythonModule[] => {
    const entry = findModule(findSource, (readText(parsed, ...table, name) ?? '').split(':')[0] ?? '');
    return entry === undefined ? [] : listReachable(findSource, entry).map(({ module }) => module);
  };
  const serves = (name: string): boolean => readModules(name).some(isServing);
  const projectName = readText(parsed, 'project', 'name') ?? readText(parsed, 'tool', 'poetry', 'name');
  const name = chooseServerScript(scripts.filter(serves), projectName) ?? chooseServerScript(scripts, projectName);
  if (name === undefined) return undefined;
  const [entry] = readModules(name);
  const isServer = serves(name);
  return {
    command: `exec ${name}`,
    because: `pyproject.toml has the command ${name} of the project itself${isServer ? ', whose code serves' : ''}.`,
    needs: [],
    environment: { HOST: '0.0.0.0' },
    port: entry === undefined ? undefined : findPythonPort(entry),
    ofProject: true,
    certainty: isServer ? 'likely' : 'guessed',
    ...(isServer || serverPackages.some((each) => names.has(each)) ? {} : { silentCommand: name }),
  };
}

/** Chooses the command named like a server or like the project, or the only one. */
function chooseServerScript(scripts: readonly string[], project: string | undefined): string | undefined {
  return (
    scripts.find((each) => /(?:^|[-_])(?:server?|serve|web|webui|api|app|ui|gui|start)$/.test(each)) ??
    scripts.find((each) => each === project) ??
    (scripts.length === 1 ? scripts[0] : undefined)
  );
}

/** Finds a server package that a file imports, directly or by files of the repository, and the file that imports it. */
export function findReachedServer(
  tree: Tree,
  file: string,
): { readonly library: string; readonly path: string } | undefined {
  const cache = new Map<string, Source | undefined>();
  const readOnce = (path: string): Source | undefined => {
    if (!cache.has(path)) cache.set(path, readSource(tree, path));
    return cache.get(path);
  };
  const entry = readOnce(file);
  for (const source of entry === undefined ? [] : listReachable(readOnce, entry)) {
    const library = serverPackages.find((each) => hasLibraryImport(source, each));
    if (library !== undefined) return { library, path: source.path };
  }
  return undefined;
}

const maximumReached = 30;

type FindSource = (path: string) => Source | undefined;

/** Lists a source, and after it those that it imports, directly or not. */
export function listReachable(findSource: FindSource, entry: Source): Source[] {
  const reached = [entry];
  for (const source of reached) {
    if (reached.length >= maximumReached) break;
    const folder = source.path
      .replace(/^src\//, '')
      .split('/')
      .slice(0, -1);
    const modules = source.module.imports.flatMap(({ module, names }) => {
      const absolute = resolveModule(module, folder);
      return [absolute, ...names.map(({ name }) => (absolute === '' ? name : `${absolute}.${name}`))];
    });
    for (const found of modules.map((module) => findModule(findSource, module)))
      if (found !== undefined && !reached.includes(found)) reached.push(found);
  }
  return reached;
}

export function findModule(findSource: FindSource, module: string): Source | undefined {
  const path = module.replaceAll('.', '/');
  const files = [`${path}.py`, `src/${path}.py`, `${path}/__init__.py`, `src/${path}/__init__.py`];
  return files.map(findSource).find((each) => each !== undefined);
}

/** Resolves `.api` and `..api` in a package; other names are absolute. */
function resolveModule(module: string, folder: readonly string[]): string {
  const dots = /^\.*/.exec(module)?.[0].length ?? 0;
  if (dots === 0) return module;
  const above = folder.slice(0, folder.length - dots + 1);
  return [...above, ...(module.length > dots ? [module.slice(dots)] : [])].join('.');
}
