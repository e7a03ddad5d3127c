// The job worker: claims due jobs while it has free slots, renews their leases, and stores their outcome.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../../../lib/telemetry.ts';
import { Problem } from '../../../../lib/problem.ts';
import { internalFault } from '../../../http/index.ts';
import type { Database, Payer, QuotaNetworks } from '../../../billing/index.ts';
import { artifactId } from '../artifacts/artifact-store.ts';
import { toolBusy, toolLimit, tooManyCalls } from '../../problems.ts';
import type { Artifact } from '../../tool.ts';
import { Attempt } from './attempt.ts';
import type { JobProblem, JobWork } from './job.ts';
import { jobLost } from './problems.ts';
import * as statements from './statements.ts';

export interface WorkerOptions {
  /** @throws while there is none */
  readonly database: () => Database;
  readonly log: Logger;
  /** Id of this process. */
  readonly runner: string;
  readonly work: JobWork;
  /** Tools that can be worked on here. */
  readonly tools: readonly string[];
  /** Who pays, when it is nobody's own key. */
  readonly anonymous: (owner: string, networks: QuotaNetworks | undefined) => Payer;
  /** Jobs at once in this process. */
  readonly maxConcurrent: number;
  readonly attempts: number;
  readonly leaseMs: number;
  readonly keepMs: number;
  readonly pollMs: number;
  readonly maxArtifactBytes: number;
  /** Called for each job that has ended here. */
  readonly ended: (id: string) => void;
}

export class JobWorker {
  readonly #options: WorkerOptions;
  readonly #running = new Map<string, Attempt>();
  /** Callers' own keys, by job: here and nowhere else. */
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

  /** Looks for jobs at once. */
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

  /** Ends the work on a job that was canceled, if it is worked on here. */
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
        if (!(error instanceof Problem)) log.error({ err: error }, 'jobs cannot be claimed, trying again');
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
      JSON.stringify(lostProblem('key')),
      JSON.stringify(lostProblem('attempts')),
      keepMs,
    ]);
    for (const { id } of lost) this.#end(id, ended);
    const room = maxConcurrent - this.#running.size;
    if (room <= 0) return 0;
    // A job whose lease ran out while its work continues here is left to other processes.
    const jobs = await database().query(statements.claim, [runner, leaseMs, room, tools, [...this.#running.keys()]]);
    for (const job of jobs) this.#begin(job, this.#payers.get(job.id) ?? anonymous(job.owner, toNetworks(job)));
    return jobs.length;
  }

  #begin(job: statements.ClaimedJob, payer: Payer): void {
    const { database, runner, log, work } = this.#options;
    const attempt = new Attempt({ database, runner, job, payer, log });
    this.#running.set(job.id, attempt);
    // Claimed while the process was stopping: it goes straight back.
    if (this.#stopping()) attempt.abort('ending');
    void attempt
      .begin(work, (outcome) => this.#finish(attempt, outcome))
      .catch((error: unknown) => {
        // Its lease runs out, and it is taken up again.
        log.error({ err: error, job: job.id }, 'the outcome of a job cannot be stored');
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
    const error = 'error' in outcome ? outcome.error : tooLarge(outcome.artifact, maxArtifactBytes);
    if (error !== undefined && this.#comesBack(attempt, error)) {
      await database().replay(statements.putBack, own);
      await sleep(1_000, undefined, { ref: false, signal: this.#ending.signal }).catch(() => undefined);
      return;
    }
    if (error !== undefined) await this.#fail(attempt, error);
    else if (!('error' in outcome)) await this.#succeed(attempt, outcome);
    this.#end(job.id, ended);
  }

  /** Whether another process, or this one later, may do better. */
  #comesBack({ job, ending }: Attempt, error: unknown): boolean {
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
      artifact === undefined ? null : artifactId(),
    ]);
  }

  async #fail({ own, job, ending }: Attempt, error: unknown): Promise<void> {
    const { database, keepMs, log } = this.#options;
    if (!(error instanceof Problem) && !ending) log.error({ err: error, job: job.id, tool: job.tool }, 'job failed');
    await database().replay(statements.fail, [
      ...own,
      JSON.stringify(ending ? lostProblem('key') : problemOf(error, job.id)),
      keepMs,
    ]);
  }

  #end(id: string, ended: (id: string) => void): void {
    this.forget(id);
    ended(id);
  }

  /** Three times in the time of a lease; jobs that were taken from us meanwhile are ended. */
  async #renewing(): Promise<void> {
    const { leaseMs, log } = this.#options;
    while (!this.#stopping()) {
      await sleep(leaseMs / 3, undefined, { ref: false, signal: this.#ending.signal }).catch(() => undefined);
      const ids = [...new Set([...this.#running.keys(), ...this.#payers.keys()])];
      if (ids.length === 0 || this.#stopping()) continue;
      await this.#renew(ids).catch((error: unknown) => {
        log.error({ err: error }, 'leases of jobs cannot be renewed');
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

function tooLarge(artifact: Artifact | undefined, maximum: number): Problem | undefined {
  if (artifact === undefined || artifact.bytes.length <= maximum) return undefined;
  return new Problem(toolLimit, `The created file has ${artifact.bytes.length} bytes; the maximum is ${maximum}.`);
}

function problemOf(error: unknown, job: string): JobProblem {
  if (!(error instanceof Problem))
    return {
      slug: internalFault.slug,
      detail: `Something went wrong on our side. It is logged under job ${job}.`,
      members: {},
    };
  const { type, message, members, errors } = error;
  return { slug: type.slug, detail: message, members: { ...members, ...(errors.length === 0 ? {} : { errors }) } };
}

function lostProblem(why: 'key' | 'attempts'): JobProblem {
  const detail =
    why === 'key'
      ? 'The process that held your key ended, and the key is stored nowhere else. Send the call again.'
      : 'Every process that ran the job ended before it was done. Send the call again.';
  return { slug: jobLost.slug, detail, members: {} };
}
