// Nothing inside is reached, however it is written: neither at first, nor by a redirect, nor by a name.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { GuardedFetcher } from '../../../../../api/tools/fetch/fetcher.ts';
import { Guard, Refusal } from '../../../../../api/tools/fetch/guard.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { innerNames, innerUrls } from '../../../../support/tools/fetch/inner-urls.ts';
import { countConnections, type Listener } from '../../../../support/tools/fetch/listener.ts';
import { startWeb, type Web } from '../../../../support/tools/fetch/web.ts';

const signal = new AbortController().signal;

async function resolve(name: string): Promise<string[]> {
  const addresses = innerNames[name];
  return addresses === undefined
    ? Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }))
    : [...addresses];
}

function refused(error: unknown): boolean {
  return error instanceof Problem && error.type.slug === 'url-refused';
}

describe('the guarded fetch', () => {
  let listener: Listener;
  let web: Web;
  let fetcher: GuardedFetcher;

  beforeAll(async () => {
    listener = await countConnections();
    web = await startWeb({
      // In UTF-8, as careless servers send it.
      '/to': (request, response) => {
        response
          .writeHead(302, {
            location: Buffer.from(decodeURIComponent((request.url ?? '').replace('/to?', ''))).toString('latin1'),
          })
          .end();
      },
    });
    fetcher = new GuardedFetcher({ ports: [80, 443, listener.port], allow: [web.host], resolve });
  });
  afterAll(async () => {
    await listener.close();
    await web.close();
  });

  it('rejects at least 60 forms of internal addresses, and connects to none', async () => {
    const urls = innerUrls(listener.port);
    assert.ok(urls.length >= 60, `${urls.length} forms`);
    for (const url of urls) {
      await assert.rejects(fetcher.fetch({ url, maxBytes: 1_000, signal }), refused, JSON.stringify(url));
    }
    assert.equal(listener.connections(), 0);
  });

  it('rejects them for a program that opens connections itself', async () => {
    for (const url of innerUrls(listener.port))
      await assert.rejects(fetcher.check({ url, signal }), refused, JSON.stringify(url));
    await fetcher.check({ url: `${web.url}/to`, signal });
    await assert.rejects(
      fetcher.check({ url: 'https://nobody.example.com/', signal }),
      (error) => error instanceof Problem && error.type.slug === 'fetch-failed',
    );
    assert.equal(listener.connections(), 0);
  });

  it('rejects them behind a redirect', async () => {
    // But those that are relative to the page that redirects, and so lead back to it, or cannot stand in a header.
    for (const url of innerUrls(listener.port).filter((one) => !/^http:\/?[^/\\]|^127|\0|^http:\/\/$/.test(one))) {
      await assert.rejects(
        fetcher.fetch({ url: `${web.url}/to?${encodeURIComponent(url)}`, maxBytes: 1_000, signal }),
        refused,
        JSON.stringify(url),
      );
    }
    assert.equal(listener.connections(), 0);
  });

  it('connects to the address that it checked, even if the name then resolves differently', async () => {
    const answers = [['127.0.0.1'], ['127.0.0.1']];
    let asked = 0;
    const rebinding = new GuardedFetcher({
      ports: [listener.port],
      // Checked as 64:ff9b::… of a public address, which nothing here leads to; a second question would be answered
      // with loopback.
      resolve: async () => Promise.resolve(asked++ === 0 ? ['64:ff9b::5db8:d70e'] : (answers[0] ?? [])),
    });
    await assert.rejects(
      rebinding.fetch({
        url: `http://rebind.example.com:${listener.port}/`,
        maxBytes: 1_000,
        timeoutMs: 2_000,
        signal,
      }),
      { name: 'Problem' },
    );
    assert.equal(asked, 1);
    assert.equal(listener.connections(), 0);
  });

  it('reaches the listener if allowed, which shows that a count of 0 is meaningful', async () => {
    const open = new GuardedFetcher({ allow: [`127.0.0.1:${listener.port}`, `::1:${listener.port}`] });
    await assert.rejects(open.fetch({ url: `http://127.0.0.1:${listener.port}/`, maxBytes: 1_000, signal }), {
      name: 'Problem',
    });
    await assert.rejects(open.fetch({ url: `http://[::1]:${listener.port}/`, maxBytes: 1_000, signal }), {
      name: 'Problem',
    });
    assert.equal(listener.connections(), 2);
  });

  it('names the field, the reason and the fix', async () => {
    await assert.rejects(fetcher.fetch({ url: 'http://10.0.0.1/', field: 'image', maxBytes: 1, signal }), (error) => {
      assert.ok(error instanceof Problem);
      assert.equal(error.type.status, 422);
      assert.deepEqual(
        error.errors.map(({ field, message }) => ({ field, message })),
        [{ field: 'image', message: 'has an IP address that is not public' }],
      );
      assert.match(error.errors[0]?.fix ?? '', /https:\/\//);
      return true;
    });
  });
});

describe('the guard', () => {
  const guard = new Guard({ closed: ['8.8.8.0/24', '2606:4700:10::/48'], closedNames: ['cluster.example'] });
  const inner: readonly [number, number][] = [
    [0x7f000000, 24],
    [0x0a000000, 24],
    [0xac100000, 20],
    [0xc0a80000, 16],
    [0xa9fe0000, 16],
    [0x64400000, 22],
    [0, 24],
    [0xe0000000, 28],
    [0x08080800, 8],
    [0xc6120000, 17],
  ];
  const innerAddress = fc
    .constantFrom(...inner)
    .chain(([base, bits]) => fc.integer({ min: 0, max: 2 ** bits - 1 }).map((low) => base + low));
  const dotted = (n: number, radix: (byte: number) => string = String): string =>
    [n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255].map(radix).join('.');
  const hex = (n: number): string => `${(n >>> 16).toString(16)}:${(n & 0xffff).toString(16)}`;
  const forms: readonly ((n: number) => string)[] = [
    (n) => dotted(n),
    (n) => `${dotted(n)}.`,
    String,
    (n) => `0x${n.toString(16)}`,
    (n) => `0${n.toString(8)}`,
    (n) => dotted(n, (byte) => `0x${byte.toString(16)}`),
    (n) => dotted(n, (byte) => `0${byte.toString(8)}`),
    (n) => `${n >>> 24}.${n & 0xffffff}`,
    (n) => `${n >>> 24}.${(n >>> 16) & 255}.${n & 0xffff}`,
    (n) => dotted(n).replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
    (n) => dotted(n).replaceAll('.', '。'),
    (n) => `[::${dotted(n)}]`,
    (n) => `[::ffff:${dotted(n)}]`,
    (n) => `[::ffff:${hex(n)}]`,
    (n) => `[::ffff:0:${hex(n)}]`,
    (n) => `[64:ff9b::${hex(n)}]`,
    (n) => `[64:ff9b::${dotted(n)}]`,
    (n) => `[64:ff9b:1::${hex(n)}]`,
    (n) => `[2002:${hex(n)}::]`,
    (n) => `[2002:${hex(n)}::1]`,
    (n) => `[2001:0:4136:e378:8000:63bf:${hex(~n >>> 0)}]`,
    (n) => `[2001:0:${hex(n)}::]`,
    (n) => `[2606:4700::5efe:${hex(n)}]`,
    (n) => `[2a00:1450::200:5efe:${hex(n)}]`,
  ];

  it('rejects every embedding of every blocked address', () => {
    fc.assert(
      fc.property(
        innerAddress,
        fc.constantFrom(...forms),
        fc.constantFrom('http', 'https'),
        (address, form, scheme) => {
          assert.throws(() => guard.parseTarget(`${scheme}://${form(address)}/`), Refusal, form(address));
        },
      ),
      { numRuns: 5_000 },
    );
  });

  it('rejects every name that resolves to one', async () => {
    await fc.assert(
      fc.asyncProperty(
        innerAddress,
        fc.constantFrom(
          dotted,
          (n: number) => `::ffff:${dotted(n)}`,
          (n: number) => `64:ff9b::${hex(n)}`,
        ),
        fc.nat(2),
        async (address, form, at) => {
          const answers = ['93.184.215.14', '2606:4700::1111'].toSpliced(at, 0, form(address));
          const named = new Guard({ closed: ['8.8.8.0/24'], resolve: async () => Promise.resolve(answers) });
          await assert.rejects(named.resolveAddresses(named.parseTarget('http://example.com/')), Refusal);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('accepts public addresses', () => {
    for (const url of [
      'http://93.184.215.14/',
      'https://1.1.1.1:8443/',
      'http://[2606:4700::1111]/',
      'http://[64:ff9b::5db8:d70e]/',
      'https://example.com/a?b#c',
      'http://example.com./',
      'https://bücher.example.org/',
      'http://a_b.example.com:8080/',
      'https://xn--80ak6aa92e.com/',
    ])
      guard.parseTarget(url);
    for (const url of [
      'http://8.8.8.8/',
      'http://[2606:4700:10::1]/',
      'http://a.cluster.example/',
      'http://cluster.example./',
    ])
      assert.throws(() => guard.parseTarget(url), Refusal, url);
    fc.assert(
      fc.property(
        fc.integer({ min: 0x0b000000, max: 0x63ffffff }).filter((n) => n >>> 8 !== 0x080808),
        (n) => {
          guard.parseTarget(`http://${dotted(n)}/`);
        },
      ),
    );
  });
});
