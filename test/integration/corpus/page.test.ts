// Pages as a real browser sees them: one that works, one whose program is missing, one that is an error.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { visit } from '../../corpus/run/page.ts';
import { judgePage } from '../../corpus/run/verdict.ts';

const page = (script: string): string =>
  `<!doctype html><title>a</title><link rel="stylesheet" href="/a.css"><div id="root"></div><script>${script}</script>`;
const show = "document.getElementById('root').textContent = 'Hello';";

const bodies: Readonly<Record<string, readonly [type: string, body: string]>> = {
  '/': ['text/html', page(`${show} fetch('/api/me');`)],
  '/a.css': ['text/css', 'body { color: red }'],
  '/half': ['text/html', page(`${show} fetch('/api/a', { method: 'POST' }); fetch('/api/b');`)],
  '/blank': ['text/html', '<!doctype html><body></body>'],
  '/thrown': ['text/html', page(`${show} throw new Error('no such thing');`)],
  '/api/me': ['application/json', '{}'],
};

let server: Server;
let address = '';

beforeAll(async () => {
  server = createServer(({ url = '/' }, response) => {
    const [type, body] = bodies[url] ?? ['text/plain', 'no such page'];
    response.writeHead(bodies[url] === undefined ? 404 : 200, { 'content-type': type }).end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  address = `http://app.localhost:${(server.address() as AddressInfo).port}`;
});

afterAll(() => {
  server.close();
});

const look = (path: string): ReturnType<typeof visit> => visit(new URL(path, address), { settleMs: 500 });

test('captures a working page, with a picture of it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'moorage-page-'));
  const screenshot = join(folder, 'a.png');
  const seen = await visit(new URL(address), { settleMs: 500, screenshot });
  assert.equal(seen.status, 200);
  assert.match(seen.text, /Hello/);
  assert.deepEqual(judgePage(seen).verdict, 'live and works');
  const asked = seen.requests.map(({ url }) => new URL(url).pathname);
  assert.ok(asked.includes('/a.css') && asked.includes('/api/me'), asked.join(' '));
  assert.ok(statSync(screenshot).size > 1_000);
  await rm(folder, { recursive: true });
});

test('reports a page whose program is missing, an empty one, and one that does not exist', async () => {
  assert.match(
    judgePage(await look('/half')).faults[0] ?? '',
    /^every call of itself fails: \/api\/a 404, \/api\/b 404/,
  );
  assert.deepEqual(judgePage(await look('/blank')).faults, ['the page is empty']);
  assert.deepEqual(judgePage(await look('/nowhere')).faults, ['the page answers 404']);
});

test('keeps errors that no script caught', async () => {
  const { exceptions } = await look('/thrown');
  assert.match(exceptions[0] ?? '', /no such thing/);
});
