// Tokens by which an author proves ownership: what opens them, and what does not.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { contact as contactSchema } from '../../../crds/contact.ts';
import { maximumOwnershipBytes, openContact, sealContact, tokensIn } from '../../../lib/ownership-token.ts';

const secret = 's'.repeat(32);
const repository = 'https://git.example/octo/chat';
const contact = 'me@example.org';

test('a token gives its contact for its repository, however that is spelled', () => {
  const token = sealContact(contact, repository, secret);
  assert.equal(openContact(token, repository, secret), contact);
  assert.equal(openContact(token, 'https://git.example/Octo/Chat', secret), contact);
});

test('it is worth nothing in another repository, at another installation, or changed', () => {
  const token = sealContact(contact, repository, secret);
  assert.equal(openContact(token, 'https://git.example/mallory/chat', secret), undefined);
  assert.equal(openContact(token, repository, 'x'.repeat(32)), undefined);
  for (const index of [14, 30, 50, token.length - 2]) {
    const other = token[index] === 'A' ? 'B' : 'A';
    assert.equal(openContact(token.slice(0, index) + other + token.slice(index + 1), repository, secret), undefined);
  }
  assert.equal(openContact(token.slice(0, -4), repository, secret), undefined);
});

test('it does not show the contact, also not to who guesses it', () => {
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
      assert.deepEqual(tokensIn(`${token}\n`), [token]);
      assert.equal(openContact(token, repository, secret), given.data);
    }),
  );
  const longest = sealContact(`https://${'€'.repeat(192)}`, repository, secret);
  assert.ok(3 * (longest.length + 1) <= maximumOwnershipBytes, String(longest.length));
});

test('of a file, the first three words that look like tokens are taken, whatever else is in it', () => {
  const tokens = Array.from({ length: 5 }, () => sealContact(contact, repository, secret));
  assert.deepEqual(tokensIn(`# ours\r\n${tokens.join('\n')}\n`), tokens.slice(0, 3));
  assert.deepEqual(tokensIn(`moorage-owner-short\nmoorage-owner-${'a'.repeat(2_000)}\n\u0000`), []);
});
