// Which databases and folders a Ruby app is given by its gems and its settings.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readGemfile } from '../../../../../../controller/pipeline/plan/platforms/gemfile.ts';
import { locateApp } from '../../../../../../controller/pipeline/plan/repository.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';
import type { Files } from '../plan.cases.ts';

const rails = (gems: readonly string[]): Files => ({
  Gemfile: ['rails', 'puma', ...gems].map((gem) => `gem "${gem}"\n`).join(''),
  'config/application.rb': 'class Application < Rails::Application',
  'bin/rails': '',
});
const declared = (files: Files): ReturnType<typeof readGemfile> => readGemfile(createMemoryTree(files));
const names = (files: Files): string[] => (declared(files)?.services ?? []).map(({ name, type }) => `${name}: ${type}`);

test('declares PostgreSQL and Redis from gems, with the variables that the settings read', () => {
  const said = declared({
    ...rails(['pg', 'sidekiq']),
    'config/database.yml':
      'default: &default\n  adapter: postgresql\n  host: <%= ENV.fetch("DB_HOST") { "localhost" } %>\n  username: <%= ENV["DB_USER"] %>\n  password: <%= ENV["POSTGRES_PASSWORD"] %>\ntest:\n  url: <%= ENV["TEST_URL"] %>\nproduction:\n  <<: *default\n',
  });
  assert.deepEqual(
    said?.services?.map(({ type }) => type),
    ['postgres', 'redis'],
  );
  assert.deepEqual(said.env, [
    { name: 'DB_HOST', value: '${{services.db.host}}' },
    { name: 'DB_USER', value: '${{services.db.user}}' },
  ]);
  assert.deepEqual(said.volumes, []);
});

test('gives each additional Rails database its own database on the same server', () => {
  const said = declared({
    ...rails(['pg']),
    'config/database.yml':
      'default: &default\n  adapter: postgresql\nproduction:\n  primary: &primary\n    <<: *default\n    database: shop\n    password: <%= ENV["SHOP_PASSWORD"] %>\n  cache:\n    <<: *primary\n    database: shop_cache\n  replica:\n    <<: *primary\n    replica: true\n',
  });
  assert.deepEqual(
    said?.env?.map(({ name, value }) => `${name}=${value}`),
    [
      'SHOP_PASSWORD=${{services.db.password}}',
      'CACHE_DATABASE_URL=postgresql://${{services.db.user}}:${{services.db.password}}@${{services.db.host}}:${{services.db.port}}/app_cache',
    ],
  );
});

test('gives MySQL an address that Rails maps to the right gem', () => {
  const said = declared(rails(['mysql2']));
  assert.deepEqual(said?.services, [{ name: 'mysql', type: 'mysql' }]);
  assert.match(said.env?.[0]?.value ?? '', /^mysql2:\/\/\$\{\{services\.mysql\.user\}\}:/);
});

test('chooses among several databases by the production settings', () => {
  const yaml = 'development:\n  adapter: sqlite3\nproduction:\n  adapter: <%= ENV["A"].presence || "mysql2" %>\n';
  assert.deepEqual(names({ ...rails(['pg', 'sqlite3', 'mysql2']), 'config/database.yml': yaml }), ['mysql: mysql']);
  assert.deepEqual(names({ ...rails(['pg', 'sqlite3']) }), ['db: postgres']);
  assert.deepEqual(names({ ...rails([]), Gemfile: 'gem "rails"\ngroup :test do\n  gem "pg"\nend\n' }), []);
});

test('persists SQLite and uploads in the folder that the image uses', () => {
  const sqlite = rails(['sqlite3']);
  assert.deepEqual(declared(sqlite)?.volumes, [{ name: 'storage', path: '/app/storage' }]);
  const dockerfile = 'FROM x AS build\nWORKDIR /build\nFROM x\nWORKDIR /rails\n';
  assert.deepEqual(declared({ ...sqlite, Dockerfile: dockerfile })?.volumes, [
    { name: 'storage', path: '/rails/storage' },
  ]);
  const uploads = {
    ...rails(['pg']),
    'config/environments/production.rb': 'config.active_storage.service = :local\n',
    'db/schema.rb': 'create_table "active_storage_attachments"',
  };
  assert.equal(declared(uploads)?.volumes?.length, 1);
  assert.equal(declared({ ...uploads, 'db/schema.rb': '' })?.volumes?.length, 0);
});

test('declares nothing for a Gemfile that starts nothing, and prefers a compose file', () => {
  assert.equal(declared({ Gemfile: 'gem "pg"\ngem "rake"\n' }), undefined);
  assert.equal(declared({ 'package.json': '{}' }), undefined);
  const compose = 'services:\n  web: {build: ., ports: ["3000:3000"]}\n  cache: {image: "redis:7"}\n';
  const settled = (files: Files): readonly string[] =>
    (locateApp(sampleInput(), createMemoryTree(files)).settings?.services ?? []).map(({ name }) => name);
  assert.deepEqual(settled({ ...rails(['pg']), 'compose.yaml': compose }), ['cache']);
  assert.deepEqual(settled(rails(['pg', 'redis'])), ['db', 'redis']);
});
