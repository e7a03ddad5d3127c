// Takes a tool call and returns its result: at once, or as a job for a long tool. Used by /t, MCP and A2A.
import { Problem, type ProblemType } from '../../../lib/problem.ts';
import { httpProblems, createValidationProblem, invalidRequest, type InputPart } from '../../http/index.ts';
import { billingProblems, type Payer, type Quota } from '../../billing/index.ts';
import { modelProblems } from '../../models/index.ts';
import type { ArtifactStore } from './artifacts/artifact-store.ts';
import { artifactUrl } from './artifacts/endpoint.ts';
import { fieldErrors } from './field-errors.ts';
import { jobCost } from './cost.ts';
import type {
  FollowOptions,
  JobName,
  JobReport,
  JobStatus,
  LongCalls,
  ResultMeta,
  ToolCall,
  ToolResult,
} from './tool-call.ts';
import { unknownJob } from './jobs/problems.ts';
import { noArtifact, toolFailed, toolProblems } from '../problems.ts';
import { refuseRaw } from './raw.ts';
import type { ToolRun, Runner } from './runner.ts';
import type { Artifact, Tool } from '../tool.ts';
import type { ToolRegistry } from './tool-registry.ts';

export interface ToolServiceOptions {
  readonly toolRegistry: ToolRegistry;
  readonly runner: Runner;
  readonly baseUrl: string;
  /** Without it, callers of long tools wait for them. */
  readonly jobs: LongCalls | undefined;
  /** A job is paid for where it runs: what is left of its caller's quota is read. */
  readonly quotaOf: (payer: Payer) => Promise<Quota | undefined>;
  /** Stores files for callers that want a link. */
  readonly artifacts: Pick<ArtifactStore, 'keep'>;
}

export class ToolService {
  readonly #options: ToolServiceOptions;

  constructor(options: ToolServiceOptions) {
    this.#options = options;
  }

  /** @throws Problem */
  async call(call: ToolCall): Promise<ToolResult> {
    try {
      return await this.#result(call);
    } catch (error) {
      throw located(error, call.reading.part);
    }
  }

  /**
   * The job of a call that runs as one: the job that it names, or a new one. Undefined for a call that is answered at
   * once. @throws Problem
   */
  async jobOf(call: ToolCall): Promise<JobName | undefined> {
    try {
      return await this.#begun(call);
    } catch (error) {
      throw located(error, call.reading.part);
    }
  }

  /** How a job stands, after waiting for its end. @throws Problem (unknown-job, unknown-tool) */
  async follow(
    { id, owner, tool: toolName }: JobName,
    { requestId, waitMs, signal, report, payer }: FollowOptions,
  ): Promise<JobReport> {
    const { jobs, baseUrl, toolRegistry, quotaOf } = this.#options;
    if (jobs === undefined) throw new Problem(unknownJob, 'This installation keeps no jobs.');
    const tool = toolRegistry.get(toolName);
    const name = { id, owner, tool: toolName };
    const job = await jobs.wait(name, { ms: waitMs, signal, ...(report === undefined ? {} : { report }) });
    if (job.state === 'failed') return { job, result: undefined, problem: failed(job) };
    const pollUrl = `${baseUrl}/t/${toolName}?job=${id}`;
    const meta: ResultMeta = { tool, requestId, pollUrl, ...linkOf(job, baseUrl, pollUrl) };
    const quota = payer === undefined ? undefined : await quotaOf(payer);
    const run = job.state === 'done' ? await runOf(jobs, name, job, quota) : undefined;
    return { job, result: { job, meta, quota, run }, problem: undefined };
  }

  async #result(call: ToolCall): Promise<ToolResult> {
    const {
      tool,
      reading: { input, options },
      delivery,
    } = call;
    const fileWanted = delivery !== 'json';
    let isNew = false;
    const name = await this.#begun({
      ...call,
      added: () => {
        isNew = true;
      },
    });
    if (name !== undefined) {
      try {
        return await this.#job(call, name);
      } finally {
        await this.#endUnknown(name, call, isNew);
      }
    }
    const { payer, via, id, signal, log, report } = call;
    const run = await this.#options.runner.run({
      tool,
      input,
      payer,
      via,
      id,
      signal,
      log,
      fileWanted,
      session: options.s,
      ...(report === undefined ? {} : { report }),
    });
    const link = await this.#link(call, run.artifact);
    return { run, job: undefined, quota: run.quota, meta: { tool, requestId: id, ...warningsOf(call), ...link } };
  }

  /** The call has run and is paid for: when its file cannot be stored, the response embeds it instead. */
  async #link(
    { payer, delivery, log }: ToolCall,
    artifact: Artifact | undefined,
  ): Promise<Pick<ResultMeta, 'fileUrl' | 'fileExpiresAt' | 'fileId'>> {
    if (artifact === undefined || delivery === 'file') return { fileUrl: undefined };
    try {
      const kept = await this.#options.artifacts.keep(payer.owner, artifact);
      return kept === undefined
        ? { fileUrl: undefined }
        : { fileId: kept.id, fileUrl: artifactUrl(this.#options.baseUrl, kept.id), fileExpiresAt: kept.expiresAt };
    } catch (error) {
      // Without a database, nothing is stored at all.
      if (!(error instanceof Problem)) log.error({ err: error }, 'a file cannot be stored');
      return { fileUrl: undefined };
    }
  }

  /** The job that the call names, or begins; undefined where it is none. */
  async #begun(call: ToolCall & { readonly added?: () => void }): Promise<JobName | undefined> {
    const { tool, reading, delivery, payer, context } = call;
    const { input, options } = reading;
    if (delivery !== 'json') refuseRaw(tool);
    const { jobs, toolRegistry } = this.#options;
    const { name } = tool;
    if (jobs !== undefined && options.job !== undefined) return { id: options.job, tool: name, owner: payer.owner };
    toolRegistry.refuseOff(tool);
    if (jobs === undefined || tool.long !== true) return undefined;
    const { added } = call;
    const id = await jobs.begin({
      tool: name,
      input,
      payer,
      session: options.s,
      context,
      ...(added === undefined ? {} : { added }),
    });
    return { id, tool: name, owner: payer.owner };
  }

  /**
   * Ends the job that a call began when its caller has gone before it got the handle: nobody else knows of it, and it
   * would continue to ask models.
   */
  async #endUnknown(name: JobName, { isCanceled }: ToolCall, isNew: boolean): Promise<void> {
    if (isNew && isCanceled?.() === true) await this.#options.jobs?.cancel(name);
  }

  async #job(call: ToolCall, name: JobName): Promise<ToolResult> {
    const { tool, payer, id: requestId, reading, delivery, waitMs, signal, report } = call;
    const { part, options } = reading;
    const { job, result, problem } = await this.follow(name, {
      requestId,
      payer,
      waitMs: options.wait === undefined ? waitMs : options.wait * 1_000,
      signal: signal(),
      report,
    });
    // A job that is polled got its fields from an earlier call.
    if (result === undefined) throw located(problem, options.job === undefined ? part : 'argument');
    // A call that starts a job always gets its handle.
    if (delivery !== 'json' && options.job !== undefined) refuseMissing(job, tool);
    return { ...result, meta: { ...result.meta, ...warningsOf(call) } };
  }
}

function warningsOf({ reading: { warnings } }: ToolCall): Pick<ResultMeta, 'warnings'> {
  return warnings === undefined ? {} : { warnings };
}

/** Where the errors that a tool finds say that its fields stand. */
const unlocated: InputPart = 'query';

/** A tool does not know where its fields stand, so the errors that it finds are moved to where the caller sent them. */
function located(error: unknown, part: InputPart): unknown {
  if (!(error instanceof Problem) || error.errors.every((one) => one.in !== unlocated)) return error;
  const { type, headers, members } = error;
  const errors = error.errors.map((one) => ({ ...one, in: one.in === unlocated ? part : one.in }));
  const detail = type === invalidRequest ? createValidationProblem(errors).message : error.message;
  return new Problem(type, detail, { errors, headers, members, cause: error });
}

function linkOf(
  { artifact, expiresAt }: JobStatus,
  baseUrl: string,
  pollUrl: string,
): Pick<ResultMeta, 'fileUrl' | 'fileExpiresAt'> {
  if (artifact === undefined) return { fileUrl: undefined };
  return {
    fileUrl: artifact.id === undefined ? `${pollUrl}&raw=1` : artifactUrl(baseUrl, artifact.id),
    fileExpiresAt: expiresAt,
  };
}

async function runOf(jobs: LongCalls, name: JobName, job: JobStatus, quota: Quota | undefined): Promise<ToolRun> {
  const artifact = job.artifact === undefined ? undefined : await jobs.artifact(name);
  const latencyMs = job.endedAt === undefined ? 0 : job.endedAt.getTime() - job.createdAt.getTime();
  return { result: job.result ?? {}, artifact, latencyMs, cost: jobCost(job), quota };
}

function refuseMissing(job: JobStatus, { name }: Tool): void {
  if (job.state !== 'done')
    throw new Problem(noArtifact, `The job is ${job.state} and has no file yet. Ask again with wait=60.`, {
      headers: { 'retry-after': '5' },
    });
  if (job.artifact === undefined)
    throw new Problem(noArtifact, `${name} created no file in this job. Remove raw to get the JSON response.`);
}

/** The type of the problem that ended a job. */
export function jobProblemType(slug: string | undefined): ProblemType {
  const types = [...httpProblems, ...billingProblems, ...modelProblems, ...toolProblems];
  return types.find((type) => type.slug === slug) ?? toolFailed;
}

/** The problem that ended a job, as it would have ended a call. */
function failed({ id, problem }: JobStatus): Problem {
  const type = jobProblemType(problem?.slug);
  const { errors, ...members } = problem?.members ?? {};
  return new Problem(type, problem?.detail ?? 'The job failed.', {
    errors: fieldErrors.safeParse(errors).data ?? [],
    members: { ...members, job: id },
  });
}
