// Sends batches as OTLP logs over HTTP until the receiver acknowledges them.
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import protobuf from 'protobufjs';
import { z } from 'zod';
import type { Logger } from '../../../../lib/telemetry.ts';
import type { Attributes, SentLogs } from '../log-receiver.ts';

const gzipAsync = promisify<Buffer | Uint8Array, { level: number }, Buffer>(gzip);
const timeoutMs = 15_000;
const minWaitMs = 100;
const maxWaitMs = 5_000;

export interface SenderOptions {
  readonly url: string;
  readonly tokenFile: string;
  readonly log: Logger;
}

/** `too large`: the receiver takes no body of this size. `abandoned`: not wanted any more; whether it was stored is unknown. */
export type Delivery = 'acknowledged' | 'too large' | 'abandoned';

export interface SendOptions {
  readonly signal: AbortSignal;
  /** Checked before each retry: an outage can last longer than the log may wait. */
  readonly isWanted: () => Promise<boolean>;
}

export type Send = (logs: SentLogs, options: SendOptions) => Promise<Delivery>;

/** Returns a function that retries until the batch is acknowledged or not wanted any more. @throws the reason of the signal */
export function createSender({ url, tokenFile, log }: SenderOptions): Send {
  // Shared by all batches: abandoning one does not make the receiver respond.
  let wait = minWaitMs;
  return async (logs, { signal, isWanted }) => {
    const body = await gzipAsync(writeRequest(logs), { level: 1 });
    for (;;) {
      signal.throwIfAborted();
      const failure = await attempt(body).catch((error: unknown) => describeError(error));
      if (failure === undefined || failure === 'too large') {
        wait = minWaitMs;
        return failure ?? 'acknowledged';
      }
      log.warn({ failure, wait_ms: wait }, 'could not send the access log, retrying');
      await sleep(wait * (0.75 + Math.random() / 2), undefined, { signal });
      wait = Math.min(wait * 2, maxWaitMs);
      if (!(await isWanted())) return 'abandoned';
    }
  };

  /** @returns what failed */
  async function attempt(body: Buffer): Promise<string | undefined> {
    const token = (await readFile(tokenFile, 'utf8')).trim();
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-protobuf',
        'content-encoding': 'gzip',
        authorization: `Bearer ${token}`,
      },
      body: new Uint8Array(body),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const answer = new Uint8Array(await response.arrayBuffer());
    if (response.status === 413) return 'too large';
    if (response.status !== 200) return `the receiver answered with status ${response.status}`;
    const { rejected, message } = readResponse(answer);
    // The receiver has recorded and counted these itself.
    if (rejected > 0) log.warn({ rejected, message }, 'the receiver rejected records');
    return undefined;
  }
}

function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

const { root } = protobuf.parse(readFileSync(join(import.meta.dirname, '../logs.proto'), 'utf8'));
const requestType = root.lookupType('ExportLogsServiceRequest');
const responseType = root.lookupType('ExportLogsServiceResponse');

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
