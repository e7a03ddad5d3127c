// The limits of a fetch: size, time, headers, redirects; and what is not sent along.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { GuardedFetcher, type FetchRequest } from '../../../../../api/tools/fetch/fetcher.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { page, startWeb, type Web } from '../../../../support/tools/fetch/web.ts';

const mib = 1_048_576;
const zeros = Buffer.alloc(16 * mib);
/** Zeros are as small at any quality. */
const quick = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };
const text = 'mooring '.repeat(1_000);
const signal = new AbortController().signal;

describe('limits of the guarded fetch', () => {
  let web: Web;
  let other: Web;
  let fetcher: GuardedFetcher;
  const ask = async (path: string, more: Partial<FetchRequest> = {}): ReturnType<GuardedFetcher['fetch']> =>
    fetcher.fetch({ url: `${web.url}${path}`, maxBytes: mib, signal, ...more });
  const fails = async (path: string, slug: string, words: RegExp, more: Partial<FetchRequest> = {}): Promise<void> =>
    assert.rejects(ask(path, more), (error) => {
      assert.ok(error instanceof Problem, String(error));
      assert.equal(error.type.slug, slug, error.message);
      assert.match(error.message, words);
      return true;
    });

  beforeAll(async () => {
    other = await startWeb({
      '/echo': (request, response) => {
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ method: request.method, headers: request.headers }));
      },
    });
    web = await startWeb({
      '/plain': page('Text/Plain; charset=utf-8', text),
      '/gzip': page('text/plain', gzipSync(text), { 'content-encoding': 'gzip' }),
      '/br': page('text/plain', brotliCompressSync(text), { 'content-encoding': 'BR' }),
      '/zstd': page('text/plain', zstdCompressSync(text), { 'content-encoding': 'zstd' }),
      '/deflate': page('text/plain', deflateSync(text), { 'content-encoding': 'deflate' }),
      '/twice': page('text/plain', brotliCompressSync(gzipSync(text)), { 'content-encoding': 'gzip, br' }),
      '/bomb/gzip': page('text/plain', gzipSync(zeros), { 'content-encoding': 'gzip' }),
      '/bomb/br': page('text/plain', brotliCompressSync(zeros, quick), { 'content-encoding': 'br' }),
      '/bomb/zstd': page('text/plain', zstdCompressSync(zeros), { 'content-encoding': 'zstd' }),
      '/bomb/nested': page('text/plain', gzipSync(gzipSync(zeros)), { 'content-encoding': 'gzip, gzip' }),
      '/bomb/empty-members': page('text/plain', Buffer.concat(new Array<Buffer>(100_000).fill(gzipSync(''))), {
        'content-encoding': 'gzip',
      }),
      '/thrice': page('text/plain', gzipSync(gzipSync(gzipSync(text))), { 'content-encoding': 'gzip, gzip, gzip' }),
      '/unknown': page('text/plain', text, { 'content-encoding': 'constructor' }),
      '/not-gzip': page('text/plain', text, { 'content-encoding': 'gzip' }),
      '/cut-gzip': page('text/plain', gzipSync(text).subarray(0, 20), { 'content-encoding': 'gzip' }),
      '/large': page('text/plain', zeros.subarray(0, 2 * mib)),
      '/large-chunked': (_request, response) => {
        response.writeHead(200).write(zeros.subarray(0, 2 * mib));
        response.end();
      },
      '/exactly': page('application/octet-stream', zeros.subarray(0, mib)),
      '/headers': page('text/plain', text, { 'x-long': 'x'.repeat(20_000) }),
      '/silent': () => undefined,
      '/slow-body': (_request, response) => {
        response.writeHead(200).write('a');
      },
      '/loop': (_request, response) => {
        response.writeHead(302, { location: '/loop' }).end();
      },
      '/hops/5': (_request, response) => {
        response.writeHead(301, { location: '/hops/4' }).end();
      },
      ...Object.fromEntries(
        [4, 3, 2, 1].map(
          (left) =>
            [
              `/hops/${left}`,
              (_request, response) => {
                response
                  .writeHead(307, { location: left === 1 ? '/plain' : `/hops/${left - 1}` })
                  .end('x'.repeat(100_000));
              },
            ] satisfies [string, Parameters<typeof startWeb>[0][string]],
        ),
      ),
      '/away': (_request, response) => {
        response.writeHead(302, { location: `${other.url}/echo`, 'set-cookie': 'a=b' }).end();
      },
      '/away-307': (_request, response) => {
        response.writeHead(307, { location: `${other.url}/echo` }).end();
      },
      '/nowhere': (_request, response) => {
        response.writeHead(302, { location: 'http://' }).end();
      },
      '/broken': (request) => {
        request.socket.end('not http at all\r\n\r\n');
      },
      '/reset': (request) => {
        request.socket.destroy();
      },
    });
    fetcher = new GuardedFetcher({ allow: [web.host, other.host], userAgent: 'Moorage/test' });
  });
  afterAll(async () => {
    await web.close();
    await other.close();
  });

  for (const path of ['/plain', '/gzip', '/br', '/zstd', '/deflate', '/twice', '/hops/5']) {
    it(`reads ${path}`, async () => {
      const fetched = await ask(path);
      assert.equal(Buffer.from(fetched.bytes).toString(), text);
      assert.equal(fetched.mediaType, 'text/plain');
      assert.equal(fetched.status, 200);
    });
  }

  for (const path of [
    '/bomb/gzip',
    '/bomb/br',
    '/bomb/zstd',
    '/bomb/nested',
    '/bomb/empty-members',
    '/large',
    '/large-chunked',
  ]) {
    it(`stops ${path} at its limit`, async () => fails(path, 'fetch-too-large', /more than 1048576 bytes/));
  }

  it('accepts a file of exactly the limit', async () => {
    assert.equal((await ask('/exactly')).bytes.length, mib);
  });
  it('reports data that cannot be decompressed', async () => {
    await fails('/thrice', 'fetch-failed', /too many times/);
    await fails('/unknown', 'fetch-failed', /unsupported Content-Encoding/);
    await fails('/not-gzip', 'fetch-failed', /not compressed as/);
    await fails('/cut-gzip', 'fetch-failed', /not compressed as/);
  });
  it('stops long headers', async () => fails('/headers', 'fetch-failed', /headers .* too long/));
  it('stops waiting for a response, and for a body', async () => {
    await fails('/silent', 'fetch-failed', /in time/, { timeoutMs: 200 });
    await fails('/slow-body', 'fetch-failed', /in time/, { timeoutMs: 200 });
  });
  it('follows at most 5 redirects', async () => {
    const before = web.asked.length;
    await fails('/loop', 'fetch-failed', /more than 5 times/);
    assert.equal(web.asked.length - before, 6);
  });
  it('returns a redirect if asked not to follow it', async () => {
    const before = web.asked.length;
    assert.equal((await ask('/loop', { stayHere: true })).status, 302);
    assert.equal(web.asked.length - before, 1);
  });
  it('rejects http if https is required, except for test hosts', async () => {
    const request = { httpsOnly: true, maxBytes: mib, signal };
    await assert.rejects(fetcher.fetch({ ...request, url: 'http://example.org/' }), /is not https/);
    await assert.rejects(fetcher.check({ ...request, url: 'http://example.org/' }), /is not https/);
    assert.equal((await ask('/plain', request)).status, 200);
  });
  it('reports a response that is not HTTP, a closed connection, and an unreachable server', async () => {
    await fails('/broken', 'fetch-failed', /did not answer with valid HTTP/);
    await fails('/reset', 'fetch-failed', /connection was interrupted/);
    await fails('/nowhere', 'url-refused', /redirects to something/);
    const gone = await startWeb({});
    await gone.close();
    const there = new GuardedFetcher({ allow: [gone.host] });
    await assert.rejects(there.fetch({ url: gone.url, maxBytes: 1, signal }), /refused the connection/);
  });
  it('reports missing TLS', async () => {
    await assert.rejects(
      fetcher.fetch({ url: `https://${web.host}/plain`, maxBytes: mib, signal }),
      /has no valid TLS certificate/,
    );
  });
  it('aborts with its caller, and with the caller’s reason', async () => {
    const caller = new AbortController();
    const asked = ask('/silent', { signal: caller.signal });
    caller.abort(new Error('gone'));
    await assert.rejects(asked, /gone/);
  });
  it('reports an unexpected status', async () => {
    assert.equal((await ask('/missing')).status, 404);
    await assert.rejects(
      fetcher.get({ url: `${web.url}/missing`, maxBytes: mib, signal }),
      (error) => error instanceof Problem && error.members['target_status'] === 404,
    );
  });

  it('sends no cookies, credentials or body to another server', async () => {
    const { bytes } = await ask('/away', {
      method: 'POST',
      body: 'secret',
      headers: { authorization: 'Bearer x', 'x-mine': '1', accept: 'application/json' },
    });
    const { method, headers } = JSON.parse(Buffer.from(bytes).toString()) as {
      method: string;
      headers: Record<string, string>;
    };
    assert.equal(method, 'GET');
    assert.deepEqual(Object.keys(headers).sort(), ['accept', 'accept-encoding', 'connection', 'host', 'user-agent']);
    assert.equal(headers['user-agent'], 'Moorage/test');
    const kept = JSON.parse(
      Buffer.from(
        (await ask('/away-307', { method: 'POST', body: 'x', headers: { 'content-type': 'text/plain' } })).bytes,
      ).toString(),
    ) as { method: string };
    assert.equal(kept.method, 'POST');
  });

  it('ignores proxy settings in the environment', async () => {
    const proxy = await startWeb({});
    const before = { ...process.env };
    Object.assign(process.env, {
      HTTP_PROXY: proxy.url,
      http_proxy: proxy.url,
      HTTPS_PROXY: proxy.url,
      ALL_PROXY: proxy.url,
      NODE_USE_ENV_PROXY: '1',
    });
    try {
      await ask('/plain');
      assert.deepEqual(proxy.asked, []);
    } finally {
      process.env = before;
      await proxy.close();
    }
  });

  it('leaves no connection open', async () => {
    const sockets = process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length;
    await ask('/hops/5');
    await once(process, 'never', { signal: AbortSignal.timeout(50) }).catch(() => undefined);
    assert.ok(process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length <= sockets);
  });
});
