// Idempotency keys: a request sent twice has one effect, and the second sender gets the first answer.
import { createHash, randomUUID } from 'node:crypto';
import type { Database } from '../database/database.ts';
import * as statements from '../ledger/statements.ts';

export interface KeyedRequest {
  /** Whose key it is: endpoint and caller hash. */
  readonly scope: string;
  readonly key: string;
  /** The body as sent; only its hash is kept. */
  readonly body: string;
}

/**
 * Notes a call of a model before it is made: the id of its hold, and the model. @returns the hold of the same call of an
 * earlier try, whose cost the router may have billed as well
 */
export type NoteCall = (hold: string, model: string) => Promise<string | undefined>;

export type KeyClaim =
  /** Go on, then call finish with the answer, or forget when nothing happened and the caller may try again. */
  | {
      readonly outcome: 'begun';
      readonly finish: (response: unknown) => Promise<void>;
      readonly forget: () => Promise<void>;
      readonly note: NoteCall;
    }
  /** Answer with this; it was stored. */
  | { readonly outcome: 'answered'; readonly response: unknown }
  /** Another request with this key is in progress, at the latest until then. */
  | { readonly outcome: 'in_flight'; readonly until: Date }
  /** The key was used for another body. */
  | { readonly outcome: 'mismatch' };

export interface KeyOptions {
  /** How long the work may take; after that its process is considered dead, and the same request may begin again. */
  readonly leaseMs: number;
  /** How long an answer is remembered. */
  readonly keepMs: number;
  readonly clock?: () => Date;
}

export class IdempotencyKeys {
  readonly #database: Database;
  readonly #options: KeyOptions;

  constructor(database: Database, options: KeyOptions) {
    this.#database = database;
    this.#options = options;
  }

  async begin({ scope, key, body }: KeyedRequest): Promise<KeyClaim> {
    const owner = randomUUID();
    const hash = createHash('sha256').update(body).digest('hex');
    const { leaseMs, keepMs } = this.#options;
    const [row] = await this.#database.replay(statements.beginRequest, [
      scope,
      key,
      hash,
      owner,
      leaseMs,
      keepMs,
      this.#now(),
    ]);
    if (row === undefined) throw new Error('the database returned no row');
    const { answer } = row;
    if (answer.outcome === 'in_flight') return { outcome: 'in_flight', until: answer.lease_until };
    if (answer.outcome !== 'begun') return answer;
    return {
      outcome: 'begun',
      finish: async (response) => {
        await this.#database.replay(statements.finishRequest, [scope, key, owner, JSON.stringify(response)]);
      },
      note: async (hold, model) => {
        const [noted] = await this.#database.replay(statements.noteKeyedCall, [
          scope,
          key,
          owner,
          hold,
          model,
          this.#now(),
        ]);
        return noted?.retry_of ?? undefined;
      },
      forget: async () => {
        await this.#database.replay(statements.forgetRequest, [scope, key, owner]);
      },
    };
  }

  /** Forgets the oldest answers of a scope beyond so many, or so many bytes. */
  async trim(scope: string, limit: { readonly answers: number; readonly bytes: number }): Promise<void> {
    await this.#database.replay(statements.trimRequests, [scope, limit.answers, limit.bytes]);
  }

  /** Forgets keys whose time is over. @returns how many. */
  async purge(): Promise<number> {
    const [row] = await this.#database.replay(statements.purgeRequests, [this.#now()]);
    return row?.count ?? 0;
  }

  #now(): Date | null {
    return this.#options.clock?.() ?? null;
  }
}
