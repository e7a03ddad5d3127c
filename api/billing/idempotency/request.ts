// Requests with an Idempotency-Key: one effect, and the same answer to whoever sends it again.
import type { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import type { RequestContext } from '../../http/endpoint.ts';
import type { IdempotencyKeys } from './keys.ts';
import { invalid } from '../../http/validation.ts';
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
        message: 'is not 1 to 255 visible ASCII characters',
        fix: 'send a UUID',
      },
    ]);
  return key;
}

export interface Keyed<Answer> {
  /** Endpoint and owner, so that no one reads another's answer. */
  readonly scope: string;
  /** What the request asks for, validated. */
  readonly body: unknown;
  readonly answer: z.ZodType<Answer>;
  /** The work. A caller who leaves does not end it: the answer is kept for the next try. */
  readonly run: (signal: AbortSignal) => Promise<Answer>;
}

/**
 * Runs the work once a key; without a key, just so. @throws Problem (idempotency-in-flight, idempotency-mismatch) and
 * what `run` throws
 */
export async function idempotently<Answer>(
  keys: IdempotencyKeys,
  context: Pick<RequestContext, 'headers' | 'signal'>,
  { scope, body, answer, run }: Keyed<Answer>,
): Promise<{ value: Answer; replayed: boolean }> {
  const key = idempotencyKey(context.headers);
  if (key === undefined) return { value: await run(context.signal), replayed: false };
  const begun = await keys.begin({ scope, key, body: JSON.stringify(body) });
  if (begun.outcome === 'mismatch')
    throw new Problem(
      idempotencyMismatch,
      'this Idempotency-Key came with another body before; use a new key for a new request',
    );
  if (begun.outcome === 'in_flight')
    throw new Problem(idempotencyInFlight, 'a request with this Idempotency-Key is being answered; try again in 2 s', {
      headers: { 'retry-after': '2' },
    });
  if (begun.outcome === 'answered') return { value: answer.parse(begun.response), replayed: true };
  try {
    const value = await run(new AbortController().signal);
    await begun.finish(value);
    return { value, replayed: false };
  } catch (error) {
    // Refused or failed: nothing to give to a second sender, who may try afresh.
    await begun.forget();
    throw error;
  }
}
