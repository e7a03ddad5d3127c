// Reads and writes OTLP logs: requests, responses and errors, as protobuf or JSON.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import protobuf from 'protobufjs';
import { z } from 'zod';

/** An attribute as it is sent: a text, a whole number (exact), or another number. */
export type AttributeValue = string | number | bigint;
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** The records of one sender. */
export interface SentLogs {
  readonly resource: Attributes;
  readonly records: readonly Attributes[];
}

export const contentTypes = { protobuf: 'application/x-protobuf', json: 'application/json' } as const;
export type Encoding = keyof typeof contentTypes;

const { root } = protobuf.parse(readFileSync(join(import.meta.dirname, 'logs.proto'), 'utf8'));
const requestType = root.lookupType('ExportLogsServiceRequest');
const responseType = root.lookupType('ExportLogsServiceResponse');
const statusType = root.lookupType('Status');

/** Whole numbers are strings in the JSON of protobuf. */
const anyValue = z.object({
  stringValue: z.string().optional(),
  intValue: z.union([z.string().regex(/^-?\d{1,19}$/), z.int()]).optional(),
  doubleValue: z.number().optional(),
  boolValue: z.boolean().optional(),
});
const keyValues = z.array(z.object({ key: z.string(), value: anyValue.nullish() })).optional();
const requestSchema = z.object({
  resourceLogs: z
    .array(
      z.object({
        resource: z.object({ attributes: keyValues }).nullish(),
        scopeLogs: z
          .array(z.object({ logRecords: z.array(z.object({ attributes: keyValues })).optional() }))
          .optional(),
      }),
    )
    .optional(),
});
type KeyValues = z.output<typeof keyValues>;

/** Reads a request. @throws Error when it is not one */
export function readRequest(body: Uint8Array, encoding: Encoding): SentLogs[] {
  if (encoding === 'protobuf') return decodeRequest(body);
  const { resourceLogs = [] } = requestSchema.parse(JSON.parse(Buffer.from(body).toString('utf8')));
  return resourceLogs.map(({ resource, scopeLogs = [] }) => ({
    resource: toAttributes(resource?.attributes),
    records: scopeLogs.flatMap(({ logRecords = [] }) => logRecords.map(({ attributes }) => toAttributes(attributes))),
  }));
}

function toAttributes(list: KeyValues): Attributes {
  const attributes: Record<string, AttributeValue> = Object.create(null) as Record<string, AttributeValue>;
  for (const { key, value } of list ?? []) {
    const plain = toPlainValue(value);
    if (plain !== undefined) attributes[key] = plain;
  }
  return attributes;
}

function toPlainValue(value: z.output<typeof anyValue> | null | undefined): AttributeValue | undefined {
  if (value === null || value === undefined) return undefined;
  const { stringValue, intValue, doubleValue } = value;
  return stringValue ?? (intValue === undefined ? doubleValue : toWholeNumber(intValue));
}

/** Writes a request as protobuf. */
export function writeRequest({ resource, records }: SentLogs): Uint8Array {
  const message = {
    resourceLogs: [
      {
        resource: { attributes: toKeyValues(resource) },
        scopeLogs: [{ logRecords: records.map((record) => ({ attributes: toKeyValues(record) })) }],
      },
    ],
  };
  return requestType.encode(message).finish();
}

function toKeyValues(attributes: Attributes): { key: string; value: object }[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value:
      typeof value === 'string'
        ? { stringValue: value }
        : { intValue: typeof value === 'bigint' ? toLong(value) : value },
  }));
}

function toLong(value: bigint): { readonly low: number; readonly high: number } {
  return { low: Number(BigInt.asIntN(32, value)), high: Number(BigInt.asIntN(32, value >> 32n)) };
}

/** An answer: everything was taken, or all but so many records, and why those were not. */
export function writeResponse(rejected: number, message: string, encoding: Encoding): Uint8Array {
  const partialSuccess = rejected === 0 ? undefined : { rejectedLogRecords: rejected, errorMessage: message };
  if (encoding === 'protobuf')
    return responseType.encode(partialSuccess === undefined ? {} : { partialSuccess }).finish();
  return Buffer.from(
    JSON.stringify(
      partialSuccess === undefined
        ? {}
        : { partialSuccess: { ...partialSuccess, rejectedLogRecords: String(rejected) } },
    ),
  );
}

const responseSchema = z.object({
  partialSuccess: z
    .object({ rejectedLogRecords: z.coerce.number().default(0), errorMessage: z.string().default('') })
    .nullish(),
});

/** Reads an answer in protobuf. @throws Error when it is not one */
export function readResponse(body: Uint8Array): { readonly rejected: number; readonly message: string } {
  const { partialSuccess } = responseSchema.parse(responseType.toObject(responseType.decode(body), { longs: String }));
  return { rejected: partialSuccess?.rejectedLogRecords ?? 0, message: partialSuccess?.errorMessage ?? '' };
}

/** An error, as the protocol wants it: a google.rpc.Status. */
export function writeStatus(code: number, message: string, encoding: Encoding): Uint8Array {
  return encoding === 'protobuf'
    ? statusType.encode({ code, message }).finish()
    : Buffer.from(JSON.stringify({ code, message }));
}

type Reader = protobuf.Reader;

/** As protobufjs reads a whole number of 64 bits. */
interface Long {
  readonly low: number;
  readonly high: number;
}

/** A field of a message: its number, and how it is written (0: whole number, 1: 8 bytes, 2: with its length). */
const toTag = (number: number, wire: 0 | 1 | 2): number => (number << 3) | wire;

const fields = {
  resourceLogs: toTag(1, 2),
  resource: toTag(1, 2),
  scopeLogs: toTag(2, 2),
  logRecords: toTag(2, 2),
  resourceAttributes: toTag(1, 2),
  recordAttributes: toTag(6, 2),
  key: toTag(1, 2),
  value: toTag(2, 2),
  stringValue: toTag(1, 2),
  boolValue: toTag(2, 0),
  intValue: toTag(3, 0),
  doubleValue: toTag(4, 1),
} as const;

/** Reads a request. @throws RangeError, Error when it is not one */
export function decodeRequest(body: Uint8Array): SentLogs[] {
  const reader = protobuf.Reader.create(body);
  const sent: SentLogs[] = [];
  readFields(reader, reader.len, (tag) => {
    if (tag !== fields.resourceLogs) return false;
    sent.push(readResourceLogs(reader, readEnd(reader)));
    return true;
  });
  return sent;
}

function readResourceLogs(reader: Reader, end: number): SentLogs {
  let resource: Attributes = createAttributes();
  const records: Attributes[] = [];
  readFields(reader, end, (tag) => {
    if (tag === fields.resource) resource = readAttributes(reader, readEnd(reader), fields.resourceAttributes);
    else if (tag === fields.scopeLogs) readScopeLogs(reader, readEnd(reader), records);
    else return false;
    return true;
  });
  return { resource, records };
}

function readScopeLogs(reader: Reader, end: number, into: Attributes[]): void {
  readFields(reader, end, (tag) => {
    if (tag !== fields.logRecords) return false;
    into.push(readAttributes(reader, readEnd(reader), fields.recordAttributes));
    return true;
  });
}

/** The attributes of a resource or a record, which have them under another number each. */
function readAttributes(reader: Reader, end: number, attribute: number): Attributes {
  const attributes = createAttributes();
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === attribute) readAttribute(reader, readEnd(reader), attributes);
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
    else if (tag === fields.value) value = readValue(reader, readEnd(reader));
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
    else if (tag === fields.intValue) value = toWholeNumber(reader.int64());
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
export function toWholeNumber(value: string | number | Long): number | bigint {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string' && value.high === 0) return value.low >>> 0;
  const exact = typeof value === 'string' ? BigInt(value) : (BigInt(value.high) << 32n) | BigInt(value.low >>> 0);
  const near = Number(exact);
  return Number.isSafeInteger(near) ? near : exact;
}

function createAttributes(): Record<string, AttributeValue> {
  return Object.create(null) as Record<string, AttributeValue>;
}

function readFields(reader: Reader, end: number, take: (tag: number) => boolean): void {
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (!take(tag)) reader.skipType(tag & 7);
  }
  expectEnd(reader, end);
}

/** Reads the length of what follows, which has to be there. */
function readEnd(reader: Reader): number {
  const end = reader.uint32() + reader.pos;
  if (end > reader.len) throw new RangeError(`a message ends at ${end} of ${reader.len} bytes`);
  return end;
}

/** What is in a message ends with it. */
function expectEnd(reader: Reader, end: number): void {
  if (reader.pos !== end) throw new RangeError(`a message ends at ${end}, what is in it at ${reader.pos}`);
}
