// OTLP logs on the wire: requests, answers and errors, as protobuf or JSON.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import protobuf from 'protobufjs';
import { z } from 'zod';
import { decodeRequest, wholeNumber } from './decode.ts';

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
const request = z.object({
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
  const { resourceLogs = [] } = request.parse(JSON.parse(Buffer.from(body).toString('utf8')));
  return resourceLogs.map(({ resource, scopeLogs = [] }) => ({
    resource: attributesOf(resource?.attributes),
    records: scopeLogs.flatMap(({ logRecords = [] }) => logRecords.map(({ attributes }) => attributesOf(attributes))),
  }));
}

function attributesOf(list: KeyValues): Attributes {
  const attributes: Record<string, AttributeValue> = Object.create(null) as Record<string, AttributeValue>;
  for (const { key, value } of list ?? []) {
    const plain = plainValue(value);
    if (plain !== undefined) attributes[key] = plain;
  }
  return attributes;
}

function plainValue(value: z.output<typeof anyValue> | null | undefined): AttributeValue | undefined {
  if (value === null || value === undefined) return undefined;
  const { stringValue, intValue, doubleValue } = value;
  return stringValue ?? (intValue === undefined ? doubleValue : wholeNumber(intValue));
}

/** Writes a request as protobuf. */
export function writeRequest({ resource, records }: SentLogs): Uint8Array {
  const message = {
    resourceLogs: [
      {
        resource: { attributes: keyValuesOf(resource) },
        scopeLogs: [{ logRecords: records.map((record) => ({ attributes: keyValuesOf(record) })) }],
      },
    ],
  };
  return requestType.encode(message).finish();
}

function keyValuesOf(attributes: Attributes): { key: string; value: object }[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value:
      typeof value === 'string'
        ? { stringValue: value }
        : { intValue: typeof value === 'bigint' ? longOf(value) : value },
  }));
}

function longOf(value: bigint): { readonly low: number; readonly high: number } {
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

const response = z.object({
  partialSuccess: z
    .object({ rejectedLogRecords: z.coerce.number().default(0), errorMessage: z.string().default('') })
    .nullish(),
});

/** Reads an answer in protobuf. @throws Error when it is not one */
export function readResponse(body: Uint8Array): { readonly rejected: number; readonly message: string } {
  const { partialSuccess } = response.parse(responseType.toObject(responseType.decode(body), { longs: String }));
  return { rejected: partialSuccess?.rejectedLogRecords ?? 0, message: partialSuccess?.errorMessage ?? '' };
}

/** An error, as the protocol wants it: a google.rpc.Status. */
export function writeStatus(code: number, message: string, encoding: Encoding): Uint8Array {
  return encoding === 'protobuf'
    ? statusType.encode({ code, message }).finish()
    : Buffer.from(JSON.stringify({ code, message }));
}
