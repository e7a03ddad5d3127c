// Tool calls that outlast their request: jobs start in one request, are polled in others, and run in any process with a
// free slot.
//
// A job is a row in PostgreSQL. A process that dies loses its lease, and another one takes over the job, a limited
// number of times; the job's cost is that of all attempts. A caller's own key is never stored: a job paid for with a key
// runs in the process that received the key, and fails as job-lost when that process ends.
import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import type { Logger } from '../../../../lib/telemetry.ts';
import { Problem } from '../../../../lib/problem.ts';
import type { Database, Payer, QuotaNetworks, Money } from '../../../billing/index.ts';
import type { Artifact, Progress } from '../../tool.ts';
import { jobCanceled, tooManyJobs, unknownJob } from '../../problems.ts';
import * as statements from './statements.ts';
import { JobWorker } from './job-worker.ts';

export interface JobsOptions {
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  readonly database: () => Database;
  readonly log: Logger;
  readonly work: JobWork;
  /** Names of the tools that this process can run. */
  readonly tools: readonly string[];
  /** Returns the payer of a caller without a key, by the caller's hash. */
  readonly anonymous: (owner: string, networks: QuotaNetworks | undefined) => Payer;
  /** Jobs at once in this process; default 2. */
  readonly maxConcurrent?: number;
  /** Maximum jobs in progress of a caller without a key, of one with a key, and of all; default 3, 10 and 500. */
  readonly maximum?: { readonly anonymous: number; readonly key: number; readonly all: number };
  /** Ended jobs stored per caller; default 20. */
  readonly maxKept?: number;
  /** Largest file of a job, and of all together; default 32 MiB and 4 GiB. */
  readonly maxBytes?: { readonly one: number; readonly all: number };
  /** Maximum attempts per job; default 3. */
  readonly attempts?: number;
  /** A process that does not renew its lease for this long counts as dead; default 30 s. */
  readonly leaseMs?: number;
  /** How long results and files are stored; default one day. */
  readonly keepMs?: number;
  /** Interval at which this process looks for due jobs, and at jobs with waiting callers; default 1 s. */
  readonly pollMs?: number;
}

export interface JobName {
  readonly id: string;
  readonly tool: string;
  /** Payer.owner. Only the owner sees a job paid with a key; a job without a key is visible to anyone who has its id. */
  readonly owner: string;
}

export class Jobs {
  readonly #options: JobsOptions;
  readonly #runner = randomUUID();
  readonly #following: Following;
  readonly #worker: JobWorker;

  constructor(options: JobsOptions) {
    const { pollMs = 1_000 } = options;
    this.#options = options;
    this.#following = new Following(options.database, pollMs);
    this.#worker = new JobWorker({
      ...options,
      pollMs,
      runner: this.#runner,
      maxConcurrent: options.maxConcurrent ?? 2,
      attempts: options.attempts ?? 3,
      leaseMs: this.#leaseMs,
      keepMs: this.#keepMs,
      maxArtifactBytes: options.maxBytes?.one ?? 32 * 1_048_576,
      ended: (id) => {
        this.#following.ended(id);
      },
    });
  }

  /** Starts to run jobs, including those that other processes added. */
  start(): void {
    this.#worker.start();
  }

  /** Returns jobs in progress to the queue, for another process to continue. */
  async stop(): Promise<void> {
    await this.#worker.stop();
  }

  /**
   * Starts a job and returns its id. A caller with a key who repeats a call in progress gets the same job. Without a key,
   * all callers of a network share an owner and the id of a job is the permission to read it, so each call is a new job.
   * @throws Problem (too-many-jobs)
   */
  async begin(call: JobCall): Promise<string> {
    const { tool, input, payer, session, context } = call;
    const { database, maximum = { anonymous: 3, key: 10, all: 500 }, maxKept = 20 } = this.#options;
    const id = randomUUID();
    const keyed = payer.kind === 'key';
    const text = JSON.stringify(input);
    const fingerprint = createHash('sha256')
      .update(keyed ? text : `${id} ${text}`)
      .digest('hex');
    const kind = keyed ? 'key' : 'anonymous';
    await database().replay(statements.trim, [payer.owner, maxKept]);
    if (keyed) this.#worker.keep(id, payer);
    const values = [
      id,
      tool,
      text,
      fingerprint,
      payer.owner,
      kind,
      toNullable(session),
      keyed ? this.#runner : null,
      this.#leaseMs,
      this.#keepMs,
      maximum[kind],
      maximum.all,
      toNullable(context),
      toNetworkNames(payer),
    ];
    const [added] = await database()
      .query(statements.add, values)
      .catch((error: unknown) => {
        this.#worker.forget(id);
        throw error;
      });
    if (added !== undefined) {
      call.added?.();
      this.#worker.wake();
      return id;
    }
    this.#worker.forget(id);
    const [same] = await database().replay(statements.same, [payer.owner, tool, fingerprint]);
    if (same !== undefined) return same.id;
    throw new Problem(
      tooManyJobs,
      `The limit is ${maximum[kind]} jobs in progress per caller and ${maximum.all} for all callers. Wait for a job to finish, or try again in 30 seconds.${keyed ? '' : ` With your own API key for the model router (Authorization: Bearer sk-…), it is ${maximum.key} per caller.`}`,
      { headers: { 'retry-after': '30' } },
    );
  }

  /** The status of a job. @throws Problem (unknown-job) */
  async view(name: JobName): Promise<JobView> {
    const [row] = await this.#options.database().replay(statements.view, toJobKey(name));
    if (row === undefined) throw createUnknownJobProblem(name);
    const {
      session,
      created_at: createdAt,
      ended_at: endedAt,
      expires_at: expiresAt,
      result,
      problem,
      artifact_bytes: bytes,
      file_id: fileId,
      media_type: mediaType,
      file_name: fileName,
      ...rest
    } = row;
    return {
      ...rest,
      createdAt,
      expiresAt,
      session: session ?? undefined,
      endedAt: endedAt ?? undefined,
      result: result ?? undefined,
      problem: problem ?? undefined,
      artifact:
        bytes === null || mediaType === null || fileName === null
          ? undefined
          : { id: fileId ?? undefined, bytes, mediaType, fileName },
    };
  }

  /**
   * Waits until the job ends, `ms` have passed or the signal aborts, and returns its status. @throws Problem (unknown-job)
   */
  async wait(
    name: JobName,
    {
      ms,
      signal,
      report,
    }: { readonly ms: number; readonly signal: AbortSignal; readonly report?: (progress: Progress) => void },
  ): Promise<JobView> {
    const now = await this.view(name);
    if (now.state === 'done' || now.state === 'failed' || ms <= 0) return now;
    await this.#following.until({ id: name.id, ms, signal, report });
    return this.view(name);
  }

  /** The job's file; undefined if it created none or is not done. @throws Problem (unknown-job) */
  async artifact(name: JobName): Promise<Artifact | undefined> {
    const [file] = await this.#options.database().replay(statements.artifact, toJobKey(name));
    if (file === undefined) await this.view(name);
    return file;
  }

  /** Finds a job of any tool by its id. @throws Problem (unknown-job) */
  async find(id: string, owner: string): Promise<JobEntry> {
    const [row] = uuid.test(id) ? await this.#options.database().replay(statements.find, [id, owner]) : [];
    if (row === undefined) throw createUnknownJobProblem({ id });
    return row;
  }

  /** Lists the jobs of an owner with a key, the most recently changed first. */
  async list(owner: string): Promise<JobEntry[]> {
    return this.#options.database().replay(statements.list, [owner]);
  }

  /** Lists the jobs without a key of a conversation, whose id is a secret. The most recently changed come first. */
  async listByContext(context: string): Promise<JobEntry[]> {
    return this.#options.database().replay(statements.listByContext, [context]);
  }

  /**
   * Cancels a job that this owner may see. Model calls made until then stay charged. @returns whether the job was still in
   * progress
   */
  async cancel(name: JobName): Promise<boolean> {
    const problem = { slug: jobCanceled.slug, detail: 'The job was canceled by its caller.', members: {} };
    const [canceled] = await this.#options
      .database()
      .query(statements.cancel, [...toJobKey(name), JSON.stringify(problem), this.#keepMs]);
    if (canceled !== undefined) this.#worker.cancel(name.id);
    return canceled !== undefined;
  }

  /** Deletes expired jobs. Call this periodically. @returns the number deleted */
  async purge(): Promise<number> {
    return (await this.#options.database().replay(statements.purge, [this.#options.maxBytes?.all ?? 4 * 1_073_741_824]))
      .length;
  }

  get #leaseMs(): number {
    return this.#options.leaseMs ?? 30_000;
  }

  get #keepMs(): number {
    return this.#options.keepMs ?? 86_400_000;
  }
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function toJobKey(name: JobName): [string, string, string] {
  // The database would answer anything but a UUID with an error.
  if (!uuid.test(name.id)) throw createUnknownJobProblem(name);
  return [name.id, name.tool, name.owner];
}

/** The networks whose quota an anonymous caller uses, as stored. */
function toNetworkNames({ networks }: Payer): string[] | null {
  return networks === undefined ? null : [networks.subnet, networks.site];
}

/** Database drivers expect null for an absent value. */
const toNullable = (value: string | undefined): string | null => value ?? null;

function createUnknownJobProblem({ id, tool }: { readonly id: string; readonly tool?: string }): Problem {
  return new Problem(
    unknownJob,
    `You have no ${tool === undefined ? '' : `${tool} `}job with the id ${JSON.stringify(id.slice(0, 60))}. Call the tool without job to start one.`,
  );
}

export interface JobCall {
  readonly tool: string;
  /** Validated by the tool's input schema. Stored until the job expires. */
  readonly input: Record<string, unknown>;
  /** The caller. A caller's own key never leaves this process (see the top of this file). */
  readonly payer: Payer;
  readonly session: string | undefined;
  /** The agent's id of the conversation that the job belongs to. */
  readonly context?: string | undefined;
  /** Called if the job is new, and not the same call already in progress. */
  readonly added?: () => void;
}

export type JobState = 'queued' | 'running' | 'done' | 'failed';

/** The status of a job. */
export interface JobView {
  readonly id: string;
  readonly tool: string;
  readonly input: Record<string, unknown>;
  readonly session: string | undefined;
  readonly context: string | undefined;
  readonly state: JobState;
  /** From 0 to 1. */
  readonly progress: number;
  readonly message: string;
  readonly attempt: number;
  readonly createdAt: Date;
  readonly endedAt: Date | undefined;
  /** When result and file are deleted. */
  readonly expiresAt: Date;
  /** The cost of all attempts so far, from the ledger. */
  readonly cost: Money;
  /** What we charged the caller. */
  readonly charged: Money;
  /** Calls whose cost is not known yet and not included. */
  readonly pending: number;
  /** Set when the job is done. */
  readonly result: Record<string, unknown> | undefined;
  readonly artifact:
    | { readonly id: string | undefined; readonly mediaType: string; readonly fileName: string; readonly bytes: number }
    | undefined;
  /** Set when the job has failed: an RFC 9457 problem without the `type` URL, `instance` and `request_id`. */
  readonly problem: JobProblem | undefined;
}

export interface JobProblem {
  /** Slug of the problem's type. */
  readonly slug: string;
  readonly detail: string;
  readonly members: Readonly<Record<string, unknown>>;
}

/** A job in a list of jobs. */
export interface JobEntry {
  readonly id: string;
  readonly tool: string;
  readonly context: string | undefined;
  readonly state: JobState;
  /** When it ended; until then, when it was created. */
  readonly at: Date;
  /** Slug of the problem that ended it. */
  readonly problem: string | undefined;
}

/** One attempt at a job, as passed to its work. */
export interface JobRun {
  readonly id: string;
  readonly tool: string;
  readonly input: Record<string, unknown>;
  readonly payer: Payer;
  readonly session: string | undefined;
  /** 1 for the first. */
  readonly attempt: number;
  /** Aborted when another process takes over the job, its caller cancels it, or this process ends. */
  readonly signal: AbortSignal;
  readonly report: (progress: Progress) => void;
  /**
   * Call this with the id of each hold before it is created, so that its cost counts to the job even if this process
   * dies. @throws Error if this process no longer owns the job
   */
  readonly announce: (hold: string) => Promise<void>;
}

/** Does the work. A thrown Problem fails the job; tool-busy and too-many-calls return it to the queue. */
export type JobWork = (
  run: JobRun,
) => Promise<{ readonly result: Record<string, unknown>; readonly artifact?: Artifact | undefined }>;

type Glance = z.output<typeof statements.glance.row>;

interface Follower {
  readonly id: string;
  readonly report: ((progress: Progress) => void) | undefined;
  readonly end: () => void;
  reported: string;
}

/** Waits for jobs in any process to end, with one database query for all waiting callers. */
export class Following {
  readonly #database: () => Database;
  readonly #everyMs: number;
  readonly #followers = new Set<Follower>();
  #looking = false;

  constructor(database: () => Database, everyMs: number) {
    this.#database = database;
    this.#everyMs = everyMs;
  }

  /** Resolves when the job ends, the time has passed or the signal aborts. */
  async until({
    id,
    ms,
    signal,
    report,
  }: {
    readonly id: string;
    readonly ms: number;
    readonly signal: AbortSignal;
    readonly report?: ((progress: Progress) => void) | undefined;
  }): Promise<void> {
    const ended = Promise.withResolvers<undefined>();
    const follower: Follower = {
      id,
      report,
      end: () => {
        ended.resolve(undefined);
      },
      reported: '',
    };
    const waiting = new AbortController();
    this.#followers.add(follower);
    if (!this.#looking) void this.#look();
    try {
      await Promise.race([
        ended.promise,
        sleep(ms, undefined, { signal: AbortSignal.any([signal, waiting.signal]) }).catch(() => undefined),
      ]);
    } finally {
      waiting.abort();
      this.#followers.delete(follower);
    }
  }

  /** Reports that a job has ended in this process, without waiting for the next query. */
  ended(id: string): void {
    for (const follower of this.#followers) if (follower.id === id) follower.end();
  }

  async #look(): Promise<void> {
    this.#looking = true;
    while (this.#followers.size > 0) {
      const ids = [...new Set([...this.#followers].map(({ id }) => id))];
      // A database that is briefly unavailable only makes the wait longer.
      const seen = await this.#glance(ids).catch(() => []);
      for (const job of seen) this.#notify(job);
      await sleep(this.#everyMs, undefined, { ref: false });
    }
    this.#looking = false;
  }

  async #glance(ids: readonly string[]): Promise<Glance[]> {
    return this.#database().query(statements.glance, [ids]);
  }

  #notify({ id, state, progress, message }: Glance): void {
    for (const follower of this.#followers) {
      if (follower.id !== id) continue;
      const current = `${progress} ${message}`;
      if (current !== follower.reported && message !== '') follower.report?.({ done: progress, message });
      follower.reported = current;
      if (state === 'done' || state === 'failed') follower.end();
    }
  }
}
