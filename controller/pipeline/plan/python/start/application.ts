// Starts frameworks whose application is a module variable: FastAPI, Starlette, Litestar, Quart, Sanic, Flask.
import { posix } from 'node:path';
import { quoteShellWord } from '../../recipe.ts';
import type { PythonStart } from './find.ts';
import { isScript, selectLikeliest, type Source } from './sources.ts';

const frameworks = [
  ['FastAPI', 'uvicorn'],
  ['Starlette', 'uvicorn'],
  ['Litestar', 'uvicorn'],
  ['Quart', 'uvicorn'],
  ['Sanic', 'sanic'],
  ['Flask', 'gunicorn'],
] as const;

type Server = (typeof frameworks)[number][1];

interface Target {
  readonly target: string;
  readonly factory: boolean;
}

export function findApplication(sources: readonly Source[], names: ReadonlySet<string>): PythonStart | undefined {
  for (const [framework, server] of frameworks) {
    const makers = listMakers(sources, framework);
    const best = selectLikeliest(sources, ({ text }) => {
      const target = findTarget(text, framework, makers);
      if (target === undefined) return undefined;
      // A sub-application or an experiment uses fewer of these.
      const used = /\.(?:include_router|register_blueprint|mount|add_middleware|add_url_rule)\(/.test(text) ? 6 : 0;
      return { score: (target.factory ? 0 : 12) + used + (isScript(text) ? 4 : 0), found: target };
    });
    if (best !== undefined) return serve({ framework, server, source: best.source, sources, ...best.found, names });
  }
  return undefined;
}

/** Lists the functions that create an application of the framework. */
function listMakers(sources: readonly Source[], framework: string): ReadonlySet<string> {
  return new Set(
    sources
      .filter(({ text }) => text.includes(`${framework}(`))
      .flatMap(({ text }) => [...text.matchAll(/^(?:async )?def ([a-z_]{0,40}app[a-z_]{0,40})\(/gm)])
      .map((match) => match[1] ?? ''),
  );
}

/**
 * Finds the variable that holds the application, or the function that creates it. An application created in the module
 * takes precedence.
 */
function findTarget(text: string, framework: string, makers: ReadonlySet<string>): Target | undefined {
  const instanceName = findAssignedName(text, String.raw`(?:[a-z]{1,20}\.)?${framework}`);
  if (instanceName !== undefined && text.includes(framework)) return { target: instanceName, factory: false };
  const builtName = [...makers]
    .map((maker) => findAssignedName(text, String.raw`(?:[a-z_]{1,30}\.)?${maker}`))
    .find(Boolean);
  if (builtName !== undefined) return { target: builtName, factory: false };
  if (!text.includes(`${framework}(`)) return undefined;
  const maker = /^def (create_app|make_app|build_app|get_app|create_application|init_app)\(/m.exec(text)?.[1];
  return maker === undefined ? undefined : { target: maker, factory: true };
}

/** Returns the module variable that this call's result is assigned to. */
function findAssignedName(text: string, call: string): string | undefined {
  return new RegExp(String.raw`^([A-Za-z_]\w{0,60})[ \t]{0,9}(?::[^=\n]{0,80})?=[ \t]{0,9}${call}\(`, 'm').exec(
    text,
  )?.[1];
}

interface ServedApplication extends Target {
  readonly framework: string;
  readonly server: Server;
  readonly source: Source;
  readonly sources: readonly Source[];
  readonly names: ReadonlySet<string>;
}

function serve({ framework, server, source, sources, target, factory, names }: ServedApplication): PythonStart {
  const place = locateModule(source, sources);
  const because = `${source.path} ${factory ? `makes a ${framework} application in ${target}()` : `holds the ${framework} application "${target}"`}.`;
  const needs = names.has(server) ? [] : [server];
  // Without a websocket library, uvicorn rejects the websockets that many of these apps use.
  const sockets =
    server === 'uvicorn' && !names.has('websockets') && /websocket/i.test(source.text) ? ['websockets'] : [];
  return {
    command: commands[server]({ ...place, target, factory }),
    framework,
    because,
    needs: [...needs, ...sockets],
    weight: source.weight,
    known: names.has(framework.toLowerCase()),
    mounts: /mount_gradio_app|\brun_with\(|WSGIMiddleware/.test(source.text),
  };
}

interface ModuleLocation {
  readonly folder: string;
  readonly module: string;
}

const commands: Readonly<Record<Server, (place: ModuleLocation & Target) => string>> = {
  uvicorn: ({ folder, module, target, factory }) =>
    `exec uvicorn --host 0.0.0.0 --port $PORT${folder === '.' ? '' : ` --app-dir ${quoteShellWord(folder)}`}${factory ? ' --factory' : ''} ${quoteShellWord(`${module}:${target}`)}`,
  gunicorn: ({ folder, module, target, factory }) =>
    `exec gunicorn --bind 0.0.0.0:$PORT --threads 8${folder === '.' ? '' : ` --chdir ${quoteShellWord(folder)}`} ${quoteShellWord(`${module}:${target}${factory ? '()' : ''}`)}`,
  sanic: ({ folder, module, target, factory }) =>
    `${folder === '.' ? '' : `cd ${quoteShellWord(folder)} && `}exec sanic ${quoteShellWord(`${module}:${target}`)}${factory ? ' --factory' : ''} --host=0.0.0.0 --port=$PORT --single-process`,
};

/**
 * Returns a file's module name, and the folder to import it from: its own folder if it imports its neighbours by plain
 * names.
 */
export function locateModule(source: Source, sources: readonly Source[]): ModuleLocation {
  const folder = posix.dirname(source.path);
  const isPackage = posix.basename(source.path) === '__init__.py';
  const name = posix.basename(source.path, '.py');
  if (folder === '.') return { folder, module: name };
  const imported = new Set(
    [...source.text.matchAll(/^(?:from|import)[ \t]+([A-Za-z_]\w{0,60})/gm)].map((match) => match[1]),
  );
  if (!isPackage && listNeighbours(source, sources).some((each) => imported.has(each))) return { folder, module: name };
  const segments = folder.split('/');
  const root = countRootSegments(segments, imported);
  return {
    folder: segments.slice(0, root).join('/') || '.',
    module: [...segments.slice(root), ...(isPackage ? [] : [name])].join('.'),
  };
}

/** Counts the folders above the package that the modules import: `backend/shop` imports `shop`. */
function countRootSegments(segments: readonly string[], imported: ReadonlySet<string | undefined>): number {
  const importedAt = segments.findIndex((segment, index) => index > 0 && imported.has(segment));
  if (importedAt !== -1 && !imported.has(segments[0])) return importedAt;
  return segments[0] === 'src' && !imported.has('src') ? 1 : 0;
}

/** Lists the modules and packages next to the file. */
function listNeighbours(source: Source, sources: readonly Source[]): string[] {
  const folder = posix.dirname(source.path);
  return sources
    .filter((each) => each.path !== source.path && each.path.startsWith(`${folder}/`))
    .map((each) => posix.basename(each.path.slice(folder.length + 1).split('/')[0] ?? '', '.py'));
}
