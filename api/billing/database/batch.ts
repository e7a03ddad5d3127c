// Gathers calls that arrive while a statement is in progress, and sends them together in the next one.
import { DatabaseUnavailable } from './failures.ts';

interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export interface BatchOptions {
  /** Maximum number of items in one statement. */
  readonly size: number;
  /** Maximum number of statements in progress at once. */
  readonly concurrency: number;
}

/**
 * An idle batch sends at once, so a lone call waits for nothing; a busy one shares a round trip and a commit between
 * all that wait. Answers come in the order of the items. When a shared statement fails, its items are sent one by one,
 * so that one bad item spoils no other: `send` must allow being sent twice. When the database is gone, all fail immediately,
 * those that wait for the next statement too.
 */
export class Batch<Item, Answer> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #options: BatchOptions;
  readonly #waiting: Waiting<Item, Answer>[] = [];
  #flying = 0;

  constructor(send: (items: readonly Item[]) => Promise<readonly Answer[]>, options: BatchOptions) {
    this.#send = send;
    this.#options = options;
  }

  run(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#start();
    });
  }

  #start(): void {
    while (this.#flying < this.#options.concurrency && this.#waiting.length > 0) {
      this.#flying += 1;
      const group = this.#waiting.splice(0, this.#options.size);
      void this.#fly(group).finally(() => {
        this.#flying -= 1;
        this.#start();
      });
    }
  }

  async #fly(group: readonly Waiting<Item, Answer>[]): Promise<void> {
    try {
      const answers = await this.#send(group.map(({ item }) => item));
      group.forEach((waiting, index) => {
        deliver(waiting, answers[index]);
      });
    } catch (error) {
      const isGone = error instanceof DatabaseUnavailable;
      // Those that wait for their turn fail too: they have waited for this one, and would wait as long again.
      const failed = isGone ? [...group, ...this.#waiting.splice(0)] : group;
      if (group.length === 1 || isGone)
        failed.forEach(({ reject }) => {
          reject(error);
        });
      else for (const waiting of group) await this.#fly([waiting]);
    }
  }
}

function deliver<Item, Answer>(waiting: Waiting<Item, Answer>, answer: Answer | undefined): void {
  if (answer === undefined) waiting.reject(new Error('the batch has no answer for this item'));
  else waiting.resolve(answer);
}
