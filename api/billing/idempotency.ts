// Requests with an Idempotency-Key: a request sent twice has one effect, and gets the same answer each time.
import { createHash, randomUUID } from 'node:crypto';
import type { z } from 'zod';
import { Problem } from '../../lib/problem.ts';
import { createValidationProblem, readIdempotencyKey, type RequestContext } from '../http/index.ts';
import type { Database } from './database/database.ts';
import type { Payer } from './ledger/accounts.ts';
import { idempotencyInFlight, idempotencyMismatch } from './problems.ts';
import * as statements from './ledger/statements.ts';

const minSecretLength = 22;
const minSecretBits = 64;

/**
 * Whether a text can serve as a secret of its sender: long enough, and with enough different characters. A UUID does, and
 * so do 22 random letters and digits. A caller without a key has nothing else that a neighbour in the network lacks.
 */
export function isUnguessable(text: string): boolean {
  if (text.length < minSecretLength) return false;
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  const bits = [...counts.values()].reduce((sum, count) => sum - count * Math.log2(count / text.length), 0);
  return bits >= minSecretBits;
}

/** Headers that mark a stored response. */
export function replayHeaders(replayed: boolean): Record<string, string> {
  return replayed ? { 'idempotent-replayed': 'true' } : {};
}

export interface IdempotentWork<Answer> {
  /** The endpoint, or the group of them that share their keys. */
  readonly name: string;
  /** Whose key it is, so that no one reads another's answer. */
  readonly payer: Pick<Payer, 'kind' | 'owner'>;
  /** The key, where it is not that of the header. */
  readonly key?: string;
  /** What the request asks for, validated. */
  readonly body: unknown;
  readonly answer: z.ZodType<Answer>;
  /** Whether an answer is stored; default: always. One that is not may be asked for again. */
  readonly isStored?: (answer: Answer) => boolean;
  /**
   * The work. A caller who leaves does not end it: the answer is kept for the next try. Calls of models that it makes are
   * noted before, so that a retry finds them; there is no `note` without a key.
   */
  readonly run: (signal: AbortSignal, note: NoteCall | undefined) => Promise<Answer>;
}

/** Where the keys of a payer are kept. */
function toScope(name: string, { kind, owner }: Pick<Payer, 'kind' | 'owner'>): string {
  return `${name}:${kind}:${owner}`;
}

/**
 * The neighbours of a caller without a key have the same scope: only a key that they cannot guess keeps them from its
 * answer, and from using it first. @throws Problem (invalid-request)
 */
function assertSecret(key: string, { kind }: Pick<Payer, 'kind'>): void {
  if (kind !== 'anonymous' || isUnguessable(key)) return;
  throw createValidationProblem([
    {
      in: 'header',
      field: 'Idempotency-Key',
      message: `is too easy to guess: without an API key, it is what keeps others in your network from your answer`,
      fix: `Send a random UUID, or at least ${minSecretLength} random letters and digits. With your own API key (Authorization: Bearer sk-…), any key is accepted.`,
    },
  ]);
}

/**
 * Runs the work once per key, or every time without a key. @throws Problem (idempotency-in-flight, idempotency-mismatch,
 * invalid-request) and what `run` throws
 */
export async function runOnce<Answer>(
  keys: IdempotencyKeys,
  context: Pick<RequestContext, 'headers' | 'signal'>,
  {
    name,
    payer,
    key = readIdempotencyKey(context.headers),
    body,
    answer,
    isStored = () => true,
    run,
  }: IdempotentWork<Answer>,
): Promise<{ value: Answer; replayed: boolean }> {
  if (key === undefined) return { value: await run(context.signal, undefined), replayed: false };
  assertSecret(key, payer);
  const claim = await keys.begin({ scope: toScope(name, payer), key, body: JSON.stringify(body) });
  if (claim.outcome === 'mismatch')
    throw new Problem(
      idempotencyMismatch,
      'This Idempotency-Key was already used for a different request. Use a new key for a new request.',
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
    const value = await run(new AbortController().signal, claim.note);
    await (isStored(value) ? claim.finish(value) : claim.forget());
    return { value, replayed: false };
  } catch (error) {
    // Refused or failed: there is nothing to replay, so the caller may try again.
    await claim.forget();
    throw error;
  }
}

export interface ReplaysOptions {
  /** The group of calls, whose answers are counted together. */
  readonly name: string;
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  readonly database: () => Database;
  /** Longer than a call can last. */
  readonly leaseMs: number;
}

const keepMs = 86_400_000;
/** Answers that are kept for one caller. */
const maximum = { answers: 200, bytes: 16 * 1_048_576 };

/** Calls of one group, whose answers may be large: they are kept for a day, and of each caller only the newest. */
export class Replays {
  readonly #options: ReplaysOptions;

  constructor(options: ReplaysOptions) {
    this.#options = options;
  }

  /** As `idempotently`. @returns the answer, and whether it is a stored one */
  async once<Answer>(
    context: Pick<RequestContext, 'headers' | 'signal'>,
    work: Omit<IdempotentWork<Answer>, 'name'>,
  ): Promise<{ value: Answer; replayed: boolean }> {
    if ((work.key ?? readIdempotencyKey(context.headers)) === undefined)
      return { value: await work.run(context.signal, undefined), replayed: false };
    const { name, database, leaseMs } = this.#options;
    const keys = new IdempotencyKeys(database(), { leaseMs, keepMs });
    await keys.trim(toScope(name, work.payer), maximum);
    return runOnce(keys, context, { name, ...work });
  }
}

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
