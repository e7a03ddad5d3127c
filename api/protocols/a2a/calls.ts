// Runs tools for the A2A agent: plain calls, long calls as jobs, and jobs presented as A2A tasks.
import { Problem } from '../../../lib/problem.ts';
import { type CallContext, invalidRequest } from '../../http/index.ts';
import type { Offer } from '../../apps/index.ts';
import {
  type Progress,
  ToolReader,
  type ToolRegistry,
  type ToolService,
  type Jobs,
  toEnvelope,
  isEmbeddable,
  type JobReport,
  type ToolResult,
} from '../../tools/index.ts';
import type { MessageReplays } from './message-replays.ts';
import type { PushConfigs } from './push-notifications.ts';
import type { PayerFor } from '../../models/index.ts';
import { isUnguessable, type Payer } from '../../billing/index.ts';

/** A tool call from an agent. */
export interface AgentCall {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly context: CallContext;
  /** The conversation that a task of this call belongs to. */
  readonly contextId: string;
}

/** The result of a call. */
export interface AgentAnswer {
  /** The same JSON as the response of /t/<tool>. */
  readonly answer: Readonly<Record<string, unknown>>;
  readonly file?:
    | {
        readonly name: string;
        readonly mediaType: string;
        readonly url: string | undefined;
        readonly bytes: Uint8Array | undefined;
      }
    | undefined;
}

/** A job, presented as an A2A task. */
export interface AgentTask {
  /** The job's id. */
  readonly id: string;
  readonly tool: string;
  readonly contextId: string;
  /** The parsed arguments of the call. */
  readonly input: Readonly<Record<string, unknown>>;
  readonly state: 'queued' | 'running' | 'done' | 'failed';
  /** From 0 to 1. */
  readonly progress: number;
  /** Current step. */
  readonly message: string;
  /** When the job ended or, until then, when it started. */
  readonly at: Date;
  /** Set once the job is done. */
  readonly answer: AgentAnswer | undefined;
  /** Set once the job has failed. */
  readonly problem: Problem | undefined;
}

/** A call to a slow tool: its job, and how long the caller is willing to wait, if specified. */
export interface AgentJob {
  readonly task: AgentTask;
  readonly waitMs: number | undefined;
}

export interface TaskFilter {
  readonly contextId: string | undefined;
  readonly isListed: (task: { readonly state: AgentTask['state']; readonly problem: string | undefined }) => boolean;
  readonly after: Date | undefined;
  readonly size: number;
  /** Page token from the previous page; undefined for the first page. */
  readonly token: string | undefined;
}

/**
 * Reads callers' jobs. A job is visible to the key that started it or, if it was started without a key, to anyone who
 * has its id.
 */
export interface AgentTasks {
  /** @throws Problem (unknown-job) */
  getTask(id: string, context: CallContext): Promise<AgentTask>;
  /** Waits until the job ends, `waitMs` passes, or the context's signal aborts. @throws Problem (unknown-job) */
  follow(
    task: AgentTask,
    options: {
      readonly context: CallContext;
      readonly waitMs: number;
      readonly report?: (progress: Progress) => void;
    },
  ): Promise<AgentTask>;
  /** @returns the task, and whether this call canceled it. @throws Problem (unknown-job) */
  cancel(id: string, context: CallContext): Promise<{ task: AgentTask; canceled: boolean }>;
  /**
   * Lists the tasks of a key or, without one, of a conversation whose id is hard to guess, newest first. @throws
   * Problem (invalid-request) for a page token that this service did not issue
   */
  list(
    filter: TaskFilter,
    context: CallContext,
  ): Promise<{ readonly tasks: AgentTask[]; readonly total: number; readonly next: string | undefined }>;
}

/** The cost of the model call that interpreted the text, in the form of a tool's envelope. */
export interface InterpretationCost {
  readonly model?: string;
  readonly cost_usd?: number;
  readonly charged_usd: number;
  readonly cost_source: string;
}

/** The call that a text asks for, or the question to ask first. */
export type Interpretation =
  | {
      readonly kind: 'call';
      readonly tool: string;
      readonly arguments: Readonly<Record<string, unknown>>;
      readonly cost: InterpretationCost;
    }
  | { readonly kind: 'unsure'; readonly question: string; readonly cost: InterpretationCost };

export interface AgentOptions {
  readonly offer: Offer;
  /** Maps text to a tool. Without it (no model router), the agent answers text with a question. @throws Problem */
  readonly interpret?: ((words: string, context: CallContext) => Promise<Interpretation>) | undefined;
  /** @throws Problem */
  readonly call: (call: AgentCall) => Promise<AgentAnswer | AgentJob>;
  /** If absent, no call becomes a long-running task. */
  readonly tasks?: AgentTasks | undefined;
  readonly push?: PushConfigs | undefined;
  /** If absent, a repeated message is handled as a new one. */
  readonly replays?: MessageReplays | undefined;
}

export interface ToolCallsOptions {
  readonly toolRegistry: ToolRegistry;
  readonly toolService: ToolService;
  readonly payerFor: PayerFor;
}

/** Creates the function that reads, pays for and runs a call through the tool service, which /t and /mcp use too. */
export function createToolCalls({ toolRegistry, toolService, payerFor }: ToolCallsOptions): AgentOptions['call'] {
  const readers = new Map(toolRegistry.tools.map((tool) => [tool.name, new ToolReader(tool)]));
  return async ({ tool: name, arguments: given, context, contextId }) => {
    const tool = toolRegistry.get(name);
    const reading = (readers.get(name) ?? new ToolReader(tool)).read('argument', given);
    const payer = await payerFor(context);
    const { wait, raw: fileWanted = false } = reading.options;
    const call = {
      tool,
      reading,
      payer,
      via: 'a2a',
      id: context.id,
      log: context.log,
      delivery: fileWanted ? 'link' : 'json',
      signal: () => context.signal,
      waitMs: 0,
      context: contextId,
    } as const;
    const job = await toolService.resolveJob(call);
    if (job === undefined) return toAgentAnswer(await toolService.call(call), fileWanted);
    const report = await toolService.follow(job, {
      requestId: context.id,
      payer,
      waitMs: 0,
      signal: context.signal,
    });
    return { task: toAgentTask(name, report), waitMs: wait === undefined ? undefined : wait * 1_000 };
  };
}

export interface ToolTasksOptions {
  readonly toolService: ToolService;
  readonly jobs: Pick<Jobs, 'find' | 'list' | 'listByContext' | 'cancel'>;
  readonly payerFor: PayerFor;
}

/**
 * Presents jobs as A2A tasks. Any replica can read them, for the key that started the job or, without a key, for anyone
 * who has its id.
 */
export function createToolTasks({ toolService, jobs, payerFor }: ToolTasksOptions): AgentTasks {
  const now = { waitMs: 0 };
  const follow = async (
    { id, tool }: { readonly id: string; readonly tool: string },
    context: CallContext,
    { waitMs, report }: Pick<Parameters<AgentTasks['follow']>[1], 'waitMs' | 'report'>,
  ): Promise<AgentTask> => {
    const payer = await payerFor(context);
    const name = { id, tool, owner: payer.owner };
    const { id: requestId, signal } = context;
    return toAgentTask(tool, await toolService.follow(name, { requestId, payer, waitMs, signal, report }));
  };
  return {
    async getTask(id, context) {
      const { owner } = await payerFor(context);
      return follow(await jobs.find(id, owner), context, now);
    },
    async follow(task, { context, waitMs, report }) {
      return follow(task, context, { waitMs, ...(report === undefined ? {} : { report }) });
    },
    async cancel(id, context) {
      const { owner } = await payerFor(context);
      const { tool } = await jobs.find(id, owner);
      const canceled = await jobs.cancel({ id, tool, owner });
      return { task: await follow({ id, tool }, context, now), canceled };
    },
    async list({ contextId, isListed, after, size, token }, context) {
      const entries = (await listEntries(jobs, await payerFor(context), contextId)).filter(
        ({ id, context: own = id, at, ...rest }) =>
          (contextId === undefined || own === contextId) && (after === undefined || at >= after) && isListed(rest),
      );
      const since = token === undefined ? 0 : entries.findIndex(({ id }) => id === token) + 1;
      if (token !== undefined && since === 0)
        throw new Problem(invalidRequest, 'pageToken names no task of this list. Ask for the first page again.');
      const page = entries.slice(since, since + size);
      const tasks = await Promise.all(page.map((entry) => follow(entry, context, now)));
      return {
        tasks,
        total: entries.length,
        next: since + size < entries.length ? page.at(-1)?.id : undefined,
      };
    },
  };
}

/**
 * Without a key, the caller is identified by an address that others may share. So only tasks of a conversation whose id
 * is hard to guess are listed, such as the id in our own replies.
 */
async function listEntries(
  jobs: ToolTasksOptions['jobs'],
  { kind, owner }: Payer,
  contextId: string | undefined,
): ReturnType<Jobs['list']> {
  if (kind === 'key') return jobs.list(owner);
  return contextId !== undefined && isUnguessable(contextId) ? jobs.listByContext(contextId) : [];
}

/** Builds the /t envelope, followed by the file. */
export function toAgentAnswer(result: ToolResult, fileWanted: boolean): AgentAnswer {
  const answer = toEnvelope(result, false);
  const artifact = result.run?.artifact;
  if (artifact === undefined) return { answer };
  const inside = fileWanted || isEmbeddable(artifact, result.meta);
  return {
    answer,
    file: {
      name: artifact.fileName,
      mediaType: artifact.mediaType,
      url: result.meta.fileUrl,
      bytes: inside ? artifact.bytes : undefined,
    },
  };
}

/** A job that was not started by an agent becomes a conversation with one task. */
export function toAgentTask(tool: string, { job, result, problem }: JobReport): AgentTask {
  const { id, context = id, input, state, progress, message, createdAt, endedAt } = job;
  return {
    id,
    tool,
    contextId: context,
    input,
    state,
    progress,
    message,
    at: endedAt ?? createdAt,
    answer: result === undefined || state !== 'done' ? undefined : toAgentAnswer(result, false),
    problem,
  };
}
