// Settings of the guarded fetch: hosts of a trial are let through, and in production refused at the start.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { readFetchConfig, Guard } from '../../../../../api/tools/fetch/guard.ts';
import { GuardedFetcher } from '../../../../../api/tools/fetch/fetcher.ts';
import { isProblem } from '../../../../support/tools/call.ts';
import { page, startWeb, type Web } from '../../../../support/tools/fetch/web.ts';

let web: Web;
beforeAll(async () => {
  web = await startWeb({ '/': page('text/plain', 'inside') });
});
afterAll(() => web.close());

test('fetches from a test host, and from no other internal host', async () => {
  const fetcher = new GuardedFetcher(
    readFetchConfig({ MOORAGE_FETCH_TEST_HOSTS: `${web.host}, [::1]:9000,Lab.test:81` }),
  );
  const request = { maxBytes: 100, signal: new AbortController().signal };
  assert.equal(Buffer.from((await fetcher.get({ ...request, url: `${web.url}/` })).bytes).toString(), 'inside');
  const refused = isProblem('url-refused', /address|port/);
  await assert.rejects(fetcher.get({ ...request, url: 'http://127.0.0.1:81/' }), refused);
  await assert.rejects(new GuardedFetcher(readFetchConfig({})).get({ ...request, url: `${web.url}/` }), refused);
  const guard = new Guard(readFetchConfig({ MOORAGE_FETCH_TEST_HOSTS: '[::1]:9000,Lab.test:81' }));
  assert.equal(guard.parseTarget('http://[::1]:9000/').port, 9000);
  assert.equal(guard.parseTarget('http://LAB.test:81/').port, 81);
  assert.throws(() => guard.parseTarget('http://lab.test:82/'), /port/);
});

test('accepts no test hosts in production', () => {
  assert.throws(
    () => readFetchConfig({ MOORAGE_FETCH_TEST_HOSTS: web.host, NODE_ENV: 'production' }),
    /MOORAGE_FETCH_TEST_HOSTS: must not be set where NODE_ENV is production/,
  );
  assert.deepEqual(readFetchConfig({ NODE_ENV: 'production' }).allow, []);
});

for (const hosts of ['127.0.0.1', 'http://127.0.0.1:1', '*:80', 'a b:80'])
  test(`rejects ${hosts}`, () => {
    assert.throws(() => readFetchConfig({ MOORAGE_FETCH_TEST_HOSTS: hosts }), /must be host:port/);
  });
