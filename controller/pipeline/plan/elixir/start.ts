// Starts an Elixir app, and adds the settings and the database that Phoenix needs.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import { quoteShellWord, renderStep } from '../recipe.ts';
import type { Declaration } from '../platforms/declaration.ts';
import { findDeclaredStart } from '../platforms/start.ts';
import { findPortInFile } from '../port-literal.ts';
import { type ElixirApp, type ElixirProject, readElixir } from './project.ts';

const configs = ['config/runtime.exs', 'config/releases.exs', 'config/prod.exs', 'config/config.exs'];

/** Returns a shell command, with $PORT not yet expanded. */
export function buildStartCommand(tree: Tree, project: ElixirProject, server: ElixirApp): string {
  const command = findDeclaredStart(tree)?.command;
  // A command for a Mix release refers to files that this plan does not build.
  return command !== undefined && /\bmix\s/.test(command)
    ? `${/\becto\.|\bmigrat/.test(command) ? '' : formatMigration(tree, project)}${command}`
    : `${formatMigration(tree, project)}exec ${serve(project, server)}`;
}

function serve({ packages }: ElixirProject, { endpoints }: ElixirApp): string {
  return packages.has('phoenix') && endpoints.length > 0 ? 'mix phx.server' : 'mix run --no-halt';
}

function formatMigration(tree: Tree, { packages, apps }: ElixirProject): string {
  if (!packages.has('ecto_sql') && !packages.has('phoenix_ecto')) return '';
  const has = apps.some(
    ({ folder }) => tree.getEntry(posix.join(folder, 'priv/repo/migrations'))?.kind === 'directory',
  );
  return has ? '( mix ecto.migrate ) && ' : '';
}

/** Finds the port in the code or the production settings, if neither reads PORT. */
export function findAppPort(tree: Tree, { folder, endpoints }: ElixirApp): number | undefined {
  const config = readConfigText(tree);
  if (/"PORT"/.test(config)) return undefined;
  if (endpoints.length > 0) return parseUsablePort(/\bport:\s{0,9}(\d{4,5})\b/.exec(config)?.[1]);
  return findPortInSources(tree, folder);
}

function findPortInSources(tree: Tree, folder: string): number | undefined {
  const texts = tree.entries
    .filter(({ kind, path }) => kind === 'file' && path.startsWith(posix.join(folder, 'lib/')) && path.endsWith('.ex'))
    .slice(0, 100)
    .map(({ path }) => (tree.readFile(path, 64 * 1024) ?? '').replace(/^[ \t]{0,80}#.*$/gm, ''));
  if (texts.some((text) => /get_env\(\s{0,9}"PORT"|fetch_env!?\(\s{0,9}"PORT"/.test(text))) return undefined;
  return texts.map((text) => findPortInFile(text)).find((port) => port !== undefined);
}

function readConfigText(tree: Tree): string {
  return configs.map((file) => (tree.readFile(file, 64 * 1024) ?? '').replace(/^[ \t]{0,80}#.*$/gm, '')).join('\n');
}

function parseUsablePort(text: string | undefined): number | undefined {
  const port = Number(text);
  return port >= 1024 && port <= 65_535 ? port : undefined;
}

const runtime = 'config/runtime.exs';
/** Only Mix releases read this file. */
const ofReleases = 'config/releases.exs';
const settings = ['config/config.exs', 'config/prod.exs', runtime, ofReleases];

/**
 * Allows websockets from the app's own pages, unless the author's settings decide. Phoenix would compare the origin
 * with the host name in the author's settings and reject every websocket: the app's real name is unknown while its
 * image is built.
 */
export function renderConfigLines(tree: Tree, project: ElixirProject): string[] {
  const copied = !tree.has(runtime) && tree.has(ofReleases);
  const text = hasOriginCheck(tree) ? undefined : formatOrigins(project, !tree.has(runtime) && !copied);
  const commands = [
    ...(copied ? [`cp ${ofReleases} ${runtime}`] : []),
    ...(text === undefined ? [] : [`mkdir -p config && printf '%b' ${quoteShellWord(text)} >> ${runtime}`]),
  ];
  return commands.length === 0
    ? []
    : renderStep(runtime, 'adding the settings of this platform', `RUN ${commands.join(' && ')}`);
}

function hasOriginCheck(tree: Tree): boolean {
  return settings.some((file) => /^[^#\n]{0,200}\bcheck_origin:/m.test(tree.readFile(file, 64 * 1024) ?? ''));
}

/** Formats the origins, with line breaks escaped for printf. */
function formatOrigins({ apps }: ElixirProject, isNew: boolean): string | undefined {
  const lines = apps.flatMap(({ name, endpoints }) =>
    endpoints.map(
      (module) => String.raw`  config :${name}, ${module}, check_origin: ["//" <> System.get_env("PHX_HOST")]\n`,
    ),
  );
  if (lines.length === 0) return undefined;
  const condition = String.raw`if config_env() == :prod and System.get_env("PHX_HOST", "") != "" do\n`;
  return `${isNew ? String.raw`import Config\n` : String.raw`\n`}${condition}${lines.join('')}end${String.raw`\n`}`;
}

const databases = [
  ['postgrex', { name: 'db', type: 'postgres' }],
  ['myxql', { name: 'db', type: 'mysql' }],
] as const;

/** The settings that Phoenix generates read PHX_HOST, and DATABASE_URL (set by the service) or DATABASE_PATH. */
export function declareElixirSettings(tree: Tree): Declaration | undefined {
  const packages = readElixir(tree)?.packages;
  if (packages === undefined) return undefined;
  const service = databases.find(([name]) => packages.has(name))?.[1];
  const isFile = service === undefined && packages.has('ecto_sqlite3');
  return {
    file: 'mix.exs',
    ...(service === undefined ? {} : { services: [service] }),
    ...(isFile ? { volumes: [{ name: 'data', path: '/data' }] } : {}),
    env: [
      ...(packages.has('phoenix') ? [{ name: 'PHX_HOST', value: '${{app.host}}' }] : []),
      ...(isFile ? [{ name: 'DATABASE_PATH', value: '/data/app.db' }] : []),
    ],
  };
}
