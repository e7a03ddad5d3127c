// Receives OTLP logs over HTTP (POST /v1/logs): an answer of 200 says that the batch is kept.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import getRawBody from 'raw-body';
import type { Logger } from '../../../../lib/log.ts';
import {
  contentTypes,
  type Encoding,
  readRequest,
  type SentLogs,
  writeResponse,
  writeStatus,
} from '../otlp/messages.ts';
import type { MeteringMetrics } from '../metrics.ts';
import { showsToken } from '../token.ts';
import type { Refusals } from './intake.ts';

export interface ReceiverOptions {
  /** What a sender shows: Authorization: Bearer <token>. */
  readonly token: string;
  readonly take: (sent: readonly SentLogs[]) => Promise<Refusals>;
  readonly metrics: MeteringMetrics;
  readonly log: Logger;
  readonly limits?: Partial<ReceiverLimits>;
}

export interface ReceiverLimits {
  /** Bytes of a body as it is sent, and unpacked. */
  readonly bodyBytes: number;
  readonly unpackedBytes: number;
  /** Requests in progress; further ones are asked to come again. */
  readonly concurrency: number;
}

const usualLimits: ReceiverLimits = { bodyBytes: 4 * 1_048_576, unpackedBytes: 16 * 1_048_576, concurrency: 4 };

/** gRPC codes, which the protocol puts into the body of an error. */
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

/** Answers requests to the receiver. */
export function createReceiver(options: ReceiverOptions): RequestListener {
  const limits = { ...usualLimits, ...options.limits };
  let inProgress = 0;
  const answer = async (request: IncomingMessage, encoding: Encoding): Promise<Uint8Array> => {
    if (!showsToken(request, options.token))
      throw new Refusal(401, codes.unauthenticated, 'Send the metering token: Authorization: Bearer <token>.');
    if (request.method !== 'POST') throw new Refusal(405, codes.invalid, 'Use POST.');
    if (inProgress >= limits.concurrency)
      throw new Refusal(503, codes.unavailable, 'Too many requests are in progress. Try again in 1 second.');
    inProgress += 1;
    try {
      const { count, message } = await options.take(await read(request, encoding, limits));
      if (count > 0) options.log.warn({ count, message }, 'records of a gateway were refused');
      return writeResponse(count, message, encoding);
    } finally {
      inProgress -= 1;
    }
  };
  return (request, response) => {
    const since = performance.now();
    const encoding = encodingOf(request);
    answer(request, encoding ?? 'json')
      .then(
        (body) => {
          options.metrics.seconds.observe((performance.now() - since) / 1000);
          return { status: 200, body };
        },
        (error: unknown) => failure(error, encoding ?? 'json', options.log),
      )
      .then(({ status, body }) => {
        options.metrics.requests.inc({ status });
        send(response, status, body, encoding ?? 'json');
      })
      .catch((error: unknown) => {
        options.log.error({ err: error }, 'the receiver could not answer');
        response.destroy();
      });
  };
}

function send(response: ServerResponse, status: number, body: Uint8Array, encoding: Encoding): void {
  response.writeHead(status, {
    'content-type': contentTypes[encoding],
    'content-length': body.byteLength,
    ...(status === 503 ? { 'retry-after': '1' } : {}),
    // What is left of a body that was not read would be taken for the next request.
    ...(status === 200 ? {} : { connection: 'close' }),
  });
  response.end(body);
}

function encodingOf({ headers }: IncomingMessage): Encoding | undefined {
  const type = (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase();
  if (type === contentTypes.protobuf) return 'protobuf';
  return type === contentTypes.json ? 'json' : undefined;
}

async function read(request: IncomingMessage, encoding: Encoding, limits: ReceiverLimits): Promise<SentLogs[]> {
  if (encodingOf(request) === undefined)
    throw new Refusal(415, codes.invalid, `Send ${contentTypes.protobuf} or ${contentTypes.json}.`);
  const packed = request.headers['content-encoding'] ?? 'identity';
  if (packed !== 'gzip' && packed !== 'identity')
    throw new Refusal(415, codes.invalid, 'Send the body as it is, or with Content-Encoding: gzip.');
  const body = await getRawBody(request, { limit: limits.bodyBytes }).catch((error: unknown) => {
    throw isTooLarge(error) ? tooLarge(limits.bodyBytes, 'as it is sent') : error;
  });
  const unpacked = packed === 'identity' ? body : await unpackWithin(body, limits.unpackedBytes);
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
    if (hasCode(error, 'ERR_BUFFER_TOO_LARGE')) throw tooLarge(limit, 'unpacked');
    throw new Refusal(400, codes.invalid, 'The body is not gzip, as its Content-Encoding says.');
  }
}

function tooLarge(limit: number, how: string): Refusal {
  return new Refusal(413, codes.exhausted, `The body has more than ${limit} bytes ${how}. Send smaller batches.`);
}

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && 'type' in error && error.type === 'entity.too.large';
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Whatever is not the sender's fault is tried again: the batch may have been kept, and sent again it is kept once. */
function failure(error: unknown, encoding: Encoding, log: Logger): { status: number; body: Uint8Array } {
  if (error instanceof Refusal) return { status: error.status, body: writeStatus(error.code, error.message, encoding) };
  log.warn({ err: error }, 'a batch of a gateway was not kept, its sender is asked to send it again');
  return { status: 503, body: writeStatus(codes.unavailable, 'The batch could not be kept. Send it again.', encoding) };
}
