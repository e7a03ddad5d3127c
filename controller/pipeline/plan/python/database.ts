// Finds how a Python app brings its database up to date (Django, Flask-Migrate, Alembic), which database its Django settings
// ask for, and what those settings require while the image is built.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { isMigrating, type Migration, serverVariables, warnAboutMigrations } from '../common/migrations.ts';
import type { Declaration } from '../platforms/declaration.ts';
import { quoteShellWord } from '../recipe.ts';
import { findPackages } from './packages/find.ts';
import { findDjangoFolder, listSettingsFiles } from './start/django.ts';
import type { PythonStart } from './start/find.ts';
import { listPythonSources } from './start/sources.ts';

/** Finds what runs before the start; undefined if the start command does it itself, or there are no migrations. */
export function findPythonMigration(
  tree: Tree,
  names: ReadonlySet<string>,
  start: PythonStart | undefined,
): Migration | undefined {
  // A release command is responsible for the database itself.
  if (start === undefined || start.command.startsWith('( ') || isMigrating(start.command)) return undefined;
  return (
    findDjangoMigration(tree, start) ?? findFlaskMigration(tree, names, start) ?? findAlembicMigration(tree, names)
  );
}

function findDjangoMigration(tree: Tree, { framework }: PythonStart): Migration | undefined {
  const folder = findDjangoFolder(tree);
  if (folder === undefined) return undefined;
  const below = tree.getSubtree(folder);
  const manage = below.readFile('manage.py') ?? '';
  // Flask has such a file too.
  if (framework !== 'Django' && !/django/i.test(manage)) return undefined;
  const [own, served] = [manage, readServerModule(below)].map((text) => readSettingsName(text));
  const settings =
    served === undefined || served === own || !hasModule(below, served)
      ? ''
      : `DJANGO_SETTINGS_MODULE=\${DJANGO_SETTINGS_MODULE:-${served}} `;
  return {
    command: `${enter(folder)}${settings}python manage.py migrate --noinput`,
    file: posix.join(folder, 'manage.py'),
    variables: serverVariables,
    isLenient: true,
  };
}

/** manage.py may name settings for development, where the server names others. */
function readServerModule(tree: Tree): string {
  const path = tree.entries.find(({ path: each }) => /^(?:[A-Za-z_]\w*\/){1,2}wsgi\.py$/.test(each))?.path;
  return path === undefined ? '' : (tree.readFile(path) ?? '');
}

function hasModule(tree: Tree, module: string): boolean {
  const path = module.replaceAll('.', '/');
  return tree.has(`${path}.py`) || (tree.readFile(`${path}/__init__.py`) ?? '').trim() !== '';
}

function readSettingsName(text: string): string | undefined {
  return /DJANGO_SETTINGS_MODULE["'],\s{0,9}["']([\w.]{1,100})["']/.exec(text)?.[1];
}

function enter(folder: string): string {
  return folder === '.' ? '' : `cd ${quoteShellWord(folder)} && `;
}

/** The command needs the application that a server's start command names. */
const application = /(?:^|\s)'?([A-Za-z_][\w.]{0,100}:[A-Za-z_]\w{0,60}(?:\(\))?)'?(?=\s|$)/;

function findFlaskMigration(tree: Tree, names: ReadonlySet<string>, start: PythonStart): Migration | undefined {
  const file = names.has('flask-migrate')
    ? tree.entries.find(({ path }) => /^(?:[\w-]{1,60}\/){0,2}migrations\/(?:alembic\.ini|env\.py)$/.test(path))?.path
    : undefined;
  if (file === undefined) return undefined;
  const folder = /--chdir[= ](\S{1,100})/.exec(start.command)?.[1] ?? '.';
  const target = application.exec(start.command)?.[1];
  const migrations = posix.relative(folder, posix.dirname(file));
  const directory = migrations === 'migrations' ? '' : ` --directory ${quoteShellWord(migrations)}`;
  // A file .flaskenv, or one with the usual name, names the application otherwise.
  const app = target === undefined ? '' : `FLASK_APP="\${FLASK_APP:-${target}}" `;
  return {
    command: `${enter(folder)}${app}flask db upgrade${directory}`,
    file,
    variables: hasFileDatabase(tree) ? [] : serverVariables,
  };
}

function findAlembicMigration(tree: Tree, names: ReadonlySet<string>): Migration | undefined {
  if (!names.has('alembic')) return undefined;
  const file = tree.entries.find(
    ({ kind, path }) =>
      kind === 'file' && /^(?:(?!tests?\/|docs?\/|examples?\/)[\w-]{1,60}\/){0,2}alembic\.ini$/.test(path),
  )?.path;
  if (file === undefined) return undefined;
  const folder = posix.dirname(file);
  const text = tree.readFile(file) ?? '';
  const location =
    /^\s{0,9}script_location\s{0,9}=\s{0,9}(\S{1,200})/m.exec(text)?.[1]?.replace(/^%\(here\)s\//, '') ?? 'alembic';
  // `package:folder` is a folder of a package.
  const below = posix.join(folder, location.replace(':', '/').replace(/^\.\//, ''));
  const hasVersions = tree.entries.some(({ path }) => path.startsWith(`${below}/versions/`) && path.endsWith('.py'));
  const isFile = /^\s{0,9}sqlalchemy\.url\s{0,9}=\s{0,9}sqlite/m.test(text) || hasFileDatabase(tree);
  return hasVersions
    ? { command: `${enter(folder)}alembic upgrade head`, file, variables: isFile ? [] : serverVariables }
    : undefined;
}

/** Code with an address of SQLite has a database in any case: that of the address, or another that a variable names. */
function hasFileDatabase(tree: Tree): boolean {
  return listPythonSources(tree).some(
    ({ path, text }) => !/(?:^|\/)(?:tests?|conftest)/.test(path) && /["']sqlite(?:\+\w{1,20})?:\/\//.test(text),
  );
}

/** Warns about a tool whose migrations are not in the repository, unless the code creates the tables itself. */
export function warnAboutPythonMigrations(
  tree: Tree,
  names: ReadonlySet<string>,
  migration: Migration | undefined,
): Finding[] {
  if (migration !== undefined || listPythonSources(tree).some(({ text }) => /\bcreate_all\b/.test(text))) return [];
  const hasVersions = tree.entries.some(({ path }) => /(?:^|\/)versions\/[^/]+\.py$/.test(path));
  const ini = tree.entries.find(({ path }) => /^(?:[\w-]{1,60}\/){0,2}alembic\.ini$/.test(path))?.path;
  if (hasVersions) return [];
  if (names.has('flask-migrate') && !tree.has('migrations/env.py'))
    return [
      warnAboutMigrations(
        'migrations',
        'Flask-Migrate is among the packages, and the repository has no migrations',
        'Run flask db init and flask db migrate, and commit the folder migrations: flask db upgrade then runs before each start.',
      ),
    ];
  return ini === undefined || !names.has('alembic')
    ? []
    : [
        warnAboutMigrations(
          ini,
          'Alembic is configured, and the repository has no versions of the schema',
          'Run alembic revision --autogenerate, and commit the file that it writes: alembic upgrade head then runs before each start.',
        ),
      ];
}

interface DjangoDatabase {
  readonly file: string;
  readonly type: 'postgres' | 'mysql';
  readonly variables: readonly { readonly name: string; readonly field: string }[];
}

const drivers: readonly (readonly [RegExp, DjangoDatabase['type']])[] = [
  [/^psycopg|^asyncpg$/, 'postgres'],
  [/^mysqlclient$|^pymysql$/, 'mysql'],
];
const fields: Readonly<Record<string, string>> = {
  NAME: 'database',
  USER: 'user',
  PASSWORD: 'password',
  HOST: 'host',
  PORT: 'port',
};
const field =
  /["'](NAME|USER|PASSWORD|HOST|PORT)["']\s{0,9}:\s{0,9}(?:str\()?(?:os\.environ(?:\.get\(|\[)|(?:os\.)?getenv\(|env(?:\.\w{1,20})?\(|config\()\s{0,9}["']([A-Z]\w{0,60})["']/g;
const address = /\bdj_database_url\.(?:config|parse)\(|\benv\.(?:db|db_url|dj_db_url)\(/;
const addressName =
  /\b(?:dj_database_url\.config\([^)]{0,200}env\s{0,3}=\s{0,3}|env\.(?:db|db_url|dj_db_url)\(\s{0,9}|dj_database_url\.parse\([^)]{0,60}?)["']([A-Z]\w{0,60})["']/;

/** Declares the server that Django's settings ask for, unless they can take a file of SQLite. */
export function declarePythonDatabase(tree: Tree): Declaration | undefined {
  const database = findDjangoDatabase(tree);
  if (database === undefined) return undefined;
  const { file, type, variables } = database;
  const usual =
    /^(?:DATABASE_URL|(?:POSTGRES|MYSQL)_(?:URL|HOST|PORT|USER|PASSWORD)|POSTGRES_DB|MYSQL_DATABASE|PG(?:HOST|PORT|USER|PASSWORD|DATABASE))$/;
  return {
    file,
    services: [{ name: 'db', type }],
    env: variables
      .filter(({ name }) => !usual.test(name))
      .map(({ name, field: part }) => ({ name, value: `\${{services.db.${part}}}` })),
  };
}

const declaration = /^\s{0,20}DATABASES\s{0,9}(?:=|\[)/m;

function findDjangoDatabase(tree: Tree): DjangoDatabase | undefined {
  if (findDjangoFolder(tree) === undefined) return undefined;
  const settings = listSettingsFiles(tree)
    .filter((path) => !/(?:test|local|dev)\w{0,20}\.py$/.test(path))
    .map((file) => ({ file, text: (tree.readFile(file) ?? '').replace(/^\s{0,80}#.*$/gm, '') }));
  if (settings.some(({ text }) => /sqlite/i.test(text))) return undefined;
  const found = settings.find(({ text }) => declaration.test(text));
  if (found === undefined) return undefined;
  const { file, text } = found;
  const start = text.search(declaration);
  const block = text.slice(start, start + 2_000);
  return readFields(file, block) ?? readAddress(tree, file, block);
}

/** Settings with a literal host ask for a server of their own. */
function readFields(file: string, block: string): DjangoDatabase | undefined {
  const engine = /["']ENGINE["']\s{0,9}:[^\n]{0,80}(postgresql|postgis|mysql)/.exec(block)?.[1];
  const variables = [...block.matchAll(field)].map(([, key = '', name = '']) => ({
    name,
    field: fields[key] ?? 'url',
  }));
  return engine !== undefined && variables.some((each) => each.field === 'host')
    ? { file, type: engine === 'mysql' ? 'mysql' : 'postgres', variables }
    : undefined;
}

function readAddress(tree: Tree, file: string, block: string): DjangoDatabase | undefined {
  if (!address.test(block)) return undefined;
  const names = [...(findPackages(tree)?.names ?? [])];
  const type = drivers.find(([pattern]) => names.some((name) => pattern.test(name)))?.[1];
  const name = addressName.exec(block)?.[1] ?? 'DATABASE_URL';
  return type === undefined ? undefined : { file, type, variables: [{ name, field: 'url' }] };
}

const required: readonly RegExp[] = [
  /\bos\.environ\[\s{0,9}["']([A-Z]\w{0,60})["']\s{0,9}\]/g,
  /\b(?:config|env(?:\.(?:str|int|bool|list|url|db|db_url|cache|cache_url))?)\(\s{0,9}["']([A-Z]\w{0,60})["']\s{0,9}(?:,\s{0,9}cast\s{0,3}=\s{0,3}\w{1,20}\s{0,9}(?:\([^()]{0,20}\))?\s{0,9})?,?\s{0,9}\)/g,
];
const maximumVariables = 40;

/**
 * Lists the variables that Django's settings require, with harmless values for commands that only read the settings and
 * connect to nothing. The address of a database is that of an empty file.
 */
export function listSettingsPlaceholders(tree: Tree): Record<string, string> {
  const texts = listSettingsFiles(tree).map((path) => (tree.readFile(path) ?? '').replace(/^\s{0,80}#.*$/gm, ''));
  const found = texts.flatMap((text) => required.flatMap((pattern) => [...text.matchAll(pattern)]));
  const unnamed = texts.some((text) => /\benv\.db\(\s{0,9}\)|\bos\.environ\[["']DATABASE_URL/.test(text));
  return Object.fromEntries([
    ...(unnamed ? [['DATABASE_URL', emptyFile] as const] : []),
    ...found.slice(0, maximumVariables).map(([call, name = '']) => [name, choosePlaceholder(name, call)] as const),
  ]);
}

const emptyFile = 'sqlite:////tmp/build.db';

/** By the call that reads it, its conversion, or its name; the first that matches. */
const values: readonly (readonly [call: RegExp, name: RegExp, value: string])[] = [
  [/^env\.bool|=\s{0,3}bool\b/, /^(?:DEBUG|USE_|ENABLE_|IS_)|_(?:DEBUG|ENABLED)$/, 'False'],
  [/^env\.int|=\s{0,3}int\b/, /(?:^|_)(?:PORT|SIZE|COUNT|TIMEOUT|AGE)$/, '1'],
  [/^env\.db/, /DATABASE_UR[LI]$/, emptyFile],
  [/^env\.cache/, /(?:REDIS|CACHE|BROKER)\w{0,20}UR[LI]/, 'redis://127.0.0.1:6379'],
  [/^env\.url/, /UR[LI]$/, 'http://127.0.0.1'],
  [/^$/, /HOSTS?$/, '127.0.0.1'],
];

function choosePlaceholder(name: string, call: string): string {
  return values.find(([calls, names]) => calls.test(call) || names.test(name))?.[2] ?? 'none';
}
