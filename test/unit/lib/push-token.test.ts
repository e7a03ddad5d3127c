// The token of a build opens one app's repositories, and cannot be made or changed without the secret.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { pruneToken, pushIdentityOf, pushToken } from '../../../lib/push-token.ts';

const secret = 'a-secret-that-is-long-enough-for-this';
const app = { name: 'hello', uid: '0a1b2c3d-0000-4000-8000-000000000000' };

test('a token says its app, and is the same each time', () => {
  const token = pushToken(app, secret);
  assert.equal(pushToken(app, secret), token);
  assert.deepEqual(pushIdentityOf(token, secret), { ...app, purpose: 'push' });
});

test('the token for pruning is another one, and says so', () => {
  const token = pruneToken(app, secret);
  assert.notEqual(token, pushToken(app, secret));
  assert.deepEqual(pushIdentityOf(token, secret), { ...app, purpose: 'prune' });
});

test('no other text is a token', () => {
  const token = pushToken(app, secret);
  const mac = token.slice(token.lastIndexOf('.'));
  for (const forged of [
    '',
    token.slice(0, -1),
    `${token}A`,
    token.replace('hello', 'other'),
    token.replace('0a1b', '0a1c'),
    `other.${app.uid}${mac}`,
    pushToken(app, `${secret}!`),
    `${app.name}.${app.uid}.${'A'.repeat(43)}`,
  ])
    assert.equal(pushIdentityOf(forged, secret), undefined, forged);
});
