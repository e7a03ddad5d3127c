// What a plan of a Node app does for its database: the service, the build without one, and the migration before each start.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { mergePlatforms } from '../../../../../../controller/pipeline/plan/platforms/settings.ts';
import { makePlan } from '../../../../../../controller/pipeline/plan/plan.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';
import { type Changes, type Files, json } from '../plan.cases.ts';

function planApp(
  files: Files,
  changes: Changes = {},
): { dockerfile: string; reason: string; rules: string[]; text: string } {
  const { plan, dockerfile = '', findings } = makePlan(createMemoryTree(files), sampleInput(changes));
  const rules = findings.map(({ rule, file }) => `${rule} ${file ?? ''}`);
  return {
    dockerfile,
    reason: plan.reason,
    rules,
    text: findings.map(({ message, fix }) => `${message} ${fix}`).join('\n'),
  };
}

/** The shell command of the image. */
function readCommand(files: Files): string {
  const line = /^CMD (\[.*\])$/m.exec(planApp(files).dockerfile)?.[1] ?? '[]';
  return (JSON.parse(line) as string[])[2] ?? '';
}

const schema = (provider: string, url = 'env("DATABASE_URL")'): string =>
  `generator client {\n  provider = "prisma-client-js"\n}\n\ndatasource db {\n  provider = "${provider}"\n  url      = ${url}\n}\n`;
const migration = 'prisma/migrations/1_first/migration.sql';

function prisma(provider: string, more: Readonly<Record<string, unknown>> = {}, version = '^6.0.0'): Files {
  return {
    'package.json': json({
      scripts: { start: 'node a.js' },
      dependencies: { '@prisma/client': version, express: '5' },
      devDependencies: { prisma: version },
      ...more,
    }),
    'prisma/schema.prisma': schema(provider),
  };
}

test('runs the migrations of Prisma before the start if the app has a database server, and keeps the tool for it', () => {
  const files = { ...prisma('postgresql'), [migration]: '' };
  const command = readCommand(files);
  assert.match(
    command,
    /^\{ \[ -z "\$DATABASE_URL\$PGHOST\$MYSQL_HOST" \] \|\| \( export PATH=\S+; prisma migrate deploy \) \|\| \{ echo "[^"]*prisma migrate deploy" >&2; exit 1; \}; \}; exec node a\.js$/,
  );
  const { dockerfile, reason } = planApp(files);
  assert.doesNotMatch(dockerfile, /npm prune/);
  assert.match(reason, /Before each start it runs prisma migrate deploy \(prisma\/schema\.prisma\)\./);
});

test.each([
  ['^6.0.0', 'prisma db push --skip-generate'],
  ['^7.1.0', 'prisma db push'],
])(
  'brings a schema without migrations up to date with db push of Prisma %s, without flags that lose data',
  (version, expected) => {
    assert.ok(readCommand(prisma('postgresql', {}, version)).includes(`; ${expected} )`));
  },
);

test('names a Prisma schema in another folder', () => {
  const files = prisma('mysql', { prisma: { schema: './db/schema.prisma' } });
  const moved = { 'package.json': files['package.json'] ?? '', 'db/schema.prisma': schema('mysql') };
  assert.match(readCommand(moved), /prisma db push --skip-generate --schema db\/schema\.prisma \)/);
});

test.each([
  ['postgresql', '"DATABASE_URL"', { services: [{ name: 'db', type: 'postgres' }] }],
  ['mysql', '"DATABASE_URL"', { services: [{ name: 'db', type: 'mysql' }] }],
  [
    'postgresql',
    '"POSTGRES_PRISMA_URL")\n  directUrl = env("DIRECT_URL"',
    {
      services: [{ name: 'db', type: 'postgres' }],
      run: {
        env: [
          { name: 'POSTGRES_PRISMA_URL', value: '${{services.db.url}}' },
          { name: 'DIRECT_URL', value: '${{services.db.url}}' },
        ],
      },
    },
  ],
  [
    'sqlite',
    '"DATABASE_URL"',
    {
      run: {
        env: [{ name: 'DATABASE_URL', value: 'file:/data/app.db' }],
        volumes: [{ name: 'data', path: '/data', size: '1Gi' }],
      },
    },
  ],
] as const)('gives an app the database that its Prisma schema asks for: %s in %s', (provider, url, expected) => {
  const tree = createMemoryTree({ ...prisma(provider), 'prisma/schema.prisma': schema(provider, `env(${url})`) });
  const { settings } = mergePlatforms(tree, undefined, sampleInput());
  const { platform, ...rest } = settings ?? {};
  assert.equal(platform?.file, 'prisma/schema.prisma');
  assert.deepEqual(
    JSON.parse(JSON.stringify({ services: rest.services?.map(({ name, type }) => ({ name, type })), run: rest.run })),
    expected,
  );
});

test('leaves a file of SQLite where the Dockerfile has it', () => {
  const tree = createMemoryTree({
    ...prisma('sqlite'),
    'prisma/schema.prisma': schema('sqlite'),
    Dockerfile: 'FROM node\nENV DATABASE_URL=file:/data/own.db\n',
  });
  assert.equal(mergePlatforms(tree, undefined, sampleInput()).settings?.run, undefined);
});

test('sets the variables of a schema to the service of a compose file, whatever its name', () => {
  const tree = createMemoryTree({
    ...prisma('postgresql'),
    'prisma/schema.prisma': schema('postgresql', 'env("PRISMA_URL")'),
    'compose.yaml': 'services:\n  app: {build: .}\n  pg: {image: "postgres:16"}\n',
  });
  const { settings, findings } = mergePlatforms(tree, undefined, sampleInput());
  assert.deepEqual(settings?.run?.env, [{ name: 'PRISMA_URL', value: '${{services.pg.url}}' }]);
  assert.deepEqual(
    findings.map(({ rule }) => rule).filter((rule) => rule.startsWith('platform/')),
    [],
  );
});

test('gives no database to an app whose driver reaches only the service of its company', () => {
  const tree = createMemoryTree({
    'package.json': json({
      scripts: { start: 'next start', build: 'next build' },
      dependencies: { next: '15', 'drizzle-orm': '1', '@neondatabase/serverless': '1' },
    }),
    'drizzle.config.ts': 'export default { dialect: "postgresql", dbCredentials: { url: process.env.DATABASE_URL! } }',
  });
  assert.equal(mergePlatforms(tree, undefined, sampleInput()).settings?.services, undefined);
});

test('takes migrations and seeds out of the build, and runs the migrations before the start', () => {
  const files = {
    ...prisma('postgresql', {
      scripts: {
        start: 'node a.js',
        build: 'prisma generate && npm run db:deploy && prisma db seed && tsc',
        'db:deploy': 'prisma migrate deploy',
        postinstall: 'npx prisma db push --accept-data-loss',
      },
    }),
    [migration]: '',
  };
  const { dockerfile, rules, text } = planApp(files);
  assert.match(dockerfile, /^RUN npm pkg set scripts\.postinstall=true 'scripts\.build=prisma generate && tsc'$/m);
  assert.ok(dockerfile.indexOf('npm pkg set') < dockerfile.indexOf('npm install'), 'before the scripts of the install');
  assert.match(readCommand(files), /; prisma db push \) \|\|/);
  assert.deepEqual(rules, ['plan/seed package.json']);
  assert.match(text, /prisma db seed.*left out.*release: COMMAND/s);
});

test('leaves a start that migrates by itself as it is', () => {
  const files = prisma('postgresql', { scripts: { start: 'prisma migrate deploy && node a.js' } });
  assert.equal(readCommand(files), 'exec npm start');
});

test('gives the build addresses of the kind that its code checks, and none that build.env sets', () => {
  const files = {
    ...prisma('postgresql'),
    '.env.example': 'MONGODB_URI=mongodb+srv://u:p@x.mongodb.net/a\nREDIS_URL=redis://x\n',
  };
  const { dockerfile } = planApp(files);
  assert.match(dockerfile, /^ARG DATABASE_URL=postgresql:\/\/build:build@127\.0\.0\.1:5432\/build$/m);
  assert.match(dockerfile, /^ARG MONGODB_URI=mongodb:\/\/127\.0\.0\.1:27017\/build$/m);
  assert.doesNotMatch(dockerfile, /REDIS_URL/);
  assert.ok(
    dockerfile.indexOf('ARG DATABASE_URL') < dockerfile.indexOf('npm install'),
    'before the scripts of the install',
  );
  const build = { ...sampleInput().build, env: [{ name: 'DATABASE_URL', value: 'postgres://a' }] };
  assert.match(planApp(files, { build }).dockerfile, /^ARG DATABASE_URL$/m);
});

test('gives pages that are generated from SQLite an empty database with the tables of the app', () => {
  const files = {
    ...prisma('sqlite', { scripts: { build: 'next build' }, dependencies: { next: '15', '@prisma/client': '6' } }),
    'pages/index.js': '',
  };
  const { dockerfile } = planApp(files);
  assert.match(dockerfile, /^ARG DATABASE_URL=file:\/tmp\/build\.db$/m);
  assert.match(dockerfile, /; prisma db push --skip-generate \|\| true$/m);
  assert.match(readCommand(files), /^\{ \( export PATH=\S+; prisma db push/);
});

test('starts a standalone server of Next.js with the packages that a migration needs', () => {
  const files = {
    ...prisma('postgresql', { scripts: { build: 'next build' }, dependencies: { next: '15', '@prisma/client': '6' } }),
    'next.config.js': 'module.exports = { output: "standalone" }',
    'app/page.js': '',
  };
  assert.match(readCommand(files), /exec node_modules\/\.bin\/next start/);
  assert.doesNotMatch(planApp(files).dockerfile, /\.next\/standalone/);
});

const drizzle = (files: Files, scripts: Readonly<Record<string, string>> = {}): Files => ({
  'package.json': json({
    scripts: { start: 'node a.js', ...scripts },
    dependencies: { 'drizzle-orm': '1', postgres: '3' },
    devDependencies: { 'drizzle-kit': '1' },
  }),
  'drizzle.config.ts':
    'import { defineConfig } from "drizzle-kit";\nexport default defineConfig({ out: "./db/sql", dialect: "postgresql", dbCredentials: { url: process.env.APP_DB_URL! } });',
  ...files,
});

test('runs the migrations of Drizzle that are committed', () => {
  const files = drizzle({ 'db/sql/0000_a.sql': '' });
  assert.match(
    readCommand(files),
    /^\{ \[ -z "\$APP_DB_URL\$DATABASE_URL\S+" \] \|\| \( export PATH=\S+; drizzle-kit migrate \)/,
  );
  const { settings } = mergePlatforms(createMemoryTree(files), undefined, sampleInput());
  assert.deepEqual(settings?.run?.env, [{ name: 'APP_DB_URL', value: '${{services.db.url}}' }]);
});

test('prefers the script with which the author migrates', () => {
  const files = drizzle({ 'db/sql/0000_a.sql': '' }, { 'db:migrate': 'tsx src/migrate.ts' });
  assert.match(readCommand(files), /; tsx src\/migrate\.ts \)/);
});

test('warns that the database of Drizzle stays empty without committed migrations, unless the code applies them', () => {
  const { rules, text, dockerfile } = planApp(drizzle({}));
  assert.deepEqual(rules, ['plan/migrations drizzle.config.ts']);
  assert.match(text, /drizzle-kit generate and commit what it writes to db\/sql/);
  assert.doesNotMatch(dockerfile, /drizzle-kit/);
  const code = { 'src/a.ts': 'import { migrate } from "drizzle-orm/postgres-js/migrator";' };
  assert.deepEqual(planApp(drizzle(code)).rules, []);
});

const knex = (config: string, dependencies: readonly string[]): Files => ({
  'package.json': json({
    scripts: { start: 'node a.js' },
    dependencies: Object.fromEntries(['knex', ...dependencies].map((name) => [name, '1'])),
  }),
  'knexfile.js': config,
  'migrations/1_a.js': '',
});

test.each([
  [
    'a file in production',
    'module.exports = { development: { client: "pg" }, production: { client: "sqlite3" } }',
    ['pg', 'sqlite3'],
    false,
  ],
  [
    'a server in production',
    'module.exports = { development: { client: "sqlite3" }, production: { client: "pg" } }',
    ['pg', 'sqlite3'],
    true,
  ],
  ['what a variable decides', 'module.exports = { client: process.env.CLIENT || "sqlite" }', ['pg', 'sqlite3'], false],
])('runs the migrations of Knex for %s', (_, config, dependencies, isGuarded) => {
  const command = readCommand(knex(config, dependencies));
  assert.match(command, /; knex migrate:latest \)/);
  assert.equal(command.includes('[ -z '), isGuarded);
});

test.each([
  ['sequelize-cli', { 'migrations/1-a.js': '', 'config/config.json': '{}' }, {}, /sequelize-cli db:migrate/],
  [
    'typeorm',
    { 'src/migrations/1-A.ts': '' },
    { 'migration:run': 'typeorm-ts-node-commonjs migration:run -d src/data-source.ts' },
    /typeorm-ts-node-commonjs migration:run -d src\/data-source\.ts/,
  ],
  [
    '@mikro-orm/core',
    { 'src/migrations/A.ts': '', 'src/mikro-orm.config.ts': '' },
    { 'migration:up': 'mikro-orm migration:up' },
    /; mikro-orm migration:up \)/,
  ],
])('runs the migrations of %s', (name, files, scripts, expected) => {
  const command = readCommand({
    'package.json': json({ scripts: { start: 'node a.js', ...scripts }, dependencies: { [name]: '1', pg: '8' } }),
    ...files,
  });
  assert.match(command, expected);
});

test('warns about migrations of TypeORM that no script and no code runs', () => {
  const files = {
    'package.json': json({ scripts: { start: 'node a.js' }, dependencies: { typeorm: '0.3', pg: '8' } }),
    'src/data-source.ts': 'export default new DataSource({ type: "postgres" });',
    'src/migrations/1-A.ts': '',
  };
  assert.deepEqual(planApp(files).rules, ['plan/migrations src/data-source.ts']);
  const automatic = { ...files, 'src/data-source.ts': 'new DataSource({ migrationsRun: true })' };
  assert.deepEqual(planApp(automatic).rules, []);
});
