// What the packages of an Elixir app say of its needs: a database beside it, a file of SQLite on a volume, and for Phoenix
// the host name at which it answers.
import type { Tree } from '../../tree.ts';
import type { Declaration } from '../platforms/declaration.ts';
import { readElixir } from './project.ts';

const databases = [
  ['postgrex', { name: 'db', type: 'postgres' }],
  ['myxql', { name: 'db', type: 'mysql' }],
] as const;

/** The settings that Phoenix generates read PHX_HOST, and DATABASE_URL, which the service gives, or DATABASE_PATH. */
export function elixirDeclaration(tree: Tree): Declaration | undefined {
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
