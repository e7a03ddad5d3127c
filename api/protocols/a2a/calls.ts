// The interface between the A2A agent and the tools.
import type { Problem } from '../../../lib/problem.ts';
import type { CallContext } from '../../http/index.ts';
import type { Offer } from '../../apps/index.ts';
import type { Progress } from '../../tools/index.ts';
import type { MessageReplays } from './message-replays.ts';
import type { PushConfigs } from './push/push-configs.ts';

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
