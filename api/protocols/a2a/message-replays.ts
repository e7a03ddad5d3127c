// Messages that are sent again: an agent that did not get the answer sends the same message, with the same id, and gets
// the answer of the first. Only ids that nobody guesses count: many clients number their messages from 1.
import { Message, Task } from '@a2a-js/sdk';
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { type Database, isUnguessable, Replays } from '../../billing/index.ts';
import type { PayerFor } from '../../models/index.ts';
import type { CallContext } from '../../http/index.ts';

/** What is kept of an answer: of a job its id, so that its state is read again. */
const stored = z.object({
  message: z.record(z.string(), z.unknown()).optional(),
  task: z.record(z.string(), z.unknown()).optional(),
  job: z.object({ id: z.string(), waitMs: z.number().optional() }).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  /** A call that was refused or failed cost nothing, and may be sent again. */
  isRefused: z.boolean().optional(),
});
export type StoredReply = z.output<typeof stored>;

/** A message or a task, as it is stored. */
export function toStored(value: Message | Task): StoredReply {
  return 'status' in value
    ? { task: Task.toJSON(value) as Record<string, unknown> }
    : { message: Message.toJSON(value) as Record<string, unknown> };
}

/** The other way around; undefined for a job. */
export function fromStored({ message, task }: StoredReply): Message | Task | undefined {
  if (task !== undefined) return Task.fromJSON(task);
  return message === undefined ? undefined : Message.fromJSON(message);
}

export interface MessageReplaysOptions {
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  readonly database: () => Database;
  readonly payerFor: PayerFor;
}

/** Longer than any call lasts that is no job. */
const leaseMs = 660_000;
const form = /^[\x21-\x7e]{1,255}$/;

export class MessageReplays {
  readonly #options: MessageReplaysOptions;
  readonly #replays: Replays;

  constructor(options: MessageReplaysOptions) {
    this.#options = options;
    this.#replays = new Replays({ name: 'a2a', database: options.database, leaseMs });
  }

  /** Whether a message with this id is answered once only. Not while nothing can be stored. */
  isWanted(id: string): boolean {
    return form.test(id) && isUnguessable(id) && this.#canStore();
  }

  /**
   * @returns the reply, and whether it is a stored one. @throws Problem (idempotency-in-flight, idempotency-mismatch)
   * and what `run` throws
   */
  async once(
    message: Message,
    context: CallContext,
    run: (signal: AbortSignal) => Promise<StoredReply>,
  ): Promise<{ value: StoredReply; replayed: boolean }> {
    return this.#replays.once(context, {
      payer: await this.#options.payerFor(context),
      key: message.messageId,
      body: Message.toJSON(message),
      answer: stored,
      isStored: ({ isRefused }) => isRefused !== true,
      run,
    });
  }

  #canStore(): boolean {
    try {
      this.#options.database();
      return true;
    } catch (error) {
      if (error instanceof Problem) return false;
      throw error;
    }
  }
}
