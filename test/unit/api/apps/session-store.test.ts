// The sessions of callers with apps in the database, as several replicas use them at the same time and after one was killed.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, test } from 'vitest';
import type { AppSession } from '../../../../api/apps/operations/app-mcp.ts';
import { type SessionName, SessionStore } from '../../../../api/apps/operations/session-store.ts';
import { type Database, openDatabase } from '../../../../api/billing/index.ts';
import { Problem } from '../../../../lib/problem.ts';
import { migratedDatabase } from '../../../support/ledger/snapshot.ts';

let database: Database;
let store: SessionStore;
beforeEach(async () => {
  database = await openDatabase(migratedDatabase);
  store = new SessionStore(() => database, { perCaller: 2, perApp: 3 });
});
afterEach(() => database.close());

function createName(key: string, caller = 'caller', app = 'app'): SessionName {
  return { key, release: 'release', app, slug: 'notes', caller, owner: `owner of ${key}` };
}

function createSession(id: string): AppSession {
  return { id, protocolVersion: '2025-06-18' };
}

const call = { id: 'call', limitMs: 60_000 };

/** Adds a session with one call that is over. */
async function addIdle(key: string, caller?: string): Promise<void> {
  await store.add(createName(key, caller), createSession(`id of ${key}`));
  await store.join(key, call);
  await store.leave(key, call.id);
  // So that each was used after the one before.
  await sleep(2);
}

function isProblem(slug: string): (error: unknown) => boolean {
  return (error) => error instanceof Problem && error.type.slug === slug;
}

test('keeps the session of the replica that was first', async () => {
  assert.equal(await store.join('a', call), undefined);
  assert.deepEqual(await store.add(createName('a'), createSession('1')), { isAdded: true, removed: [] });
  assert.deepEqual(await store.add(createName('a'), createSession('2')), { isAdded: false, removed: [] });
  assert.deepEqual(await store.join('a', call), createSession('1'));
});

test('removes a session that failed only if no other has replaced it', async () => {
  await store.add(createName('a'), createSession('2'));
  assert.equal(await store.remove('a', createSession('1')), false);
  assert.equal(await store.remove('a', createSession('2')), true);
  assert.equal(await store.remove('a', createSession('2')), false);
});

test('keeps a session in which something failed for as long as others use it', async () => {
  await store.add(createName('a'), createSession('1'));
  await store.join('a', call);
  await store.join('a', { id: 'other', limitMs: 60_000 });
  assert.equal(await store.remove('a', createSession('1'), call), false);
  await store.leave('a', 'other');
  assert.equal(await store.remove('a', createSession('1'), call), true);
});

test('ends a session with a call of a replica that was killed, once that call must be over', async () => {
  await store.add(createName('a'), createSession('1'));
  await store.join('a', { id: 'of the killed', limitMs: 1_000 });
  assert.deepEqual(await store.removeIdle(0), []);
  await sleep(1_050);
  // It is forgotten with the next call.
  await store.join('a', call);
  await store.leave('a', call.id);
  await sleep(2);
  assert.deepEqual(await store.removeIdle(0), [{ app: 'app', ...createSession('1') }]);
  assert.deepEqual(await store.removeIdle(0), []);
});

test('ends no session between its start and its first call', async () => {
  await store.add(createName('a'), createSession('1'));
  await sleep(2);
  assert.deepEqual(await store.removeIdle(0), []);
});

test('removes the sessions that are idle the longest at a limit, and refuses if all are in use', async () => {
  await addIdle('a');
  await addIdle('b');
  await addIdle('a');
  assert.deepEqual(await store.makeRoom(createName('c')), [{ app: 'app', ...createSession('id of b') }]);
  await addIdle('c');
  await store.join('a', call);
  await store.join('c', call);
  await assert.rejects(store.makeRoom(createName('d')), isProblem('too-many-calls'));
  // One that was started in the meantime is not stored, and nothing ends for it.
  await assert.rejects(store.add(createName('d'), createSession('d')), isProblem('too-many-calls'));
  assert.equal(await store.join('d', call), undefined);
  await addIdle('e', 'another');
  assert.deepEqual(await store.makeRoom(createName('f', 'a third')), [{ app: 'app', ...createSession('id of e') }]);
  await store.add(createName('e', 'another'), createSession('id of e'));
  await assert.rejects(store.makeRoom(createName('f', 'a third')), isProblem('tool-busy'));
  assert.deepEqual(await store.makeRoom(createName('g', 'caller', 'another app')), []);
});

test('counts for the limit what is added at the same time', async () => {
  const added = await Promise.allSettled(
    ['a', 'b', 'c', 'd'].map((key) => store.add(createName(key), createSession(key))),
  );
  assert.equal(added.filter(({ status }) => status === 'fulfilled').length, 2);
});

test('removes the sessions of an owner, and no others', async () => {
  await addIdle('a');
  await addIdle('b');
  assert.deepEqual(await store.removeOwned('owner of a'), [{ app: 'app', ...createSession('id of a') }]);
  assert.deepEqual(await store.join('b', call), createSession('id of b'));
});
