// A call of a tool and what came of it, as the tool service takes and returns them.
import type { Logger } from '../../../lib/log.ts';
import type { Money } from '../../billing/ledger/money.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Artifact, Progress, Tool } from '../tool.ts';
import type { Via } from './metrics.ts';
import type { Reading } from './reading.ts';
import type { Ran } from './runner.ts';

/** How a job stands. */
export interface JobStanding {
  readonly id: string;
  readonly input: Record<string, unknown>;
  readonly state: 'queued' | 'running' | 'done' | 'failed';
  readonly progress: number;
  readonly message: string;
  readonly createdAt: Date;
  readonly endedAt: Date | undefined;
  readonly cost: Money;
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
  }): Promise<string>;
  wait(
    name: JobName,
    options: { readonly ms: number; readonly signal: AbortSignal; readonly report?: (progress: Progress) => void },
  ): Promise<JobStanding>;
  artifact(name: JobName): Promise<Artifact | undefined>;
}

/** A call that has been read. */
export interface Asked {
  readonly tool: Tool;
  readonly reading: Reading;
  readonly payer: Payer;
  readonly via: Via;
  readonly id: string;
  readonly signal: () => AbortSignal;
  readonly log: Logger;
  readonly fileWanted: boolean;
  /** Whether the file is to be had by a link later. */
  readonly linkWanted: boolean;
  /** How long to wait for a job, where the caller has not said it. */
  readonly waitMs: number;
  readonly report?: (progress: Progress) => void;
}

/** What came of it: a result, or a job that is under way. */
export interface Answered {
  readonly ran: Ran | undefined;
  readonly job: JobStanding | undefined;
  readonly told: Told;
}

export interface Told {
  readonly tool: Tool;
  readonly requestId: string;
  /** Where the bytes of the file are to be had, and until when; undefined where no address leads to them. */
  readonly fileUrl: string | undefined;
  readonly fileUntil?: Date | undefined;
  /** By which it is kept. */
  readonly fileId?: string | undefined;
  /** Where a job is polled. */
  readonly pollUrl?: string;
}
