// Claims due jobs while this process has free slots, runs them, renews their leases and stores their outcome.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../../../lib/telemetry.ts';
import { Problem } from '../../../../lib/problem.ts';
import { internalFault } from '../../../http/index.ts';
import type { Database, Payer, QuotaNetworks } from '../../../billing/index.ts';
import { createArtifactId } from '../artifacts.ts';
import { toolBusy, toolLimit, tooManyCalls, jobLost } from '../../problems.ts';
import type { Artifact, Progress } from '../../tool.ts';
import type { JobProblem, JobWork } from './jobs.ts';
import * as statements from './statements.ts';

export interface WorkerOptions {
  /** @throws while there is none */
  readonly database: () => Database;
  readonly log: Logger;
  /** Id of this process. */
  readonly runner: string;
  readonly work: JobWork;
  /** Tools that this process can run. */
  readonly tools: readonly string[];
  /** Returns the payer of a job without a key. */
  readonly anonymous: (owner: string, networks: QuotaNetworks | undefined) => Payer;
  /** Jobs at once in this process. */
  readonly maxConcurrent: number;
  readonly attempts: number;
  readonly leaseMs: number;
  readonly keepMs: number;
  readonly pollMs: number;
  readonly maxArtifactBytes: number;
  /** Called for each job that ends in this process. */
  readonly ended: (id: string) => void;
}

export class JobWorker {
  readonly #options: WorkerOptions;
  readonly #running = new Map<string, Attempt>();
  /** Callers' own keys by job. They are stored nowhere else. */
  readonly #payers = new Map<string, Payer>();
  readonly #ending = new AbortController();
  #wake = Promise.withResolvers<undefined>();
  #loops: Promise<unknown> | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#loops ??= Promise.all([this.#claiming(), this.#renewing()]);
  }

  /** Looks for due jobs immediately. */
  wake(): void {
    this.#wake.resolve(undefined);
  }

  /** Keeps a payer with a key for a job of this process. */
  keep(id: string, payer: Payer): void {
    this.#payers.set(id, payer);
  }

  forget(id: string): void {
    this.#payers.delete(id);
  }

  /** Stops the work on a canceled job, if it runs in this process. */
  cancel(id: string): void {
    this.#running.get(id)?.abort('lost');
    this.#end(id, this.#options.ended);
  }

  /** Stops the jobs in progress and returns them to the queue, for another process to take over. */
  async stop(): Promise<void> {
    this.#ending.abort(new Error('the process ends'));
    this.wake();
    for (const attempt of this.#running.values()) attempt.abort('ending');
    await this.#loops;
    await Promise.race([
      Promise.all([...this.#running.values()].map(({ over }) => over)),
      sleep(5_000, undefined, { ref: false }),
    ]);
  }

  #stopping(): boolean {
    return this.#ending.signal.aborted;
  }

  async #claiming(): Promise<void> {
    const { pollMs, log } = this.#options;
    while (!this.#stopping()) {
      this.#wake = Promise.withResolvers();
      const took = await this.#claim().catch((error: unknown) => {
        if (!(error instanceof Problem)) log.error({ err: error }, 'cannot claim jobs, retrying');
        return 0;
      });
      if (took > 0 || this.#stopping()) continue;
      const waiting = new AbortController();
      await Promise.race([
        this.#wake.promise,
        sleep(pollMs * (0.75 + Math.random() / 2), undefined, { ref: false, signal: waiting.signal }).catch(
          () => undefined,
        ),
      ]);
      waiting.abort();
    }
  }

  async #claim(): Promise<number> {
    const { database, runner, leaseMs, maxConcurrent, tools, attempts, keepMs, ended, anonymous } = this.#options;
    const lost = await database().replay(statements.lose, [
      attempts,
      JSON.stringify(createLostProblem('key')),
      JSON.stringify(createLostProblem('attempts')),
      keepMs,
    ]);
    for (const { id } of lost) this.#end(id, ended);
    const room = maxConcurrent - this.#running.size;
    if (room <= 0) return 0;
    // If a job's lease expired while its work continues here, leave the job to other processes.
    const jobs = await database().query(statements.claim, [runner, leaseMs, room, tools, [...this.#running.keys()]]);
    for (const job of jobs) this.#begin(job, this.#payers.get(job.id) ?? anonymous(job.owner, toNetworks(job)));
    return jobs.length;
  }

  #begin(job: statements.ClaimedJob, payer: Payer): void {
    const { database, runner, log, work } = this.#options;
    const attempt = new Attempt({ database, runner, job, payer, log });
    this.#running.set(job.id, attempt);
    // Claimed while the process was stopping: return it to the queue.
    if (this.#stopping()) attempt.abort('ending');
    void attempt
      .begin(work, (outcome) => this.#finish(attempt, outcome))
      .catch((error: unknown) => {
        // Its lease expires, and then a process claims it again.
        log.error({ err: error, job: job.id }, 'cannot store the outcome of a job');
      })
      .finally(() => {
        this.#running.delete(job.id);
        if (attempt.lost) this.forget(job.id);
        this.wake();
      });
  }

  async #finish(
    attempt: Attempt,
    outcome: { result: Record<string, unknown>; artifact?: Artifact | undefined } | { error: unknown },
  ): Promise<void> {
    const { database, ended, maxArtifactBytes } = this.#options;
    const { own, job } = attempt;
    if (attempt.lost) return;
    const error = 'error' in outcome ? outcome.error : findSizeProblem(outcome.artifact, maxArtifactBytes);
    if (error !== undefined && this.#shouldRequeue(attempt, error)) {
      await database().replay(statements.putBack, own);
      await sleep(1_000, undefined, { ref: false, signal: this.#ending.signal }).catch(() => undefined);
      return;
    }
    if (error !== undefined) await this.#fail(attempt, error);
    else if (!('error' in outcome)) await this.#succeed(attempt, outcome);
    this.#end(job.id, ended);
  }

  /** Whether to return the job to the queue, for another process or a later attempt. */
  #shouldRequeue({ job, ending }: Attempt, error: unknown): boolean {
    if (ending) return job.payer === 'anonymous';
    return error instanceof Problem && (error.type === toolBusy || error.type === tooManyCalls);
  }

  async #succeed(
    { own }: Attempt,
    { result, artifact }: { result: Record<string, unknown>; artifact?: Artifact | undefined },
  ): Promise<void> {
    const { database, keepMs } = this.#options;
    await database().replay(statements.succeed, [
      ...own,
      JSON.stringify(result),
      artifact?.bytes ?? null,
      artifact?.mediaType ?? null,
      artifact?.fileName ?? null,
      keepMs,
      artifact === undefined ? null : createArtifactId(),
    ]);
  }

  async #fail({ own, job, ending }: Attempt, error: unknown): Promise<void> {
    const { database, keepMs, log } = this.#options;
    if (!(error instanceof Problem) && !ending) log.error({ err: error, job: job.id, tool: job.tool }, 'job failed');
    await database().replay(statements.fail, [
      ...own,
      JSON.stringify(ending ? createLostProblem('key') : toJobProblem(error, job.id)),
      keepMs,
    ]);
  }

  #end(id: string, ended: (id: string) => void): void {
    this.forget(id);
    ended(id);
  }

  /** Renews leases three times per lease duration, and stops jobs that another process has taken over. */
  async #renewing(): Promise<void> {
    const { leaseMs, log } = this.#options;
    while (!this.#stopping()) {
      await sleep(leaseMs / 3, undefined, { ref: false, signal: this.#ending.signal }).catch(() => undefined);
      const ids = [...new Set([...this.#running.keys(), ...this.#payers.keys()])];
      if (ids.length === 0 || this.#stopping()) continue;
      await this.#renew(ids).catch((error: unknown) => {
        log.error({ err: error }, 'cannot renew the leases of jobs');
      });
    }
  }

  async #renew(ids: readonly string[]): Promise<void> {
    const { database, runner, leaseMs } = this.#options;
    const kept = new Set((await database().query(statements.renew, [runner, leaseMs, ids])).map(({ id }) => id));
    for (const id of ids) if (!kept.has(id)) this.#running.get(id)?.abort('lost');
  }
}

function toNetworks({ networks }: statements.ClaimedJob): QuotaNetworks | undefined {
  const [subnet, site] = networks ?? [];
  return subnet === undefined || site === undefined ? undefined : { subnet, site };
}

function findSizeProblem(artifact: Artifact | undefined, maximum: number): Problem | undefined {
  if (artifact === undefined || artifact.bytes.length <= maximum) return undefined;
  return new Problem(toolLimit, `The created file has ${artifact.bytes.length} bytes; the maximum is ${maximum}.`);
}

function toJobProblem(error: unknown, job: string): JobProblem {
  if (!(error instanceof Problem))
    return {
      slug: internalFault.slug,
      detail: `Something went wrong on our side. It is logged under job ${job}.`,
      members: {},
    };
  const { type, message, members, errors } = error;
  return { slug: type.slug, detail: message, members: { ...members, ...(errors.length === 0 ? {} : { errors }) } };
}

function createLostProblem(why: 'key' | 'attempts'): JobProblem {
  const detail =
    why === 'key'
      ? 'The process that held your key ended, and the key is stored nowhere else. Send the call again.'
      : 'Every process that ran the job ended before it was done. Send the call again.';
  return { slug: jobLost.slug, detail, members: {} };
}

export interface AttemptOptions {
  readonly database: () => Database;
  readonly runner: string;
  readonly job: statements.ClaimedJob;
  readonly payer: Payer;
  readonly log: Logger;
}

export type Outcome =
  { readonly result: Record<string, unknown>; readonly artifact?: Artifact | undefined } | { readonly error: unknown };

/** Minimum time between two writes of progress. */
const progressMs = 300;
const longestMessage = 300;

/** One attempt at a job: runs its work, writes its progress and records whether this process still owns the job. */
export class Attempt {
  readonly #options: AttemptOptions;
  readonly #abort = new AbortController();
  /** Ends the pause between two writes of progress, for a result must not wait for it. */
  readonly #pause = new AbortController();
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

  /** Statements write a job only if these values still match: then this process owns it. */
  get own(): readonly [string, string, number] {
    const { job, runner } = this.#options;
    return [job.id, runner, job.attempt];
  }

  /** Whether another process has taken over the job or its caller canceled it. Do not write to it any more. */
  get lost(): boolean {
    return this.#why === 'lost';
  }

  /** Whether the attempt ends because the process does. */
  get ending(): boolean {
    return this.#why === 'ending';
  }

  get over(): Promise<unknown> {
    return this.#over.promise;
  }

  abort(why: 'lost' | 'ending'): void {
    this.#why ??= why;
    this.#pause.abort();
    this.#abort.abort(
      new Error(why === 'lost' ? 'another process has taken the job over, or it was canceled' : 'the process ends'),
    );
  }

  async begin(work: JobWork, finish: (outcome: Outcome) => Promise<void>): Promise<void> {
    try {
      const outcome = await this.#run(work).catch((error: unknown) => ({ error }));
      this.#latest = undefined;
      this.#pause.abort();
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

  /** Writes the newest progress and skips those in between. */
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
          this.#options.log.warn({ err: error, job: this.job.id }, 'cannot write the progress of a job');
        });
      await sleep(progressMs, undefined, { ref: false, signal: this.#pause.signal }).catch(() => undefined);
    }
  }
}
