// Reads a request of OTLP logs as protobuf straight into attributes: a message for each of a million attributes a minute
// would be made only to be thrown away. The fields are those of logs.proto; any other is passed over.
import protobuf from 'protobufjs';
import type { Attributes, AttributeValue, SentLogs } from './messages.ts';

type Reader = protobuf.Reader;

/** As protobufjs reads a whole number of 64 bits. */
interface Long {
  readonly low: number;
  readonly high: number;
}

/** A field of a message: its number, and how it is written (0: whole number, 1: 8 bytes, 2: with its length). */
const field = (number: number, wire: 0 | 1 | 2): number => (number << 3) | wire;

const fields = {
  resourceLogs: field(1, 2),
  resource: field(1, 2),
  scopeLogs: field(2, 2),
  logRecords: field(2, 2),
  resourceAttributes: field(1, 2),
  recordAttributes: field(6, 2),
  key: field(1, 2),
  value: field(2, 2),
  stringValue: field(1, 2),
  boolValue: field(2, 0),
  intValue: field(3, 0),
  doubleValue: field(4, 1),
} as const;

/** Reads a request. @throws RangeError, Error when it is not one */
export function decodeRequest(body: Uint8Array): SentLogs[] {
  const reader = protobuf.Reader.create(body);
  const sent: SentLogs[] = [];
  eachField(reader, reader.len, (tag) => {
    if (tag !== fields.resourceLogs) return false;
    sent.push(readResourceLogs(reader, endOf(reader)));
    return true;
  });
  return sent;
}

function readResourceLogs(reader: Reader, end: number): SentLogs {
  let resource: Attributes = none();
  const records: Attributes[] = [];
  eachField(reader, end, (tag) => {
    if (tag === fields.resource) resource = readAttributes(reader, endOf(reader), fields.resourceAttributes);
    else if (tag === fields.scopeLogs) readScopeLogs(reader, endOf(reader), records);
    else return false;
    return true;
  });
  return { resource, records };
}

function readScopeLogs(reader: Reader, end: number, into: Attributes[]): void {
  eachField(reader, end, (tag) => {
    if (tag !== fields.logRecords) return false;
    into.push(readAttributes(reader, endOf(reader), fields.recordAttributes));
    return true;
  });
}

/** The attributes of a resource or a record, which have them under another number each. */
function readAttributes(reader: Reader, end: number, attribute: number): Attributes {
  const attributes = none();
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === attribute) readAttribute(reader, endOf(reader), attributes);
    else reader.skipType(tag & 7);
  }
  expectEnd(reader, end);
  return attributes;
}

function readAttribute(reader: Reader, end: number, into: Record<string, AttributeValue>): void {
  let key = '';
  let value: AttributeValue | undefined;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === fields.key) key = reader.string();
    else if (tag === fields.value) value = readValue(reader, endOf(reader));
    else reader.skipType(tag & 7);
  }
  expectEnd(reader, end);
  if (value !== undefined) into[key] = value;
}

/** The last of its kinds that is there; undefined for those that no attribute of ours has. */
function readValue(reader: Reader, end: number): AttributeValue | undefined {
  let value: AttributeValue | undefined;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === fields.stringValue) value = reader.string();
    else if (tag === fields.intValue) value = wholeNumber(reader.int64());
    else if (tag === fields.doubleValue) value = reader.double();
    else {
      if (tag === fields.boolValue) value = undefined;
      reader.skipType(tag & 7);
    }
  }
  expectEnd(reader, end);
  return value;
}

/** Exact, whatever its size. */
export function wholeNumber(value: string | number | Long): number | bigint {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string' && value.high === 0) return value.low >>> 0;
  const exact = typeof value === 'string' ? BigInt(value) : (BigInt(value.high) << 32n) | BigInt(value.low >>> 0);
  const near = Number(exact);
  return Number.isSafeInteger(near) ? near : exact;
}

function none(): Record<string, AttributeValue> {
  return Object.create(null) as Record<string, AttributeValue>;
}

function eachField(reader: Reader, end: number, take: (tag: number) => boolean): void {
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (!take(tag)) reader.skipType(tag & 7);
  }
  expectEnd(reader, end);
}

/** Reads the length of what follows, which has to be there. */
function endOf(reader: Reader): number {
  const end = reader.uint32() + reader.pos;
  if (end > reader.len) throw new RangeError(`a message ends at ${end} of ${reader.len} bytes`);
  return end;
}

/** What is in a message ends with it. */
function expectEnd(reader: Reader, end: number): void {
  if (reader.pos !== end) throw new RangeError(`a message ends at ${end}, what is in it at ${reader.pos}`);
}
