// Sends batches to the receiver until they are acknowledged.
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Logger } from '../../../../lib/telemetry.ts';
import { contentTypes, readResponse, type SentLogs, writeRequest } from '../otlp.ts';

const gzipAsync = promisify<Buffer | Uint8Array, { level: number }, Buffer>(gzip);
const timeoutMs = 15_000;
const maxWaitMs = 5_000;

export interface SenderOptions {
  readonly url: string;
  readonly tokenFile: string;
  readonly log: Logger;
}

/** `too large`: the receiver takes no body of this size. */
export type Delivery = 'acknowledged' | 'too large';

export type Send = (logs: SentLogs, signal: AbortSignal) => Promise<Delivery>;

/** Returns a function that retries until the batch is acknowledged. @throws the reason of the signal */
export function createSender({ url, tokenFile, log }: SenderOptions): Send {
  return async (logs, signal) => {
    const body = await gzipAsync(writeRequest(logs), { level: 1 });
    for (let wait = 100; ; wait = Math.min(wait * 2, maxWaitMs)) {
      signal.throwIfAborted();
      const failure = await attempt(body).catch((error: unknown) => describeError(error));
      if (failure === undefined) return 'acknowledged';
      if (failure === 'too large') return failure;
      log.warn({ failure, wait_ms: wait }, 'access log not sent, trying again');
      await sleep(wait * (0.75 + Math.random() / 2), undefined, { signal });
    }
  };

  /** @returns what failed */
  async function attempt(body: Buffer): Promise<string | undefined> {
    const token = (await readFile(tokenFile, 'utf8')).trim();
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': contentTypes.protobuf,
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
    if (rejected > 0) log.warn({ rejected, message }, 'the receiver refused records');
    return undefined;
  }
}

function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
