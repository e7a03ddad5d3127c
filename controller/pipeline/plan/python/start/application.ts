// Starts frameworks whose application is a module variable: FastAPI, Starlette, Litestar, Quart, Sanic, Flask.
import { posix } from 'node:path';
import { quoteShellWord } from '../../recipe.ts';
import {
  hasCall,
  listImportedRoots,
  type PythonCall,
  type PythonFunction,
  type PythonModule,
} from '../../syntax/python.ts';
import type { PythonStart } from './find.ts';
import { selectLikeliest, type Source } from './sources.ts';

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
    const candidates = sources.filter(({ text }) => text.includes(framework));
    const makers = listMakers(candidates, framework);
    const best = selectLikeliest(sources, (source) => {
      if (!candidates.includes(source) && ![...makers].some((maker) => source.text.includes(maker))) return undefined;
      const target = findTarget(source.module, framework, makers);
      if (target === undefined) return undefined;
      // A sub-application or an experiment uses fewer of these.
      const used = hasCall(source.module, /\.(?:include_router|register_blueprint|mount|add_middleware|add_url_rule)$/);
      const score = (target.factory ? 0 : 12) + (used ? 6 : 0) + (source.module.isScript ? 4 : 0);
      return { score, found: target };
    });
    if (best !== undefined) return serve({ framework, server, source: best.source, sources, ...best.found, names });
  }
  return undefined;
}

/** Names of the functions that create and return an application of the framework. */
function listMakers(sources: readonly Source[], framework: string): ReadonlySet<string> {
  return new Set(
    sources.flatMap(({ module }) =>
      module.functions.filter((each) => isMaker(each, module, framework)).map(({ name }) => name),
    ),
  );
}

function isMaker(
  { returnsValue, calls, annotation }: PythonFunction,
  module: PythonModule,
  framework: string,
): boolean {
  return (
    returnsValue &&
    (annotation?.includes(framework) === true || calls.some((call) => isFrameworkCall(call, module, framework)))
  );
}

/** Returns whether it calls the framework's class, under any name that the module has for it, or a subclass. */
function isFrameworkCall({ callee, isDecorator }: PythonCall, module: PythonModule, framework: string): boolean {
  if (isDecorator) return false;
  const last = callee.split('.').at(-1);
  if (last === framework) return true;
  const isAlias = module.imports.some(({ names }) => names.some(({ name, as }) => name === framework && as === callee));
  const bases = module.classes.get(callee) ?? [];
  return isAlias || bases.some((base) => base.split('.').at(-1) === framework);
}

const usualFactories = ['create_app', 'make_app', 'build_app', 'get_app', 'create_application', 'init_app'];

/**
 * Finds the variable that holds the application, or the function that creates it and needs no argument. Variables of a
 * function do not exist for a server that imports the module. An application created in the module takes precedence.
 */
function findTarget(module: PythonModule, framework: string, makers: ReadonlySet<string>): Target | undefined {
  const variables = module.assignments.flatMap(({ name, value, annotation }) =>
    value.kind === 'call' ? [{ name, call: value.call, annotation }] : [],
  );
  const instances = variables.filter(
    ({ call, annotation }) => isFrameworkCall(call, module, framework) || annotation?.split('.').at(-1) === framework,
  );
  const built = variables.filter(({ call }) => makers.has(call.callee.split('.').at(-1) ?? ''));
  const variable = selectOuter(instances, module) ?? built[0];
  if (variable !== undefined) return { target: variable.name, factory: false };
  const factories = module.functions.filter((each) => each.isCallableBare && isMaker(each, module, framework));
  const factory = factories.find(({ name }) => usualFactories.includes(name)) ?? factories[0];
  return factory === undefined ? undefined : { target: factory.name, factory: true };
}

/** Of several applications, the first that is not mounted into another. */
function selectOuter<T extends { readonly name: string }>(
  instances: readonly T[],
  { calls }: PythonModule,
): T | undefined {
  const mounted = new Set(
    calls
      .filter(({ callee }) => /\.mount$/.test(callee))
      .flatMap(({ args }) => args.flatMap(({ value }) => (value.kind === 'name' ? [value.name] : []))),
  );
  return instances.find(({ name }) => !mounted.has(name)) ?? instances[0];
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
    file: source.path,
    needs: [...needs, ...sockets],
    weight: source.weight,
    known: names.has(framework.toLowerCase()),
    certainty: names.has(framework.toLowerCase()) ? 'likely' : 'guessed',
    mounts: hasCall(source.module, /(?:^|\.)(?:mount_gradio_app|run_with|WSGIMiddleware)$/),
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
  const imported = listImportedRoots(source.module);
  if (!isPackage && listNeighbours(source, sources).some((each) => imported.has(each))) return { folder, module: name };
  const segments = folder.split('/');
  const root = countRootSegments(segments, imported);
  return {
    folder: segments.slice(0, root).join('/') || '.',
    module: [...segments.slice(root), ...(isPackage ? [] : [name])].join('.'),
  };
}

/** Counts the folders above the package that the modules import: `backend/shop` imports `shop`. */
function countRootSegments(segments: readonly string[], imported: ReadonlySet<string>): number {
  const importedAt = segments.findIndex((segment, index) => index > 0 && imported.has(segment));
  if (importedAt !== -1 && !imported.has(segments[0] ?? '')) return importedAt;
  return segments[0] === 'src' && !imported.has('src') ? 1 : 0;
}

/** Lists the modules and packages next to the file. */
function listNeighbours(source: Source, sources: readonly Source[]): string[] {
  const folder = posix.dirname(source.path);
  return sources
    .filter((each) => each.path !== source.path && each.path.startsWith(`${folder}/`))
    .map((each) => posix.basename(each.path.slice(folder.length + 1).split('/')[0] ?? '', '.py'));
}
