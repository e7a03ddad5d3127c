// Finds what a Rust app needs of its database: a server, migrations, and queries that are checked while it is compiled.
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { Tree } from '../../tree.ts';
import { warnAboutCompiledMigrations } from '../common/migrations.ts';
import type { Declaration } from '../platforms/declaration.ts';
import type { PlanInput, Problem } from '../recipe.ts';
import type { RustFile } from './program.ts';

const sources = /^(?:[\w-]{1,60}\/){0,4}(?:src|crates|bin)\/(?:[\w-]{1,60}\/){0,6}[\w-]{1,80}\.rs$/;
const maximumSources = 400;
const checkedMacro = /^(?:sqlx\.)?query(?:_as|_scalar|_file|_file_as|_file_scalar)?(?:_unchecked)?$/;
const checkedQuery = /\b(?:sqlx::)?query(?:_as|_scalar|_file|_file_as|_file_scalar)?(?:_unchecked)?!\s{0,3}[([{]/m;

function listSources(tree: Tree): { path: string; text: string }[] {
  return tree.entries
    .filter(({ kind, path }) => kind === 'file' && sources.test(path))
    .slice(0, maximumSources)
    .map(({ path }) => ({ path, text: (tree.readFile(path, 256 * 1024) ?? '').replaceAll(/\/\/[^\n]*/g, '') }));
}

/** SQLx checks queries against a database, or against what `cargo sqlx prepare` wrote of it. */
export function detectUncheckedQueries(
  tree: Tree,
  { build }: PlanInput,
  files: readonly RustFile[],
): Problem | undefined {
  if (tree.has('sqlx-data.json') || hasPreparedQueries(tree)) return undefined;
  if ([...build.args, ...build.env].some(({ name }) => name === 'DATABASE_URL')) return undefined;
  const file = files.find(({ facts: { macros, uses } }) => {
    const queries = macros.filter((name) => checkedMacro.test(name));
    return queries.some((name) => name.startsWith('sqlx.') || uses.some((use) => /^sqlx(?:\.|$)/.test(use)));
  });
  if (file === undefined) return undefined;
  const { query, line } = locateQuery(tree, file.path);
  return {
    problem: {
      rule: 'plan/database-in-build',
      severity: 'error',
      file: file.path,
      ...(line === undefined ? {} : { line }),
      message: `SQLx checks this query (${query}) against a database while it is compiled, and none runs while an image is built.`,
      fix: 'Run cargo sqlx prepare (with --workspace in a workspace) where the database of your development runs, and commit the folder .sqlx.',
    },
  };
}

function locateQuery(tree: Tree, path: string): { query: string; line?: number } {
  const text = (tree.readFile(path, 256 * 1024) ?? '').replaceAll(/\/\/[^\n]*/g, '');
  const match = checkedQuery.exec(text);
  if (match === null) return { query: 'query!' };
  const line = text.slice(0, match.index + match[0].length).split('\n').length;
  return { query: match[0].replace(/\s*[([{]$/, ''), line };
}

function hasPreparedQueries(tree: Tree): boolean {
  return tree.entries.some(({ path }) => /(?:^|\/)\.sqlx\/query-[0-9a-f]+\.json$/.test(path));
}

function listManifests(tree: Tree): string[] {
  return tree.entries
    .filter(({ kind, path }) => kind === 'file' && /^(?:[\w-]{1,60}\/){0,2}Cargo\.toml$/.test(path))
    .slice(0, 40)
    .map(({ path }) => tree.readFile(path) ?? '');
}

/** The features of the crates that reach a database. */
const servers = [
  [
    /^(?:sqlx|diesel|diesel-async|sea-orm|deadpool-diesel)\b[\s\S]{0,400}?"(?:sqlx-)?(?:postgres|postgresql)"/m,
    'postgres',
  ],
  [/^(?:tokio-postgres|deadpool-postgres)\b/m, 'postgres'],
  [/^(?:sqlx|diesel|diesel-async|sea-orm)\b[\s\S]{0,400}?"(?:sqlx-)?mysql"/m, 'mysql'],
] as const;

/** Declares the server of an app that reads its address from DATABASE_URL, which the service sets. */
export function declareRustDatabase(tree: Tree): Declaration | undefined {
  if (!tree.has('Cargo.toml')) return undefined;
  const manifests = listManifests(tree);
  const type = servers.find(([pattern]) => manifests.some((text) => pattern.test(text)))?.[1];
  const isFile = manifests.some((text) => /^(?:sqlx|diesel|sea-orm)\b[\s\S]{0,400}?"(?:sqlx-)?sqlite"/m.test(text));
  if (type === undefined || isFile) return undefined;
  const isRead = listSources(tree).some(({ text }) => /["']DATABASE_URL["']|^\s{0,20}database_url\s{0,3}:/m.test(text));
  return isRead ? { file: 'Cargo.toml', services: [{ name: 'db', type }] } : undefined;
}

export function warnAboutRustMigrations(tree: Tree): Finding[] {
  return warnAboutCompiledMigrations(tree, {
    files: /^(?:[\w-]{1,60}\/){0,2}migrations\/(?:[\w-]{1,80}\/up|[\w.-]{1,100})\.sql$/,
    sources: /\.rs$/,
    applies: /\bmigrate!|\bembed_migrations!|\brun_pending_migrations\b|\bMigrator\b|\brefinery\b/,
    fix: 'Apply the migrations when the program starts: sqlx::migrate!().run(&pool), or embed_migrations!() and run_pending_migrations() of diesel_migrations. Both compile them into the program.',
  });
}
