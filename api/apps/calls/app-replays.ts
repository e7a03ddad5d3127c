// Calls of apps with an Idempotency-Key: sent to the app once, charged once, and the stored response for every repetition.
import { createHash } from 'node:crypto';
import type { z } from 'zod';
import {
  type Database,
  idempotencyKey,
  IdempotencyKeys,
  idempotently,
  type Payer,
  requestScope,
} from '../../billing/index.ts';
import type { RequestContext } from '../../http/index.ts';

export interface AppReplaysOptions {
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  readonly database: () => Database;
  /** Longest call of an app. */
  readonly limitMs: number;
}

/** A call that may be sent again. */
export interface RepeatableCall<Answer> {
  readonly payer: Payer;
  /** All that makes it this call. */
  readonly request: Readonly<Record<string, unknown>>;
  readonly answer: z.ZodType<Answer>;
  /** Whether a response is stored. One that is not, because it was free, may be asked for again. */
  readonly isStored: (answer: Answer) => boolean;
  readonly run: (signal: AbortSignal) => Promise<Answer>;
}

const keepMs = 86_400_000;
/** Of all apps together, so that what one caller keeps is bounded. */
const name = 'apps';
const maximum = { answers: 200, bytes: 16 * 1_048_576 };

export class AppReplays {
  readonly #options: AppReplaysOptions;

  constructor(options: AppReplaysOptions) {
    this.#options = options;
  }

  /** Whether a call is to be sent once only. @throws Problem (invalid-request) */
  isWanted({ headers }: Pick<RequestContext, 'headers'>): boolean {
    return idempotencyKey(headers) !== undefined;
  }

  /**
   * @returns the response, and whether it is a stored one. @throws Problem (idempotency-in-flight,
   * idempotency-mismatch, invalid-request) and what `run` throws
   */
  async once<Answer>(
    context: Pick<RequestContext, 'headers' | 'signal'>,
    { payer, request, answer, isStored, run }: RepeatableCall<Answer>,
  ): Promise<{ value: Answer; replayed: boolean }> {
    if (!this.isWanted(context)) return { value: await run(context.signal), replayed: false };
    const { database, limitMs } = this.#options;
    const keys = new IdempotencyKeys(database(), { leaseMs: limitMs + 60_000, keepMs });
    await keys.trim(requestScope(name, payer), maximum);
    return idempotently(keys, context, { name, payer, body: request, answer, isStored, run });
  }
}

/** Stands for a body that is too large to be part of a request's record. */
export function hashOfBody(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : createHash('sha256').update(bytes).digest('hex');
}
