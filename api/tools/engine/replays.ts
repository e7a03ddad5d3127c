// Calls with an Idempotency-Key: one run, one charge, and the stored response for every repetition.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import type { RequestContext } from '../../http/index.ts';
import {
  type Database,
  idempotencyKey,
  IdempotencyKeys,
  idempotently,
  type Payer,
  requestScope,
} from '../../billing/index.ts';
import type { ArtifactStore } from './artifacts/artifact-store.ts';
import { unknownFile } from './artifacts/problems.ts';
import type { Reading } from './reading.ts';
import type { Artifact, Tool } from '../tool.ts';

/** What is kept of an answer: of a tool that takes long its job, which is asked anew. */
const kept = z.object({
  job: z.string().optional(),
  envelope: z.record(z.string(), z.unknown()),
  headers: z.record(z.string(), z.string()),
  /** Id of its file. */
  file: z.string().optional(),
});
export type StoredResponse = z.output<typeof kept>;

export interface ReplaysOptions {
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  readonly database: () => Database;
  readonly artifacts: Pick<ArtifactStore, 'get'>;
  /** Longer than a call can last. */
  readonly leaseMs: number;
  /** Answers that are kept for one caller; default 200, of 16 MiB together. */
  readonly maximum?: { readonly answers: number; readonly bytes: number };
}

const keepMs = 86_400_000;
const scopeName = 'tools';

export class Replays {
  readonly #options: ReplaysOptions;

  constructor(options: ReplaysOptions) {
    this.#options = options;
  }

  /** Whether a call is to be run once only. @throws Problem (invalid-request) */
  wanted({ headers }: Pick<RequestContext, 'headers'>, { options: { job } }: Reading): boolean {
    return idempotencyKey(headers) !== undefined && job === undefined;
  }

  /**
   * @returns the answer, and whether it is one from before. @throws Problem (idempotency-in-flight,
   * idempotency-mismatch) and what `run` throws
   */
  async once(
    context: Pick<RequestContext, 'headers' | 'signal'>,
    {
      tool: { name },
      reading: { options, input },
      payer,
      fileWanted,
    }: { readonly tool: Tool; readonly reading: Reading; readonly payer: Payer; readonly fileWanted: boolean },
    run: (signal: AbortSignal) => Promise<StoredResponse>,
  ): Promise<{ value: StoredResponse; replayed: boolean }> {
    const { database, leaseMs, maximum = { answers: 200, bytes: 16 * 1_048_576 } } = this.#options;
    const keys = new IdempotencyKeys(database(), { leaseMs, keepMs });
    // Of all tools together, so that what one caller keeps is bounded.
    await keys.trim(requestScope(scopeName, payer), maximum);
    return idempotently(keys, context, {
      name: scopeName,
      payer,
      body: { tool: name, options, input, fileWanted },
      answer: kept,
      run,
    });
  }

  /** The file of an answer from before. @throws Problem (unknown-file) */
  async file({ file }: StoredResponse): Promise<Artifact> {
    const artifact = file === undefined ? undefined : await this.#options.artifacts.get(file);
    if (artifact !== undefined) return artifact;
    throw new Problem(
      unknownFile,
      file === undefined
        ? 'This call was answered before, but its file was too large to store. Send the call with a new Idempotency-Key to create the file again; that call is charged.'
        : 'This call was answered before, but its file has expired. Send the call with a new Idempotency-Key to create the file again; that call is charged.',
    );
  }
}
