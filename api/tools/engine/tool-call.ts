// A tool call and its result, as the tool service takes and returns them.
import type { Logger } from '../../../lib/telemetry.ts';
import type { Problem } from '../../../lib/problem.ts';
import type { Money, Payer, Quota } from '../../billing/index.ts';
import type { Artifact, Progress, Tool } from '../tool.ts';
import type { Via } from './metrics.ts';
import type { Reading } from './reading.ts';
import type { ToolRun } from './runner.ts';

/** The status of a job. */
export interface JobStatus {
  readonly id: string;
  readonly input: Record<string, unknown>;
  readonly context: string | undefined;
  readonly state: 'queued' | 'running' | 'done' | 'failed';
  readonly progress: number;
  readonly message: string;
  readonly createdAt: Date;
  readonly endedAt: Date | undefined;
  readonly cost: Money;
  readonly charged: Money;
  readonly pending: number;
  readonly result: Record<string, unknown> | undefined;
  readonly expiresAt: Date;
  readonly artifact:
    | { readonly id: string | undefined; readonly mediaType: string; readonly fileName: string; readonly bytes: number }
    | undefined;
  readonly problem:
    { readonly slug: string; readonly detail: string; readonly members: Readonly<Record<string, unknown>> } | undefined;
}

export interface JobName {
  readonly id: string;
  readonly tool: string;
  readonly owner: string;
}

/** Calls that outlast a request. */
export interface LongCalls {
  begin(call: {
    readonly tool: string;
    readonly input: Record<string, unknown>;
    readonly payer: Payer;
    readonly session: string | undefined;
    readonly context?: string | undefined;
    /** Called where the job is a new one, and not the same call in progress. */
    readonly added?: () => void;
  }): Promise<string>;
  /** Ends a job. @returns whether it was still in progress */
  cancel(name: JobName): Promise<boolean>;
  wait(
    name: JobName,
    options: { readonly ms: number; readonly signal: AbortSignal; readonly report?: (progress: Progress) => void },
  ): Promise<JobStatus>;
  artifact(name: JobName): Promise<Artifact | undefined>;
}

/**
 * How the caller gets the result. `json`: as JSON, with a link to the file if there is one. `file`: as the bytes of the
 * file, which there has to be. `link`: as the file, which there has to be, and with a link to it.
 */
export type Delivery = 'json' | 'file' | 'link';

/** A call whose arguments have been read. */
export interface ToolCall {
  readonly tool: Tool;
  readonly reading: Reading;
  readonly payer: Payer;
  readonly via: Via;
  readonly id: string;
  readonly signal: () => AbortSignal;
  readonly log: Logger;
  readonly delivery: Delivery;
  /** How long to wait for a job, unless the caller sets it. */
  readonly waitMs: number;
  readonly report?: (progress: Progress) => void;
  /**
   * Whether its caller has canceled it or has gone, so that nobody will ask for the job that it began; without this, a job
   * continues after its caller has left.
   */
  readonly isCanceled?: () => boolean;
  /** The conversation that a new job belongs to, as an agent names it. */
  readonly context?: string;
}

/** How long a job is followed, and by whom. */
export interface FollowOptions {
  readonly requestId: string;
  readonly waitMs: number;
  readonly signal: AbortSignal;
  readonly report?: ((progress: Progress) => void) | undefined;
  /** Whose quota the result shows; none without it. */
  readonly payer?: Payer | undefined;
}

/** How a job stands. */
export interface JobReport {
  readonly job: JobStatus;
  /** A finished run, or what there is to say until then; undefined once the job has failed. */
  readonly result: ToolResult | undefined;
  /** What ended a job that has failed. */
  readonly problem: Problem | undefined;
}

/** The result of a call: a finished run, or a job in progress. */
export interface ToolResult {
  readonly run: ToolRun | undefined;
  readonly job: JobStatus | undefined;
  /** The caller's quota, where there is one: after the run, or as it stands while a job is in progress. */
  readonly quota: Quota | undefined;
  readonly meta: ResultMeta;
}

/** What a response says about a result besides the run itself. */
export interface ResultMeta {
  readonly tool: Tool;
  readonly requestId: string;
  /** URL of the file's bytes, and when it expires; undefined where there is none. */
  readonly fileUrl: string | undefined;
  readonly fileExpiresAt?: Date | undefined;
  /** Id of the stored file. */
  readonly fileId?: string | undefined;
  /** What was ignored of the call. */
  readonly warnings?: readonly string[];
  /** Where a job is polled. */
  readonly pollUrl?: string;
}
