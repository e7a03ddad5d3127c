// Variables of sample files that lead to a database, and the services whose address they get.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { findComponent, mergeFiles, readEnv, readFinding } from '../../../../../support/pipeline/components.ts';

const compose = `
services:
  db: {image: "postgres:16", environment: {POSTGRES_USER: a, POSTGRES_PASSWORD: b}}
  store: {image: "mongo:7"}
`;
const app = { 'requirements.txt': 'flask', 'app.py': 'from flask import Flask\napp = Flask(__name__)\n' };
const readRunEnv = (sample: string, more = ''): Record<string, string> =>
  Object.fromEntries(
    (mergeFiles({ ...app, 'compose.yml': compose + more, '.env.example': sample }).settings?.run?.env ?? []).map(
      ({ name, value }) => [name, value],
    ),
  );

test('gives a variable with the address of a local database that of the service', () => {
  assert.deepEqual(readRunEnv('POSTGRES_DB_URL=postgresql://a:b@localhost:5432/x\nMAIN=postgres://127.0.0.1/x\n'), {
    POSTGRES_DB_URL: '${{services.db.url}}',
    MAIN: '${{services.db.url}}',
  });
  const parts = '${{services.db.user}}:${{services.db.password}}@${{services.db.host}}:${{services.db.port}}';
  assert.deepEqual(readRunEnv('A=postgresql+asyncpg://a:b@localhost/x\nB=postgresql://localhost/x?schema=s\n'), {
    A: `postgresql+asyncpg://${parts}/\${{services.db.database}}`,
    B: `postgresql://${parts}/\${{services.db.database}}?schema=s`,
  });
});

test('fills a variable that is left empty and named after the only service of its type', () => {
  assert.deepEqual(readRunEnv('MONGO_URI=\nREDIS_URL=\nAPI_URL=\n'), { MONGO_URI: '${{services.store.url}}' });
  // Either of the two could be meant.
  assert.deepEqual(readRunEnv('DATABASE_URL=\n'), {});
  assert.deepEqual(readRunEnv('MONGO_URI=\n', '  more: {image: "mongo:7"}\n'), {});
  assert.deepEqual(readRunEnv('MONGO_URI=mongodb://db.example.org/x\nDB_URL=sqlite:///x.db\n'), {});
});

test('leaves variables that the compose file sets, and reads the samples of components', () => {
  const merged = mergeFiles({
    'compose.yml': `
services:
  web: {build: ./web, ports: ["80:80"], depends_on: [api]}
  api: {build: ./api, ports: ["9000:9000"], environment: {OWN_DB_URL: "postgres://a:b@db/own"}}
  db: {image: "postgres:16"}
`,
    'web/Dockerfile': 'FROM a\nCMD b\n',
    'api/Dockerfile': 'FROM a\nCMD b\n',
    'api/.env.example': 'OWN_DB_URL=postgres://localhost/x\nDATABASE_URL=postgres://localhost/x\n',
  });
  assert.deepEqual(merged.settings?.run?.env, [{ name: 'DATABASE_URL', value: '${{services.db.url}}' }]);
  assert.equal(readEnv(findComponent(merged, 'api'))['OWN_DB_URL'], 'postgres://a:b@db/own');
});

test('names a variable whose database the app does not have', () => {
  const merged = mergeFiles({ ...app, '.env.example': 'DATABASE_URL=mysql://root@localhost/x\nMONGO_URI=\n' });
  assert.match(readFinding(merged, 'platform/no-database'), /^DATABASE_URL is not set: .*type mysql\. .*type: mysql/);
  assert.equal(merged.settings?.run?.env, undefined);
});
