// Reads what mix.exs says of a project of Elixir, or of an umbrella of several, and what in it answers HTTP.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';

export interface ElixirProject {
  /** Text of mix.exs at the top. */
  readonly mix: string;
  /** Folders of its apps: "." alone where it is no umbrella. */
  readonly apps: readonly ElixirApp[];
  readonly isUmbrella: boolean;
  /** Names of the packages of all apps. */
  readonly packages: ReadonlySet<string>;
  /** Some of them come from a registry or another repository, and not from folders of this one. */
  readonly isFetching: boolean;
}

export interface ElixirApp {
  readonly folder: string;
  /** Name of the OTP application. */
  readonly name: string;
  /** Starts processes of its own (`mod:`). */
  readonly isStarted: boolean;
  /** Modules that are endpoints of Phoenix. */
  readonly endpoints: readonly string[];
  /** Starts a server of HTTP: that of Phoenix, or another. */
  readonly isServer: boolean;
}

const maximumSources = 400;
const sourceBytes = 128 * 1024;
/** What starts a server, in the code of an app. */
const servers =
  /\b(?:Plug\.Cowboy|Plug\.Adapters\.Cowboy2?|Bandit|ThousandIsland|Ace\.HTTP\.Service)\b\s{0,9}(?:,|\.(?:http|child_spec|start_link)\b)|:cowboy\.start_(?:clear|http)|:inets\.start\(\s{0,9}:httpd|:elli\b|:mochiweb_http|:gen_tcp\.listen|:socket\.listen/;
const development = /\bonly:\s{0,9}(?::(?:dev|test)\b|\[\s{0,9}:(?:dev|test)(?:,\s{0,9}:(?:dev|test))?\s{0,9}\])/;
const endpoint = /^\s{0,9}use Phoenix\.Endpoint\b/m;

/** Undefined where there is no mix.exs, or it is none of Mix. */
export function readElixir(tree: Tree): ElixirProject | undefined {
  const mix = removeComments(tree.text('mix.exs') ?? '');
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
  return removeComments(tree.text(posix.join(folder, 'mix.exs')) ?? '');
}

/** `{:phoenix, "~> 1.8"}` and `{:shared, path: "…"}`; not those that are only for development or tests. */
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
  // A package that is published brings its server to others, unless it has pages of its own.
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
    .map(({ path }) => removeComments(tree.text(path, sourceBytes) ?? ''));
}

/** Comments and documentation show code that is not run. */
export function removeComments(text: string): string {
  return text
    .replaceAll('\r', '')
    .replace(/@(?:module|type)?doc\s{1,9}(?:~[sS])?"""[\s\S]{0,40000}?\n\s{0,20}"""/g, '')
    .replace(/^[ \t]{0,80}#.*$/gm, '');
}
