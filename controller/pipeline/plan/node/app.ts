// Describes the kinds of Node apps, and resolves their start script.
import { parseJson, readKeys, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { findPortInCommand } from '../port-literal.ts';
import type { Certainty } from '../recipe.ts';
import { findScriptPort } from './port.ts';
import type { NodeProject } from './project.ts';

export type NodeApp = NodeKind & {
  /** Absent: a file states it. */
  readonly certainty?: Certainty;
  /** A sentence about another reading of the files. */
  readonly otherwise?: string;
};

type NodeKind =
  | {
      readonly kind: 'files';
      readonly framework: string;
      readonly folder: string;
      readonly fallback: boolean;
      readonly because: string;
    }
  | { readonly kind: 'standalone'; readonly framework: string; readonly because: string }
  | NodeServer;

interface NodeServer {
  readonly kind: 'server';
  readonly framework?: string;
  readonly command: string;
  readonly because: string;
  /** It runs without its development packages. */
  readonly prune: boolean;
  /** Port that it listens on, regardless of $PORT. */
  readonly port?: number | undefined;
  /** A package that is replaced after the installation: here it would do nothing. */
  readonly replaced?: { readonly package: string; readonly by: string; readonly version: string };
}

const buildsFirst = /^(?:npm|pnpm|yarn|bun)(?: run)? build && /;

/**
 * If a script only calls node, starts node directly: npm would swallow its signals. Development packages are then not
 * needed.
 */
export function resolveScriptStart(
  tree: Tree,
  text: string,
  name = 'start',
): Pick<NodeServer, 'command' | 'prune' | 'port'> {
  // The image contains the build's output. Building at every start would only cost time and memory.
  const script = text.replace(buildsFirst, '');
  const file = /^node (?:-\S+ )*(?:\.\/)?([\w./-]+)/.exec(script)?.[1];
  const port = findPortInCommand(script) ?? findPortOfStartedFile(tree, file);
  if (/^node (?:[\w./=@:-]+ ?)+$/.test(script)) return { command: `exec ${script}`, prune: true, port };
  return { command: name === 'start' ? 'exec npm start' : `exec npm run ${name}`, prune: false, port };
}

/** Finds the port that a started file's code listens on. */
export function findPortOfStartedFile(tree: Tree, file: string | undefined): number | undefined {
  const path = listSourcePaths(file?.replace(/^\.\//, '') ?? '').find((each) => tree.has(each));
  return path === undefined ? undefined : findScriptPort(tree.readFile(path));
}

/** Node resolves "x" to x.js and x/index.js too, and build output in dist usually comes from src. */
function listSourcePaths(name: string): string[] {
  const built = /^(?:dist|build|out|lib)\/(?:src\/)?([\w./-]{1,100}?)(?:\.[cm]?js)?$/.exec(name)?.[1];
  const sources = built === undefined ? [] : [`src/${built}.ts`, `src/${built}.js`, `${built}.ts`];
  return name === '' ? [] : [name, `${name}.js`, `${name}/index.js`, ...sources];
}

const calls = /^(?:npm|pnpm|yarn|bun|cd)\s/;
const inFolder = /(?:--cwd|--prefix|-w|--workspace|--filter|-C|^cd)[ =](?:\.\/)?([\w@./-]{1,100})/;
const installsFirst = /^(?:yarn(?: install)?|npm (?:i|ci|install)|pnpm (?:i|install)|bun (?:i|install)) && /;

/** Resolves the command that a start script finally runs; undefined if there is no start script. */
export function resolveFinalStart(tree: Tree, scripts: Readonly<Record<string, string>>): string | undefined {
  const start = scripts['start'];
  if (start === undefined || !calls.test(start)) return start;
  const folder = inFolder.exec(start)?.[1];
  const manifest = folder === undefined ? { scripts } : parseJson(tree.readFile(`${folder}/package.json`));
  const names = readKeys(manifest, 'scripts');
  const scriptName = start
    .split(/\s+/)
    .find((word, index) => index > 0 && names.includes(word) && isOtherScript(word, folder));
  const script = scriptName === undefined ? undefined : readText(manifest, 'scripts', scriptName);
  return (script ?? start).replace(installsFirst, '');
}

/** A script that calls itself is not followed. One with the same name in another folder is a different script. */
function isOtherScript(name: string, folder: string | undefined): boolean {
  return folder !== undefined || name !== 'start';
}

const servers = ['express', 'fastify', 'koa', 'hono', '@nestjs/core', '@hapi/hapi', 'polka'];

/** Returns a server library among these packages. */
export function findServerLibrary(names: ReadonlySet<string>): string | undefined {
  return servers.find((each) => names.has(each));
}

/** Describes the evidence of a server that no script starts; undefined if there is none. */
export function describeUnstartedServer(tree: Tree, { runtime, scripts }: NodeProject): string | undefined {
  const library = findServerLibrary(runtime);
  if (library !== undefined) return `${library} is among its packages`;
  const script = Object.keys(scripts).find((name) => /(?:^|:)(?:server|api|backend)$/.test(name));
  if (script !== undefined) return `the script "${script}" starts one for its developer`;
  const isFunction = (path: string): boolean =>
    /^(?:api|netlify\/functions)\/(?:[\w[\].-]{1,80}\/){0,3}[\w[\].-]{1,80}\.(?:[cm]?[jt]s|py|go)$/.test(path);
  if (['package.json', 'requirements.txt', 'pyproject.toml'].some((file) => tree.has(`api/${file}`))) return undefined;
  const functionFile = tree.entries.find((each) => each.kind === 'file' && isFunction(each.path))?.path;
  return functionFile === undefined ? undefined : `${functionFile} is a function that another platform calls`;
}
