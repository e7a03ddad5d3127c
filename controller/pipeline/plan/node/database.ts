// Finds the database of a Node app from the tool that keeps its schema (Prisma, Drizzle, Knex, Sequelize, TypeORM, MikroORM),
// and how that tool brings a new database up to date.
import { posix } from 'node:path';
import semver from 'semver';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { parseJson, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { type Migration, serverVariables, warnAboutMigrations } from '../common/migrations.ts';
import type { Declaration } from '../platforms/declaration.ts';
import { parseScript, readLiteralText } from '../syntax/javascript.ts';
import { readPath, resolveValues } from '../syntax/resolve.ts';
import { readProject, type NodeProject } from './project.ts';
import { normalizeMigration, findMigrationScript } from './scripts.ts';

type Kind = 'postgres' | 'mysql' | 'sqlite';

export interface NodeDatabase {
  /** The file that declares it. */
  readonly file: string;
  /** Undefined if it is none that can run next to the app, or a condition decides. */
  readonly kind: Kind | undefined;
  /** Variables that hold its address. */
  readonly variables: readonly string[];
  /** What brings it up to date; undefined if no migrations are committed. */
  readonly command: string | undefined;
  /** How an author commits the first migration. */
  readonly create: string;
}

/** Finds the database; undefined if no tool declares one. */
export function findNodeDatabase(tree: Tree, project: NodeProject): NodeDatabase | undefined {
  const { dependencies } = project;
  const found = findPrisma(tree, project) ?? findDrizzle(tree, project) ?? findByScript(tree, project);
  return found === undefined || !isHostedOnly(dependencies) ? found : { ...found, kind: undefined };
}

/** Drivers that reach only the service of their company, over HTTP. */
const hostedDrivers = ['@neondatabase/serverless', '@planetscale/database', '@vercel/postgres', '@libsql/client'];
const serverDrivers = ['pg', 'postgres', 'mysql2', 'mysql', 'better-sqlite3', 'sqlite3'];

function isHostedOnly(dependencies: ReadonlySet<string>): boolean {
  return hostedDrivers.some((name) => dependencies.has(name)) && !serverDrivers.some((name) => dependencies.has(name));
}

const prismaConfigs = ['prisma.config.ts', 'prisma.config.mts', 'prisma.config.js', 'prisma.config.mjs'];
const prismaKinds: Readonly<Record<string, Kind>> = {
  postgresql: 'postgres',
  postgres: 'postgres',
  mysql: 'mysql',
  sqlite: 'sqlite',
};

function findPrisma(tree: Tree, project: NodeProject): NodeDatabase | undefined {
  if (!project.dependencies.has('prisma') && !project.dependencies.has('@prisma/client')) return undefined;
  const file = findPrismaSchema(tree);
  if (file === undefined) return undefined;
  const text = tree.readFile(file) ?? '';
  const source = /^\s{0,9}datasource\s{1,9}\w{1,60}\s{0,9}\{([\s\S]{0,2000}?)^\s{0,9}\}/m.exec(text)?.[1] ?? '';
  const provider = /^\s{0,20}provider\s{0,20}=\s{0,9}"(\w{1,30})"/m.exec(source)?.[1];
  const named = [...source.matchAll(/^\s{0,20}(?:url|directUrl)\s{0,20}=\s{0,9}env\("([A-Za-z_]\w{0,60})"\)/gm)];
  return {
    file,
    kind: provider === undefined ? undefined : prismaKinds[provider],
    variables: [...new Set([...named.map(([, name = '']) => name), ...listConfiguredAddresses(tree)])],
    command: project.dependencies.has('prisma') ? choosePrismaCommand(tree, project, file) : undefined,
    create: 'Add prisma to the packages: the migration runs with its command.',
  };
}

/** Since Prisma 7, the address is in a configuration next to package.json. */
function listConfiguredAddresses(tree: Tree): string[] {
  const config = prismaConfigs.find((each) => tree.has(each));
  return config === undefined ? [] : listVariables(tree.readFile(config) ?? '').filter(isAddressName);
}

function findPrismaSchema(tree: Tree): string | undefined {
  const declared = readText(parseJson(tree.readFile('package.json')), 'prisma', 'schema');
  const files = tree.entries
    .filter(({ kind, path }) => kind === 'file' && path.endsWith('.prisma'))
    .map(({ path }) => path);
  const usual = [
    ...(declared === undefined ? [] : [posix.normalize(declared)]),
    'prisma/schema.prisma',
    'schema.prisma',
    ...files.filter((path) => /^(?:[\w-]{1,60}\/){0,3}(?:schema|prisma)\/[\w-]{1,60}\.prisma$/.test(path)),
  ];
  return usual.find((path) => files.includes(path) && /^\s{0,9}datasource\s/m.test(tree.readFile(path) ?? ''));
}

/**
 * Without migrations, the author brings databases up to date with `db push`. It refuses changes that lose data unless a
 * flag allows them, and that flag is never given here. Since Prisma 7, it does not generate the client.
 */
function choosePrismaCommand(tree: Tree, { ranges }: NodeProject, file: string): string {
  const folder = posix.dirname(file);
  const hasMigrations = tree.entries.some(({ path }) => /(?:^|\/)migrations\/[^/]+\/migration\.sql$/.test(path));
  const where =
    ['prisma/schema.prisma', 'schema.prisma'].includes(file) || folder === 'prisma/schema' ? '' : ` --schema ${file}`;
  if (hasMigrations) return `prisma migrate deploy${where}`;
  const range = ranges['prisma'] ?? '';
  const major = semver.validRange(range) === null ? undefined : semver.minVersion(range)?.major;
  return `prisma db push${major !== undefined && major < 7 ? ' --skip-generate' : ''}${where}`;
}

const drizzleConfigs = ['ts', 'js', 'mjs', 'mts', 'cjs'].map((end) => `drizzle.config.${end}`);

function findDrizzle(tree: Tree, project: NodeProject): NodeDatabase | undefined {
  const file = drizzleConfigs.find((each) => tree.has(each));
  if (file === undefined || !project.dependencies.has('drizzle-orm')) return undefined;
  const text = tree.readFile(file) ?? '';
  const module = parseScript(text);
  const readTextField = (name: string): string | undefined =>
    readPath(module.exported, [name], module)
      .flatMap((value) => resolveValues(value, module))
      .map(readLiteralText)
      .find((each) => each !== undefined);
  const dialect = readTextField('dialect') ?? readTextField('driver') ?? '';
  const out = posix.normalize(readTextField('out') ?? 'drizzle');
  const isCommitted = tree.entries.some(
    ({ kind, path }) => kind === 'file' && path.startsWith(`${out}/`) && path.endsWith('.sql'),
  );
  const hasTool = project.dependencies.has('drizzle-kit');
  return {
    file,
    kind: drizzleKinds.find(([pattern]) => pattern.test(dialect))?.[1],
    variables: listVariables(text).filter(isAddressName),
    command: isCommitted && hasTool ? (findMigrationScript(project.scripts) ?? 'drizzle-kit migrate') : undefined,
    create: `Run drizzle-kit generate and commit what it writes to ${out}: it is applied before each start.`,
  };
}

const drizzleKinds: readonly (readonly [RegExp, Kind])[] = [
  [/^(?:postgres|pg)/, 'postgres'],
  [/^mysql/, 'mysql'],
  [/^(?:sqlite|better-sqlite)/, 'sqlite'],
];

/** Tools that need to know more than their configuration shows: the script of the author comes first. */
const tools = [
  { package: 'knex', files: /^knexfile\.[cm]?[jt]s$/, command: 'knex migrate:latest' },
  {
    package: 'sequelize-cli',
    files: /^(?:\.sequelizerc|migrations\/[^/]+\.c?js|config\/config\.(?:json|js))$/,
    command: 'sequelize-cli db:migrate',
  },
  {
    package: 'typeorm',
    files: /(?:^|\/)(?:data-?source|ormconfig)[\w.-]{0,20}\.(?:[cm]?[jt]s|json)$/i,
    command: undefined,
  },
  { package: '@mikro-orm/core', files: /(?:^|\/)mikro-orm\.config\.[cm]?[jt]s$/, command: undefined },
  { package: 'node-pg-migrate', files: /^migrations\//, command: undefined },
] as const;

function findByScript(tree: Tree, { dependencies, scripts }: NodeProject): NodeDatabase | undefined {
  const tool = tools.find(({ package: name }) => dependencies.has(name));
  if (tool === undefined || !hasMigrationFiles(tree)) return undefined;
  const file = tree.entries.find(({ kind, path }) => kind === 'file' && tool.files.test(path))?.path;
  const command = findMigrationScript(scripts);
  if (file === undefined)
    return command === undefined
      ? undefined
      : { file: 'package.json', kind: undefined, variables: [], command, create };
  const text = tree.readFile(file) ?? '';
  return {
    file,
    kind: readClient(text) ?? (isFileDatabase(text, dependencies) ? 'sqlite' : undefined),
    variables: listVariables(text).filter(isAddressName),
    command: command ?? tool.command,
    create,
  };
}

const create =
  'Add a script "db:migrate" to package.json that applies them: it runs before each start. If the app applies them itself, ignore this.';

function hasMigrationFiles(tree: Tree): boolean {
  return tree.entries.some(
    ({ kind, path }) =>
      kind === 'file' &&
      /(?:^|\/)migrations?\/(?!index\.)[^/]+\.(?:sql|[cm]?[jt]s)$/.test(path) &&
      !/(?:^|\/)(?:tests?|node_modules)\//.test(path),
  );
}

const clients: Readonly<Record<string, Kind>> = {
  pg: 'postgres',
  postgres: 'postgres',
  postgresql: 'postgres',
  mysql: 'mysql',
  mysql2: 'mysql',
  sqlite3: 'sqlite',
  'better-sqlite3': 'sqlite',
};

/** Reads the database that the configuration names for production, if it names one for each environment. */
function readClient(text: string): Kind | undefined {
  const module = parseScript(text);
  const names = [['production', 'client'], ['client'], ['production', 'dialect'], ['dialect']]
    .flatMap((path) => readPath(module.exported, path, module))
    .flatMap((value) => resolveValues(value, module))
    .map(readLiteralText)
    .filter((each) => each !== undefined);
  return names[0] === undefined ? undefined : clients[names[0]];
}

/** A configuration that no server decides may choose a file, and then does so where none is given. */
function isFileDatabase(text: string, dependencies: ReadonlySet<string>): boolean {
  const has = (names: readonly string[]): boolean => names.some((name) => dependencies.has(name));
  return has(['better-sqlite3', 'sqlite3']) && (/sqlite/i.test(text) || !has(['pg', 'postgres', 'mysql2', 'mysql']));
}

/** `process.env.NAME`, `process.env["NAME"]` and `env("NAME")`. */
function listVariables(text: string): string[] {
  const found = text.matchAll(
    /\b(?:process\.env\.|env\.|(?:process\.env\[|env\()\s{0,9}["'])([A-Z][A-Z0-9_]{1,60})\b/g,
  );
  return [...new Set([...found].map(([, name = '']) => name))];
}

function isAddressName(name: string): boolean {
  return /UR[LI]|DSN|CONNECTION_STRING/.test(name) && !/TOKEN|SHADOW/.test(name);
}

/** Converts it to what runs before the start; `moved` is a migration that the author's build runs. */
export function toMigration(database: NodeDatabase | undefined, moved: string | undefined): Migration | undefined {
  const command = moved === undefined ? database?.command : normalizeMigration(moved);
  if (command === undefined) return undefined;
  const variables =
    database?.kind === 'sqlite' ? [] : [...new Set([...(database?.variables ?? []), ...serverVariables])];
  return { command, file: moved === undefined ? (database?.file ?? 'package.json') : 'package.json', variables };
}

/** Warns if the database of the app would stay empty. */
export function warnAboutNodeDatabase(
  tree: Tree,
  database: NodeDatabase | undefined,
  migration: Migration | undefined,
): Finding[] {
  if (database === undefined || migration !== undefined || isMigratedByCode(tree)) return [];
  return [warnAboutMigrations(database.file, 'Nothing applies the schema of the database here', database.create)];
}

/** Code that brings its database up to date by itself. */
const migratesItself =
  /drizzle-orm\/[\w-]{1,40}\/migrator|\bmigrate\.latest\(|\bmigrationsRun\s{0,3}:\s{0,3}true|\bsynchronize\s{0,3}:\s{0,3}true|\.runMigrations\(|\.sync\(|getMigrator\(\)|\bumzug\b|updateSchema\(/;
const maximumSources = 200;

function isMigratedByCode(tree: Tree): boolean {
  return tree.entries
    .filter(
      ({ kind, path }) =>
        kind === 'file' && /^(?!.*(?:^|\/)(?:node_modules|tests?)\/).*\.[cm]?[jt]s(?:on)?$/.test(path),
    )
    .slice(0, maximumSources)
    .some(({ path }) => migratesItself.test(tree.readFile(path, 64 * 1024) ?? ''));
}

/** Variables that a service of the type sets by itself. */
const ownVariables: Readonly<Record<Kind, readonly string[]>> = {
  postgres: ['DATABASE_URL', 'POSTGRES_URL'],
  mysql: ['DATABASE_URL', 'MYSQL_URL'],
  sqlite: [],
};

/** Declares the database that the schema asks for: a server, or a file of SQLite on a volume. */
export function declareNodeDatabase(tree: Tree): Declaration | undefined {
  const project = readProject(tree);
  const database = project === undefined ? undefined : findNodeDatabase(tree, project);
  if (database?.kind === undefined || database.variables.length === 0) return undefined;
  const { file, kind, variables } = database;
  if (kind === 'sqlite' && variables.some((name) => isSetByDockerfile(tree, name))) return undefined;
  if (kind === 'sqlite')
    return {
      file,
      volumes: [{ name: 'data', path: '/data' }],
      env: variables.map((name) => ({ name, value: 'file:/data/app.db' })),
    };
  return {
    file,
    services: [{ name: 'db', type: kind }],
    env: variables
      .filter((name) => !ownVariables[kind].includes(name))
      .map((name) => ({ name, value: '${{services.db.url}}' })),
  };
}

/** The author's image knows where its file is. */
function isSetByDockerfile(tree: Tree, name: string): boolean {
  return new RegExp(String.raw`^\s{0,9}ENV\s[^\n]{0,300}\b${name}\b`, 'im').test(tree.readFile('Dockerfile') ?? '');
}

const placeholderAddresses: Readonly<Record<Kind, string>> = {
  postgres: 'postgresql://build:build@127.0.0.1:5432/build',
  mysql: 'mysql://build:build@127.0.0.1:3306/build',
  sqlite: 'file:/tmp/build.db',
};

/**
 * Values for the build, in which no database runs: code that only checks or parses the address works, and code that
 * queries reports that it reached nothing.
 */
export function listAddressPlaceholders(database: NodeDatabase | undefined): Record<string, string> {
  const { kind, variables = [] } = database ?? {};
  return kind === undefined ? {} : Object.fromEntries(variables.map((name) => [name, placeholderAddresses[kind]]));
}
