// Values are found in any text by their fingerprints, and nothing else is.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { openDatabase } from '../../../../../api/billing/index.ts';
import {
  createFingerprint,
  createFingerprintMask,
  type Fingerprint,
  listFingerprints,
  minimumSecretLength,
  rememberSecret,
} from '../../../../../api/apps/logs/fingerprints.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

const key = 'k'.repeat(32);

function toFingerprints(values: readonly string[]): Fingerprint[] {
  return values.flatMap((value) => createFingerprint(value, key) ?? []);
}

/** Masks every character of a known value, as a search for the values themselves does. */
function maskByValue(text: string, values: readonly string[]): string {
  const isMasked = new Array<boolean>(text.length).fill(false);
  for (const value of values)
    for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + 1))
      isMasked.fill(true, at, at + value.length);
  return [...isMasked.keys()].map((index) => (isMasked[index] === true ? '*' : text[index])).join('');
}

/** Few letters, so that values overlap, repeat and begin alike. */
const letters = fc.array(fc.constantFrom('a', 'b', 'é', '😀'), { maxLength: 40 }).map((parts) => parts.join(''));

test('masks every value in any text, and nothing else', () => {
  fc.assert(
    fc.property(
      fc.array(letters, { maxLength: 6 }),
      fc.array(fc.oneof(letters, fc.nat(5)), { maxLength: 12 }),
      (values, parts) => {
        const text = parts.map((part) => (typeof part === 'number' ? (values[part] ?? '') : part)).join('');
        const long = values.filter(({ length }) => length >= minimumSecretLength);
        const masked = createFingerprintMask(toFingerprints(values), key)(text);
        const expected = maskByValue(text, long);
        // Values that touch each other are replaced one by one.
        assert.equal(masked.replace(/(?:\[secret\])+/g, '[secret]'), expected.replace(/[*]+/g, '[secret]'));
      },
    ),
    { numRuns: 2_000 },
  );
});

test('masks values of ordinary length in ordinary text', () => {
  const values = ['correct horse battery staple', 'Zm9vYmFyYmF6', 'postgres://localhost/x', 'postgres://localhost/xyz'];
  const mask = createFingerprintMask(toFingerprints(values), key);
  assert.equal(
    mask('key=Zm9vYmFyYmF6; url=postgres://localhost/xyz, postgres://localhost/x and postgres://localhost/'),
    'key=[secret]; url=[secret], [secret] and postgres://localhost/',
  );
  assert.equal(createFingerprint('1234567', key), undefined);
});

test('says nothing without the key', () => {
  const other = createFingerprint('correct horse', 'o'.repeat(32));
  const own = createFingerprint('correct horse', key);
  assert.equal(other?.length, own?.length);
  assert.notEqual(other?.hmac, own?.hmac);
  assert.notEqual(other?.rolling, own?.rolling);
  assert.notEqual(other?.prefix, own?.prefix);
  assert.equal(
    createFingerprintMask(toFingerprints(['correct horse']), 'o'.repeat(32))('correct horse'),
    'correct horse',
  );
});

test('attack: values and text that repeat one letter take linear time', () => {
  const values = Array.from({ length: 200 }, (_, index) => 'a'.repeat(8 + index * 37));
  const mask = createFingerprintMask(toFingerprints([...values, `${'a'.repeat(5_000)}b`]), key);
  const lines = Array.from({ length: 64 }, () => 'a'.repeat(16_384));
  const since = performance.now();
  for (const line of lines) assert.equal(mask(line), '[secret]');
  assert.ok(performance.now() - since < 15_000, `${performance.now() - since} ms for 1 MiB`);
});

test('remembers a value in the forms in which programs print it, and only for its app', async () => {
  const database = await openDatabase(migratedDatabase);
  try {
    const value = 'first line of it\nsecond "line" of it';
    await rememberSecret(database, 'app', 'KEY', value, key);
    await rememberSecret(database, 'app', 'KEY', value, key);
    await rememberSecret(database, 'app', 'SHORT', 'abc', key);
    const mask = createFingerprintMask(await listFingerprints(database, 'app'), key);
    const printed = [
      'first line of it',
      'second "line" of it',
      JSON.stringify(value),
      encodeURIComponent(value),
      Buffer.from(value).toString('base64'),
    ];
    for (const text of printed) assert.doesNotMatch(mask(`<${text}>`), /first|second|Zmlyc3/, text);
    assert.equal(mask('an ordinary line, abc'), 'an ordinary line, abc');
    assert.deepEqual(await listFingerprints(database, 'other'), []);
    const lines = Array.from({ length: 300 }, (_, line) => `line ${line} of version`);
    for (const version of [1, 2, 3, 4])
      await rememberSecret(database, 'app', 'KEY', lines.map((line) => `${line} ${version}`).join('\n'), key);
    assert.equal((await listFingerprints(database, 'app')).length, 1_000, 'the oldest are forgotten');
    const newest = createFingerprintMask(await listFingerprints(database, 'app'), key);
    assert.equal(newest('line 1 of version 4'), '[secret]');
  } finally {
    await database.close();
  }
});
