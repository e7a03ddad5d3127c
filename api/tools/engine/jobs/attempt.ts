// One attempt at a job: runs its work, writes its progress, and knows whether the job still belongs to this process.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../../../lib/telemetry.ts';
import type { Database, Payer } from '../../../billing/index.ts';
import type { Artifact, Progress } from '../../tool.ts';
import type { JobWork } from './job.ts';
import * as statements from './statements.ts';

export interface AttemptOptions {
  readonly database: () => Database;
  readonly runner: string;
  readonly job: statements.ClaimedJob;
  readonly payer: Payer;
  readonly log: Logger;
}

export type Outcome =
  { readonly result: Record<string, unknown>; readonly artifact?: Artifact | undefined } | { readonly error: unknown };

/** Between two writes of progress. */
const progressMs = 300;
const longestMessage = 300;

export class Attempt {
  readonly #options: AttemptOptions;
  readonly #abort = new AbortController();
  readonly #over = Promise.withResolvers<undefined>();
  #why: 'lost' | 'ending' | undefined;
  #latest: Progress | undefined;
  #writing: Promise<void> | undefined;

  constructor(options: AttemptOptions) {
    this.#options = options;
  }

  get job(): statements.ClaimedJob {
    return this.#options.job;
  }

  /** By these it is written to, as long as it is ours. */
  get own(): readonly [string, string, number] {
    const { job, runner } = this.#options;
    return [job.id, runner, job.attempt];
  }

  /** Whether it is no longer ours: another process has it, or it was canceled. Nothing is to be written any more. */
  get lost(): boolean {
    return this.#why === 'lost';
  }

  /** Whether it ends because the process does. */
  get ending(): boolean {
    return this.#why === 'ending';
  }

  get over(): Promise<unknown> {
    return this.#over.promise;
  }

  abort(why: 'lost' | 'ending'): void {
    this.#why ??= why;
    this.#abort.abort(
      new Error(why === 'lost' ? 'another process has taken the job over, or it was canceled' : 'the process ends'),
    );
  }

  async begin(work: JobWork, finish: (outcome: Outcome) => Promise<void>): Promise<void> {
    try {
      const outcome = await this.#run(work).catch((error: unknown) => ({ error }));
      this.#latest = undefined;
      await this.#writing;
      await finish(outcome);
    } finally {
      this.#over.resolve(undefined);
    }
  }

  async #run(work: JobWork): Promise<Outcome> {
    this.#abort.signal.throwIfAborted();
    const {
      job: { id, tool, input, session, attempt },
      payer,
    } = this.#options;
    return work({
      id,
      tool,
      input,
      payer,
      attempt,
      session: session ?? undefined,
      signal: this.#abort.signal,
      report: (progress) => {
        this.#report(progress);
      },
      announce: (hold) => this.#announce(hold),
    });
  }

  async #announce(hold: string): Promise<void> {
    const [kept] = await this.#options.database().query(statements.announce, [...this.own, hold]);
    if (kept !== undefined) return;
    this.abort('lost');
    throw new Error('another process has taken the job over, or it was canceled');
  }

  /** The newest is written; those between are skipped. */
  #report(progress: Progress): void {
    this.#latest = progress;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  async #write(): Promise<void> {
    while (this.#latest !== undefined && !this.#abort.signal.aborted) {
      const { done, message } = this.#latest;
      this.#latest = undefined;
      await this.#options
        .database()
        .query(statements.progress, [...this.own, Math.min(1, Math.max(0, done)), message.slice(0, longestMessage)])
        .catch((error: unknown) => {
          this.#options.log.warn({ err: error, job: this.job.id }, 'progress of a job cannot be written');
        });
      await sleep(progressMs, undefined, { ref: false, signal: this.#abort.signal }).catch(() => undefined);
    }
  }
}
