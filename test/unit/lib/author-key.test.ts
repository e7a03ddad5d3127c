// Keys of authors: the line that is committed stands for the key, and gives nothing of it away.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  hashOfKey,
  isAuthorKey,
  keyHashesIn,
  lineOfKey,
  maximumAuthorKeys,
  newAuthorKey,
} from '../../../lib/author-key.ts';

const repository = 'github.com/octo/hello';

test('the line of a key stands for nothing in another repository', () => {
  const key = newAuthorKey();
  for (const other of ['github.com/octo/hello2', 'github.com/mallory/hello', 'gitlab.com/octo/hello'])
    assert.notEqual(hashOfKey(key, other), hashOfKey(key, repository));
});

test('the line of a key is found in a file among others', () => {
  const key = newAuthorKey();
  assert.ok(isAuthorKey(key));
  assert.notEqual(key, newAuthorKey());
  const line = lineOfKey(key, repository);
  assert.ok(!line.includes(key.slice(20)));
  assert.deepEqual(keyHashesIn(`# who owns this\n${line}\nmoorage-owner-abc ${line}\n`), [
    hashOfKey(key, 'GitHub.com/Octo/hello'),
  ]);
});

test('a key itself, a short hash and more lines than the maximum are not taken', () => {
  assert.deepEqual(keyHashesIn(newAuthorKey()), []);
  assert.deepEqual(keyHashesIn('moorage-author-sha256-abc'), []);
  const many = Array.from({ length: 9 }, () => lineOfKey(newAuthorKey(), repository)).join('\n');
  assert.equal(keyHashesIn(many).length, maximumAuthorKeys);
  assert.equal(isAuthorKey('sk-12345'), false);
});
