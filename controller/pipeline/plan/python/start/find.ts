// Finds how a Python app starts: from its Procfile, its framework, its own command, or its main file.
import { readKeys, parseToml, readText } from '../../../manifest.ts';
import type { Tree } from '../../../tree.ts';
import { quoteShellWord } from '../../recipe.ts';
import { findPortInFile } from '../../port-literal.ts';
import { findDeclaredStart } from '../../platforms/start.ts';
import { findApplication } from './application.ts';
import { findDjangoStart } from './django.ts';
import { findReflexStart } from '../reflex.ts';
import { findScreen } from './screens.ts';
import { hasImport, isScript, selectLikeliest, toPythonArguments, listPythonSources, type Source } from './sources.ts';

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
  /** The command belongs to the project, which must be installed first. */
  readonly ofProject?: true;
}

/** Finds how the app starts; undefined if there is no evidence. `names` are the requested packages. */
export function findStart(tree: Tree, names: ReadonlySet<string>): PythonStart | undefined {
  return adaptDeclaredStart(tree, names) ?? detectStart(tree, names);
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
  if (served === undefined) return drawn ?? findPlainStart(tree, sources) ?? findProjectScript(tree, sources);
  if (drawn === undefined) return findMainInstead(tree, sources, served) ?? served;
  return isBefore(drawn, served) ? drawn : combineStarts(served, drawn);
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
function findMainInstead(tree: Tree, sources: readonly Source[], served: PythonStart): PythonStart | undefined {
  if (served.framework === 'Django' || (served.weight ?? 0) > 0) return undefined;
  const main = findPlainStart(tree, sources);
  return main?.serves === true && (main.weight ?? 0) > 0 ? main : undefined;
}

/** Frameworks whose pages are often mounted into an application that serves them. */
const mounted: ReadonlySet<string> = new Set(['Gradio', 'NiceGUI', 'Dash', 'Voilà', 'Panel', 'Bokeh']);

/** Reports a second program: only one would be started, which is half of the app. */
function combineStarts(served: PythonStart, drawn: PythonStart): PythonStart {
  if (mounted.has(drawn.framework ?? '')) return served;
  return { ...served, other: drawn };
}

const mains = ['main.py', 'app.py', 'server.py', 'run.py', 'webui.py', '__main__.py'];
/** A call that runs until the app is stopped. */
const serving =
  /\.(?:run|launch|run_app|serve|serve_forever|listen|start_server|run_polling|infinity_polling|run_until_disconnected|mainloop)\(|uvicorn\.run\(|\brun_app\(|http\.server/;

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

/** Finds a file that python runs: preferably one that serves, otherwise one with a typical name. */
function findPlainStart(tree: Tree, sources: readonly Source[]): PythonStart | undefined {
  const best = selectLikeliest(sources, (source) => {
    const top = !source.path.includes('/');
    const serves = serving.test(source.text);
    const script = isScript(source.text);
    if (!(top && (script || mains.includes(source.path))) && !(serves && script)) return undefined;
    return { score: (serves ? 25 : 0) + (script ? 5 : 0), found: true };
  });
  if (best === undefined) return undefined;
  const words = toPythonArguments(tree, best.source);
  return {
    command: `exec python ${words.map(quoteShellWord).join(' ')}`,
    because: `${best.source.path} is started by python.`,
    needs: [],
    port: findPortInFile(best.source.text),
    weight: best.source.weight,
    bot: bots.find((library) => hasImport(best.source.text, library)),
    serves: serving.test(best.source.text),
  };
}

/** Finds a command in [project.scripts]. */
function findProjectScript(tree: Tree, sources: readonly Source[]): PythonStart | undefined {
  const parsed = parseToml(tree.readFile('pyproject.toml'));
  const table =
    readKeys(parsed, 'project', 'scripts').length > 0 ? ['project', 'scripts'] : ['tool', 'poetry', 'scripts'];
  const scripts = readKeys(parsed, ...table).filter((each) => /^[\w.-]{1,80}$/.test(each));
  const name = chooseServerScript(
    scripts,
    readText(parsed, 'project', 'name') ?? readText(parsed, 'tool', 'poetry', 'name'),
  );
  if (name === undefined) return undefined;
  return {
    command: `exec ${name}`,
    because: `pyproject.toml has the command ${name} of the project itself.`,
    needs: [],
    environment: { HOST: '0.0.0.0' },
    port: findPortInFile(readModuleText(sources, readText(parsed, ...table, name) ?? '')),
    ofProject: true,
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

/** Reads the source of the module in `module.name:function`. */
function readModuleText(sources: readonly Source[], entry: string): string | undefined {
  const path = (entry.split(':')[0] ?? '').replaceAll('.', '/');
  const files = [`${path}.py`, `src/${path}.py`, `${path}/__init__.py`];
  return sources.find((each) => files.includes(each.path))?.text;
}
