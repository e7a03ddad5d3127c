// What a compose file comes to: the app's build, port, variables and disks, and its databases as backing services.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { PipelineInput } from '../../../../../../controller/pipeline/contract.ts';
import { type MergedInput, mergeManifest } from '../../../../../../controller/pipeline/app-manifest.ts';
import {
  interpolate,
  parseEnv,
  splitWords,
  findKnownImage,
} from '../../../../../../controller/pipeline/plan/platforms/compose/read.ts';
import { isReportable } from '../../../../../../controller/pipeline/settings-report.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { makeNoise, sampleInput } from '../../../../../support/pipeline/sample.ts';

type Files = Parameters<typeof createMemoryTree>[0];
const offered = { types: ['postgres', 'redis'], count: 4 };
const merge = (files: Files, changes: Partial<PipelineInput> = {}): MergedInput =>
  mergeManifest({ ...sampleInput(), repo: 'https://example.org/a/shop', offered, ...changes }, createMemoryTree(files));
const rules = ({ findings }: MergedInput): string[] => findings.map(({ rule, severity }) => `${severity} ${rule}`);
const env = ({ settings }: MergedInput): Record<string, string> =>
  Object.fromEntries((settings?.run?.env ?? []).map(({ name, value }) => [name, value]));

const shop = `
x-common: &common
  restart: always
services:
  web:
    <<: *common
    build: {context: ., args: {FLAVOUR: plain}}
    command: gunicorn shop:app --bind "0.0.0.0:9000"
    ports: ["127.0.0.1:8080:9000"]
    environment:
      - DATABASE_URL=postgres://app:\${DB_PASSWORD}@my_db:5432/shop
      - CACHE=redis://cache:6379/0
      - LEVEL=\${LEVEL:-info}
      - API_KEY
      - PORT=9000
    volumes: [uploads:/data/uploads, ./shop:/app, "/app/node_modules"]
  my_db:
    image: docker.io/pgvector/pgvector:pg16
    environment: {POSTGRES_USER: app, POSTGRES_PASSWORD: "\${DB_PASSWORD}", POSTGRES_DB: shop, TZ: Europe/Berlin}
    volumes: [db:/var/lib/postgresql/data]
  cache: {image: "redis:7-alpine"}
  nginx: {image: nginx, ports: ["80:80"]}
  tests: {build: ./tests, profiles: [test]}
`;

test('reads build, port, command, disks, variables and databases of a compose file', () => {
  const merged = merge({ 'compose.yaml': shop, Dockerfile: 'FROM scratch', 'shop/app.py': '' });
  const { settings, input } = merged;
  assert.deepEqual(settings?.services, [
    {
      name: 'my-db',
      type: 'postgres',
      version: '16',
      disk: '1Gi',
      env: [
        { name: 'POSTGRES_USER', value: 'app' },
        { name: 'POSTGRES_DB', value: 'shop' },
      ],
    },
    { name: 'cache', type: 'redis', version: '7', disk: '1Gi', env: [{ name: 'REDIS_PASSWORD', value: '' }] },
  ]);
  assert.deepEqual(env(merged), {
    // A password that nobody gives is the generated one, and the host has its name here.
    DATABASE_URL: 'postgres://app:${{services.my-db.password}}@my-db:5432/shop',
    CACHE: 'redis://cache:6379/0',
    LEVEL: 'info',
  });
  assert.deepEqual(settings.run?.volumes, [{ name: 'data-uploads', path: '/data/uploads', size: '1Gi' }]);
  assert.deepEqual(settings.run.command, ['gunicorn', 'shop:app', '--bind', '0.0.0.0:9000']);
  assert.deepEqual([input.port, input.hasCommand, input.path], [9000, true, '.']);
  assert.deepEqual(input.build.args, [{ name: 'FLAVOUR', value: 'plain' }]);
  assert.equal(settings.platform?.file, 'compose.yaml');
  assert.deepEqual(rules(merged), ['warning compose/not-run', 'warning compose/unset-variables']);
  assert.match(merged.findings[0]?.message ?? '', /The service web is the app\. Not run here: nginx\./);
  assert.match(merged.findings[1]?.message ?? '', /: API_KEY\./);
});

test('prefers moorage.yaml and the HostedApp to a compose file', () => {
  const own = 'run: {port: 7000, env: [{name: LEVEL, value: debug}]}\nservices: [{name: db, type: redis}]\n';
  const merged = merge({ 'compose.yaml': shop, Dockerfile: '', 'moorage.yaml': own });
  assert.equal(merged.input.port, 7000);
  assert.equal(env(merged)['LEVEL'], 'debug');
  assert.deepEqual(
    merged.settings?.services?.map(({ name }) => name),
    ['db'],
  );
  assert.equal(merge({ 'compose.yaml': shop, Dockerfile: '' }, { port: 6000 }).input.port, 6000);
  const chosen = merge({ 'compose.yaml': shop, Dockerfile: '', 'web/Dockerfile': '' }, { path: 'web' });
  assert.deepEqual([chosen.input.path, chosen.input.build.args], ['web', []]);
});

test('reads a Dockerfile below the root, its stage, and values of a sample file', () => {
  const compose = `
services:
  api:
    build: {context: ./server, dockerfile: docker/Dockerfile, target: production}
    expose: [5000]
    env_file: .env
    environment: {URL: "mysql://\${U}:\${P}@db/x", SECRET_KEY: dev, ENCRYPTION_KEY: dev}
`;
  const files = {
    'docker-compose.yml': compose,
    'server/docker/Dockerfile': 'FROM scratch',
    '.env.example': 'U=me\nP="it # is" # comment\nTOKEN=your-token\nexport MODE=fast\n',
  };
  const merged = merge(files);
  assert.deepEqual(
    [merged.input.path, merged.input.build.dockerfile, merged.input.build.target, merged.input.port],
    ['server', 'docker/Dockerfile', 'production', 5000],
  );
  assert.deepEqual(env(merged), {
    URL: 'mysql://me:it # is@db/x',
    U: 'me',
    P: 'it # is',
    MODE: 'fast',
    SECRET_KEY: '${{secret}}',
    ENCRYPTION_KEY: 'dev',
  });
  assert.deepEqual(rules(merged), ['warning compose/public-secret']);
});

test('rejects several services of which none answers requests, and runs the one that the author chooses', () => {
  const silent = 'services:\n  front: {build: front}\n  back: {build: back}\n';
  const refused = merge({ 'compose.yml': silent, 'front/Dockerfile': '', 'back/Dockerfile': '' });
  assert.deepEqual(rules(refused), ['error compose/several-services']);
  assert.match(refused.findings[0]?.message ?? '', /front \(built in front\), back \(built in back\)/);
  const two = 'services:\n  front: {build: front, ports: [3000]}\n  back: {build: back, ports: [8000]}\n';
  const chosen = merge({ 'compose.yml': two, 'back/Dockerfile': '', 'moorage.yaml': 'source: {path: back}' });
  assert.deepEqual([rules(chosen), chosen.input.port], [['warning compose/not-run'], 8000]);
  const top = merge({
    'compose.yml': two.replace('build: back', 'build: .'),
    Dockerfile: '',
    'front/Dockerfile': '',
    'moorage.yaml': 'source: {path: .}',
  });
  assert.deepEqual([rules(top), top.input.port], [['warning compose/not-run'], 8000]);
});

test('rejects a service type that the installation does not offer before anything is built', () => {
  const merged = merge({ 'compose.yaml': 'services: {search: {image: "getmeili/meilisearch:v1.8"}}' });
  assert.deepEqual(rules(merged), ['error services/unavailable']);
  assert.match(merged.findings[0]?.message ?? '', /search \(meilisearch\)/);
  const other = merge({ 'moorage.yaml': 'services: [{name: db, type: mongo}]' });
  assert.deepEqual([rules(other), other.findings[0]?.file], [['error services/unavailable'], 'moorage.yaml']);
});

test('reads only the databases of a compose file for developers', () => {
  const dev = `
services:
  app: {image: "node:20", command: npm run dev, ports: [5173], volumes: [".:/app"], environment: {X: y}}
  db: {build: db}
`;
  const merged = merge({ 'compose.yaml': dev, 'db/Dockerfile': 'FROM postgres:15\nCOPY x /', Dockerfile: '' });
  assert.deepEqual([merged.input.port, env(merged)], [undefined, {}]);
  assert.deepEqual(
    merged.settings?.services?.map(({ type, version }) => [type, version]),
    [['postgres', '15']],
  );
});

test('omits a development command, or one for an entrypoint, and reports it', () => {
  const file = (command: string): string => `services: {web: {build: ., command: ${command}, ports: [80]}}`;
  for (const [command, dockerfile] of [
    ['uvicorn app:app --reload', 'FROM scratch'],
    ['serve', 'FROM scratch\nENTRYPOINT ["run"]'],
  ] as const) {
    const merged = merge({ 'compose.yaml': file(command), Dockerfile: dockerfile });
    assert.deepEqual([rules(merged), merged.input.hasCommand], [['warning compose/command'], false]);
  }
});

test('reads no build from a published image, and nothing from malformed files', () => {
  const merged = merge({
    'compose.yaml': 'services: {shop: {image: "ghcr.io/a/shop", ports: ["80:8000"]}}',
    Dockerfile: '',
  });
  assert.deepEqual([merged.settings?.build, merged.input.port], [undefined, 8000]);
  for (const text of ['', ': [', 'services: 3', 'services: {a: 3, b: {build: 7}}', 'a: &a [*a, *a]', '[]'])
    assert.deepEqual(merge({ 'compose.yaml': text }).settings, undefined, text);
});

test('omits and reports variables beyond the limit, and keeps addresses first', () => {
  // Values that cannot be compressed.
  const many = Array.from({ length: 60 }, (_, index) => `      V${index}: ${makeNoise(80, index)}`).join('\n');
  const merged = merge({
    'compose.yaml': `services:\n  web:\n    build: .\n    environment:\n${many}\n      URL: "http://cache:1"\n`,
    Dockerfile: '',
  });
  assert.ok(merged.settings !== undefined && isReportable(merged.settings));
  const kept = Object.keys(env(merged)).length;
  assert.ok(kept > 20 && kept < 60, `${kept}`);
  assert.equal(env(merged)['URL'], 'http://cache:1');
  assert.deepEqual(rules(merged), ['warning platform/variables']);
});

test("declares a disk for a Dockerfile's volume, at most two, and warns about data that does not persist", () => {
  const merged = merge({
    Dockerfile: 'FROM a AS b\nVOLUME /no\nFROM c\nVOLUME ["/data", "/app"]\nVOLUME /more /third\n',
  });
  assert.deepEqual(
    merged.settings?.run?.volumes?.map(({ path }) => path),
    ['/data', '/more'],
  );
  assert.deepEqual(rules(merged), ['warning data/too-many-volumes']);
  const lost = 'run: {env: [{name: DATABASE_URL, value: "sqlite:////srv/app.db"}]}';
  assert.deepEqual(rules(merge({ 'moorage.yaml': lost })), ['warning data/not-lasting']);
  const kept = `${lost.slice(0, -1)}, volumes: [{name: data, path: /srv}]}`;
  assert.deepEqual(rules(merge({ 'moorage.yaml': kept })), []);
});

const mounting = (volumes: string, files: Files = {}): MergedInput =>
  merge({ 'compose.yaml': `services: {web: {build: ., volumes: [${volumes}]}}`, Dockerfile: 'FROM scratch', ...files });
const disks = ({ settings }: MergedInput): string[] => (settings?.run?.volumes ?? []).map(({ path }) => path);

test.each([
  ['a folder that is not in the repository', './db:/app/db', '/app/db'],
  ['a folder with only a placeholder', './files:/app/files', '/app/files'],
  ['a variable with a default', '"${DATA_DIR:-./storage}:/app/storage"', '/app/storage'],
  ['a variable without a value', '"${DATA_DIR}:/data:rw"', '/data'],
  ['a folder of the host', '/srv/shop:/data', '/data'],
  ['a folder of a home', '~/shop:/data', '/data'],
  ['uploads below static files', './uploads:/app/static/uploads', '/app/static/uploads'],
])('makes a volume of %s', (_, volume, path) => {
  const merged = mounting(volume, { 'files/.gitkeep': '' });
  assert.deepEqual(disks(merged), [path]);
  assert.deepEqual(rules(merged), []);
});

test.each([
  ['a single database file', './app.db:/app/app.db', '/app/data', 'it is a single file'],
  ['a folder with files of the image', './db:/app/db', '/app/db/data', 'which a volume would hide'],
  ['a named volume over the code', 'shop:/app', '/app/data', 'which a volume would hide'],
])('reports %s with the line of moorage.yaml', (_, volume, path, why) => {
  const merged = mounting(volume, { 'db/seed.json': '{}' });
  assert.deepEqual(disks(merged), []);
  const { message, fix } =
    merged.findings.find(({ rule }) => rule === 'compose/not-lasting') ?? assert.fail('no finding');
  assert.ok(message.includes(volume) && message.includes(why), message);
  assert.ok(fix.includes(`path: ${path}}]}`), fix);
});

test('mounts of code, of the host itself, of caches and without a right to write are no data', () => {
  const merged = mounting(
    '.:/app, ./src:/app/src, /etc/localtime:/etc/localtime:ro, /app/node_modules, "./conf:/data:ro", /var/run/docker.sock:/x.sock',
    { 'src/a.py': '', 'conf/a.yaml': '' },
  );
  assert.deepEqual(disks(merged), []);
  assert.deepEqual(rules(merged), ['warning compose/docker-socket']);
});

test('expands variables as Docker Compose does', () => {
  const lookup = (name: string): string | undefined => ({ A: 'a', EMPTY: '' })[name];
  const each: readonly (readonly [string, string | undefined])[] = [
    ['$A ${A}', 'a a'],
    ['${B:-b}${EMPTY:-e}${EMPTY-e}', 'be'],
    ['${B:-${A}}', 'a'],
    ['${A:+yes}${B:+no}', 'yes'],
    ['$$A $$$A', '$A $a'],
    ['${B}', undefined],
    ['${B:?needed}', undefined],
    ['a$', 'a$'],
  ];
  for (const [text, value] of each) assert.equal(interpolate(text, lookup), value, text);
  assert.deepEqual(
    [...parseEnv('A=1\n# B=2\nC = "x" # y\nD=\'#\'\n=\n')],
    [
      ['A', '1'],
      ['C', 'x'],
      ['D', '#'],
    ],
  );
});

test('splits commands into words, and recognizes known images', () => {
  assert.deepEqual(splitWords(`sh -c "a 'b' && c" d\\ e ''`), ['sh', '-c', "a 'b' && c", 'd e', '']);
  assert.equal(splitWords('a "b'), undefined);
  const known = [
    'postgres:16.2-alpine',
    'ghcr.io/x/valkey/valkey',
    'mariadb:10',
    'chromadb/chroma:latest',
    'qdrant/qdrant:v1.9.0',
    'ankane/pgvector:v0.5.1',
    'postgrest/postgrest',
    'node',
  ];
  assert.deepEqual(
    known.map((image) => [findKnownImage(image)?.type, findKnownImage(image)?.version].join(' ').trim()),
    ['postgres 16.2', 'redis', 'mysql 10', 'chroma', 'qdrant 1.9.0', 'postgres 0.5.1', '', ''],
  );
});

test('takes the login of a database from the env_file that the app reads, too', () => {
  const compose = `
services:
  web: {build: ., env_file: [env.db], ports: ["8000:8000"]}
  db: {image: "postgres:16", env_file: env.db, environment: {POSTGRES_DB: shop}}
`;
  const files = { 'compose.yml': compose, Dockerfile: 'FROM a\nCMD b\n' };
  const merged = merge({ ...files, 'env.db': 'POSTGRES_USER=ann\nPOSTGRES_PASSWORD=pa$s\nPOSTGRES_DB=other\nX=1\n' });
  assert.deepEqual(merged.settings?.services?.[0]?.env, [
    { name: 'POSTGRES_USER', value: 'ann' },
    { name: 'POSTGRES_PASSWORD', value: 'pa$s' },
    { name: 'POSTGRES_DB', value: 'shop' },
  ]);
  assert.equal(env(merged)['POSTGRES_PASSWORD'], 'pa$s');
  const open = merge({ ...files, 'env.db.example': 'POSTGRES_USER=ann\nPOSTGRES_PASSWORD=change-me\n' });
  assert.deepEqual(
    open.settings?.services?.[0]?.env.map(({ name }) => name),
    ['POSTGRES_USER', 'POSTGRES_DB'],
  );
  assert.equal(env(open)['POSTGRES_PASSWORD'], '${{services.db.password}}');
});

test('gives PostgreSQL the user of its image if the app logs in with it and the file names none', () => {
  const readUser = (variable: string, user = ''): string | undefined => {
    const compose = `
services:
  web: {build: ., environment: {${variable}}, ports: ["8000:8000"]}
  db: {image: "postgres:16", environment: {POSTGRES_PASSWORD: pw${user}}}
`;
    const { settings } = merge({ 'compose.yml': compose, Dockerfile: 'FROM a\nCMD b\n' });
    return settings?.services?.[0]?.env.find(({ name }) => name === 'POSTGRES_USER')?.value;
  };
  for (const variable of ['DATABASE_URL: "postgresql+psycopg2://postgres:pw@db/x"', 'DB_USER: "${WHO:-postgres}"'])
    assert.equal(readUser(variable), 'postgres');
  assert.equal(readUser('DB_USER: postgres', ', POSTGRES_USER: ann'), 'ann');
  assert.equal(readUser('DB_HOST: db'), undefined);
});

test('leaves out a database that only tests use', () => {
  const compose = `
services:
  web: {build: ., ports: ["8000:8000"], depends_on: [db]}
  db: {image: "postgres:16"}
  db_test: {image: "postgres:16", ports: ["5433:5432"]}
`;
  const files = { Dockerfile: 'FROM a\nCMD b\n' };
  const listNames = (text: string): string[] =>
    (merge({ ...files, 'compose.yml': text }).settings?.services ?? []).map(({ name }) => name);
  assert.deepEqual(listNames(compose), ['db']);
  assert.deepEqual(listNames(compose.replace('[db]', '[db, db_test]')), ['db', 'db-test']);
  assert.deepEqual(listNames(compose.replace('  db: {image: "postgres:16"}\n', '')), ['db-test']);
});

test('names variables that lead to the machine of the developer', () => {
  const compose = `
services:
  web:
    build: .
    ports: ["8000:8000"]
    environment:
      OLLAMA_URL: http://host.docker.internal:11434
      DB_HOST: host.docker.internal
      DATABASE_URL: mysql://a:b@host.docker.internal/c
      OTHER: http://example.org
`;
  const { findings } = merge({ 'compose.yml': compose, Dockerfile: 'FROM a\nCMD b\n' });
  assert.match(
    findings.find(({ rule }) => rule === 'compose/docker-host')?.message ?? '',
    /^OLLAMA_URL, DB_HOST, DATABASE_URL name host\.docker\.internal/,
  );
});
