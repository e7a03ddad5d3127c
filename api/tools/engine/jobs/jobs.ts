// Jobs of tools: started in one request, polled in others, run by whichever process has a free slot.
//
// A job is a row in PostgreSQL. A process that dies loses its lease, and another one takes over the job, a limited
// number of times; the job's cost is that of all attempts. A caller's own key is never stored: a job paid for with a key
// runs in the process that received the key, and fails as job-lost when that process ends.
import { createHash, randomUUID } from 'node:crypto';
import type { Logger } from '../../../../lib/telemetry.ts';
import { Problem } from '../../../../lib/problem.ts';
import type { Database, Payer, QuotaNetworks } from '../../../billing/index.ts';
import type { Artifact, Progress } from '../../tool.ts';
import { Following } from './following.ts';
import type { JobCall, JobEntry, JobView, JobWork } from './job.ts';
import { jobCanceled, tooManyJobs, unknownJob } from './problems.ts';
import * as statements from './statements.ts';
import { JobWorker } from './worker.ts';

export interface JobsOptions {
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  readonly database: () => Database;
  readonly log: Logger;
  readonly work: JobWork;
  /** Names of the tools that can be worked on here. */
  readonly tools: readonly string[];
  /** Who pays for a caller without a key, known by its hash. */
  readonly anonymous: (owner: string, networks: QuotaNetworks | undefined) => Payer;
  /** Jobs at once in this process; default 2. */
  readonly maxConcurrent?: number;
  /** Maximum jobs in progress of a caller without a key, of one with a key, and of all; default 3, 10 and 500. */
  readonly maximum?: { readonly anonymous: number; readonly key: number; readonly all: number };
  /** Ended jobs that are kept for one caller; default 20. */
  readonly maxKept?: number;
  /** Largest file of a job, and of all together; default 32 MiB and 4 GiB. */
  readonly maxBytes?: { readonly one: number; readonly all: number };
  /** How often a job is begun at most; default 3. */
  readonly attempts?: number;
  /** How long a process may be silent before it is taken for dead; default 30 s. */
  readonly leaseMs?: number;
  /** How long results and files are kept; default a day. */
  readonly keepMs?: number;
  /** Between two looks for work, or at a job that is waited for; default 1 s. */
  readonly pollMs?: number;
}

/** Who asks for a job, and by which names. */
export interface JobName {
  readonly id: string;
  readonly tool: string;
  /** Payer.owner. Only it sees a job that is paid with a key; one without a key is seen by anyone who has its id. */
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

  /** Begins to work on jobs, those of other processes included. */
  start(): void {
    this.#worker.start();
  }

  /** Returns jobs in progress to the queue, for another process to continue. */
  async stop(): Promise<void> {
    await this.#worker.stop();
  }

  /**
   * Begins a job. The same call of the same caller with a key, while in progress, is the same job. Without a key, callers
   * of one network are the same, and the id of a job is the permission to read it, so each call is a new job. @returns
   * its id. @throws Problem (too-many-jobs)
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
      orNull(session),
      keyed ? this.#runner : null,
      this.#leaseMs,
      this.#keepMs,
      maximum[kind],
      maximum.all,
      orNull(context),
      networkNames(payer),
    ];
    const [added] = await database()
      .query(statements.add, values)
      .catch((error: unknown) => {
        this.#worker.forget(id);
        throw error;
      });
    if (added !== undefined) {
      reportAdded(call);
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
    const [row] = await this.#options.database().replay(statements.view, valuesOf(name));
    if (row === undefined) throw unknown(name);
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
   * Waits until it has ended, or so long, or until the signal; then says how it stands. @throws Problem (unknown-job)
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

  /** Its file; undefined when it made none, or is not done. @throws Problem (unknown-job) */
  async artifact(name: JobName): Promise<Artifact | undefined> {
    const [file] = await this.#options.database().replay(statements.artifact, valuesOf(name));
    if (file === undefined) await this.view(name);
    return file;
  }

  /** The job with this id, whatever its tool. @throws Problem (unknown-job) */
  async find(id: string, owner: string): Promise<JobEntry> {
    const [row] = uuid.test(id) ? await this.#options.database().replay(statements.find, [id, owner]) : [];
    if (row === undefined) throw unknown({ id });
    return row;
  }

  /** The jobs of an owner with a key, those that changed last first. */
  async list(owner: string): Promise<JobEntry[]> {
    return this.#options.database().replay(statements.list, [owner]);
  }

  /** The jobs without a key of a conversation whose name nobody guesses, those that changed last first. */
  async listOfContext(context: string): Promise<JobEntry[]> {
    return this.#options.database().replay(statements.listOfContext, [context]);
  }

  /**
   * Ends a job that this owner sees and that has not ended yet; what its model calls cost until then stays charged. @returns
   * whether it did
   */
  async cancel(name: JobName): Promise<boolean> {
    const problem = { slug: jobCanceled.slug, detail: 'The job was canceled by its caller.', members: {} };
    const [canceled] = await this.#options
      .database()
      .query(statements.cancel, [...valuesOf(name), JSON.stringify(problem), this.#keepMs]);
    if (canceled !== undefined) this.#worker.cancel(name.id);
    return canceled !== undefined;
  }

  /** Forgets what has expired. To be repeated. @returns how many */
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

function reportAdded({ added }: JobCall): void {
  added?.();
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function valuesOf(name: JobName): [string, string, string] {
  // Anything else would be an error of the database.
  if (!uuid.test(name.id)) throw unknown(name);
  return [name.id, name.tool, name.owner];
}

/** The networks for which the quota of a caller without a key is counted, as they are stored. */
function networkNames({ networks }: Payer): string[] | null {
  return networks === undefined ? null : [networks.subnet, networks.site];
}

/** As the drivers take what is absent. */
const orNull = (value: string | undefined): string | null => value ?? null;

function unknown({ id, tool }: { readonly id: string; readonly tool?: string }): Problem {
  return new Problem(
    unknownJob,
    `You have no ${tool === undefined ? '' : `${tool} `}job with the id ${JSON.stringify(id.slice(0, 60))}. Call the tool without job to start one.`,
  );
}
