// What a plan of a Laravel app does for its database.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { mergePlatforms } from '../../../../../../controller/pipeline/plan/platforms/settings.ts';
import { makePlan } from '../../../../../../controller/pipeline/plan/plan.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';
import { type Files, json } from '../plan.cases.ts';

const laravel = (connection: string, scripts: Readonly<Record<string, unknown>> = {}): Files => ({
  'composer.json': json({ require: { 'laravel/framework': '^11' }, scripts }),
  artisan: '',
  'public/index.php': '',
  'database/migrations/1_users.php': '',
  '.env.example': `APP_KEY=\nDB_CONNECTION=${connection}\nDB_HOST=127.0.0.1\n`,
});

test.each([
  ['mysql', 'mysql', 'mysql', 'pdo_mysql'],
  ['mariadb', 'mysql', 'mysql', 'pdo_mysql'],
  ['pgsql', 'postgres', 'pgsql', 'pdo_pgsql'],
])(
  'gives Laravel the server %s of its sample settings, with the extension for it',
  (sample, type, connection, extension) => {
    const tree = createMemoryTree(laravel(sample));
    const { settings } = mergePlatforms(tree, undefined, sampleInput());
    assert.deepEqual(
      settings?.services?.map(({ name, type: each }) => [name, each]),
      [['db', type]],
    );
    assert.deepEqual(settings.run?.env, [
      { name: 'DB_HOST', value: '${{services.db.host}}' },
      { name: 'DB_PORT', value: '${{services.db.port}}' },
      { name: 'DB_DATABASE', value: '${{services.db.database}}' },
      { name: 'DB_USERNAME', value: '${{services.db.user}}' },
      { name: 'DB_PASSWORD', value: '${{services.db.password}}' },
      { name: 'DB_CONNECTION', value: connection },
    ]);
    assert.ok(makePlan(tree, sampleInput()).dockerfile?.includes(`docker-php-ext-install ${extension}`));
  },
);

test('gives Laravel no server if its sample settings name a file of SQLite', () => {
  const { settings } = mergePlatforms(createMemoryTree(laravel('sqlite')), undefined, sampleInput());
  assert.equal(settings?.services, undefined);
});

test.each([
  [{ 'post-install-cmd': ['@php artisan migrate --force'] }, true],
  [{ 'post-autoload-dump': ['@php artisan package:discover --ansi'] }, false],
  [{ 'post-create-project-cmd': ['@php artisan migrate'] }, false],
])('leaves out the scripts of an installation that need a database: %j', (scripts, isLeftOut) => {
  const { dockerfile = '' } = makePlan(createMemoryTree(laravel('mysql', scripts)), sampleInput());
  assert.equal(/composer install .*--no-scripts/.test(dockerfile), isLeftOut);
});
