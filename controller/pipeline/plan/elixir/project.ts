// Reads mix.exs of an Elixir project or umbrella, and finds which of its apps serve HTTP.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';

export interface ElixirProject {
  /** Text of mix.exs at the root. */
  readonly mix: string;
  /** Folders of its apps: only "." if it is not an umbrella. */
  readonly apps: readonly ElixirApp[];
  readonly isUmbrella: boolean;
  /** Package names of all apps. */
  readonly packages: ReadonlySet<string>;
  /** Whether any package comes from a registry or another repository, rather than from this one. */
  readonly isFetching: boolean;
}

export interface ElixirApp {
  readonly folder: string;
  /** Name of the OTP application. */
  readonly name: string;
  /** It starts processes (`mod:`). */
  readonly isStarted: boolean;
  /** Modules that are Phoenix endpoints. */
  readonly endpoints: readonly string[];
  /** It starts an HTTP server: Phoenix or another. */
  readonly isServer: boolean;
}

const maximumSources = 400;
const sourceBytes = 128 * 1024;
/** Code that starts a server. */
const servers =
  /\b(?:Plug\.Cowboy|Plug\.Adapters\.Cowboy2?|Bandit|ThousandIsland|Ace\.HTTP\.Service)\b\s{0,9}(?:,|\.(?:http|child_spec|start_link)\b)|:cowboy\.start_(?:clear|http)|:inets\.start\(\s{0,9}:httpd|:elli\b|:mochiweb_http|:gen_tcp\.listen|:socket\.listen/;
const development = /\bonly:\s{0,9}(?::(?:dev|test)\b|\[\s{0,9}:(?:dev|test)(?:,\s{0,9}:(?:dev|test))?\s{0,9}\])/;
const endpoint = /^\s{0,9}use Phoenix\.Endpoint\b/m;

/** Returns undefined if there is no mix.exs, or it is not a Mix project. */
export function readElixir(tree: Tree): ElixirProject | undefined {
  const mix = removeComments(tree.readFile('mix.exs') ?? '');
  if (!/\buse Mix\.Project\b/.test(mix)) return undefined;
  const umbrella = /\bapps_path:\s{0,9}"([\w./-]{1,100})"/.exec(mix)?.[1];
  const folders = umbrella === undefined ? ['.'] : listAppFolders(tree, posix.normalize(umbrella));
  const packages = [mix, ...folders.map((folder) => readManifest(tree, folder))].flatMap(parsePackages);
  return {
    mix,
    apps: folders.map((folder) => readApp(tree, folder)),
    isUmbrella: umbrella !== undefined,
    packages: new Set(packages.map(({ name }) => name)),
    isFetching: packages.some(({ isLocal }) => !isLocal),
  };
}

function listAppFolders(tree: Tree, folder: string): string[] {
  return tree.entries
    .filter(({ kind, path }) => kind === 'file' && path.startsWith(`${folder}/`) && path.endsWith('/mix.exs'))
    .map(({ path }) => posix.dirname(path))
    .filter((each) => posix.dirname(each) === folder);
}

function readManifest(tree: Tree, folder: string): string {
  return removeComments(tree.readFile(posix.join(folder, 'mix.exs')) ?? '');
}

/** Parses `{:phoenix, "~> 1.8"}` and `{:shared, path: "…"}`, but not dependencies for development or tests only. */
function parsePackages(mix: string): { name: string; isLocal: boolean }[] {
  return [...mix.matchAll(/\{\s{0,9}:([a-z]\w{0,80}),([^{}]{0,300})\}/g)]
    .filter(([, , rest = '']) => !development.test(rest))
    .map(([, name = '', rest = '']) => ({ name, isLocal: /\b(?:path|in_umbrella):/.test(rest) }));
}

function readApp(tree: Tree, folder: string): ElixirApp {
  const mix = readManifest(tree, folder);
  const sources = readSources(tree, folder);
  const endpoints = sources.flatMap((text) =>
    endpoint.test(text) ? [/^\s{0,9}defmodule ([A-Z][\w.]{0,120}) do\b/m.exec(text)?.[1] ?? ''] : [],
  );
  // A published package exports its server for other apps, unless it has pages too.
  const isPackage = /\bpackage:\s/.test(mix) && endpoints.length === 0 && !/\breleases:\s/.test(mix);
  return {
    folder,
    name: /\bapp:\s{0,9}:(\w{1,80})/.exec(mix)?.[1] ?? posix.basename(folder),
    isStarted: /\bmod:\s{0,9}\{/.test(mix),
    endpoints: endpoints.filter((each) => each !== ''),
    isServer: !isPackage && (endpoints.length > 0 || sources.some((text) => servers.test(text))),
  };
}

function readSources(tree: Tree, folder: string): string[] {
  const below = folder === '.' ? 'lib/' : `${folder}/lib/`;
  return tree.entries
    .filter(({ kind, path }) => kind === 'file' && path.startsWith(below) && path.endsWith('.ex'))
    .slice(0, maximumSources)
    .map(({ path }) => removeComments(tree.readFile(path, sourceBytes) ?? ''));
}

/** Removes comments and documentation, which may show code that does not run. */
export function removeComments(text: string): string {
  return text
    .replaceAll('\r', '')
    .replace(/@(?:module|type)?doc\s{1,9}(?:~[sS])?"""[\s\S]{0,40000}?\n\s{0,20}"""/g, '')
    .replace(/^[ \t]{0,80}#.*$/gm, '');
}
