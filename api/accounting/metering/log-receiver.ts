// Receives OTLP logs over HTTP (POST /v1/logs) and stores their records. A response of 200 means that the batch is stored.
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import getRawBody from 'raw-body';
import type { Logger } from '../../../lib/telemetry.ts';
import type { Database } from '../../billing/index.ts';
import { createEventId, formatTimestamp, type GatewayRecord, identifyGateway, readRecord } from './gateway-record.ts';
import type { MeteringMetrics } from './metering-metrics.ts';
import { contentTypes, type Encoding, readRequest, type SentLogs, writeResponse, writeStatus } from './otlp.ts';
import { classify, type HostKind, type Visitor } from './request-class.ts';
import { type Entry, recordBatch } from './usage-store.ts';

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
      if (count > 0) options.log.warn({ count, message }, 'records of a gateway were refused');
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
        options.log.error({ err: error }, 'the receiver could not answer');
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
  log.warn({ err: error }, 'a batch of a gateway was not kept, its sender is asked to send it again');
  return { status: 503, body: writeStatus(codes.unavailable, 'The batch could not be kept. Send it again.', encoding) };
}

/** Older records may have been dropped with their day, so they could be counted twice. */
export const maxAgeDays = 35;
const maxAheadMs = 5 * 60_000;
const nanosecond = 1_000_000n;

export interface IntakeOptions {
  readonly database: () => Database;
  readonly resolveHost: (host: string) => HostKind;
  readonly resolveVisitor: (client: string, day: string) => Visitor;
  readonly metrics: MeteringMetrics;
  /** Days for which uses are kept. */
  readonly keepDays: number;
  readonly now?: () => number;
}

/** The number of refused records, and the reasons. */
export interface Refusals {
  readonly count: number;
  readonly message: string;
}

type Reason = 'unreadable' | 'too_old' | 'in_the_future';

/** Returns a function that stores the records of a request, one sender at a time. Resolves once all are stored. @throws the driver's error */
export function createIntake(options: IntakeOptions): (sent: readonly SentLogs[]) => Promise<Refusals> {
  const now = options.now ?? Date.now;
  const retentionMs = Math.min(maxAgeDays, options.keepDays - 1) * 86_400_000;
  return async (sent) => {
    const refusals = new Map<Reason, string[]>();
    for (const { resource, records } of sent) {
      const gateway = identifyGateway(resource);
      const entries = records.flatMap((attributes) => {
        const record = readRecord(attributes);
        if ('wrong' in record) {
          addRefusal(refusals, 'unreadable', record.wrong.join(' and '));
          return [];
        }
        return [toEntry(gateway, record)];
      });
      if (entries.length > 0) await storeEntries(gateway, entries);
    }
    return summarizeRefusals(refusals);

    function toEntry(gateway: string, record: GatewayRecord): Entry {
      const { counter, startNs, endNs, isLost } = record;
      const entry = { counter, startNs, endNs, isLost };
      if (isLost) return { ...entry, event: undefined };
      const reason = findLateness(Number(startNs / nanosecond) - now(), retentionMs);
      if (reason !== undefined) {
        addRefusal(refusals, reason, `${counter.toString()} of ${formatTimestamp(startNs)}`);
        return { ...entry, event: undefined };
      }
      return { ...entry, event: toEvent(gateway, record) };
    }
  };

  async function storeEntries(gateway: string, entries: readonly Entry[]): Promise<void> {
    const { metrics } = options;
    const { added, withdrawn: back, runs } = await recordBatch(options.database(), gateway, entries);
    const events = entries.flatMap(({ event }) => event ?? []);
    for (const event of events) metrics.events.inc({ class: event.class ?? 'use' });
    metrics.duplicates.inc(events.length - added);
    metrics.withdrawn.inc(back);
    metrics.runs.inc(runs);
  }

  function toEvent(gateway: string, record: GatewayRecord): Entry['event'] {
    const at = formatTimestamp(record.startNs);
    const host = options.resolveHost(record.host);
    const visitor = options.resolveVisitor(record.client, at.slice(0, 10));
    return {
      id: createEventId(gateway, record),
      at,
      kind: 'visit',
      class: classify(record, host, visitor),
      caller: visitor.hash,
      network: visitor.network,
      ...(host.kind === 'app' ? { app: host.app.slug } : {}),
      latencyMs: Math.round(Number(record.endNs - record.startNs) / 1e6),
      status: record.status,
      bytesIn: record.bytesIn,
      bytesOut: record.bytesOut,
    };
  }

  function addRefusal(refusals: Map<Reason, string[]>, reason: Reason, what: string): void {
    options.metrics.refused.inc({ reason });
    refusals.set(reason, [...(refusals.get(reason) ?? []), what]);
  }
}

/** `aheadMs`: how far the start of the request is ahead of now. */
function findLateness(aheadMs: number, keptMs: number): Reason | undefined {
  if (aheadMs > maxAheadMs) return 'in_the_future';
  return aheadMs < -keptMs ? 'too_old' : undefined;
}

const refusalTexts: Readonly<Record<Reason, string>> = {
  unreadable: 'unreadable (missing or wrong: ',
  too_old: `older than ${maxAgeDays} days, or than uses are kept (RequestCount `,
  in_the_future: 'more than 5 minutes ahead of the clock of this server (RequestCount ',
};
const maxNamed = 10;

function summarizeRefusals(refusals: ReadonlyMap<Reason, readonly string[]>): Refusals {
  const all = [...refusals];
  const parts = all.map(([reason, what]) => {
    const named = [...new Set(what)];
    const more = named.length > maxNamed ? ', …' : '';
    return `${what.length} ${refusalTexts[reason]}${named.slice(0, maxNamed).join(', ')}${more})`;
  });
  return { count: all.reduce((sum, [, { length }]) => sum + length, 0), message: parts.join('; ') };
}

/** Whether a request carries the token. Compares in constant time. */
export function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const actual = Buffer.from(headers.authorization ?? '');
  const expected = Buffer.from(`Bearer ${token}`);
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}
