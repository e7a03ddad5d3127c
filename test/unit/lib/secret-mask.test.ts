// Secrets in text that others may read: in every form in which programs print them, and cut in the middle.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { test } from 'vitest';
import { createSecretMask, isSecretName, maskCredentials } from '../../../lib/secret-mask.ts';

const password = 'p@ss/wörd "7f3a91c04d"';

test('a known value is masked plain, in a URL, in JSON and in base64', () => {
  const mask = createSecretMask({ values: [password] });
  for (const text of [
    `password=${password}!`,
    `postgres://app:${encodeURIComponent(password)}@db:5432/app`,
    JSON.stringify({ password }),
    `Authorization: Basic ${Buffer.from(password).toString('base64')}`,
  ]) {
    const masked = mask(text);
    assert.match(masked, /\[secret\]/, text);
    assert.doesNotMatch(masked, /7f3a91c04d|p%40ss|cEBzcy/, text);
  }
});

test('leaves text without a secret unchanged, and masks no short values', () => {
  const mask = createSecretMask({ values: ['true', '8080', '', undefined, password] });
  const log = 'listening on 8080\nready: true\nTraceback (most recent call last):\n  File "app.py", line 3';
  assert.equal(mask(log), log);
});

test('masks the rest of a secret at the start of a truncated text', () => {
  const secret = randomBytes(20).toString('hex');
  const mask = createSecretMask({ values: [secret] });
  for (const before of ['', '…', '… '])
    for (const length of [8, 20, 39])
      assert.equal(mask(`${before}${secret.slice(-length)}@db\nexit`), `${before}[secret]@db\nexit`);
});

test('leaves no value of any shape in any text', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 6, maxLength: 60 }), fc.string(), fc.string(), (secret, before, after) => {
      fc.pre(secret.trim().length >= 6 && !'[secret]'.includes(secret));
      assert.ok(!createSecretMask({ values: [secret] })(`${before} ${secret} ${after}`).includes(` ${secret} `));
    }),
  );
});

test('masks an unknown value after its variable name, and where it looks random', () => {
  const mask = createSecretMask({ values: [], variables: ['STRIPE_KEY'] });
  assert.equal(mask('STRIPE_KEY=hunter2 PORT=8080'), 'STRIPE_KEY=[secret] PORT=8080');
  assert.equal(mask("environ({'STRIPE_KEY': 'hunter2', 'A': 'b'})"), "environ({'STRIPE_KEY': '[secret]', 'A': 'b'})");
  assert.equal(mask('invalid key rk4Jd82mQz91LxPw7c'), 'invalid key [secret]');
  const trace = '  File "/usr/local/lib/python3.12/site-packages/flask_sqlalchemy/extension.py", line 1044';
  assert.equal(mask(trace), trace);
});

test('passwords in URLs and keys of known forms are masked whatever they belong to', () => {
  assert.equal(maskCredentials('redis://:abc123@cache:6379'), 'redis://:[secret]@cache:6379');
  assert.equal(maskCredentials('https://host/a:b@c and http://host:8080/'), 'https://host/a:b@c and http://host:8080/');
  assert.equal(maskCredentials('key sk-or-v1-0123456789abcdef'), 'key [secret]');
  assert.equal(maskCredentials(`OPENAI_API_KEY=moorage-chat.${'A'.repeat(43)}`), 'OPENAI_API_KEY=[secret]');
  assert.equal(maskCredentials('Authorization: Bearer abcdefgh12345678'), 'Authorization: Bearer [secret]');
});

test('names of secrets are known by convention', () => {
  for (const name of ['DB_PASSWORD', 'API_KEY', 'SECRET_KEY_BASE', 'GITHUB_TOKEN', 'PGPASSWORD', 'SENTRY_DSN'])
    assert.equal(isSecretName(name), true, name);
  for (const name of ['PORT', 'NODE_ENV', 'KEYBOARD', 'AUTHOR_NAME', 'PATH'])
    assert.equal(isSecretName(name), false, name);
});
