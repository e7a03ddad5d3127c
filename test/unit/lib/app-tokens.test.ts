// The token of a build opens one app's repositories, and cannot be made or changed without the secret.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createPruneToken, parseRegistryToken, createPushToken } from '../../../lib/app-tokens.ts';

const secret = 'a-secret-that-is-long-enough-for-this';
const app = { name: 'hello', uid: '0a1b2c3d-0000-4000-8000-000000000000' };

test('a push token names its app and is always the same', () => {
  const token = createPushToken(app, secret);
  assert.equal(createPushToken(app, secret), token);
  assert.deepEqual(parseRegistryToken(token, secret), { ...app, purpose: 'push' });
});

test('a prune token differs from a push token and names its purpose', () => {
  const token = createPruneToken(app, secret);
  assert.notEqual(token, createPushToken(app, secret));
  assert.deepEqual(parseRegistryToken(token, secret), { ...app, purpose: 'prune' });
});

test('rejects any text that is not a token of this secret', () => {
  const token = createPushToken(app, secret);
  const mac = token.slice(token.lastIndexOf('.'));
  for (const forged of [
    '',
    token.slice(0, -1),
    `${token}A`,
    token.replace('hello', 'other'),
    token.replace('0a1b', '0a1c'),
    `other.${app.uid}${mac}`,
    createPushToken(app, `${secret}!`),
    `${app.name}.${app.uid}.${'A'.repeat(43)}`,
  ])
    assert.equal(parseRegistryToken(forged, secret), undefined, forged);
});
