// Canonical JSON by the example of RFC 8785, thumbprints by that of RFC 8037, and signatures over them.
import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { test } from 'vitest';
import { toCanonicalJson, parseJson } from '../../../../../../api/accounting/receipts/format/hashes.ts';
import {
  findSignatureFault,
  signDocument,
  toPublicKey,
} from '../../../../../../api/accounting/receipts/format/signature.ts';
import { sumPostedTo, sumAmounts } from '../../../../../../api/accounting/receipts/format/documents.ts';
import { keys, privateKey } from '../../../../../support/receipts/record.ts';

test('the canonical form is that of RFC 8785', () => {
  const value = JSON.parse(
    '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
  ) as unknown;
  assert.equal(
    toCanonicalJson(value),
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  );
  assert.throws(() => toCanonicalJson('\ud800'));
  assert.throws(() => toCanonicalJson(undefined));
});

test('a member that appears twice in an object is refused by name', () => {
  for (const [text, name] of [
    ['{"a":1,"a":2}', '"a"'],
    ['{"a":1,"b":{"c":[{"d":1}],"c":2}}', '"c"'],
    [String.raw`{"a":1,"\u0061":2}`, '"a"'],
    ['{"__proto__":1,"__proto__":2}', '"__proto__"'],
    [String.raw`{"a\"b":1,"a\"b":2}`, String.raw`"a\"b"`],
  ])
    assert.throws(() => parseJson(text ?? ''), { message: `the member ${name} is there twice` });
  for (const text of [
    '{"a":{"a":"a"},"b":["a","a",{"a":1},{"a":2}],"c":"{\\"a\\":1,\\"a\\":2}"}',
    '[1,"a","a"]',
    '"a"',
    'null',
  ])
    assert.deepEqual(parseJson(text), JSON.parse(text));
});

test('a key is named by its thumbprint, as RFC 8037 has it', () => {
  const x = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo';
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  assert.equal(toPublicKey(key).kid, 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k');
  assert.throws(() => toPublicKey(generateKeyPairSync('x25519').publicKey), /not an Ed25519 key/);
});

test('a signature is of the content, whatever the order of its members, and of the key', async () => {
  const signed = await signDocument({ b: 1, a: ['x', { d: null, c: 'ü' }] }, privateKey);
  assert.equal(await findSignatureFault(signed, keys), undefined);
  assert.equal(await findSignatureFault({ signature: signed.signature, a: signed.a, b: 1 }, keys), undefined);
  assert.match((await findSignatureFault({ ...signed, b: 2 }, keys)) ?? '', /was changed/);
  assert.match((await findSignatureFault({ ...signed, c: 2 }, keys)) ?? '', /was changed/);
  assert.match((await findSignatureFault({ ...signed, b: '\ud800' }, keys)) ?? '', /was changed/);
  assert.match((await findSignatureFault(signed, { keys: [] })) ?? '', /not among the known/);
  const other = toPublicKey(generateKeyPairSync('ed25519').privateKey);
  const [own] = keys.keys;
  assert.ok(own !== undefined);
  assert.match((await findSignatureFault(signed, { keys: [{ ...other, kid: own.kid }] })) ?? '', /not among the known/);
});

test('the text of a signature is the only one of its bytes', async () => {
  const { signature, ...rest } = await signDocument({ a: 1 }, privateKey);
  const last = signature.signature.at(-1) ?? '';
  for (const other of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ ')
    if (other !== last) {
      const changed = { ...signature, signature: signature.signature.slice(0, -1) + other };
      assert.notEqual(await findSignatureFault({ ...rest, signature: changed }, keys), undefined, other);
    }
  const none = Buffer.from('{"alg":"none"}').toString('base64url');
  assert.match(
    (await findSignatureFault({ ...rest, signature: { ...signature, protected: none } }, keys)) ?? '',
    /header/,
  );
  assert.match(
    (await findSignatureFault({ ...rest, signature: { ...signature, more: 1 } }, keys)) ?? '',
    /no signature/,
  );
});

test('amounts are summed exactly', () => {
  assert.equal(sumAmounts(['0.1', '0.2', '-0.3']), '0');
  assert.equal(sumAmounts(['99999999.999999999999', '0.000000000001']), '100000000');
  assert.equal(sumAmounts(['-0.000000000001', '-1']), '-1.000000000001');
  assert.equal(sumAmounts(['NaN']), undefined);
  assert.equal(sumAmounts(['1e3']), undefined);
  const account = { kind: 'caller', owner: 'x', day: null };
  const entry = (line: number, owner: string, amount: string) => ({ line, account: { ...account, owner }, amount });
  const leaf = {
    id: '1',
    reference: 'r',
    kind: 'k',
    at: 't',
    entries: [entry(1, 'x', '0.5'), entry(2, 'y', '-1'), entry(3, 'x', '0.5')],
  };
  assert.equal(sumPostedTo(leaf, account), '1');
  assert.equal(sumPostedTo(leaf, { ...account, day: '2026-01-01' }), undefined);
});
