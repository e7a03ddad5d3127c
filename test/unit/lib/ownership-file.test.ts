// Ownership tokens and author keys: what opens them, what does not, and that their lines reveal nothing.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { contact as contactSchema } from '../../../crds/app-manifest.ts';
import {
  maximumOwnershipBytes,
  openContact,
  sealContact,
  findOwnershipTokens,
  hashAuthorKey,
  isAuthorKey,
  findAuthorKeyHashes,
  formatAuthorKeyLine,
  maximumAuthorKeys,
  createAuthorKey,
} from '../../../lib/ownership-file.ts';

const secret = 's'.repeat(32);
const repository = 'https://git.example/octo/chat';
const contact = 'me@example.org';

test('opens a token for its repository in any spelling', () => {
  const token = sealContact(contact, repository, secret);
  assert.equal(openContact(token, repository, secret), contact);
  assert.equal(openContact(token, 'https://git.example/Octo/Chat', secret), contact);
});

test('opens no token in another repository, at another installation, or after a change', () => {
  const token = sealContact(contact, repository, secret);
  assert.equal(openContact(token, 'https://git.example/mallory/chat', secret), undefined);
  assert.equal(openContact(token, repository, 'x'.repeat(32)), undefined);
  for (const index of [14, 30, 50, token.length - 2]) {
    const other = token[index] === 'A' ? 'B' : 'A';
    assert.equal(openContact(token.slice(0, index) + other + token.slice(index + 1), repository, secret), undefined);
  }
  assert.equal(openContact(token.slice(0, -4), repository, secret), undefined);
});

test('a token does not reveal the contact, even to a guess', () => {
  const [one, other] = [sealContact(contact, repository, secret), sealContact(contact, repository, secret)];
  assert.notEqual(one, other);
  assert.ok(!Buffer.from(one.slice('moorage-owner-'.length), 'base64url').includes('example'));
});

test('every contact that can be submitted fits, and three of them into the file', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 180 }), (text) => {
      const given = contactSchema.safeParse(`${text}@example.org`);
      fc.pre(given.success);
      const token = sealContact(given.data, repository, secret);
      assert.deepEqual(findOwnershipTokens(`${token}\n`), [token]);
      assert.equal(openContact(token, repository, secret), given.data);
    }),
  );
  const longest = sealContact(`https://${'€'.repeat(192)}`, repository, secret);
  assert.ok(3 * (longest.length + 1) <= maximumOwnershipBytes, String(longest.length));
});

test('reads the first three tokens of a file and ignores everything else', () => {
  const tokens = Array.from({ length: 5 }, () => sealContact(contact, repository, secret));
  assert.deepEqual(findOwnershipTokens(`# ours\r\n${tokens.join('\n')}\n`), tokens.slice(0, 3));
  assert.deepEqual(findOwnershipTokens(`moorage-owner-short\nmoorage-owner-${'a'.repeat(2_000)}\n\u0000`), []);
});

const address = 'github.com/octo/hello';

test('the line of a key has no effect in another address', () => {
  const key = createAuthorKey();
  for (const other of ['github.com/octo/hello2', 'github.com/mallory/hello', 'gitlab.com/octo/hello'])
    assert.notEqual(hashAuthorKey(key, other), hashAuthorKey(key, address));
});

test('the line of a key is found in a file among others', () => {
  const key = createAuthorKey();
  assert.ok(isAuthorKey(key));
  assert.notEqual(key, createAuthorKey());
  const line = formatAuthorKeyLine(key, address);
  assert.ok(!line.includes(key.slice(20)));
  assert.deepEqual(findAuthorKeyHashes(`# who owns this\n${line}\nmoorage-owner-abc ${line}\n`), [
    hashAuthorKey(key, 'GitHub.com/Octo/hello'),
  ]);
});

test('ignores a bare key, a short hash and lines above the maximum', () => {
  assert.deepEqual(findAuthorKeyHashes(createAuthorKey()), []);
  assert.deepEqual(findAuthorKeyHashes('moorage-author-sha256-abc'), []);
  const many = Array.from({ length: 9 }, () => formatAuthorKeyLine(createAuthorKey(), address)).join('\n');
  assert.equal(findAuthorKeyHashes(many).length, maximumAuthorKeys);
  assert.equal(isAuthorKey('sk-12345'), false);
});
