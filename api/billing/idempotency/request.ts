// Requests with an Idempotency-Key: one effect, and the same answer each time it is sent.
import type { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { invalid, type RequestContext } from '../../http/index.ts';
import type { IdempotencyKeys } from './keys.ts';
import { idempotencyInFlight, idempotencyMismatch } from '../problems.ts';

const form = /^[\x21-\x7e]{1,255}$/;

/** The key of a request; undefined without one. @throws Problem (invalid-request) */
export function idempotencyKey(headers: Headers): string | undefined {
  const key = headers.get('idempotency-key');
  if (key === null) return undefined;
  if (!form.test(key))
    throw invalid([
      {
        in: 'header',
        field: 'Idempotency-Key',
        message: 'must be 1 to 255 visible ASCII characters',
        fix: 'Send a UUID.',
      },
    ]);
  return key;
}

/** Headers by which a response says that it is a stored one. */
export function replayHeaders(replayed: boolean): Record<string, string> {
  return replayed ? { 'idempotent-replayed': 'true' } : {};
}

export interface IdempotentWork<Answer> {
  /** Endpoint and owner, so that no one reads another's answer. */
  readonly scope: string;
  /** What the request asks for, validated. */
  readonly body: unknown;
  readonly answer: z.ZodType<Answer>;
  /** The work. A caller who leaves does not end it: the answer is kept for the next try. */
  readonly run: (signal: AbortSignal) => Promise<Answer>;
}

/**
 * Runs the work once per key, or every time without a key. @throws Problem (idempotency-in-flight, idempotency-mismatch) and
 * what `run` throws
 */
export async function idempotently<Answer>(
  keys: IdempotencyKeys,
  context: Pick<RequestContext, 'headers' | 'signal'>,
  { scope, body, answer, run }: IdempotentWork<Answer>,
): Promise<{ value: Answer; replayed: boolean }> {
  const key = idempotencyKey(context.headers);
  if (key === undefined) return { value: await run(context.signal), replayed: false };
  const claim = await keys.begin({ scope, key, body: JSON.stringify(body) });
  if (claim.outcome === 'mismatch')
    throw new Problem(
      idempotencyMismatch,
      'This Idempotency-Key was already used with a different body. Use a new key for a new request.',
    );
  if (claim.outcome === 'in_flight')
    throw new Problem(
      idempotencyInFlight,
      'A request with this Idempotency-Key is in progress. Try again in 2 seconds.',
      {
        headers: { 'retry-after': '2' },
      },
    );
  if (claim.outcome === 'answered') return { value: answer.parse(claim.response), replayed: true };
  try {
    const value = await run(new AbortController().signal);
    await claim.finish(value);
    return { value, replayed: false };
  } catch (error) {
    // Refused or failed: there is nothing to replay, so the caller may try again.
    await claim.forget();
    throw error;
  }
}
