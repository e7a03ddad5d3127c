// What a compose file with several built services becomes: components with routes, variables, ports and volumes.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  findComponent,
  listComponents,
  listRules,
  mergeFiles,
  readEnv,
  readFinding,
} from '../../../../../support/pipeline/components.ts';

const vite = '{"scripts":{"build":"vite build"},"dependencies":{"react":"19"},"devDependencies":{"vite":"6"}}';
const next = '{"scripts":{"build":"next build","start":"next start"},"dependencies":{"next":"15","react":"19"}}';
const python = {
  'api/Dockerfile': 'FROM python\nCMD uvicorn main:app --host 0.0.0.0 --port 8000\n',
  'api/main.py': '',
};
const devPages = 'FROM node:22\nCOPY . .\nRUN npm ci\nCMD ["npx", "vite", "--host"]\n';

const shop = `
services:
  frontend:
    build: ./web
    ports: ["5173:5173"]
    volumes: ["./web:/app", "/app/node_modules"]
    environment:
      VITE_API_URL: http://localhost:8000
    depends_on: [api]
  api:
    build: {context: ./api}
    command: uvicorn main:app --reload --host 0.0.0.0 --port 8000
    ports: ["127.0.0.1:8000:8000"]
    environment:
      DATABASE_URL: postgres://app:pw@db:5432/shop
      CLIENT_URL: http://localhost:5173
      JWT_SECRET: dev
    volumes: ["uploads:/data/uploads"]
    depends_on:
      db: {condition: service_healthy}
      migrate: {condition: service_completed_successfully}
    healthcheck: {test: ["CMD", "curl", "-f", "http://localhost:8000/health"]}
  worker:
    build: ./api
    command: celery -A main worker
    environment: {JWT_SECRET: dev}
    volumes: ["uploads:/srv/uploads"]
    depends_on: {api: {condition: service_started}}
  migrate:
    build: ./api
    command: alembic upgrade head
    depends_on: [db]
  db: {image: "postgres:16", environment: {POSTGRES_USER: app, POSTGRES_PASSWORD: pw, POSTGRES_DB: shop}}
  debug: {build: ./api, profiles: [tools]}
`;
const shopFiles = { 'compose.yaml': shop, ...python, 'web/package.json': vite, 'web/Dockerfile': devPages };

test('makes a component of each built service, with one image for those that share it', () => {
  const merged = mergeFiles(shopFiles);
  assert.deepEqual(
    listComponents(merged).map(({ name, kind, path, image }) => [name, kind, path, image]),
    [
      ['frontend', 'web', 'web', undefined],
      ['api', 'web', 'api', undefined],
      ['worker', 'worker', '.', 'api'],
      ['migrate', 'task', '.', 'api'],
    ],
  );
  assert.deepEqual(findComponent(merged, 'api').command, [
    'uvicorn',
    'main:app',
    '--host',
    '0.0.0.0',
    '--port',
    '8000',
  ]);
  assert.deepEqual(findComponent(merged, 'worker').command, ['celery', '-A', 'main', 'worker']);
  assert.deepEqual([findComponent(merged, 'api').port, findComponent(merged, 'worker').port], [8000, undefined]);
  assert.equal(findComponent(merged, 'api').healthPath, '/health');
  assert.deepEqual(
    merged.settings?.services?.map(({ name, type }) => [name, type]),
    [['db', 'postgres']],
  );
  assert.equal(merged.settings.run?.port, undefined);
  assert.equal(merged.settings.source, undefined);
});

test('starts components after those that the file lets them wait for, and tasks before all', () => {
  const merged = mergeFiles(shopFiles);
  assert.deepEqual(findComponent(merged, 'frontend').dependsOn, ['api']);
  assert.deepEqual(findComponent(merged, 'worker').dependsOn, ['api']);
  assert.equal(findComponent(merged, 'api').dependsOn, undefined);
  assert.equal(findComponent(merged, 'migrate').dependsOn, undefined);
});

test('replaces addresses of published ports by those of the app, for the build of pages too', () => {
  const merged = mergeFiles(shopFiles);
  assert.deepEqual(findComponent(merged, 'api').route, { path: '/api', stripPath: true });
  const variable = { name: 'VITE_API_URL', value: '${{app.url}}/api' };
  assert.deepEqual(findComponent(merged, 'frontend').build, { env: [variable] });
  assert.deepEqual(findComponent(merged, 'frontend').env, [variable]);
  assert.deepEqual(readEnv(findComponent(merged, 'api')), {
    DATABASE_URL: 'postgres://app:pw@db:5432/shop',
    CLIENT_URL: '${{app.url}}',
  });
});

test('gives all components the same generated secrets, and volumes with the same source the same name', () => {
  const merged = mergeFiles(shopFiles);
  assert.deepEqual(merged.settings?.run?.env, [{ name: 'JWT_SECRET', value: '${{secret}}' }]);
  assert.deepEqual(findComponent(merged, 'api').volumes, [{ name: 'uploads', path: '/data/uploads', size: '1Gi' }]);
  assert.deepEqual(findComponent(merged, 'worker').volumes, [{ name: 'uploads', path: '/srv/uploads', size: '1Gi' }]);
});

test('explains the components, and names what is left out', () => {
  const merged = mergeFiles(shopFiles);
  const found = readFinding(merged, 'components/found');
  assert.match(found, /4 components: frontend answers at \/, since it has the pages; api answers at \/api/);
  assert.match(found, /api answers at \/api, since VITE_API_URL of frontend names it/);
  assert.match(found, /migrate runs once before each release serves/);
  assert.match(readFinding(merged, 'compose/profiles'), /: debug\./);
  assert.match(readFinding(merged, 'compose/mounted-source'), /\.\/web:\/app of frontend/);
});

test('keeps one process where the author describes one', () => {
  for (const own of [
    'source: {path: api}',
    'run: {port: 9000}',
    'build: {dockerfile: api/Dockerfile}',
    'run: {command: [x]}',
  ])
    assert.deepEqual(listComponents(mergeFiles({ ...shopFiles, 'moorage.yaml': own })), [], own);
  assert.deepEqual(listComponents(mergeFiles(shopFiles, { path: 'api' })), []);
  assert.deepEqual(listComponents(mergeFiles(shopFiles, { hasCommand: true })), []);
});

test('lays the components of moorage.yaml over those of the file', () => {
  const own = 'components: [{name: api}, {name: frontend, route: {subdomain: shop}, env: [{name: X, value: "1"}]}]\n';
  const merged = mergeFiles({ ...shopFiles, 'moorage.yaml': own });
  assert.deepEqual(
    listComponents(merged).map(({ name }) => name),
    ['api', 'frontend'],
  );
  const api = findComponent(merged, 'api');
  assert.deepEqual([api.path, api.port, api.command?.[0], api.kind], ['api', 8000, 'uvicorn', 'web']);
  const frontend = findComponent(merged, 'frontend');
  assert.deepEqual([frontend.path, frontend.route?.subdomain, readEnv(frontend)], ['web', 'shop', { X: '1' }]);
});

test('shows both readings, and the line that decides, where nothing says which one answers at /', () => {
  const two = `
services:
  vote: {build: ./vote, ports: ["5000:80"]}
  result: {build: ./result, ports: ["5001:80"]}
  worker: {build: ./worker}
`;
  const dockerfile = 'FROM node\nENV PORT 80\nCMD node server.js\n';
  const files = {
    'compose.yml': two,
    'vote/Dockerfile': 'FROM python\nCMD gunicorn -b 0.0.0.0:80 app:app\n',
    'result/Dockerfile': dockerfile,
    'worker/Dockerfile': 'FROM node\nCMD node worker.js\n',
  };
  const merged = mergeFiles(files);
  assert.equal(findComponent(merged, 'vote').route, undefined);
  assert.equal(findComponent(merged, 'result').route?.subdomain, 'result');
  const text = readFinding(merged, 'components/found');
  const line = /write in moorage\.yaml: (components: \[.*?\]) To host/.exec(text)?.[1] ?? '';
  assert.match(line, /\{name: result, route: \{path: \/\}\}/);
  const other = mergeFiles({ ...files, 'moorage.yaml': line });
  assert.deepEqual(
    listRules(other).filter((each) => each.startsWith('error')),
    [],
  );
  assert.deepEqual(
    [findComponent(other, 'vote').route?.subdomain, findComponent(other, 'result').route?.path],
    ['vote', '/'],
  );
  assert.equal(findComponent(other, 'worker').path, 'worker');
  assert.doesNotMatch(readFinding(mergeFiles(shopFiles), 'components/found'), /is to answer at/);
});

test('moves a component that listens where $PORT says off a port that is taken, with its address', () => {
  const compose = `
services:
  web: {build: ./web, ports: ["80:3000"], environment: {API: "http://api:3000/v1"}, depends_on: [api]}
  api: {build: ./api, ports: ["81:3000"], environment: {PORT: "3000"}}
`;
  const fixed = 'FROM node\nCMD node server.js\n';
  const merged = mergeFiles({ 'compose.yml': compose, 'web/Dockerfile': fixed, 'api/Dockerfile': fixed });
  assert.deepEqual([findComponent(merged, 'web').port, findComponent(merged, 'api').port], [3000, 3001]);
  assert.deepEqual(readEnv(findComponent(merged, 'web')), { API: 'http://api:3001/v1' });
  const both = mergeFiles({
    'compose.yml': compose.replace(/PORT: "3000"/, ''),
    'web/Dockerfile': fixed,
    'api/Dockerfile': fixed,
  });
  assert.deepEqual([findComponent(both, 'web').port, findComponent(both, 'api').port], [3000, 3000]);
});

test('names components like host names, and their addresses with them', () => {
  const compose = `
services:
  app: {build: ./site, ports: ["80:3000"], environment: {API_HOST: My_Api, API_URL: "http://My_Api:8000", ROOT: /app/data}}
  My_Api: {build: ./api, container_name: shop-api, environment: {SITE: "http://app:3000"}}
`;
  const merged = mergeFiles({
    'compose.yml': compose,
    'site/Dockerfile': 'FROM a\nCMD b\n',
    'api/Dockerfile': 'FROM a\nCMD b\n',
  });
  assert.deepEqual(
    listComponents(merged).map(({ name, kind, port }) => [name, kind, port]),
    [
      ['web', 'web', 3000],
      ['shop-api', 'worker', 8000],
    ],
  );
  assert.deepEqual(readEnv(findComponent(merged, 'web')), {
    API_HOST: 'shop-api',
    API_URL: 'http://shop-api:8000',
    ROOT: '/app/data',
  });
  assert.deepEqual(readEnv(findComponent(merged, 'shop-api')), { SITE: 'http://web:3000' });
});

test('plans pages whose Dockerfile does not take the address that they need', () => {
  const compose = `
services:
  front: {build: {context: ./web, target: dev}, ports: ["3000:3000"], environment: {NEXT_PUBLIC_API_URL: "http://localhost:8000"}}
  api: {build: ./api, ports: ["8000:8000"]}
`;
  const dockerfile = 'FROM node AS dev\nCMD npm run dev\nFROM node AS prod\nRUN npm run build\nCMD npm start\n';
  const files = { 'compose.yml': compose, ...python, 'web/package.json': next, 'web/Dockerfile': dockerfile };
  const merged = mergeFiles(files);
  const variable = { name: 'NEXT_PUBLIC_API_URL', value: '${{app.url}}/api' };
  assert.deepEqual(findComponent(merged, 'front').build, { strategy: 'node', env: [variable] });
  assert.match(
    readFinding(merged, 'components/build-argument'),
    /NEXT_PUBLIC_API_URL.*so Moorage plans their build instead/,
  );
  const declared = mergeFiles({
    ...files,
    'web/Dockerfile': dockerfile.replace('AS prod', 'AS prod\nARG NEXT_PUBLIC_API_URL'),
  });
  assert.deepEqual(findComponent(declared, 'front').build, { args: [variable] });
  // Pages of the server's own at /api keep that path.
  const own = mergeFiles({ ...files, 'web/app/api/auth/route.ts': '' });
  assert.deepEqual(findComponent(own, 'api').route, { path: '/backend', stripPath: true });
});

test('rejects pages that call the machine of their developer', () => {
  const compose =
    'services:\n  web: {build: ./web, ports: ["5173:5173"]}\n  api: {build: ./api, ports: ["8000:8000"]}\n';
  const files = { 'compose.yml': compose, ...python, 'web/package.json': vite, 'web/Dockerfile': devPages };
  const wrong = mergeFiles({ ...files, 'web/src/api.ts': '\nexport const url = "http://localhost:8000/items";\n' });
  const finding = wrong.findings.find(({ rule }) => rule === 'components/local-address');
  assert.deepEqual([finding?.severity, finding?.file, finding?.line], ['error', 'web/src/api.ts', 2]);
  const fallback = mergeFiles({
    ...files,
    'web/src/api.ts': 'export const url = import.meta.env.VITE_API_URL || "http://localhost:8000";',
  });
  assert.deepEqual(
    listRules(fallback).filter((each) => each.startsWith('error')),
    [],
  );
  assert.deepEqual(findComponent(fallback, 'web').build?.env, [{ name: 'VITE_API_URL', value: '${{app.url}}/api' }]);
});

test('adds ENTRYPOINT of the Dockerfile before the command of a service', () => {
  const compose =
    'services:\n  web: {build: ., ports: [80]}\n  worker: {build: ., command: "work --all"}\n  beat: {build: ., command: beat}\n';
  const merged = mergeFiles({
    'compose.yml': compose,
    Dockerfile: 'FROM a\nENTRYPOINT ["/entry.sh"]\nCMD ["serve"]\n',
  });
  assert.deepEqual(findComponent(merged, 'worker').command, ['/entry.sh', 'work', '--all']);
  assert.equal(findComponent(merged, 'web').command, undefined);
});

test('takes fields of a service that another one extends', () => {
  const compose =
    'services:\n  web: {build: ., ports: [80], environment: {A: "1"}}\n  worker: {extends: {service: web}, ports: [], command: work}\n';
  const merged = mergeFiles({ 'compose.yml': compose, Dockerfile: 'FROM a\nCMD b\n' });
  assert.deepEqual(
    [findComponent(merged, 'worker').image, readEnv(findComponent(merged, 'worker'))],
    ['web', { A: '1' }],
  );
});

test('leaves out jobs that need a running component, and rejects more components than an app may have', () => {
  const seed =
    'services:\n  web: {build: ., ports: [80]}\n  fill: {build: ./fill, restart: "no", depends_on: [web]}\n  worker: {build: ./w}\n';
  const merged = mergeFiles({ 'compose.yml': seed, Dockerfile: '', 'fill/Dockerfile': '', 'w/Dockerfile': '' });
  assert.deepEqual(
    listComponents(merged).map(({ name }) => name),
    ['web', 'worker'],
  );
  assert.match(readFinding(merged, 'compose/late-job'), /: fill\./);
  const services = Array.from(
    { length: 9 },
    (_, index) => `  s${index}: {build: ./s${index}, ports: ["${3000 + index}"]}\n`,
  );
  const many = mergeFiles({ 'compose.yml': `services:\n${services.join('')}` });
  assert.deepEqual(listRules(many), ['error compose/too-many-services']);
  assert.match(many.findings[0]?.message ?? '', /starts 9 services of the app itself \(s0, .*s8\).*at most 8/);
});

test('expands variables of an env_file, and gives databases their usual port', () => {
  const compose = `
services:
  web: {build: ./web, ports: ["80:3000"], volumes: ["./web/.env:/app/.env"]}
  api: {build: ./api, env_file: web/.env, environment: {DB_PORT: "3307", DB: "mysql://my_db:3307/x"}}
  my_db: {image: "mysql:8", environment: {MYSQL_TCP_PORT: 3307, MYSQL_ROOT_PASSWORD: x}}
`;
  const merged = mergeFiles({
    'compose.yml': compose,
    '.env.example': 'NAME=shop\nDATABASE_NAME=${NAME}_db\n',
    'web/Dockerfile': 'FROM a\nCMD b\n',
    'api/Dockerfile': 'FROM a\nCMD b\n',
  });
  assert.deepEqual(readEnv(findComponent(merged, 'web')), { NAME: 'shop', DATABASE_NAME: 'shop_db' });
  assert.deepEqual(readEnv(findComponent(merged, 'api')), {
    NAME: 'shop',
    DATABASE_NAME: 'shop_db',
    DB_PORT: '3306',
    DB: 'mysql://my-db:3306/x',
  });
});

test('rejects components that wait for a server which nothing offers', () => {
  const compose = `
services:
  web: {build: ., ports: ["8000"], depends_on: [queue, ollama]}
  worker: {build: ., command: work, depends_on: [queue]}
  queue: {image: "rabbitmq:4-management"}
  ollama: {image: "ollama/ollama"}
`;
  const merged = mergeFiles({ 'compose.yml': compose, Dockerfile: 'FROM a\nCMD b\n' });
  assert.deepEqual(
    listRules(merged).filter((each) => each.startsWith('error')),
    ['error compose/missing-service'],
  );
  assert.match(
    readFinding(merged, 'compose/missing-service'),
    /The service web waits for queue \(rabbitmq:4-management\)/,
  );
  const own = mergeFiles({
    'compose.yml': compose,
    Dockerfile: 'FROM a\nCMD b\n',
    'moorage.yaml': 'components: [{name: web}]',
  });
  assert.deepEqual(
    listRules(own).filter((each) => each.startsWith('error')),
    [],
  );
});

test('keeps the image of web as the one at /, whatever monitors its workers', () => {
  const compose = `
services:
  web: {build: ., command: serve, ports: ["8004:8000"]}
  dashboard: {build: ., command: celery flower, ports: ["5556:5555"], depends_on: [web]}
`;
  const merged = mergeFiles({ 'compose.yml': compose, Dockerfile: 'FROM a\n' });
  assert.deepEqual(
    listComponents(merged).map(({ name, image, route }) => [name, image, route?.subdomain]),
    [
      ['web', undefined, undefined],
      ['dashboard', 'web', 'dashboard'],
    ],
  );
});

test('reads services of files that the compose file includes', () => {
  const merged = mergeFiles({
    'compose.yml': 'include: [infra.yml]\nservices:\n  web: {build: ., ports: [80]}\n  worker: {build: ./w}\n',
    'infra.yml': 'services: {db: {image: "postgres:16"}}',
    Dockerfile: '',
    'w/Dockerfile': '',
  });
  assert.deepEqual([listComponents(merged).length, merged.settings?.services?.map(({ name }) => name)], [2, ['db']]);
});

test('leaves folders that belong to the machine of the developer alone', () => {
  const compose = `
services:
  web: {build: ., ports: [80], volumes: ["~/.config/gcloud:/root/.config/gcloud", "/var/run/docker.sock:/var/run/docker.sock"], privileged: true}
  worker: {build: ., command: work, network_mode: host}
`;
  const merged = mergeFiles({ 'compose.yml': compose, Dockerfile: 'FROM a\nCMD b\n' });
  assert.equal(findComponent(merged, 'web').volumes, undefined);
  assert.match(readFinding(merged, 'compose/privileged'), /not given to: web, worker/);
  assert.match(readFinding(merged, 'compose/docker-socket'), /The service web mounts the socket/);
});

test('keeps the address on which a server itself listens', () => {
  const compose = `
services:
  web: {build: ./web, ports: ["3000:3000"], environment: {SITE_URL: "http://localhost:3000/x", API: "http://localhost:8080"}}
  api: {build: ./api, ports: ["8080:8080"], environment: {ASPNETCORE_URLS: "http://localhost:8080", OTHER: "http://0.0.0.0:8080"}}
`;
  const image = 'FROM a\nCMD b\n';
  const merged = mergeFiles({ 'compose.yml': compose, 'web/Dockerfile': image, 'api/Dockerfile': image });
  assert.deepEqual(readEnv(findComponent(merged, 'web')), { SITE_URL: '${{app.url}}/x', API: '${{app.url}}/api' });
  assert.deepEqual(readEnv(findComponent(merged, 'api')), {
    ASPNETCORE_URLS: 'http://localhost:8080',
    OTHER: 'http://0.0.0.0:8080',
  });
});

test('divides the cores of an app among more components than usual', () => {
  const services = Array.from(
    { length: 5 },
    (_, index) => `  s${index}: {build: ./s${index}, ports: ["${3000 + index}"]}\n`,
  );
  const dockerfiles = Object.fromEntries(services.map((_, index) => [`s${index}/Dockerfile`, 'FROM a\nCMD b\n']));
  const merged = mergeFiles({ 'compose.yml': `services:\n${services.join('')}`, ...dockerfiles });
  assert.deepEqual(
    listComponents(merged).map(({ resources }) => resources?.cpu),
    ['800m', '800m', '800m', '800m', '800m'],
  );
  assert.equal(findComponent(mergeFiles(shopFiles), 'api').resources, undefined);
});

test('rejects pages into which their Dockerfile builds an address of the developer', () => {
  const compose =
    'services:\n  web: {build: ./web, ports: ["8080:8080"]}\n  api: {build: ./api, ports: ["5001:8000"]}\n';
  const dockerfile = 'FROM node\nRUN ROOT_API=http://localhost:5001 npm run build\nCMD ["http-server", "dist"]\n';
  const merged = mergeFiles({
    'compose.yml': compose,
    ...python,
    'web/package.json': vite,
    'web/Dockerfile': dockerfile,
  });
  const finding = merged.findings.find(({ severity }) => severity === 'error');
  assert.deepEqual([finding?.rule, finding?.file, finding?.line], ['components/local-address', 'web/Dockerfile', 2]);
});

test('starts services of the profiles that the sample of .env turns on, without those that watch sources', () => {
  const compose = `
services:
  web: {build: ., ports: [8000], profiles: [web]}
  worker: {build: ., command: work, profiles: [worker]}
  css: {build: {context: ., target: assets}, command: watch, profiles: [assets]}
  gulp: {build: ./gulp, ports: ["3000:3000"], profiles: [assets]}
  redis: {image: redis, profiles: [redis]}
  extra: {build: ./extra, profiles: [extra]}
`;
  const sample = 'export COMPOSE_PROFILES=redis,assets,web,worker\n';
  const merged = mergeFiles({ 'compose.yml': compose, '.env.example': sample, Dockerfile: 'FROM a\nCMD b\n' });
  assert.deepEqual(
    listComponents(merged).map(({ name }) => name),
    ['web', 'worker'],
  );
  assert.deepEqual(
    merged.settings?.services?.map(({ name }) => name),
    ['redis'],
  );
  assert.match(readFinding(merged, 'compose/profiles'), /: extra\./);
});

test('prefers the container that the default of a variable names to the address of a sample file', () => {
  const compose = `
services:
  web: {build: ./web, ports: ["3000:3000"], environment: {RAG_URL: "\${RAG_URL:-http://rag:8001}", PUBLIC: "\${SITE:-http://localhost:3000}"}}
  rag: {build: ./rag, ports: ["8001:8001"]}
`;
  const image = 'FROM a\nCMD b\n';
  const sample = 'RAG_URL=http://localhost:8001\nSITE=http://localhost:3000\n';
  const merged = mergeFiles({
    'compose.yml': compose,
    '.env.example': sample,
    'web/Dockerfile': image,
    'rag/Dockerfile': image,
  });
  assert.deepEqual(readEnv(findComponent(merged, 'web')), { RAG_URL: 'http://rag:8001', PUBLIC: '${{app.url}}' });
});

test('names hosts in commands as they are named here', () => {
  const compose = `
services:
  web: {build: ., command: "wait-for-it my_db:5432 -- serve --host my_db --name app", ports: [80]}
  worker: {build: ., command: work}
  my_db: {image: "postgres:16"}
`;
  const merged = mergeFiles({ 'compose.yml': compose, Dockerfile: 'FROM a\nCMD b\n' });
  const words = ['wait-for-it', 'my-db:5432', '--', 'serve', '--host', 'my-db', '--name', 'app'];
  assert.deepEqual(findComponent(merged, 'web').command, words);
});

test('rejects components with a field that is not possible here, by its name', () => {
  const compose = 'services:\n  web: {build: {context: ., target: "1st"}, ports: [80]}\n  worker: {build: ./w}\n';
  const merged = mergeFiles({ 'compose.yml': compose, Dockerfile: 'FROM a AS 1st\nCMD b\n', 'w/Dockerfile': '' });
  assert.deepEqual(listComponents(merged), []);
  const [error] = merged.findings.filter(({ severity }) => severity === 'error');
  assert.equal(error?.rule, 'components/invalid');
  assert.match(error.message, /build\.target of the component web.*target must be the name of a stage/);
});

test('builds the Dockerfile for visitors where the file names one for development', () => {
  const compose = `
services:
  web: {build: {context: ./web, dockerfile: Dockerfile.dev}, ports: ["3000:5173"], environment: {VITE_API_URL: "http://localhost:8000"}}
  api: {build: ./api, ports: ["8000:8000"]}
`;
  const files = { 'compose.yml': compose, ...python, 'web/package.json': vite, 'web/Dockerfile.dev': devPages };
  const visitors = 'FROM node\nARG VITE_API_URL\nRUN npm run build\nFROM nginx\nEXPOSE 80\nCMD nginx\n';
  const merged = mergeFiles({ ...files, 'web/Dockerfile': visitors });
  const variable = { name: 'VITE_API_URL', value: '${{app.url}}/api' };
  assert.deepEqual(findComponent(merged, 'web').build, { args: [variable] });
  assert.equal(findComponent(merged, 'web').port, 80);
  assert.deepEqual(findComponent(mergeFiles(files), 'web').build, { env: [variable] });
});
