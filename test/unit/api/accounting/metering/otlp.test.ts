// Requests as protobuf: read flat they are what the library reads, and what is none is refused.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { test } from 'vitest';
import {
  type AttributeValue,
  decodeRequest,
  readRequest,
} from '../../../../../api/accounting/metering/log-receiver.ts';
import { writeRequest } from '../../../../../api/accounting/metering/shipper/sender.ts';

const proto = readFileSync(join(import.meta.dirname, '../../../../../api/accounting/metering/logs.proto'), 'utf8');
const requestType = protobuf.parse(proto).root.lookupType('ExportLogsServiceRequest');
const encode = (message: object): Uint8Array => requestType.encode(message).finish();
const withRecord = (attributes: object[], more: object = {}): Uint8Array =>
  encode({ resourceLogs: [{ scopeLogs: [{ logRecords: [{ attributes, ...more }] }] }] });
const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_key, of: unknown) => (typeof of === 'bigint' ? `${of}n` : of)));

const value: fc.Arbitrary<AttributeValue> = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.maxSafeInteger(),
  fc.bigInt({ min: 2n ** 53n, max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -(2n ** 63n), max: -(2n ** 53n) }),
);
const attributes = fc.dictionary(
  fc.string({ minLength: 1 }).filter((key) => key !== '__proto__'),
  value,
  { maxKeys: 6 },
);

test('what is written is read, whole numbers of 64 bits exactly', () => {
  fc.assert(
    fc.property(attributes, fc.array(attributes, { maxLength: 4 }), (resource, records) => {
      const [sent] = decodeRequest(writeRequest({ resource, records }));
      assert.deepEqual(plain(sent), plain({ resource, records }));
    }),
  );
});

test('fields that are not read are passed over, and so are kinds of values that no attribute of ours has', () => {
  const body = withRecord(
    [
      { key: 'a', value: { stringValue: 'x' } },
      { key: 'b', value: { boolValue: true } },
      { key: 'c', value: { doubleValue: 1.5 } },
      { key: 'd' },
      { key: 'e', value: {} },
    ],
    { timeUnixNano: 5 },
  );
  // Field 15 of the request, a text.
  const [sent] = decodeRequest(Buffer.concat([body, Buffer.from([0x7a, 1, 0x41])]));
  assert.deepEqual(plain(sent?.records), [{ a: 'x', c: 1.5 }]);
  assert.deepEqual(decodeRequest(new Uint8Array()), []);
});

test('a key that an object has of itself is a key like any other', () => {
  const [sent] = decodeRequest(withRecord([{ key: '__proto__', value: { stringValue: 'x' } }]));
  assert.equal(Object.keys(sent?.records[0] ?? {}).join(), '__proto__');
});

test('what is cut off, or ends within what holds it, is refused wherever it is cut', () => {
  const body = withRecord([
    { key: 'RequestCount', value: { intValue: 300 } },
    { key: 'b', value: { stringValue: 'text' } },
  ]);
  for (let length = 1; length < body.length; length += 1)
    assert.throws(() => decodeRequest(body.subarray(0, length)), `${length} of ${body.length} bytes`);
});

test('any bytes are read or refused, and cost no more than their length', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      let read: unknown;
      try {
        read = decodeRequest(bytes);
      } catch (error) {
        assert.ok(error instanceof Error);
      }
      assert.ok(read === undefined || Array.isArray(read));
    }),
  );
});

test('JSON and protobuf of the same request are the same', () => {
  const keyValues = [
    { key: 'a', value: { stringValue: '' } },
    { key: 'b', value: { intValue: '9223372036854775807' } },
    { key: 'c', value: { doubleValue: 0.5 } },
    { key: 'd', value: { boolValue: true } },
  ];
  const message = { resourceLogs: [{ scopeLogs: [{ logRecords: [{ attributes: keyValues }] }] }] };
  const fromJson = readRequest(Buffer.from(JSON.stringify(message)), 'json');
  const fromProtobuf = readRequest(requestType.encode(requestType.fromObject(message)).finish(), 'protobuf');
  assert.deepEqual(plain(fromProtobuf), plain(fromJson));
  assert.equal(fromJson[0]?.records[0]?.['b'], 9_223_372_036_854_775_807n);
});
