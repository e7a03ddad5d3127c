// Replays replies to repeated messages: an agent that missed a reply sends the same message with the same id, and gets
// the first reply. Only ids that are hard to guess qualify, because many clients number their messages from 1.
import { Message, Task } from '@a2a-js/sdk';
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { type Database, isUnguessable, Replays } from '../../billing/index.ts';
import type { PayerFor } from '../../models/index.ts';
import type { CallContext } from '../../http/index.ts';

/** The stored reply. For a job, only its id is stored, so that its state is read again. */
const stored = z.object({
  message: z.record(z.string(), z.unknown()).optional(),
  task: z.record(z.string(), z.unknown()).optional(),
  job: z.object({ id: z.string(), waitMs: z.number().optional() }).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  /** Set if the call was rejected or failed. Such a call cost nothing, and its message may be sent again. */
  isRefused: z.boolean().optional(),
});
export type StoredReply = z.output<typeof stored>;

/** Converts a message or a task to its stored form. */
export function toStored(value: Message | Task): StoredReply {
  return 'status' in value
    ? { task: Task.toJSON(value) as Record<string, unknown> }
    : { message: Message.toJSON(value) as Record<string, unknown> };
}

/** Restores a message or a task; undefined for a job. */
export function fromStored({ message, task }: StoredReply): Message | Task | undefined {
  if (task !== undefined) return Task.fromJSON(task);
  return message === undefined ? undefined : Message.fromJSON(message);
}

export interface MessageReplaysOptions {
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) if there is no database */
  readonly database: () => Database;
  readonly payerFor: PayerFor;
}

/** Longer than any call that is not a job can take. */
const leaseMs = 660_000;
const form = /^[\x21-\x7e]{1,255}$/;

export class MessageReplays {
  readonly #options: MessageReplaysOptions;
  readonly #replays: Replays;

  constructor(options: MessageReplaysOptions) {
    this.#options = options;
    this.#replays = new Replays({ name: 'a2a', database: options.database, leaseMs });
  }

  /** Returns whether the reply to a message with this id is stored for replay; false while no database is available. */
  isWanted(id: string): boolean {
    return form.test(id) && isUnguessable(id) && this.#canStore();
  }

  /**
   * @returns the reply, and whether it is a stored one. @throws Problem (idempotency-in-flight, idempotency-mismatch)
   * and anything that `run` throws
   */
  async replyOnce(
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
