// Receives OTLP logs over HTTP (POST /v1/logs), as protobuf or JSON. A response of 200 means that the batch is stored.
import { readFileSync } from 'node:fs';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import protobuf from 'protobufjs';
import getRawBody from 'raw-body';
import { z } from 'zod';
import { isSameSecret } from '../../../lib/sealed-text.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import type { MeteringMetrics } from './metering-metrics.ts';
import type { Refusals } from './usage-store.ts';

export interface ReceiverOptions {
  /** Senders authenticate with `Authorization: Bearer <token>`. */
  readonly token: string;
  readonly storeLogs: (sent: readonly SentLogs[]) => Promise<Refusals>;
  readonly metrics: MeteringMetrics;
  readonly log: Logger;
  readonly limits?: Partial<ReceiverLimits>;
}

export interface ReceiverLimits {
  /** Maximum body size in bytes, as sent and after decompression. */
  readonly bodyBytes: number;
  readonly unpackedBytes: number;
  /** Maximum number of concurrent requests; further ones get a 503. */
  readonly concurrency: number;
}

const defaultLimits: ReceiverLimits = { bodyBytes: 4 * 1_048_576, unpackedBytes: 16 * 1_048_576, concurrency: 4 };

/** gRPC status codes, which OTLP puts into the body of an error. */
const codes = { invalid: 3, exhausted: 8, unavailable: 14, unauthenticated: 16 } as const;

class Refusal extends Error {
  readonly status: number;
  readonly code: number;

  constructor(status: number, code: number, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const unpack = promisify<Buffer, { maxOutputLength: number }, Buffer>(gunzip);

/** Returns the listener of `POST /v1/logs`. */
export function createReceiver(options: ReceiverOptions): RequestListener {
  const limits = { ...defaultLimits, ...options.limits };
  let inProgress = 0;
  const answer = async (request: IncomingMessage, encoding: Encoding): Promise<Uint8Array> => {
    if (!hasToken(request, options.token))
      throw new Refusal(401, codes.unauthenticated, 'Send the metering token: Authorization: Bearer <token>.');
    if (request.method !== 'POST') throw new Refusal(405, codes.invalid, 'Use POST.');
    if (inProgress >= limits.concurrency)
      throw new Refusal(503, codes.unavailable, 'Too many requests are in progress. Try again in 1 second.');
    inProgress += 1;
    try {
      const { count, message } = await options.storeLogs(await readLogs(request, encoding, limits));
      if (count > 0) options.log.warn({ count, message }, 'records of a gateway were rejected');
      return writeResponse(count, message, encoding);
    } finally {
      inProgress -= 1;
    }
  };
  return (request, response) => {
    const since = performance.now();
    const encoding = parseEncoding(request);
    answer(request, encoding ?? 'json')
      .then(
        (body) => {
          options.metrics.seconds.observe((performance.now() - since) / 1000);
          return { status: 200, body };
        },
        (error: unknown) => toFailure(error, encoding ?? 'json', options.log),
      )
      .then(({ status, body }) => {
        options.metrics.requests.inc({ status });
        sendResponse(response, status, body, encoding ?? 'json');
      })
      .catch((error: unknown) => {
        options.log.error({ err: error }, 'the log receiver failed');
        response.destroy();
      });
  };
}

function sendResponse(response: ServerResponse, status: number, body: Uint8Array, encoding: Encoding): void {
  response.writeHead(status, {
    'content-type': contentTypes[encoding],
    'content-length': body.byteLength,
    ...(status === 503 ? { 'retry-after': '1' } : {}),
    // The rest of an unread body would be parsed as the next request.
    ...(status === 200 ? {} : { connection: 'close' }),
  });
  response.end(body);
}

function parseEncoding({ headers }: IncomingMessage): Encoding | undefined {
  const type = (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase();
  if (type === contentTypes.protobuf) return 'protobuf';
  return type === contentTypes.json ? 'json' : undefined;
}

async function readLogs(request: IncomingMessage, encoding: Encoding, limits: ReceiverLimits): Promise<SentLogs[]> {
  if (parseEncoding(request) === undefined)
    throw new Refusal(415, codes.invalid, `Send ${contentTypes.protobuf} or ${contentTypes.json}.`);
  const contentEncoding = request.headers['content-encoding'] ?? 'identity';
  if (contentEncoding !== 'gzip' && contentEncoding !== 'identity')
    throw new Refusal(415, codes.invalid, 'Send the body as it is, or with Content-Encoding: gzip.');
  const body = await getRawBody(request, { limit: limits.bodyBytes }).catch((error: unknown) => {
    throw isTooLarge(error) ? createTooLarge(limits.bodyBytes, 'as it is sent') : error;
  });
  const unpacked = contentEncoding === 'identity' ? body : await unpackWithin(body, limits.unpackedBytes);
  try {
    return readRequest(unpacked, encoding);
  } catch (error) {
    throw new Refusal(400, codes.invalid, `This is not an ExportLogsServiceRequest: ${String(error).slice(0, 300)}`);
  }
}

async function unpackWithin(body: Buffer, limit: number): Promise<Buffer> {
  try {
    return await unpack(body, { maxOutputLength: limit });
  } catch (error) {
    if (hasCode(error, 'ERR_BUFFER_TOO_LARGE')) throw createTooLarge(limit, 'unpacked');
    throw new Refusal(400, codes.invalid, 'The body is not gzip, as its Content-Encoding says.');
  }
}

function createTooLarge(limit: number, how: string): Refusal {
  return new Refusal(413, codes.exhausted, `The body has more than ${limit} bytes ${how}. Send smaller batches.`);
}

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && 'type' in error && error.type === 'entity.too.large';
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** An error that the sender did not cause is a 503, so that the batch is sent again. A batch is stored once, however often it is sent. */
function toFailure(error: unknown, encoding: Encoding, log: Logger): { status: number; body: Uint8Array } {
  if (error instanceof Refusal) return { status: error.status, body: writeStatus(error.code, error.message, encoding) };
  log.warn({ err: error }, 'a batch of a gateway was not stored; its sender will resend it');
  return { status: 503, body: writeStatus(codes.unavailable, 'The batch could not be kept. Send it again.', encoding) };
}

/** Whether a request carries the token. Compares in constant time. */
export function hasToken({ headers }: IncomingMessage, token: string): boolean {
  return isSameSecret(headers.authorization ?? '', `Bearer ${token}`);
}

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
  const attributes = createAttributes();
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

/** An answer: everything was taken, or all but so many records, and why those were not. */
function writeResponse(rejected: number, message: string, encoding: Encoding): Uint8Array {
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
function toWholeNumber(value: string | number | Long): number | bigint {
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
