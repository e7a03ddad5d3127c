// Finds what a Rails app needs in addition to its gems: variables, assets, secrets, and a migrated database.
import type { Tree } from '../../tree.ts';
import { type Migration, serverVariables } from '../common/migrations.ts';
import { quoteShellWord, renderStep } from '../recipe.ts';
import type { Bundle } from './bundle.ts';
import type { Database } from './database.ts';

/** Folder on a volume: uploads, and SQLite databases. */
export const storage = '/app/storage';

const pipelines = [
  'sprockets',
  'sprockets-rails',
  'propshaft',
  'vite_rails',
  'shakapacker',
  'webpacker',
  'jsbundling-rails',
  'cssbundling-rails',
  'tailwindcss-rails',
  'dartsass-rails',
];

/** Builds the image's variables, which run.env overrides. */
export function buildRailsEnvironment(tree: Tree, bundle: Bundle, database: Database | undefined): string {
  const puma = tree.readFile('config/puma.rb') ?? '';
  return [
    'RAILS_ENV=production RAILS_LOG_TO_STDOUT=true RAILS_SERVE_STATIC_FILES=true PIDFILE=/tmp/server.pid',
    ...(database?.adapter === 'sqlite3' && !database.isInStorage
      ? [`DATABASE_URL=sqlite3:${storage}/production.sqlite3`]
      : []),
    ...(bundle.has('solid_queue') && puma.includes('SOLID_QUEUE_IN_PUMA') ? ['SOLID_QUEUE_IN_PUMA=true'] : []),
    ...(bundle.has('good_job') ? ['GOOD_JOB_EXECUTION_MODE=async'] : []),
  ].join(' ');
}

/** Renders the step that compiles the assets; empty for an API-only app. */
export function renderRailsAssets(
  tree: Tree,
  bundle: Bundle,
  database: Database | undefined,
  setNames: ReadonlySet<string>,
): string[] {
  const hasPipeline =
    bundle.has(...pipelines) || (!bundle.isLocked && tree.entries.some((each) => each.path.startsWith('app/assets/')));
  if (!hasPipeline) return [];
  const variables = { ...buildPlaceholders(tree), ...buildDummyValues(database) };
  const assigned = Object.entries(variables)
    .filter(([name]) => !setNames.has(name))
    .map(([name, value]) => `${name}=${quoteShellWord(value)}`);
  return renderStep(
    'Gemfile',
    'compiling the assets',
    // npm packages are already installed.
    `RUN mkdir -p tmp log storage && ${assigned.join(' ')} SKIP_YARN_INSTALL=1 SKIP_BUN_INSTALL=1 VITE_RUBY_SKIP_ASSETS_PRECOMPILE_INSTALL=true bundle exec rake assets:precompile`,
  );
}

/** Builds a worthless key, and a database that is never queried. Older versions of Rails do not have the former. */
function buildDummyValues(database: Database | undefined): Record<string, string> {
  const address =
    database === undefined || database.adapter === 'sqlite3'
      ? {}
      : { DATABASE_URL: `${database.adapter}://127.0.0.1/none` };
  return { SECRET_KEY_BASE_DUMMY: '1', SECRET_KEY_BASE: 'none', ...address };
}

const required = /\bENV\.fetch\(\s{0,9}["']([A-Z]\w{0,60})["']\s{0,9}\)(?!\s{0,9}(?:\{|do\b))/g;
const reservedNames = new Set([
  'PORT',
  'RAILS_ENV',
  'RACK_ENV',
  'PIDFILE',
  'DATABASE_URL',
  'SECRET_KEY_BASE',
  'HOME',
  'PATH',
]);
const maximumFiles = 100;

/** Compiling assets reads the configuration too, so variables that it requires get placeholder values. */
function buildPlaceholders(tree: Tree): Record<string, string> {
  const files = tree.entries
    .filter(
      (each) => each.kind === 'file' && /^config\/(?:[\w-]{1,60}\/){0,2}[\w.-]{1,60}\.(?:rb|yml)$/.test(each.path),
    )
    .filter((each) => !/^config\/environments\/(?:development|test)\.rb$/.test(each.path))
    .slice(0, maximumFiles);
  const names = files.flatMap((each) =>
    [...(tree.readFile(each.path, 64 * 1024) ?? '').matchAll(required)].map(([, name = '']) => name),
  );
  return Object.fromEntries(
    [...new Set(names)]
      .filter((name) => !reservedNames.has(name))
      .slice(0, 40)
      .map((name) => [name, choosePlaceholder(name)]),
  );
}

function choosePlaceholder(name: string): string {
  if (/REDIS/.test(name)) return 'redis://127.0.0.1:6379';
  if (/UR[LI]/.test(name)) return 'http://127.0.0.1';
  return /PORT|SIZE|COUNT|THREADS|TIMEOUT/.test(name) ? '1' : 'none';
}

/**
 * Finds what brings the database up to date. The task also fills a new database with the seeds of the app. If only those
 * fail, the second task shows that the tables are there.
 */
export function findRailsMigration(tree: Tree): Migration | undefined {
  const file = ['config/database.yml', 'db/schema.rb', 'db/structure.sql'].find((each) => tree.has(each));
  const hasRecords = file !== undefined || tree.entries.some((each) => each.path.startsWith('db/migrate/'));
  return hasRecords
    ? createRubyMigration('bundle exec rake db:prepare || bundle exec rake db:migrate', file ?? 'db/migrate')
    : undefined;
}

export function createRubyMigration(command: string, file: string): Migration {
  return { command, file, variables: serverVariables, isLenient: true };
}

/** Uploads go to the folder storage, unless the production settings use another service. */
export function hasLocalUploads(tree: Tree): boolean {
  return (
    /active_storage\.service\s{0,9}=\s{0,9}:local\b/.test(tree.readFile('config/environments/production.rb') ?? '') &&
    ['db/schema.rb', 'db/structure.sql'].some(
      (file) => tree.readFile(file)?.includes('active_storage_attachments') === true,
    )
  );
}

const secretPattern = /["']((?:[A-Z]\w{0,30}_)?(?:SESSION_SECRET|SECRET_KEY_BASE|SECRET_TOKEN|COOKIE_SECRET))["']/g;
const code = /^(?:[\w-]{1,60}\.r[bu]|config\/(?:[\w-]{1,60}\/)?[\w-]{1,60}\.(?:rb|yml))$/;
const maximumSecretFiles = 60;
const maximumNames = 10;

export function findSecretNames(tree: Tree): string[] {
  const found = tree.entries
    .filter((each) => each.kind === 'file' && code.test(each.path))
    .slice(0, maximumSecretFiles)
    .flatMap((each) =>
      [...(tree.readFile(each.path, 64 * 1024) ?? '').matchAll(secretPattern)].map(([, name = '']) => name),
    );
  return [...new Set(found)].slice(0, maximumNames);
}
