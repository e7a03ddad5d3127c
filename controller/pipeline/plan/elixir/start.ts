// Starts an Elixir app: the migrations, then Phoenix or whatever the app starts by itself.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import { declaredStart } from '../platforms/start.ts';
import { portOfFile } from '../port-literal.ts';
import type { ElixirApp, ElixirProject } from './project.ts';

const configs = ['config/runtime.exs', 'config/releases.exs', 'config/prod.exs', 'config/config.exs'];

/** Shell command, $PORT not yet expanded. */
export function startCommand(tree: Tree, project: ElixirProject, server: ElixirApp): string {
  const own = declaredStart(tree)?.command;
  // A line for a release of Mix names files that are not made here.
  return own !== undefined && /\bmix\s/.test(own)
    ? `${/\becto\.|\bmigrat/.test(own) ? '' : migrate(tree, project)}${own}`
    : `${migrate(tree, project)}exec ${serve(project, server)}`;
}

function serve({ packages }: ElixirProject, { endpoints }: ElixirApp): string {
  return packages.has('phoenix') && endpoints.length > 0 ? 'mix phx.server' : 'mix run --no-halt';
}

function migrate(tree: Tree, { packages, apps }: ElixirProject): string {
  if (!packages.has('ecto_sql') && !packages.has('phoenix_ecto')) return '';
  const has = apps.some(({ folder }) => tree.entry(posix.join(folder, 'priv/repo/migrations'))?.kind === 'directory');
  return has ? '( mix ecto.migrate ) && ' : '';
}

/** The port that is written in the code or in the settings for production, where neither asks for PORT. */
export function portOf(tree: Tree, { folder, endpoints }: ElixirApp): number | undefined {
  const config = configText(tree);
  if (/"PORT"/.test(config)) return undefined;
  if (endpoints.length > 0) return usable(/\bport:\s{0,9}(\d{4,5})\b/.exec(config)?.[1]);
  return sources(tree, folder);
}

function sources(tree: Tree, folder: string): number | undefined {
  const texts = tree.entries
    .filter(({ kind, path }) => kind === 'file' && path.startsWith(posix.join(folder, 'lib/')) && path.endsWith('.ex'))
    .slice(0, 100)
    .map(({ path }) => (tree.text(path, 64 * 1024) ?? '').replace(/^[ \t]{0,80}#.*$/gm, ''));
  if (texts.some((text) => /get_env\(\s{0,9}"PORT"|fetch_env!?\(\s{0,9}"PORT"/.test(text))) return undefined;
  return texts.map((text) => portOfFile(text)).find((port) => port !== undefined);
}

function configText(tree: Tree): string {
  return configs.map((file) => (tree.text(file, 64 * 1024) ?? '').replace(/^[ \t]{0,80}#.*$/gm, '')).join('\n');
}

function usable(text: string | undefined): number | undefined {
  const port = Number(text);
  return port >= 1024 && port <= 65_535 ? port : undefined;
}
