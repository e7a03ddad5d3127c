// What a job is: a call of a tool that outlasts a request, as its caller sees it and as its work does.
import type { Money, Payer } from '../../../billing/index.ts';
import type { Artifact, Progress } from '../../tool.ts';

/** A call that is to become a job. */
export interface JobCall {
  readonly tool: string;
  /** Validated by the tool's input schema. Kept until the job expires. */
  readonly input: Record<string, unknown>;
  /** Whose job it is. A key of the caller's own stays in this process: see Jobs. */
  readonly payer: Payer;
  readonly session: string | undefined;
  /** The conversation that it belongs to, as an agent names it. */
  readonly context?: string | undefined;
  /** Called where the job is a new one, and not the same call in progress. */
  readonly added?: () => void;
}

export type JobState = 'queued' | 'running' | 'done' | 'failed';

/** The status of a job. */
export interface JobView {
  readonly id: string;
  readonly tool: string;
  /** As it was sent. */
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
  /** When result and file are forgotten. */
  readonly expiresAt: Date;
  /** What it has cost in all attempts so far, as the ledger has it. */
  readonly cost: Money;
  /** What its caller was charged for it by us. */
  readonly charged: Money;
  /** Calls whose cost is not known yet, and not in the sum. */
  readonly pending: number;
  /** Once it is done. */
  readonly result: Record<string, unknown> | undefined;
  readonly artifact:
    | { readonly id: string | undefined; readonly mediaType: string; readonly fileName: string; readonly bytes: number }
    | undefined;
  /** Once it has failed: a problem as RFC 9457 has it, without `type` in full, `instance` and `request_id`. */
  readonly problem: JobProblem | undefined;
}

export interface JobProblem {
  /** Slug of the problem's type. */
  readonly slug: string;
  readonly detail: string;
  readonly members: Readonly<Record<string, unknown>>;
}

/** A job in the list of its owner's jobs. */
export interface JobEntry {
  readonly id: string;
  readonly tool: string;
  readonly context: string | undefined;
  readonly state: JobState;
  /** When it ended or, until then, when it began. */
  readonly at: Date;
  /** Slug of the problem that ended it. */
  readonly problem: string | undefined;
}

/** One attempt at a job, as its work sees it. */
export interface JobRun {
  readonly id: string;
  readonly tool: string;
  readonly input: Record<string, unknown>;
  readonly payer: Payer;
  readonly session: string | undefined;
  /** 1 for the first. */
  readonly attempt: number;
  /** Aborted when another process has taken the job over, or this one ends. */
  readonly signal: AbortSignal;
  readonly report: (progress: Progress) => void;
  /**
   * Called with each hold before it is made: what it costs is part of what the job costs, even if this process dies in
   * the middle. @throws Error when the job is no longer ours
   */
  readonly announce: (hold: string) => Promise<void>;
}

/** Does the work. Refuses by throwing a Problem; tool-busy and too-many-calls put the job back into the queue. */
export type JobWork = (
  run: JobRun,
) => Promise<{ readonly result: Record<string, unknown>; readonly artifact?: Artifact | undefined }>;
