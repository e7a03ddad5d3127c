// Apps and API have a domain each: an app sets no cookie for the API, and neither answers at the other's domain.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { startBrowser, type Browser } from '../support/browser.ts';
import { appsUrl, appUrl, baseUrl, deleteApps, get, submit, runWithFiles } from '../support/cluster.ts';
import { hostileCookies, hostilePage } from '../support/cookie-attack.ts';

const app = 'e2e-cookies';
const neighbour = 'hello';
let browser: Browser;

beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => {
  await browser.close();
  await deleteApps(app);
});

function at(hostname: string): URL {
  const url = new URL(baseUrl);
  url.hostname = hostname;
  return url;
}

test('whatever domain an app sets cookies for, a browser never sends them to the API', async () => {
  const cookies = hostileCookies(appUrl(app).hostname, baseUrl.hostname);
  const server = `require('http').createServer((request, response) => {
  response.setHeader('set-cookie', ${JSON.stringify(cookies)});
  response.setHeader('content-type', 'text/html');
  response.end(${JSON.stringify(hostilePage(cookies))});
}).listen(process.env.PORT);
`;
  const files = {
    'server.js': server,
    'package.json': '{"name": "e2e-cookies", "scripts": {"start": "node server.js"}}',
  };
  const ended = await runWithFiles(app, files, (folder) => submit(folder));
  assert.equal(ended.exitCode, 0, ended.all);
  const { headers } = await get(appUrl(app));
  assert.equal(headers['set-cookie']?.length, cookies.length, 'the gateway passes them on');
  await browser.open(appUrl(app));
  await browser.open(appUrl(neighbour));
  // What shows that the browser took the cookies at all, and what remains until the Public Suffix List has the domain.
  assert.notDeepEqual(await browser.cookiesFor(appUrl(neighbour)), []);
  for (const path of ['/', '/api/submit', '/t/memory', '/mcp'])
    assert.deepEqual(await browser.cookiesFor(new URL(path, baseUrl)), [], path);
  assert.deepEqual(await browser.cookiesFor(at(`git.${baseUrl.hostname}`)), []);
});

test('an app responds only at its own domain, and the API only at its own', async () => {
  assert.equal((await get(appUrl(neighbour))).status, 200);
  assert.equal((await get(at(`${neighbour}.${baseUrl.hostname}`))).status, 404);
  assert.equal((await get(appsUrl)).status, 404);
  assert.equal((await get(new URL('/openapi.json', appsUrl))).status, 404);
  assert.equal((await get(appUrl('git', '/'))).status, 404);
  assert.equal((await get(new URL('/openapi.json', baseUrl))).status, 200);
});
