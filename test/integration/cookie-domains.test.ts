// Which cookies of an app a real browser sends to the API: on a shared domain those that it likes, on its own domain none.
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest';
import { node } from '../../localnode/node/settings.ts';
import { formatAppHost } from '../../crds/names.ts';
import { startBrowser, type Browser } from '../support/browser.ts';
import { hostileCookies, hostilePage } from '../support/cookie-attack.ts';

const received = new Map<string, string>();
let server: Server;
let port = 0;
let browser: Browser;

beforeAll(async () => {
  server = createServer((request, response) => {
    const host = request.headers.host ?? '';
    if (request.url === '/') received.set(host.replace(/:.*/, ''), request.headers.cookie ?? '');
    const cookies = host.startsWith('hostile.') ? hostileCookies(host.replace(/:.*/, ''), node.baseDomain) : [];
    response.setHeader('content-type', 'text/html');
    response.setHeader('set-cookie', cookies).end(hostilePage(cookies));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => server.close());

const at = (host: string): URL => new URL(`http://${host}:${port}/`);

describe('an app that sets cookies for every domain above it', () => {
  beforeEach(async () => {
    received.clear();
    browser = await startBrowser();
    return () => browser.close();
  });

  /** What reaches the API and another app, after a visit of the app. */
  async function visited(domain: string): Promise<{ api: string; neighbour: string }> {
    const neighbour = formatAppHost('neighbour', { domain, port });
    for (const host of [formatAppHost('hostile', { domain, port }), node.baseDomain, neighbour])
      await browser.open(at(host));
    const sent = (host: string): string => received.get(host) ?? assert.fail(`${host} was not asked`);
    const [api, other] = [sent(node.baseDomain), sent(neighbour)];
    assert.equal(
      (await browser.cookiesFor(at(node.baseDomain))).length > 0,
      api !== '',
      'what is sent is what is said',
    );
    return { api, neighbour: other };
  }

  test("under the API's domain, its cookies reach the API", async () => {
    assert.match((await visited(node.baseDomain)).api, /toss_.*script_/);
  });

  test('under a separate domain, its cookies reach other apps, and never the API', async () => {
    const { api, neighbour } = await visited(node.appsDomain);
    assert.equal(api, '');
    assert.match(neighbour, /toss_.*script_/, 'only the Public Suffix List ends this');
  });
});
