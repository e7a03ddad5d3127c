// Callers' keys: asked once, remembered as hashes, forgotten in time; tokens of apps.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { CallerKeys } from '../../../../api/models/caller-keys.ts';
import { Problem } from '../../../../lib/problem.ts';
import { RouterFailure } from '../../../../api/models/router/failures.ts';
import { parseAppName, createAppToken, isAppToken } from '../../../../lib/app-tokens.ts';

interface World {
  readonly keys: CallerKeys;
  readonly asked: string[];
  readonly valid: Set<string>;
  time: number;
}

function world(): World {
  const made = { asked: [] as string[], valid: new Set<string>(), time: 0 };
  const knowsKey = (key: string): Promise<boolean> => {
    made.asked.push(key);
    return Promise.resolve(made.valid.has(key));
  };
  const keys = new CallerKeys({ router: { knowsKey }, hash: (key) => `hash of ${key}`, size: 3, now: () => made.time });
  return Object.assign(made, { keys });
}

test('a valid key is asked for once a minute, however many calls come at once', async () => {
  const it = world();
  it.valid.add('sk-a');
  assert.deepEqual(
    await Promise.all([
      it.keys.identify('sk-a', 'net'),
      it.keys.identify('sk-a', 'net'),
      it.keys.identify('sk-a', 'net'),
    ]),
    ['hash of sk-a', 'hash of sk-a', 'hash of sk-a'],
  );
  it.time = 59_999;
  await it.keys.identify('sk-a', 'net');
  assert.deepEqual(it.asked, ['sk-a']);
  it.time = 60_000;
  it.valid.delete('sk-a');
  assert.equal(await it.keys.identify('sk-a', 'net'), undefined);
});

test('a key that the router refused in a call is asked for again at once', async () => {
  const it = world();
  it.valid.add('sk-a');
  await it.keys.identify('sk-a', 'net');
  it.valid.delete('sk-a');
  it.keys.forget('sk-a');
  assert.equal(await it.keys.identify('sk-a', 'net'), undefined);
});

test('a wrong key is not asked for again for half a minute, and invented ones do not pile up', async () => {
  const it = world();
  assert.equal(await it.keys.identify('sk-0', 'net'), undefined);
  assert.equal(await it.keys.identify('sk-0', 'net'), undefined);
  assert.deepEqual(it.asked, ['sk-0']);
  it.time = 30_000;
  for (const key of ['sk-0', 'sk-1', 'sk-2', 'sk-3', 'sk-0']) await it.keys.identify(key, 'net');
  assert.deepEqual(it.asked, ['sk-0', 'sk-0', 'sk-1', 'sk-2', 'sk-3', 'sk-0']);
});

test('a router that cannot be asked is no verdict on the key', async () => {
  let away = true;
  const keys = new CallerKeys({
    router: {
      knowsKey: () => (away ? Promise.reject(new RouterFailure('unreachable', 'away')) : Promise.resolve(true)),
    },
    hash: (key) => key,
  });
  await assert.rejects(keys.identify('sk-a', 'net'), RouterFailure);
  away = false;
  assert.equal(await keys.identify('sk-a', 'net'), 'sk-a');
});

const secret = 'x'.repeat(32);
const app = { name: 'chat-ui', uid: '11111111-2222-4333-8444-555555555555' };

test('a token is that of one app, one life of it and one secret', () => {
  const token = createAppToken(app, secret);
  assert.equal(parseAppName(token), 'chat-ui');
  assert.equal(isAppToken(token, app, secret), true);
  assert.equal(isAppToken(token, { ...app, uid: 'another' }, secret), false);
  assert.equal(isAppToken(token, { ...app, name: 'chat-u' }, secret), false);
  assert.equal(isAppToken(token, app, 'y'.repeat(32)), false);
  assert.equal(isAppToken(`${token}x`, app, secret), false);
  for (const text of ['', 'sk-abc', 'moorage-.x', `moorage-UP.${'a'.repeat(43)}`, `moorage-chat-ui.${'a'.repeat(42)}`])
    assert.equal(parseAppName(text), undefined);
});

test('a network whose keys have failed is not answered any more for a while, and others are', async () => {
  const it = world();
  it.valid.add('sk-mine');
  await it.keys.identify('sk-mine', 'net');
  const invented = await Promise.allSettled(
    Array.from({ length: 300 }, (_, index) => it.keys.identify(`sk-${index}`, 'net')),
  );
  assert.equal(invented.filter(({ status }) => status === 'fulfilled').length, 10);
  assert.equal(it.asked.length, 11);
  const refused = await it.keys.identify('sk-stolen', 'net').catch((error: unknown) => error);
  assert.ok(refused instanceof Problem);
  assert.deepEqual([refused.type.slug, refused.headers['retry-after']], ['key-checks-limited', '60']);
  it.valid.add('sk-other');
  assert.equal(await it.keys.identify('sk-other', 'another net'), 'hash of sk-other');
  it.time = 60_001;
  assert.equal(await it.keys.identify('sk-later', 'net'), undefined);
});

test('keys that are valid never limit their network', async () => {
  const it = world();
  for (let index = 0; index < 30; index += 1) {
    it.valid.add(`sk-${index}`);
    assert.equal(await it.keys.identify(`sk-${index}`, 'net'), `hash of sk-${index}`);
  }
});
