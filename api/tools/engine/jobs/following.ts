// Follows jobs until they end: one database query for all who wait, wherever the jobs run.
import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import type { Database } from '../../../billing/index.ts';
import type { Progress } from '../../tool.ts';
import * as statements from './statements.ts';

type Glance = z.output<typeof statements.glance.row>;

interface Follower {
  readonly id: string;
  readonly report: ((progress: Progress) => void) | undefined;
  readonly end: () => void;
  reported: string;
}

export class Following {
  readonly #database: () => Database;
  readonly #everyMs: number;
  readonly #followers = new Set<Follower>();
  #looking = false;

  constructor(database: () => Database, everyMs: number) {
    this.#database = database;
    this.#everyMs = everyMs;
  }

  /** Resolves when the job has ended, when the time is over, or when the signal says so. */
  async until({
    id,
    ms,
    signal,
    report,
  }: {
    readonly id: string;
    readonly ms: number;
    readonly signal: AbortSignal;
    readonly report?: ((progress: Progress) => void) | undefined;
  }): Promise<void> {
    const ended = Promise.withResolvers<undefined>();
    const follower: Follower = {
      id,
      report,
      end: () => {
        ended.resolve(undefined);
      },
      reported: '',
    };
    const waiting = new AbortController();
    this.#followers.add(follower);
    if (!this.#looking) void this.#look();
    try {
      await Promise.race([
        ended.promise,
        sleep(ms, undefined, { signal: AbortSignal.any([signal, waiting.signal]) }).catch(() => undefined),
      ]);
    } finally {
      waiting.abort();
      this.#followers.delete(follower);
    }
  }

  /** Says at once that a job has ended, where it is known. */
  ended(id: string): void {
    for (const follower of this.#followers) if (follower.id === id) follower.end();
  }

  async #look(): Promise<void> {
    this.#looking = true;
    while (this.#followers.size > 0) {
      const ids = [...new Set([...this.#followers].map(({ id }) => id))];
      // A database that is away for a moment only makes the wait longer.
      const seen = await this.#glance(ids).catch(() => []);
      for (const job of seen) this.#notify(job);
      await sleep(this.#everyMs, undefined, { ref: false });
    }
    this.#looking = false;
  }

  async #glance(ids: readonly string[]): Promise<Glance[]> {
    return this.#database().query(statements.glance, [ids]);
  }

  #notify({ id, state, progress, message }: Glance): void {
    for (const follower of this.#followers) {
      if (follower.id !== id) continue;
      const current = `${progress} ${message}`;
      if (current !== follower.reported && message !== '') follower.report?.({ done: progress, message });
      follower.reported = current;
      if (state === 'done' || state === 'failed') follower.end();
    }
  }
}
