// Star counts from servers on loopback that respond as forges do: counts, ETags, limits and failures with their reasons.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, test } from 'vitest';
import { z } from 'zod';
import { type Database, openLedgerDatabase } from '../../../../../api/billing/database/database.ts';
import { type StarCount, StarCounts, StarRefresh, startStars } from '../../../../../api/catalog/projects/stars.ts';
import { GuardedFetcher } from '../../../../../api/tools/fetch/fetcher.ts';
import { silent } from '../../../../support/api/sample.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

let database: Database;
let forge: { origin: string; close: () => void };
let asked: IncomingMessage[] = [];
let answer: (request: IncomingMessage, response: ServerResponse) => void;

beforeAll(async () => {
  database = await openLedgerDatabase(migratedDatabase);
  const server = createServer((request, response) => {
    asked.push(request);
    answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const origin = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  forge = { origin, close: () => server.close() };
});
beforeEach(() => {
  asked = [];
});
const statement = (text: string) => ({ name: `test-${text}`, text, row: z.unknown() });
afterEach(() => database.query(statement('delete from catalog.repository'), []));
afterAll(async () => {
  forge.close();
  await database.close();
});

const json = (response: ServerResponse, value: unknown, headers: Record<string, string> = {}): void => {
  response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
};
const allDue = (): Promise<unknown> => database.query(statement('update catalog.repository set next_at = now()'), []);

interface Watch {
  readonly of: (path: string) => StarCount;
  /** One turn, with everything due. */
  readonly turn: () => Promise<void>;
  readonly counts: StarCounts;
}

async function watch(...paths: string[]): Promise<Watch> {
  const counts = new StarCounts();
  const refresh = new StarRefresh(counts, database, {
    ledger: { opened: Promise.resolve(undefined) },
    listRepositories: () => paths.map((path) => `${forge.origin}/${path}`),
    fetcher: new GuardedFetcher({ allow: [new URL(forge.origin).host] }),
    log: silent,
    ending: new AbortController().signal,
    times: { gapMs: 0 },
    known: { [new URL(forge.origin).host]: { kind: 'github', api: forge.origin } },
  });
  await refresh.run();
  return {
    counts,
    of: (path) => counts.getCount(`${forge.origin}/${path}`),
    async turn() {
      await refresh.run();
    },
  };
}

test('nothing is asked in the first turn; then one repository a turn, and each count has its date', async () => {
  answer = ({ url }, response) => {
    json(response, { stargazers_count: url?.endsWith('/chat') === true ? 12 : 7, license: { spdx_id: 'MIT' } });
  };
  const { of, turn } = await watch('octo/chat', 'octo/draw');
  assert.equal(asked.length, 0);
  assert.deepEqual(of('octo/chat'), {
    stars: null,
    starsAt: null,
    reason: 'The forge has not been asked yet.',
    license: null,
  });
  await turn();
  assert.equal(asked.length, 1);
  await turn();
  await turn();
  assert.deepEqual(asked.map(({ url }) => url).toSorted(), ['/repos/octo/chat', '/repos/octo/draw']);
  assert.equal(asked[0]?.headers['user-agent'], 'Moorage/1.1 (counts stars)');
  const { stars, starsAt, reason, license } = of('octo/chat');
  assert.deepEqual([stars, reason, license, of('octo/draw').stars], [12, null, 'MIT', 7]);
  assert.ok(Math.abs(Date.now() - (starsAt?.getTime() ?? 0)) < 60_000);
});

test('another process reads what was answered, and asks with its ETag: 304 makes the count as good as new', async () => {
  answer = (_request, response) => {
    json(response, { stargazers_count: 12 }, { etag: 'W/"one"' });
  };
  await (await watch('octo/chat')).turn();
  await database.query(
    statement("update catalog.repository set stars_at = now() - interval '1 day', next_at = now()"),
    [],
  );
  answer = (_request, response) => {
    response.writeHead(304).end();
  };
  const second = await watch('octo/chat');
  const before = second.of('octo/chat').starsAt?.getTime() ?? 0;
  assert.equal(second.of('octo/chat').stars, 12);
  await second.turn();
  assert.equal(asked.at(-1)?.headers['if-none-match'], 'W/"one"');
  assert.equal(second.of('octo/chat').stars, 12);
  assert.ok((second.of('octo/chat').starsAt?.getTime() ?? 0) - before > 80_000_000);
});

const failures: readonly (readonly [name: string, answer: (response: ServerResponse) => void, reason: string])[] = [
  ['a status', (response) => response.writeHead(500).end(), 'The forge answered with status 500.'],
  [
    'a page',
    (response) => response.writeHead(200).end('<html>'),
    'The forge did not answer in a form that is known here.',
  ],
  ['no answer', (response) => response.destroy(), 'The forge could not be reached.'],
];
for (const [name, fail, reason] of failures)
  test(`a failure (${name}) has its reason, and a count that was known stays with its date`, async () => {
    answer = (_request, response) => {
      fail(response);
    };
    const unknown = await watch('octo/chat');
    await unknown.turn();
    assert.deepEqual([unknown.of('octo/chat').stars, unknown.of('octo/chat').reason], [null, reason]);
    await allDue();
    answer = (_request, response) => {
      json(response, { stargazers_count: 3 });
    };
    await unknown.turn();
    const { starsAt } = unknown.of('octo/chat');
    await allDue();
    answer = (_request, response) => {
      fail(response);
    };
    await unknown.turn();
    assert.deepEqual(unknown.of('octo/chat'), { stars: 3, starsAt, reason: null, license: null });
  });

test('failures are further apart each time', async () => {
  answer = (_request, response) => {
    response.writeHead(502).end();
  };
  const { turn } = await watch('octo/chat');
  const waits: number[] = [];
  for (let time = 0; time < 4; time += 1) {
    await turn();
    const wait = 'select extract(epoch from next_at - now())::float8 as seconds from catalog.repository';
    const [row] = await database.query({ name: 'test-wait', text: wait, row: z.object({ seconds: z.number() }) }, []);
    waits.push((row?.seconds ?? 0) / 600);
    await allDue();
  }
  waits.forEach((wait, time) => {
    assert.ok(wait > 2 ** time * 0.89 && wait < 2 ** time * 1.11, `${time}: ${wait}`);
  });
});

test('a repository that is gone has no count any more', async () => {
  answer = (_request, response) => {
    json(response, { stargazers_count: 3, license: { spdx_id: 'MIT' } });
  };
  const { of, turn } = await watch('octo/chat');
  await turn();
  await allDue();
  answer = (_request, response) => {
    response.writeHead(404).end();
  };
  await turn();
  assert.deepEqual(of('octo/chat'), {
    stars: null,
    starsAt: null,
    reason: 'The forge has no public repository at this address.',
    license: null,
  });
});

test('a limit of the forge puts off all its repositories', async () => {
  answer = (_request, response) => {
    response.writeHead(403, { 'x-ratelimit-remaining': '0', 'retry-after': '900' }).end();
  };
  const { of, turn } = await watch('octo/chat', 'octo/draw');
  await turn();
  await turn();
  await turn();
  assert.equal(asked.length, 1);
  const limited = ['octo/chat', 'octo/draw'].map((path) => of(path).reason);
  assert.ok(limited.includes('The forge limits how often it is asked.'), String(limited));
});

test('a repository that the catalog does not show any more is forgotten', async () => {
  answer = (_request, response) => {
    json(response, { stargazers_count: 3 });
  };
  await (await watch('octo/chat')).turn();
  await allDue();
  asked = [];
  const { turn, counts } = await watch();
  await turn();
  assert.deepEqual([asked.length, counts.has(`${forge.origin}/octo/chat`)], [0, false]);
});

test('an address inside is not asked, and the reason says so', async () => {
  const counts = new StarCounts();
  const refresh = new StarRefresh(counts, database, {
    ledger: { opened: Promise.resolve(undefined) },
    listRepositories: () => [`${forge.origin}/octo/chat`],
    fetcher: new GuardedFetcher(),
    log: silent,
    ending: new AbortController().signal,
    times: { gapMs: 0 },
  });
  await refresh.run();
  await refresh.run();
  assert.equal(asked.length, 0);
  assert.equal(
    counts.getCount(`${forge.origin}/octo/chat`).reason,
    'The forge is not asked: it is not on the open internet.',
  );
});

test('between two questions of all processes there is a gap', async () => {
  answer = (_request, response) => {
    json(response, { stargazers_count: 3 });
  };
  const options = {
    ledger: { opened: Promise.resolve(undefined) },
    listRepositories: () => [`${forge.origin}/octo/chat`, `${forge.origin}/octo/draw`],
    fetcher: new GuardedFetcher({ allow: [new URL(forge.origin).host] }),
    log: silent,
    ending: new AbortController().signal,
  };
  for (const refresh of [
    new StarRefresh(new StarCounts(), database, options),
    new StarRefresh(new StarCounts(), database, options),
  ]) {
    await refresh.run();
    await refresh.run();
  }
  // Gitea answers with another field, so the host is asked as GitLab too; the other repository waits.
  assert.equal(new Set(asked.map(({ url }) => url?.includes('chat'))).size, 1);
});

test('without a database the reason says what to set', async () => {
  const counts = startStars({
    ledger: { opened: Promise.resolve(undefined) },
    listRepositories: () => [],
    fetcher: new GuardedFetcher(),
    log: silent,
    ending: new AbortController().signal,
  });
  assert.equal(counts.getCount('https://github.com/octo/chat').reason, 'The database is not available yet.');
  await Promise.resolve();
  assert.match(counts.getCount('https://github.com/octo/chat').reason ?? '', /set DATABASE_URL/);
});
