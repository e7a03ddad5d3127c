// Runs a tool call for /t, MCP and A2A: returns its result, or starts a job if the tool is long-running. Its registry finds tools by
// name, suggests names for a misspelled one, and explains why a tool is not available here.
import type { CallToolResult, Tool as ListedTool } from '@modelcontextprotocol/server';
import { Problem, type ProblemType, createUnknownNameProblem } from '../../../lib/problem.ts';
import {
  httpProblems,
  createValidationProblem,
  invalidRequest,
  type InputPart,
  type CallContext,
} from '../../http/index.ts';
import {
  billingProblems,
  formatMoney,
  type Payer,
  type PriceList,
  type Quota,
  resolveToolPrice,
} from '../../billing/index.ts';
import { modelProblems } from '../../models/index.ts';
import { type ArtifactStore, buildArtifactUrl } from './artifacts.ts';
import { fieldErrors } from './workers/worker-process.ts';
import { toJobCost, refuseRaw } from './response.ts';
import { unknownJob, noArtifact, toolFailed, toolProblems, serviceOff, unknownTool } from '../problems.ts';
import type { ToolRun, Runner, Via } from './runner.ts';
import type { Artifact, Tool, Progress } from '../tool.ts';
import type { JobName, Jobs, JobView } from './jobs/jobs.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import type { Reading } from './reading.ts';
import {
  explainServiceOff,
  summarizeServiceOff,
  type OffCauses,
  type ServiceUrls,
} from '../services/backing-services.ts';

export interface ToolServiceOptions {
  readonly toolRegistry: ToolRegistry;
  readonly runner: Runner;
  readonly baseUrl: string;
  /** Without it, long tools run within their request. */
  readonly jobs: LongCalls | undefined;
  /** Reads the quota left: a job reserves and settles money in the process that runs it. */
  readonly readQuota: (payer: Payer) => Promise<Quota | undefined>;
  /** Stores files that callers receive as a link. */
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
      throw locateErrors(error, call.reading.part);
    }
  }

  /**
   * Returns the job that the call names, or starts one for a long tool. Undefined for a call that runs within its
   * request. @throws Problem
   */
  async resolveJob(call: ToolCall): Promise<JobName | undefined> {
    try {
      return await this.#begun(call);
    } catch (error) {
      throw locateErrors(error, call.reading.part);
    }
  }

  /** Waits for a job to end, up to `waitMs`, and reports its status. @throws Problem (unknown-job, unknown-tool) */
  async follow(
    { id, owner, tool: toolName }: JobName,
    { requestId, waitMs, signal, report, payer }: FollowOptions,
  ): Promise<JobReport> {
    const { jobs, baseUrl, toolRegistry, readQuota } = this.#options;
    if (jobs === undefined) throw new Problem(unknownJob, 'This installation keeps no jobs.');
    const tool = toolRegistry.get(toolName);
    const name = { id, owner, tool: toolName };
    const job = await jobs.wait(name, { ms: waitMs, signal, ...(report === undefined ? {} : { report }) });
    if (job.state === 'failed') return { job, result: undefined, problem: toProblem(job) };
    const pollUrl = `${baseUrl}/t/${toolName}?job=${id}`;
    const meta: ResultMeta = { tool, requestId, pollUrl, ...buildLink(job, baseUrl, pollUrl) };
    const quota = payer === undefined ? undefined : await readQuota(payer);
    const run = job.state === 'done' ? await toToolRun(jobs, name, job, quota) : undefined;
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
    return { run, job: undefined, quota: run.quota, meta: { tool, requestId: id, ...selectWarnings(call), ...link } };
  }

  /** The call has run and is paid for, so a file that cannot be stored is embedded in the response instead. */
  async #link(
    { payer, delivery, log }: ToolCall,
    artifact: Artifact | undefined,
  ): Promise<Pick<ResultMeta, 'fileUrl' | 'fileExpiresAt' | 'fileId'>> {
    if (artifact === undefined || delivery === 'file') return { fileUrl: undefined };
    try {
      const kept = await this.#options.artifacts.keep(payer.owner, artifact);
      return kept === undefined
        ? { fileUrl: undefined }
        : { fileId: kept.id, fileUrl: buildArtifactUrl(this.#options.baseUrl, kept.id), fileExpiresAt: kept.expiresAt };
    } catch (error) {
      // Without a database, nothing is stored at all.
      if (!(error instanceof Problem)) log.error({ err: error }, 'cannot store the file of a tool call');
      return { fileUrl: undefined };
    }
  }

  async #begun(call: ToolCall & { readonly added?: () => void }): Promise<JobName | undefined> {
    const { tool, reading, delivery, payer, context } = call;
    const { input, options } = reading;
    if (delivery !== 'json') refuseRaw(tool);
    const { jobs, toolRegistry } = this.#options;
    const { name } = tool;
    if (jobs !== undefined && options.job !== undefined) return { id: options.job, tool: name, owner: payer.owner };
    toolRegistry.assertServiceOn(tool);
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
   * Cancels a new job if its caller disconnected before receiving the handle: no one else has the id, and the job would
   * go on calling models.
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
    if (result === undefined) throw locateErrors(problem, options.job === undefined ? part : 'argument');
    // A call that starts a job always gets its handle.
    if (delivery !== 'json' && options.job !== undefined) assertHasFile(job, tool);
    return { ...result, meta: { ...result.meta, ...selectWarnings(call) } };
  }
}

function selectWarnings({ reading: { warnings } }: ToolCall): Pick<ResultMeta, 'warnings'> {
  return warnings === undefined ? {} : { warnings };
}

/** The part that a tool names in the errors that it finds itself. */
const unlocated: InputPart = 'query';

/** A tool cannot know whether its fields came in the query or the body, so its errors are moved to the actual part. */
function locateErrors(error: unknown, part: InputPart): unknown {
  if (!(error instanceof Problem) || error.errors.every((one) => one.in !== unlocated)) return error;
  const { type, headers, members } = error;
  const errors = error.errors.map((one) => ({ ...one, in: one.in === unlocated ? part : one.in }));
  const detail = type === invalidRequest ? createValidationProblem(errors).message : error.message;
  return new Problem(type, detail, { errors, headers, members, cause: error });
}

function buildLink(
  { artifact, expiresAt }: JobView,
  baseUrl: string,
  pollUrl: string,
): Pick<ResultMeta, 'fileUrl' | 'fileExpiresAt'> {
  if (artifact === undefined) return { fileUrl: undefined };
  return {
    fileUrl: artifact.id === undefined ? `${pollUrl}&raw=1` : buildArtifactUrl(baseUrl, artifact.id),
    fileExpiresAt: expiresAt,
  };
}

async function toToolRun(jobs: LongCalls, name: JobName, job: JobView, quota: Quota | undefined): Promise<ToolRun> {
  const artifact = job.artifact === undefined ? undefined : await jobs.artifact(name);
  const latencyMs = job.endedAt === undefined ? 0 : job.endedAt.getTime() - job.createdAt.getTime();
  return { result: job.result ?? {}, artifact, latencyMs, cost: toJobCost(job), quota };
}

function assertHasFile(job: JobView, { name }: Tool): void {
  if (job.state !== 'done')
    throw new Problem(noArtifact, `The job is ${job.state} and has no file yet. Ask again with wait=60.`, {
      headers: { 'retry-after': '5' },
    });
  if (job.artifact === undefined)
    throw new Problem(noArtifact, `${name} created no file in this job. Remove raw to get the JSON response.`);
}

export function findProblemType(slug: string | undefined): ProblemType {
  const types = [...httpProblems, ...billingProblems, ...modelProblems, ...toolProblems];
  return types.find((type) => type.slug === slug) ?? toolFailed;
}

/** Rebuilds the problem that ended a job. */
function toProblem({ id, problem }: JobView): Problem {
  const type = findProblemType(problem?.slug);
  const { errors, ...members } = problem?.members ?? {};
  return new Problem(type, problem?.detail ?? 'The job failed.', {
    errors: fieldErrors.safeParse(errors).data ?? [],
    members: { ...members, job: id },
  });
}

/** The part of Jobs that a tool service uses. */
export type LongCalls = Pick<Jobs, 'begin' | 'cancel' | 'wait' | 'artifact'>;

/**
 * How the caller receives the result. `json`: as JSON with a link to the file, if any. `file`: as the file's bytes.
 * `link`: as the file's bytes, and stored under a link. A call that creates no file fails with `file` and `link`.
 */
export type Delivery = 'json' | 'file' | 'link';

/** A call with validated arguments. */
export interface ToolCall {
  readonly tool: Tool;
  readonly reading: Reading;
  readonly payer: Payer;
  readonly via: Via;
  readonly id: string;
  readonly signal: () => AbortSignal;
  readonly log: Logger;
  readonly delivery: Delivery;
  /** How long to wait for a job if the caller does not set `wait`. */
  readonly waitMs: number;
  readonly report?: (progress: Progress) => void;
  /**
   * Whether the caller has canceled the call or disconnected, so that no one will poll its new job. Without this
   * function, a job continues after its caller has disconnected.
   */
  readonly isCanceled?: () => boolean;
  /** The agent's id of the conversation that a new job belongs to. */
  readonly context?: string;
}

export interface FollowOptions {
  readonly requestId: string;
  readonly waitMs: number;
  readonly signal: AbortSignal;
  readonly report?: ((progress: Progress) => void) | undefined;
  /** Whose quota the result reports; without it, none. */
  readonly payer?: Payer | undefined;
}

export interface JobReport {
  readonly job: JobView;
  /** The finished run, or the progress until then; undefined if the job failed. */
  readonly result: ToolResult | undefined;
  /** Why the job failed. */
  readonly problem: Problem | undefined;
}

/** The result of a call: a finished run, or a job in progress. */
export interface ToolResult {
  readonly run: ToolRun | undefined;
  readonly job: JobView | undefined;
  /** The caller's quota, if any: after the run, or the current one while a job is in progress. */
  readonly quota: Quota | undefined;
  readonly meta: ResultMeta;
}

/** What a response reports besides the run itself. */
export interface ResultMeta {
  readonly tool: Tool;
  readonly requestId: string;
  /** URL of the file's bytes and its expiry; undefined without a stored file. */
  readonly fileUrl: string | undefined;
  readonly fileExpiresAt?: Date | undefined;
  /** Id of the stored file. */
  readonly fileId?: string | undefined;
  /** Arguments that were ignored. */
  readonly warnings?: readonly string[];
  /** URL that returns the job's status. */
  readonly pollUrl?: string;
}

export interface ToolRegistryOptions {
  /** At their own prices. */
  readonly tools: readonly Tool[];
  readonly prices: PriceList;
  readonly urls: ServiceUrls;
  /** Why services are off, if the operator has set a reason. */
  readonly offCauses?: OffCauses;
  /** What is missing for calling models; undefined where nothing is. */
  readonly modelsMissing: string | undefined;
}

export class ToolRegistry {
  /** At the prices of the version of the price list in effect. */
  readonly tools: readonly Tool[];
  readonly #options: ToolRegistryOptions;
  readonly #byName: ReadonlyMap<string, Tool>;

  constructor(options: ToolRegistryOptions) {
    this.#options = options;
    this.tools = options.tools.map((tool) => applyListPrice(tool, options.prices));
    this.#byName = new Map(this.tools.map((tool) => [tool.name, tool]));
  }

  /** `others`: further names to suggest. @throws Problem (unknown-tool) */
  get(name: string, others: readonly string[] = []): Tool {
    const tool = this.#byName.get(name);
    if (tool === undefined) throw createUnknownToolProblem(name, [...this.#byName.keys(), ...others]);
    return tool;
  }

  /** Why a tool is not available here, and which setting enables it; undefined when it is available. */
  explainOff({ needs, asksModels }: Tool): string | undefined {
    if (needs !== undefined && this.#options.urls[needs] === undefined)
      return explainServiceOff(needs, this.#options.offCauses?.[needs]);
    return asksModels === true ? this.#options.modelsMissing : undefined;
  }

  /** The same in a few words. */
  summarizeOff(tool: Tool): string | undefined {
    const { needs } = tool;
    if (needs !== undefined && this.#options.urls[needs] === undefined)
      return summarizeServiceOff(needs, this.#options.offCauses?.[needs]);
    return this.explainOff(tool) === undefined ? undefined : 'Needs language models.';
  }

  /** @throws Problem (service-off) when the service of this tool is off */
  assertServiceOn({ needs }: Tool): void {
    if (needs !== undefined && this.#options.urls[needs] === undefined)
      throw new Problem(serviceOff, explainServiceOff(needs, this.#options.offCauses?.[needs]), {
        members: { service: needs },
      });
  }
}

/** Gives a tool its price from the version of the price list in effect. */
function applyListPrice(tool: Tool, prices: PriceList): Tool {
  const { name, price: own } = tool;
  return {
    ...tool,
    get price() {
      return formatMoney(resolveToolPrice(prices.at(), name, own));
    },
  };
}

function createUnknownToolProblem(name: string, names: readonly string[]): Problem {
  return createUnknownNameProblem(unknownTool, { says: 'Unknown tool', name, names, all: 'GET /t lists all tools.' });
}

export interface ExternalToolCall {
  readonly given: Readonly<Record<string, unknown>>;
  readonly context: CallContext;
  readonly signal: AbortSignal;
  /** Id of the client's MCP session; undefined if it has none. */
  readonly session?: string | undefined;
  /** Receives the progress that the tool reports; undefined if the client asked for none. */
  readonly report?: ((progress: ExternalProgress) => void) | undefined;
}
/** Progress in units of the tool. */
export interface ExternalProgress {
  readonly progress: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

/** A search for words in the operations of all apps, or of one app. */
export interface ExternalSearch {
  readonly query: string;
  readonly app?: string | undefined;
  readonly limit: number;
}

export interface ExternalTool {
  /** The app that it belongs to. */
  readonly app: string;
  call(call: ExternalToolCall): Promise<CallToolResult>;
}

/** One that a search found. */
export interface FoundTool extends ListedTool {
  readonly app: string;
}

/** Tools that come and go while the process runs: operations of hosted apps. */
export interface ExternalTools {
  /**
   * Resolves when the tools of an app are known, or after a few seconds: it may have gone live a moment ago. Returns the current
   * name of the app.
   */
  ready(app: string): Promise<string>;
  /** Lists the tools of one app in a stable order. @throws Problem (unknown-app, app-not-live) */
  list(app: string): readonly ListedTool[];
  /** Returns the best matches first, and the total number. @throws Problem (unknown-app, app-not-live) */
  search(search: ExternalSearch): { readonly found: readonly FoundTool[]; readonly total: number };
  /** All current names, for suggestions. */
  names(): readonly string[];
  /** Ends what the tools keep for a session of this caller. */
  endSession(session: string, context: CallContext): Promise<void>;
  /** Finds a tool by its current or a former name. Its `call` throws a Problem on failure. */
  find(name: string): Promise<ExternalTool | undefined>;
}

export const noExternalTools: ExternalTools = {
  ready: (app) => Promise.resolve(app),
  list: () => [],
  search: () => ({ found: [], total: 0 }),
  names: () => [],
  endSession: () => Promise.resolve(),
  find: () => Promise.resolve(undefined),
};
