// Detects a Ruby app's database from Rails' config/database.yml (or its sample), or else from its gems.
import { readField, readKeys, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { parseYaml } from '../platforms/declaration.ts';
import type { Bundle } from './bundle.ts';

export type Adapter = 'postgresql' | 'mysql2' | 'trilogy' | 'sqlite3';

export interface Database {
  readonly adapter: Adapter;
  /** The file that declares it. */
  readonly file: string;
  /** SQLite stores it in the folder storage. */
  readonly isInStorage: boolean;
  /** Variables that the database settings read, with the field that each one sets. */
  readonly variables: readonly { readonly name: string; readonly field: DatabaseField }[];
  /** Databases other than the primary one: cache, queue, cable. */
  readonly others: readonly string[];
}

export type DatabaseField = 'url' | 'host' | 'port' | 'user' | 'password' | 'database';

/** If there are several, the first in this list wins. */
const adapters: readonly (readonly [Adapter, RegExp])[] = [
  ['postgresql', /^\s{0,40}adapter:[^\n]{0,80}\b(?:postgresql|postgis)\b/m],
  ['mysql2', /^\s{0,40}adapter:[^\n]{0,80}\bmysql2?\b/m],
  ['trilogy', /^\s{0,40}adapter:[^\n]{0,80}\btrilogy\b/m],
  ['sqlite3', /^\s{0,40}adapter:[^\n]{0,80}\bsqlite3\b/m],
];
const gems: readonly (readonly [Adapter, readonly string[]])[] = [
  ['postgresql', ['pg', 'sequel_pg']],
  ['mysql2', ['mysql2']],
  ['trilogy', ['trilogy']],
  ['sqlite3', ['sqlite3']],
];
const settings = 'config/database.yml';
const samples = ['example', 'sample', 'default', 'dist', 'template'].map((end) => `${settings}.${end}`);
const environmentPattern =
  /^\s{0,40}(url|host|port|username|user|password|database):[^\n]{0,200}?\bENV(?:\.fetch\(|\[)\s{0,9}["']([A-Z]\w{0,60})["']/gm;

/** Finds a sample of the settings, if the file itself is not in the repository. */
export function findSampleSettings(tree: Tree): string | undefined {
  return tree.has(settings) ? undefined : samples.find((each) => tree.has(each));
}

export function findDatabase(tree: Tree, bundle: Bundle): Database | undefined {
  const file = tree.has(settings) ? settings : findSampleSettings(tree);
  const yaml = (file === undefined ? '' : (tree.readFile(file, 64 * 1024) ?? '')).replace(/^\s{0,40}#.*$/gm, '');
  const production = extractProduction(yaml);
  const named = adapters.find(([, pattern]) => pattern.test(production))?.[0];
  const adapter = named ?? gems.find(([, names]) => bundle.has(...names))?.[0];
  if (adapter === undefined) return undefined;
  return {
    adapter,
    file: named === undefined ? 'Gemfile' : (file ?? settings),
    isInStorage: /^\s{0,40}database:\s{0,9}["']?storage\//m.test(production),
    variables: listVariables(production),
    others: listOtherDatabases(yaml),
  };
}

/** Extracts the production section, and the sections that it references. */
function extractProduction(yaml: string): string {
  const sections = yaml.split(/^(?=[A-Za-z])/m);
  const production = sections.find((each) => each.startsWith('production:')) ?? '';
  const aliases = [...production.matchAll(/\*(\w{1,60})/g)].map(([, name = '']) => name);
  const shared = sections.filter((each) => each !== production && aliases.some((name) => each.includes(`&${name}`)));
  return [production, ...shared].join('\n');
}

function listVariables(production: string): Database['variables'] {
  const found = [...production.matchAll(environmentPattern)].map(([, key = '', name = '']) => ({
    name,
    field: (key === 'username' ? 'user' : key) as DatabaseField,
  }));
  return found.filter(({ name }, index) => found.findIndex((each) => each.name === name) === index);
}

/** Rails reads CACHE_DATABASE_URL for a database named cache. */
function listOtherDatabases(yaml: string): string[] {
  const plain = yaml.replace(/<%=[^\n]{0,300}?%>/g, 'erb').replace(/^[ \t]{0,40}<%.{0,300}$/gm, '');
  const parsed = parseYaml(plain);
  const names = readKeys(parsed, 'production');
  if (names.some((name) => typeof readField(parsed, 'production', name) !== 'object')) return [];
  return names.filter(
    (name) =>
      name !== 'primary' &&
      /^[a-z_]{1,30}$/.test(name) &&
      readText(parsed, 'production', name, 'adapter') !== 'sqlite3' &&
      readField(parsed, 'production', name, 'replica') !== true,
  );
}
