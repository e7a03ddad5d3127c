// An app with a volume is renamed while requests go to it at every 100 ms: none fails at the former address, which serves and then
// redirects, nor at the new one from the moment at which it is published. Its data stays, and nobody else gets its names.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import {
  appUrl,
  baseUrl,
  deleteApps,
  get,
  listPods,
  localFetch,
  readApp,
  removeFiles,
  submit,
  waitFor,
  writeFiles,
} from '../support/cluster.ts';

const [name, other] = ['e2e-rename', 'e2e-rename-other'];
const [shop, store] = ['e2e-renamed', 'e2e-renamed-again'];
const server = `const { readFileSync, writeFileSync } = require('fs');
try { readFileSync('/data/mark'); } catch { writeFileSync('/data/mark', String(Date.now())); }
require('http').createServer((request, response) => {
  let size = 0;
  request.on('data', (part) => { size += part.length; });
  request.on('end', () => {
    response.setHeader('content-type', 'text/html');
    response.end([readFileSync('/data/mark'), request.method, size, request.headers.host].join(' '));
  });
}).listen(process.env.PORT);
`;
const files = (app: string): Record<string, string> => ({
  'server.js': server,
  'package.json': `{"name": "${app}", "scripts": {"start": "node server.js"}}`,
  'moorage.yaml': 'run:\n  volumes: [{name: data, path: /data, size: 64Mi}]\n',
});
const folders: string[] = [];
const keys = new Map<string, string>();

const answer = z.looseObject({
  ...{ key: z.string().optional(), line: z.string().optional(), type: z.string().optional() },
  ...{ slug: z.string().optional(), url: z.string().optional(), repository: z.string().optional() },
});

async function ask(
  method: 'GET' | 'POST',
  app: string,
  path: string,
  json?: unknown,
): Promise<{ status: number; body: z.output<typeof answer> }> {
  const key = keys.get(app);
  const { status, body } = await get(new URL(`/api/apps/${app}${path}`, baseUrl), {
    method,
    headers: {
      'content-type': 'application/json',
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  });
  return { status, body: answer.parse(JSON.parse(body)) };
}

/** Hosts an app whose author holds a key. */
async function host(app: string): Promise<void> {
  const folder = writeFiles(app, files(app));
  folders.push(folder);
  const first = await submit(folder);
  assert.equal(first.exitCode, 0, first.all);
  const { key = '', line = '' } = (await ask('POST', app, '/keys')).body;
  writeFileSync(join(folder, '.moorage-owner'), `${line}\n`);
  const second = await submit(folder);
  assert.equal(second.exitCode, 0, second.all);
  keys.set(app, key);
  await waitFor('the key to be reviewed', async () => ((await ask('GET', app, '')).status === 200 ? true : undefined));
}

/** Sends GET and POST in turn every 100 ms, and follows redirects. `stop` lists the requests that failed. */
function requestSteadily(url: URL): { readonly count: () => number; readonly stop: () => Promise<string[]> } {
  const failures: string[] = [];
  const pending: Promise<void>[] = [];
  const over = new AbortController();
  const send = async (index: number): Promise<void> => {
    const isPost = index % 2 === 1;
    try {
      const response = await localFetch(url, isPost ? { method: 'POST', body: 'x'.repeat(1_000) } : {});
      const text = await response.text();
      const isWell = response.status === 200 && text.includes(isPost ? ' POST 1000 ' : ' GET 0 ');
      if (!isWell) failures.push(`${index}: ${response.status} ${text.slice(0, 120)}`);
    } catch (error) {
      failures.push(`${index}: ${String(error)}`);
    }
  };
  const running = (async () => {
    for (let index = 0; !over.signal.aborted; index += 1) {
      pending.push(send(index));
      await sleep(100);
    }
  })();
  return {
    count: () => pending.length,
    async stop() {
      over.abort();
      await running;
      await Promise.all(pending);
      return failures;
    },
  };
}

async function awaitUrl(slug: string): Promise<void> {
  await waitFor(`the app at ${slug}`, async () =>
    (await readApp(name)).status?.url === appUrl(slug).href ? true : undefined,
  );
}

beforeAll(async () => {
  await host(name);
  await host(other);
});
afterAll(async () => {
  for (const folder of folders) removeFiles(folder);
  await deleteApps(name, other);
});

test('no request fails at the former or the new address, and the data stays', async () => {
  const [mark] = (await get(appUrl(name))).body.split(' ');
  const pods = await listPods(`moorage.dev/app=${name}`);
  const former = requestSteadily(appUrl(name));
  await sleep(2_000);
  const renamed = await ask('POST', name, '/rename', { slug: shop });
  assert.deepEqual([renamed.status, renamed.body.slug, renamed.body.url], [200, shop, appUrl(shop).href]);
  await awaitUrl(shop);
  const current = requestSteadily(appUrl(shop));
  await waitFor('the redirect', async () => ((await get(appUrl(name))).status === 308 ? true : undefined));
  await waitFor('50 requests to each', () =>
    Promise.resolve(Math.min(former.count(), current.count()) > 50 ? true : undefined),
  );
  assert.deepEqual([...(await former.stop()), ...(await current.stop())], []);
  assert.equal((await get(appUrl(shop))).body.split(' ')[0], mark);
  // Nothing of it was started again.
  const uids = (list: typeof pods): (string | undefined)[] => list.map(({ metadata }) => metadata.uid).sort();
  assert.deepEqual(uids(await listPods(`moorage.dev/app=${name}`)), uids(pods));
});

test('the former address redirects with path and query, and the API answers at both names', async () => {
  const { status, headers } = await get(appUrl(name, '/a/b?c=d'));
  assert.deepEqual([status, headers['location']], [308, appUrl(shop, '/a/b?c=d').href]);
  for (const slug of [name, shop]) {
    keys.set(slug, keys.get(name) ?? '');
    assert.equal((await ask('GET', slug, '')).body.slug, shop);
    const page = await localFetch(new URL(`/apps/${slug}`, baseUrl), { headers: { accept: 'text/html' } });
    assert.equal(new URL(page.url).pathname, `/apps/${shop}`);
  }
});

test('attack: another app gets neither name, and the second rename moves both addresses', async () => {
  for (const slug of [name, shop]) {
    const { status, body } = await ask('POST', other, '/rename', { slug });
    assert.deepEqual([status, body.type?.split('/').at(-1)], [409, 'slug-taken'], slug);
  }
  assert.equal((await ask('POST', name, '/rename', { slug: store })).status, 200);
  await awaitUrl(store);
  for (const slug of [name, shop])
    await waitFor(`the redirect of ${slug}`, async () =>
      (await get(appUrl(slug))).headers['location'] === appUrl(store).href ? true : undefined,
    );
  assert.equal((await get(appUrl(store))).status, 200);
  // The way back.
  assert.equal((await ask('POST', name, '/rename', { slug: name })).status, 200);
  await awaitUrl(name);
  assert.equal((await get(appUrl(name))).status, 200);
});
