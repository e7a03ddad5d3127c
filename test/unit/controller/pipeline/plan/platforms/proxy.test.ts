// Which routes proxies give to components: those of a compose file, of an image with pages, and of a development server.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  type Files,
  findComponent,
  listComponents,
  mergeFiles,
  readFinding,
} from '../../../../../support/pipeline/components.ts';

const vite = '{"scripts":{"build":"vite build"},"dependencies":{"react":"19"},"devDependencies":{"vite":"6"}}';
const devPages = 'FROM node:22\nCOPY . .\nRUN npm ci\nCMD ["npx", "vite", "--host"]\n';

const behind = (
  conf: string,
  proxy = '{image: nginx, ports: ["80:80"], volumes: ["./nginx.conf:/etc/nginx/conf.d/default.conf"]}',
): Files => ({
  'compose.yml': `
services:
  site: {build: ./site, expose: [3000]}
  server: {build: ./server, expose: [8000]}
  nginx: ${proxy}
`,
  'nginx.conf': conf,
  'site/Dockerfile': 'FROM a\nCMD b\n',
  'server/Dockerfile': 'FROM a\nCMD b\n',
});

test('takes the routes of a proxy, which is not run', () => {
  const merged = mergeFiles(
    behind(`
upstream back { server server:8000; }
server {
  listen 80;
  location /.well-known/acme { root /var/www; }
  location / { proxy_pass http://site:3000; }
  location ^~ /api/ { proxy_pass http://back/; }
  location ~ ^/ws/ { proxy_pass http://back; }
}`),
  );
  assert.deepEqual(
    listComponents(merged).map(({ name, kind, port, route }) => [name, kind, port, route]),
    [
      ['site', 'web', 3000, undefined],
      ['server', 'web', 8000, { path: '/api', stripPath: true, morePaths: ['/ws'] }],
    ],
  );
  assert.match(readFinding(merged, 'compose/proxy'), /The proxy nginx is not run: .*nginx\.conf/);
});

test('names the paths that a proxy removes and the gateway keeps, and refuses more than a component can have', () => {
  const toConf = (paths: readonly string[]): string =>
    `server {\n location / { proxy_pass http://site:3000; }\n${paths.join('\n')}\n}`;
  const strips = (path: string): string => ` location ${path}/ { proxy_pass http://server:8000/; }`;
  const two = mergeFiles(behind(toConf([strips('/api'), strips('/auth')])));
  assert.deepEqual(findComponent(two, 'server').route, { path: '/api', stripPath: true, morePaths: ['/auth'] });
  assert.match(
    readFinding(two, 'components/path-kept'),
    /^\/auth of the component server is not removed from requests here: of a component, the gateway removes only \/api\./,
  );
  const many = Array.from({ length: 15 }, (_, n) => ` location /p${n} { proxy_pass http://server:8000; }`);
  assert.match(
    readFinding(mergeFiles(behind(toConf(many))), 'components/invalid'),
    /route\.morePaths of the component server/,
  );
});

test('gives / to the pages if a proxy passes it on at a port of each part', () => {
  const merged = mergeFiles({
    ...behind(`
server { listen 80; location / { proxy_pass http://server:8000; } }
server {
  listen 8080;
  location /api { try_files $uri @server; }
  location @server { proxy_pass http://server:8000; }
  location / { proxy_pass http://site:3000; }
  location /sockjs-node { proxy_pass http://site:3000; }
}`),
    'site/package.json': vite,
    'site/Dockerfile': devPages,
  });
  assert.deepEqual(
    listComponents(merged).map(({ name, route }) => [name, route]),
    [
      ['site', undefined],
      ['server', { path: '/api', stripPath: false }],
    ],
  );
});

test('leaves out the paths of a proxy that serves files before it passes them on', () => {
  const merged = mergeFiles(
    behind(`
server {
  root /srv/files;
  location / { proxy_pass http://site:3000; }
  location /api { try_files $uri @server; }
  location @server { proxy_pass http://server:8000; }
}`),
  );
  assert.match(readFinding(merged, 'compose/proxy'), /serves files at \/api/);
});

test('takes the routes of Caddy and of Traefik', () => {
  const caddy = mergeFiles({
    ...behind('', '{image: "caddy:2", volumes: ["./Caddyfile:/etc/caddy/Caddyfile"]}'),
    Caddyfile:
      'example.org {\n  handle_path /api/* {\n    reverse_proxy server:8000\n  }\n  reverse_proxy site:3000\n}\n',
  });
  assert.deepEqual(findComponent(caddy, 'server').route, { path: '/api', stripPath: true });
  assert.equal(findComponent(caddy, 'site').route, undefined);
  const traefik = mergeFiles({
    ...behind(''),
    'site/package.json': vite,
    'site/src/a.ts': 'fetch(import.meta.env.VITE_API_URL)',
    'compose.yml': `
services:
  proxy: {image: "traefik:3"}
  site:
    build: ./site
    environment: {VITE_API_URL: "http://localhost:8000/v1", VITE_LIVE: "ws://localhost:8000/ws", INNER: "http://localhost:8000"}
    labels: ["traefik.http.routers.s.rule=Host(\`\${DOMAIN}\`)", "traefik.http.services.s.loadbalancer.server.port=3000"]
  server:
    build: ./server
    labels: {traefik.http.routers.a.rule: "Host(\`api.\${DOMAIN}\`)", traefik.http.services.a.loadbalancer.server.port: 8000}
`,
  });
  assert.deepEqual(
    listComponents(traefik).map(({ name, port, route }) => [name, port, route?.subdomain]),
    [
      ['site', 3000, undefined],
      ['server', 8000, 'api'],
    ],
  );
  assert.deepEqual(
    findComponent(traefik, 'site').env?.map(({ value }) => value),
    ['${{app.api.url}}/v1', 'wss://${{app.api.host}}/ws', 'http://localhost:8000'],
  );
});

test('names what pages should be built with, if nothing gives it a value', () => {
  const read = (value: string): { rule: string; message: string }[] =>
    mergeFiles({
      ...behind(''),
      'compose.yml': `
services:
  site: {build: {context: ./site, args: {VITE_TITLE: "${value}", LEVEL: "\${LEVEL}"}}, ports: ["3000:3000"]}
  server: {build: ./server, ports: ["8000:8000"]}
`,
      'site/Dockerfile': 'FROM a\nARG VITE_TITLE\nCMD b\n',
      'site/package.json': vite,
      'site/src/a.ts': 'fetch(import.meta.env.VITE_API_URL)',
    }).findings.filter(({ rule }) => rule === 'compose/unset-arguments');
  assert.match(
    read('https://api.${DOMAIN}')[0]?.message ?? '',
    /^The pages of site are built without VITE_TITLE, which has no value in the repository\./,
  );
  assert.deepEqual(read('http://localhost:8000'), []);
});

test('runs a proxy of the repository that does more than pass requests on', () => {
  const merged = mergeFiles({
    ...behind('', '{build: ./nginx, ports: ["80:80"], depends_on: [server]}'),
    'nginx/Dockerfile': 'FROM nginx\nCOPY nginx.conf /etc/nginx/conf.d/default.conf\n',
    'nginx/nginx.conf':
      'server { location / { proxy_pass http://server:8000; } location /static/ { alias /static/; } }',
  });
  assert.deepEqual(
    listComponents(merged).map(({ name, kind, route }) => [name, kind, route]),
    [
      ['nginx', 'web', undefined],
      ['site', 'worker', undefined],
      ['server', 'worker', undefined],
    ],
  );
});

test('reaches an API by the proxy of the pages: that of their image from inside, that of development by a path', () => {
  const compose = `
services:
  client: {build: ./web, ports: ["3000:80"]}
  api: {build: ./api, ports: ["5000:5000"]}
`;
  const served = {
    'compose.yml': compose,
    'api/Dockerfile': 'FROM a\nCMD b\n',
    'web/package.json': vite,
    'web/Dockerfile':
      'FROM node AS b\nRUN npm run build\nFROM nginx\nCOPY --from=b dist /usr/share/nginx/html\nCOPY nginx.conf /etc/nginx/conf.d/\n',
    'web/nginx.conf':
      'server { location / { root /usr/share/nginx/html; } location /api { proxy_pass http://api:5000; } }',
    'web/src/main.ts': 'fetch(`${import.meta.env.VITE_API_URL ?? ""}/api/x`)',
  };
  const inside = mergeFiles(served);
  assert.deepEqual(findComponent(inside, 'api').route, { path: '/', stripPath: false, subdomain: 'api' });
  assert.equal(findComponent(inside, 'client').build, undefined);
  const config =
    "export default defineConfig({ server: { proxy: { '/api': { target: 'http://localhost:5000', rewrite: (p) => p.replace(/^\\/api/, '') }, '/ws': { target: 'ws://localhost:5000', ws: true } } } })";
  const developed = mergeFiles({
    ...served,
    'web/Dockerfile': devPages,
    'web/nginx.conf': '',
    'web/vite.config.ts': config,
  });
  assert.deepEqual(findComponent(developed, 'api').route, { path: '/api', stripPath: true, morePaths: ['/ws'] });
});
