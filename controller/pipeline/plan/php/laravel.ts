// Prepares and starts Laravel: its key, its database, and the settings of a server that .env.example asks for.
import type { Tree } from '../../tree.ts';
import { parseJson, readField } from '../../manifest.ts';
import { type Migration, prefixMigration, serverVariables } from '../common/migrations.ts';
import { parseEnv } from '../platforms/compose/read.ts';
import type { Declaration } from '../platforms/declaration.ts';

const sample = '.env.example';

export function isLaravel(tree: Tree): boolean {
  return tree.has('artisan') && tree.has('composer.json');
}

/** Laravel without a setting uses MySQL before version 11, and a file of SQLite since. */
function findConnection(tree: Tree): string | undefined {
  return parseEnv(tree.readFile(sample, 64 * 1024) ?? '').get('DB_CONNECTION');
}

/** The extension of PHP that the database needs. */
export function getDatabaseExtension(tree: Tree): string {
  return findConnection(tree) === 'pgsql' ? 'pdo_pgsql' : 'pdo_mysql';
}

const servers: Readonly<Record<string, { readonly connection: string; readonly type: 'mysql' | 'postgres' }>> = {
  mysql: { connection: 'mysql', type: 'mysql' },
  mariadb: { connection: 'mysql', type: 'mysql' },
  pgsql: { connection: 'pgsql', type: 'postgres' },
};

/** Declares the server that the sample of the settings names. Variables take precedence over .env. */
export function declareLaravelDatabase(tree: Tree): Declaration | undefined {
  const server = isLaravel(tree) ? servers[findConnection(tree) ?? ''] : undefined;
  if (server === undefined) return undefined;
  const { connection, type } = server;
  const format = (field: string): string => `\${{services.db.${field}}}`;
  return {
    file: sample,
    services: [{ name: 'db', type }],
    env: [
      { name: 'DB_CONNECTION', value: connection },
      { name: 'DB_HOST', value: format('host') },
      { name: 'DB_PORT', value: format('port') },
      { name: 'DB_DATABASE', value: format('database') },
      { name: 'DB_USERNAME', value: format('user') },
      { name: 'DB_PASSWORD', value: format('password') },
    ],
  };
}

export function findLaravelMigration(tree: Tree): Migration | undefined {
  const file = 'database/migrations';
  const has = tree.entries.some(({ path }) => path.startsWith(`${file}/`) && path.endsWith('.php'));
  return has
    ? { command: 'php artisan migrate --force', file, variables: serverVariables, isLenient: true }
    : undefined;
}

/** The key, and the file of SQLite, which the first start creates. */
const preparations = [
  '[ -f .env ] || cp .env.example .env 2>/dev/null || touch .env',
  'grep -q "^APP_KEY=base64" .env || [ -n "$APP_KEY" ] || php artisan key:generate --force',
  '[ -n "$DB_CONNECTION" ] || { mkdir -p database; touch database/database.sqlite; }',
].join('; ');

/**
 * With a file .env and without --no-reload, newer servers take the variables of the app away from their workers, and run
 * only one. Older ones do not know the option.
 */
const serve =
  'exec php artisan serve --host=0.0.0.0 --port=$PORT $(php artisan serve --help | grep -o -m1 -e --no-reload)';

export function formatLaravelCommand(tree: Tree): string {
  return `${preparations}; ${prefixMigration(findLaravelMigration(tree), serve)}`;
}

const installScripts = ['pre-install-cmd', 'post-install-cmd', 'pre-autoload-dump', 'post-autoload-dump'];

/** Whether scripts of the installation need a database, such as a migration, which runs before each start instead. */
export function shouldSkipScripts(tree: Tree): boolean {
  const scripts = readField(parseJson(tree.readFile('composer.json')), 'scripts');
  return installScripts.some((name) =>
    /\bartisan\s+(?:migrate|db:|optimize:clear|cache:clear)/.test(JSON.stringify(readField(scripts, name) ?? '')),
  );
}
