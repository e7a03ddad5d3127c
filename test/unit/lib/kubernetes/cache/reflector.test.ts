// The reflector against a real HTTP server that pages, forgets, cuts and lies in the ways that API servers do.
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { Registry } from 'prom-client';
import { test } from 'vitest';
import { getRuntimeMetrics } from '../../../../../lib/kubernetes/index.ts';
import type { FakeApi } from '../../../../support/kubernetes/fake-api.ts';
import { send, status } from '../../../../support/kubernetes/fake-api.ts';
import { FakeClock } from '../../../../support/kubernetes/fake-clock.ts';
import { bench, KIND, startReflector, thing } from '../../../../support/kubernetes/reflector-bench.ts';
import { waitUntil } from '../../../../support/kubernetes/until.ts';

test('lists by pages, then watches from the version of the list, with bookmarks and a server time limit', async (t) => {
  const { api, reflector, lists } = await startReflector(
    t,
    (fresh) => {
      for (let n = 0; n < 25; n += 1) fresh.put(KIND, thing(`t${n}`));
    },
    { pageSize: 10 },
  );
  assert.equal(reflector.store.size, 25);
  assert.equal(lists(), 3);
  const watch = api.requests.at(-1)?.url.searchParams ?? new URLSearchParams();
  assert.equal(watch.get('resourceVersion'), '26');
  assert.equal(watch.get('allowWatchBookmarks'), 'true');
  const seconds = Number(watch.get('timeoutSeconds'));
  assert.ok(seconds >= 300 && seconds <= 600, `timeoutSeconds is ${seconds}`);
});

test('every object has apiVersion and kind, and no managedFields', async (t) => {
  const { api, reflector } = await startReflector(t, (fresh) =>
    fresh.put(KIND, { ...thing('a'), metadata: { name: 'a', namespace: 'apps', managedFields: [{ manager: 'x' }] } }),
  );
  api.put(KIND, {
    ...thing('b'),
    apiVersion: 'example.dev/v1',
    kind: 'Thing',
    metadata: { name: 'b', namespace: 'apps', managedFields: [{ manager: 'x' }] },
  });
  await waitUntil(() => reflector.store.size === 2);
  for (const { apiVersion, kind, metadata } of reflector.store.list())
    assert.deepEqual([apiVersion, kind, metadata.managedFields], ['example.dev/v1', 'Thing', undefined]);
});

test('resumes without a list after a clean end or a cut in the middle of a line', async (t) => {
  const { api, changes, same, lists, watches } = await startReflector(t, (fresh) => fresh.put(KIND, thing('a')));
  for (const how of ['end', 'cut'] as const) {
    const before = watches();
    api.put(KIND, thing('a', 2));
    await same();
    api.breakWatches(how);
    api.put(KIND, thing(`missed-${how}`));
    await same();
    assert.ok(watches() > before);
  }
  assert.equal(lists(), 1);
  assert.deepEqual(
    changes.map((change) => change.split(' ').slice(0, 2).join(' ')),
    ['added a', 'updated a', 'added missed-end', 'updated a', 'added missed-cut'],
  );
});

test('resumes from the last bookmark, so that a compaction since then does no harm', async (t) => {
  const { api, reflector, same, lists, watches } = await startReflector(t, (fresh) => fresh.put(KIND, thing('a')));
  api.put('apis/example.dev/v1/others', thing('elsewhere'));
  api.bookmark();
  await waitUntil(() => reflector.getLastEventAgeMs() < 1000);
  api.put(KIND, thing('b'));
  await same();
  api.put('apis/example.dev/v1/others', thing('elsewhere', 2));
  api.bookmark();
  // The bookmark has arrived when what was sent after it has.
  const version = String(api.version);
  const before = watches();
  api.compact();
  api.breakWatches('end');
  await waitUntil(() => watches() > before);
  assert.equal(api.requests.at(-1)?.url.searchParams.get('resourceVersion'), version);
  api.put(KIND, thing('c'));
  await same();
  assert.equal(lists(), 1);
});

test('lists again after 410 in the stream, and reports objects deleted in the meantime', async (t) => {
  const { api, changes, same, lists } = await startReflector(t, (fresh) => {
    fresh.put(KIND, thing('a'));
    fresh.put(KIND, thing('b'));
  });
  api.breakWatches('gone');
  api.remove(KIND, 'a', 'apps');
  await same();
  await waitUntil(() => api.watching === 1);
  assert.equal(lists(), 2);
  assert.match(changes.at(-1) ?? '', /^deleted a /);
});

test('lists again after 410 in response to the request', async (t) => {
  const { api, same, lists } = await startReflector(t, (fresh) => fresh.put(KIND, thing('a')));
  api.put(KIND, thing('a', 2));
  await same();
  api.breakWatches('end');
  api.put(KIND, thing('b'));
  api.put(KIND, thing('c'));
  api.compact();
  await same();
  assert.ok(lists() >= 2);
});

test('reports an object that was deleted and recreated while offline as deleted, then added', async (t) => {
  for (const resume of ['resume', 'relist'] as const) {
    const { api, changes, same } = await startReflector(t, (fresh) => fresh.put(KIND, thing('a')));
    const old = api.objects(KIND)[0]?.metadata.uid.slice(0, 8) ?? '';
    api.breakWatches('cut');
    api.remove(KIND, 'a', 'apps');
    api.put(KIND, thing('a'));
    if (resume === 'relist') api.compact();
    const made = api.objects(KIND)[0]?.metadata.uid.slice(0, 8) ?? '';
    await same();
    assert.deepEqual(changes, [`added a ${old}`, `deleted a ${old}`, `added a ${made}`], resume);
  }
});

test('lists once without pages if a continue token has expired', async (t) => {
  let expired = 0;
  const expire =
    (api: FakeApi) =>
    (_request: unknown, _response: ServerResponse, url: URL): boolean => {
      if (url.searchParams.has('continue') && expired === 0) {
        expired += 1;
        api.compact();
      }
      return false;
    };
  const { api, reflector } = await startReflector(
    t,
    (fresh) => {
      for (let n = 0; n < 12; n += 1) fresh.put(KIND, thing(`t${n}`));
      fresh.faults.push(expire(fresh));
    },
    { pageSize: 5 },
  );
  assert.equal(expired, 1);
  assert.equal(reflector.store.size, 12);
  const limits = api.requests
    .filter(({ url }) => !url.searchParams.has('watch'))
    .map(({ url }) => url.searchParams.get('limit'));
  assert.deepEqual(limits, ['5', '5', null]);
});

test('retries after every kind of error: rejections, faults and malformed responses', async (t) => {
  const answers = [403, 500, 503, 429, 404, 401];
  const { reflector, lists } = await startReflector(t, (fresh) => {
    fresh.put(KIND, thing('a'));
    fresh.faults.push((_request, response) => {
      const code = answers.shift();
      if (code !== undefined) send(response, code, status(code, 'Nope', 'not now'));
      return code !== undefined;
    });
    const nonsense = [
      'not json',
      '{"kind":"Thing"}',
      '{"metadata":{"resourceVersion":"1"},"items":[{"no":"metadata"}]}',
    ];
    fresh.faults.push((_request, response) => {
      const body = nonsense.shift();
      if (body !== undefined) response.writeHead(200, { 'content-type': 'application/json' }).end(body);
      return body !== undefined;
    });
  });
  assert.equal(reflector.store.size, 1);
  assert.equal(lists(), 10);
});

test('backs off from a server that expires versions or ends each watch immediately', async (t) => {
  for (const fault of ['gone', 'end'] as const) {
    const registry = new Registry();
    const clock = new FakeClock();
    const made = await bench(
      (fresh) => {
        fresh.faults.push((_request, response, url) => {
          if (!url.searchParams.has('watch')) return false;
          if (fault === 'gone') send(response, 410, status(410, 'Gone', 'gone'));
          else response.writeHead(200, { 'content-type': 'application/json' }).end();
          return true;
        });
      },
      { metrics: getRuntimeMetrics(registry), clock, backoffMs: [1000, 30_000] },
    );
    t.onTestFinished(() => made.stop());
    // To have lost its position once is in order; from then on, each turn waits.
    const free = fault === 'gone' ? 2 : 1;
    const waits: number[] = [];
    for (let turn = 0; turn < 8; turn += 1) {
      await waitUntil(() => clock.pending === 1);
      assert.equal(made.watches(), free + turn);
      const before = clock.now();
      clock.tick();
      waits.push(clock.now() - before);
    }
    waits.forEach((wait, turn) => {
      const middle = Math.min(1000 * 2 ** (turn + free - 1), 30_000);
      assert.ok(
        wait >= middle * 0.7 && wait <= middle * 1.3,
        `${fault}: wait ${turn} is ${wait} ms, expected about ${middle}`,
      );
    });
    const reason = fault === 'gone' ? 'expired' : 'end';
    assert.match(
      await registry.metrics(),
      new RegExp(`moorage_watch_restarts_total\\{resource="things",reason="${reason}"\\} `),
    );
    assert.equal(made.lists() > 1, fault === 'gone');
  }
});

test('resumes a long quiet watch immediately after it ends', async (t) => {
  const clock = new FakeClock();
  const made = await bench(() => undefined, { clock, backoffMs: [1000, 30_000] });
  t.onTestFinished(() => made.stop());
  for (let turn = 1; turn <= 5; turn += 1) {
    await waitUntil(() => made.api.watching === 1 && made.opened() === turn);
    clock.advance(60_000);
    made.api.breakWatches('end');
  }
});

test('lists again after "Too large resource version" (a server restored from a backup)', async (t) => {
  const { api, same, lists } = await startReflector(t, (fresh) => fresh.put(KIND, thing('a')));
  let times = 1;
  api.faults.push((_request, response, url) => {
    if (!url.searchParams.has('watch') || times === 0) return false;
    times -= 1;
    send(response, 504, status(504, 'Timeout', 'Too large resource version: 2, current: 1'));
    return true;
  });
  api.breakWatches('end');
  await waitUntil(() => lists() === 2);
  await same();
});

test('waits as long as the server asks, and ends immediately when aborted, even in the middle of a wait', async (t) => {
  const made = await bench((fresh) => {
    fresh.faults.push((_request, response) => {
      send(response, 429, status(429, 'TooManyRequests', 'slow down'), { 'retry-after': '3600' });
      return true;
    });
  });
  t.onTestFinished(() => made.api.stop());
  await waitUntil(() => made.lists() === 1);
  await made.end();
  assert.equal(made.lists(), 1);
  assert.equal(made.reflector.store.hasSynced, false);
});
