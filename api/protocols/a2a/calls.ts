// Runs tools for the A2A agent: calls, long calls as jobs, and jobs as the tasks of agents.
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

/** A call of a tool by an agent. */
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

/** A job, as the task of an agent. */
export interface AgentTask {
  /** That of the job. */
  readonly id: string;
  readonly tool: string;
  readonly contextId: string;
  /** The arguments of the call, as they were read. */
  readonly input: Readonly<Record<string, unknown>>;
  readonly state: 'queued' | 'running' | 'done' | 'failed';
  /** From 0 to 1. */
  readonly progress: number;
  /** Current step. */
  readonly message: string;
  /** When it ended or, until then, when it began. */
  readonly at: Date;
  /** Once it is done. */
  readonly answer: AgentAnswer | undefined;
  /** Once it has failed. */
  readonly problem: Problem | undefined;
}

/** A call of a tool that takes long: its job, and how long the caller wants to wait, where he says so. */
export interface AgentJob {
  readonly task: AgentTask;
  readonly waitMs: number | undefined;
}

export interface TaskFilter {
  readonly contextId: string | undefined;
  readonly states: (task: { readonly state: AgentTask['state']; readonly problem: string | undefined }) => boolean;
  readonly after: Date | undefined;
  readonly size: number;
  /** Of the page before; undefined for the first. */
  readonly token: string | undefined;
}

/** The jobs of callers, each seen by the key that began it or, without a key, by anyone who has its id. */
export interface AgentTasks {
  /** @throws Problem (unknown-job) */
  view(id: string, context: CallContext): Promise<AgentTask>;
  /** Waits for its end, so long, or until the signal of the context. @throws Problem (unknown-job) */
  follow(
    task: AgentTask,
    options: {
      readonly context: CallContext;
      readonly waitMs: number;
      readonly report?: (progress: Progress) => void;
    },
  ): Promise<AgentTask>;
  /** @returns how it stands, and whether it was this that ended it. @throws Problem (unknown-job) */
  cancel(id: string, context: CallContext): Promise<{ task: AgentTask; canceled: boolean }>;
  /** Those of a key or, without one, of a conversation whose id is hard to guess. The newest first. @throws Problem (invalid-request) for a token that is not ours */
  list(
    filter: TaskFilter,
    context: CallContext,
  ): Promise<{ readonly tasks: AgentTask[]; readonly total: number; readonly next: string | undefined }>;
}

/** What the call of a model cost that read the words, as the envelope of a tool has it. */
export interface InterpretationCost {
  readonly model?: string;
  readonly cost_usd?: number;
  readonly charged_usd: number;
  readonly cost_source: string;
}

/** What words ask for, or what has to be known first. */
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
  /** Maps words to a tool; without it, as without a model router, words are asked back. @throws Problem */
  readonly interpret?: ((words: string, context: CallContext) => Promise<Interpretation>) | undefined;
  /** @throws Problem */
  readonly call: (call: AgentCall) => Promise<AgentAnswer | AgentJob>;
  /** Without them, no call becomes a task that lasts. */
  readonly tasks?: AgentTasks | undefined;
  readonly push?: PushConfigs | undefined;
  /** Without them, a message that is sent again is answered as a new one. */
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
 * Presents jobs as the tasks of agents. Any replica reads them, for the key that began one or, without a key, for anyone who
 * has its id.
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
    async view(id, context) {
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
    async list({ contextId, states, after, size, token }, context) {
      const entries = (await listEntries(jobs, await payerFor(context), contextId)).filter(
        ({ id, context: own = id, at, ...rest }) =>
          (contextId === undefined || own === contextId) && (after === undefined || at >= after) && states(rest),
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
 * Without a key, the caller is known by an address that is shared with others, so nothing is listed for it: only what
 * belongs to a conversation whose id nobody guesses, such as the one in our answer.
 */
async function listEntries(
  jobs: ToolTasksOptions['jobs'],
  { kind, owner }: Payer,
  contextId: string | undefined,
): ReturnType<Jobs['list']> {
  if (kind === 'key') return jobs.list(owner);
  return contextId !== undefined && isUnguessable(contextId) ? jobs.listByContext(contextId) : [];
}

/** The envelope of /t, followed by the file. */
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

/** A job that no agent began is a conversation of its own. */
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
