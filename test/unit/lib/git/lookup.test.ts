// Lookups of repositories: how many run at a time, and what becomes of the others.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { test, type TestContext } from 'vitest';
import { createLookupClient, createLookupListener, type LookupAnswer } from '../../../../lib/git/lookup.ts';
import { readRepository, RepositoryError, type Repository } from '../../../../lib/repository.ts';
import { waitUntil } from '../../../support/kubernetes/until.ts';

const token = 't'.repeat(32);
const hosts = { allowed: ['git.test'], insecure: [] };
const found: LookupAnswer = { ok: true, commit: 'c'.repeat(40), reference: 'refs/heads/main' };

const withKey: LookupAnswer = {
  ...{ ok: false, final: false, rule: 'source/not-asked', message: '', fix: '' },
  deployKey: { publicKey: 'ssh-ed25519 AAAA', fingerprint: 'SHA256:x' },
};

interface Lookups {
  /** Repositories whose lookups have begun, in order. */
  readonly begun: string[];
  readonly lookUp: (name: string) => Promise<LookupAnswer>;
  /** Asks for a deploy key alone. */
  readonly lookUpKey: (name: string) => Promise<LookupAnswer>;
  /** Ends the lookup that began first. */
  readonly endOldest: () => void;
  readonly countRequests: () => number;
}

async function serveLookups(context: TestContext, limit: number, patienceMs?: number): Promise<Lookups> {
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const server = createServer(
    createLookupListener({
      token,
      hosts,
      limit,
      ...(patienceMs === undefined ? {} : { patienceMs }),
      resolve: ({ name }, { via }) =>
        new Promise((resolve) => {
          if (via === 'none') resolve(withKey);
          begun.push(name);
          ends.push(() => {
            resolve(found);
          });
        }),
    }),
  );
  let requests = 0;
  server.on('request', () => (requests += 1));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const lookUp = createLookupClient({
    operatorUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
  });
  return {
    begun,
    lookUp: (name) => lookUp(toRepository(name)),
    lookUpKey: (name) => lookUp(toRepository(name), { via: 'none' }),
    endOldest: () => ends.shift()?.(),
    countRequests: () => requests,
  };
}

function toRepository(name: string): Repository {
  const repository = readRepository(`https://git.test/owner/${name}`, hosts);
  if (repository instanceof RepositoryError) throw repository;
  return repository;
}

test('lookups beyond the limit wait until another ends', async (context) => {
  const { begun, lookUp, endOldest } = await serveLookups(context, 2);
  const names = ['a', 'b', 'c', 'd'];
  const answers = Promise.all(names.map(lookUp));
  for (let ended = 0; ended < names.length; ended += 1) {
    await waitUntil(() => begun.length === Math.min(names.length, ended + 2));
    endOldest();
  }
  assert.deepEqual(await answers, [found, found, found, found]);
  assert.deepEqual(begun.toSorted(), names);
});

test('a deploy key is answered while lookups on slow servers take every turn', async (context) => {
  const { begun, lookUp, lookUpKey, endOldest } = await serveLookups(context, 1);
  const slow = lookUp('slow');
  await waitUntil(() => begun.length === 1);
  assert.deepEqual(await lookUpKey('key'), withKey);
  endOldest();
  assert.deepEqual(await slow, found);
});

test('lookups of one repository share one request to its server', async (context) => {
  const { begun, lookUp, endOldest, countRequests } = await serveLookups(context, 1);
  const answers = Promise.all(['a', 'a', 'b'].map(lookUp));
  await waitUntil(() => countRequests() === 3);
  // Until their bodies are read.
  await sleep(100);
  for (let ended = 1; ended <= 2; ended += 1) {
    await waitUntil(() => begun.length === ended);
    endOldest();
  }
  assert.deepEqual(await answers, [found, found, found]);
  assert.deepEqual(begun.toSorted(), ['a', 'b']);
});

test('a lookup whose turn comes after its caller has given up is not made', async (context) => {
  const { begun, lookUp, endOldest, countRequests } = await serveLookups(context, 1, 50);
  const first = lookUp('a');
  await waitUntil(() => begun.length === 1);
  const late = assert.rejects(lookUp('b'));
  await waitUntil(() => countRequests() === 2);
  await sleep(200);
  endOldest();
  assert.deepEqual(await first, found);
  await late;
  assert.deepEqual(begun, ['a']);
});
