// What the packages of an Elixir app say that it is given: a database beside it or a file of SQLite, and a key for sessions.
import { askedSecret } from '../../../../crds/generated-secret.ts';
import type { Tree } from '../../tree.ts';
import type { Declaration, DeclaredVariable } from '../platforms/declaration.ts';
import { readElixir } from './project.ts';

const databases = [
  ['postgrex', { name: 'db', type: 'postgres' }],
  ['myxql', { name: 'db', type: 'mysql' }],
] as const;

/** The settings that Phoenix generates read DATABASE_URL, which the service gives, or DATABASE_PATH. */
export function elixirDatabase(tree: Tree): Declaration | undefined {
  const packages = readElixir(tree)?.packages;
  if (packages === undefined) return undefined;
  const data = dataOf(packages);
  const env = [...keysOf(packages), ...(data.env ?? [])];
  return env.length === 0 && data.services === undefined ? undefined : { file: 'mix.exs', ...data, env };
}

function dataOf(packages: ReadonlySet<string>): Pick<Declaration, 'services' | 'env' | 'volumes'> {
  const service = databases.find(([name]) => packages.has(name))?.[1];
  if (service !== undefined) return { services: [service] };
  return packages.has('ecto_sqlite3')
    ? { env: [{ name: 'DATABASE_PATH', value: '/data/app.db' }], volumes: [{ name: 'data', path: '/data' }] }
    : {};
}

function keysOf(packages: ReadonlySet<string>): DeclaredVariable[] {
  return packages.has('phoenix') ? [{ name: 'SECRET_KEY_BASE', value: askedSecret }] : [];
}
