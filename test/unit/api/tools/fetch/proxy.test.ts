// The proxy passes on what is public, by CONNECT and by plain requests, and nothing inside.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { ProxyAgent, fetch } from 'undici';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { Guard } from '../../../../../api/tools/fetch/guard.ts';
import { startGuardProxy, type GuardProxy } from '../../../../../api/tools/fetch/proxy.ts';
import { innerNames, innerUrls } from '../../../../support/tools/fetch/inner-urls.ts';
import { countConnections, type Listener } from '../../../../support/tools/fetch/listener.ts';
import { page, startWeb, type Web } from '../../../../support/tools/fetch/web.ts';

describe('the guarded proxy', () => {
  let listener: Listener;
  let web: Web;
  let proxy: GuardProxy;
  const resolve = async (name: string): Promise<string[]> => {
    const addresses = innerNames[name];
    return addresses === undefined ? Promise.reject(new Error('no such name')) : Promise.resolve([...addresses]);
  };

  beforeAll(async () => {
    listener = await countConnections();
    web = await startWeb({
      '/page': page('text/plain', 'seen', { 'x-kept': '1' }),
      '/endless': (_request, response) => {
        const more = (): void => {
          while (response.write('x'.repeat(65_536)));
        };
        response.on('drain', more);
        more();
      },
      '/silent': () => undefined,
      '/echo': (asked, response) => {
        asked.pipe(response);
      },
    });
    proxy = await startGuardProxy({
      guard: new Guard({ ports: [80, 443, listener.port], allow: [web.host], resolve }),
      host: '127.0.0.1',
      port: 0,
      maxBytes: 1_000_000,
      idleMs: 1_000,
    });
  });
  afterAll(async () => {
    await proxy.close();
    await web.close();
    await listener.close();
  });

  const through = async (path: string, init: Record<string, string> = {}, proxyTunnel = false): Promise<string> => {
    const agent = new ProxyAgent({ uri: proxy.url, proxyTunnel });
    try {
      return await (await fetch(`${web.url}${path}`, { ...init, dispatcher: agent })).text();
    } finally {
      await agent.destroy();
    }
  };
  const plain = async (path: string): Promise<number> =>
    new Promise((resolved, rejected) => {
      const { hostname, port } = new URL(proxy.url);
      const sent = request(
        { host: hostname, port, path, headers: { host: 'example.com' }, agent: false },
        (response) => {
          response.resume();
          resolved(response.statusCode ?? 0);
        },
      );
      sent.on('error', rejected).end();
    });
  const tunnel = async (authority: string): Promise<string> => {
    const { hostname, port } = new URL(proxy.url);
    const socket = connect(Number(port), hostname);
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n\r\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    socket.destroy();
    return answer.toString().split('\r\n')[0] ?? '';
  };

  it('forwards a page in both directions, and a body', async () => {
    assert.equal(await through('/page'), 'seen');
    assert.equal(await through('/page', {}, true), 'seen');
    assert.equal(await through('/echo', { method: 'POST', body: 'sent' }), 'sent');
  });

  it('rejects every internal address', async () => {
    const urls = innerUrls(listener.port).filter(
      (url) => /^https?:\/\/[^\s\0@\\#]+$/i.test(url) && Buffer.from(url, 'latin1').toString() === url,
    );
    assert.ok(urls.length >= 60);
    for (const url of urls) {
      const status = await plain(url.replace(/^http:\/\/(?=.)/i, 'http://'));
      assert.ok(status === 403 || status === 400, `${url} ${status}`);
      const authority = url.replace(/^https?:\/\/|\/$/gi, '');
      assert.match(await tunnel(authority), / 40[03] /, authority);
    }
    assert.equal(listener.connections(), 0);
  });

  it('rejects incomplete addresses and upgrades', async () => {
    assert.equal(await plain('/page'), 403);
    assert.equal(await plain(`https://${web.host}/page`), 403);
  });

  it('closes silent and excessive connections', async () => {
    await assert.rejects(through('/silent', {}, true));
    await assert.rejects(through('/endless', {}, true));
    await assert.rejects(through('/endless'));
  });
});
