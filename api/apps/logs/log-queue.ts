// Lines of one app between the readers of its containers and the database: limits their rate and their memory.
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogCursor, ReadLine } from './container-reader.ts';
import type { LogPosition, StreamName } from './log-store.ts';

export interface QueueLimits {
  /** Bytes that an app may print in a second, on average, and at most in one burst. */
  readonly bytesPerSecond: number;
  /** Bytes of an app that may wait to be stored. */
  readonly waitingBytes: number;
  /** Bytes of all apps that may wait to be stored. */
  readonly allWaitingBytes: number;
}

const defaultLimits: QueueLimits = {
  bytesPerSecond: 1024 * 1024,
  waitingBytes: 2 * 1024 * 1024,
  allWaitingBytes: 64 * 1024 * 1024,
};

/** A container whose lines are queued. */
export interface QueuedStream extends StreamName {
  cursor: LogCursor;
  /** That of its position in the database; 0 if it has none. */
  version: number;
}

export interface QueuedLine extends ReadLine {
  readonly stream: QueuedStream;
}

export interface QueuedBatch {
  readonly lines: readonly QueuedLine[];
  readonly streams: readonly { readonly stream: QueuedStream; readonly position: LogPosition }[];
  /** Lines that were dropped since the batch before. One of `lines` says so. */
  readonly dropped: number;
}

/** Estimated bytes of a line in memory in addition to its text. */
const lineBytes = 64;

/** The memory that the queues of all apps share. */
export class SharedRoom {
  readonly #limit: number;
  #taken = 0;

  constructor({ allWaitingBytes = defaultLimits.allWaitingBytes }: Partial<QueueLimits> = {}) {
    this.#limit = allWaitingBytes;
  }

  get isFull(): boolean {
    return this.#taken > this.#limit;
  }

  add(bytes: number): void {
    this.#taken += bytes;
  }
}

export class LogQueue {
  readonly #room: SharedRoom;
  readonly #limits: QueueLimits;
  #lines: QueuedLine[] = [];
  #bytes = 0;
  /** Lines that were dropped, and the time of the last one, by stream. */
  #dropped = new Map<QueuedStream, { count: number; at: string }>();
  /** Streams whose position has moved. */
  #moved = new Set<QueuedStream>();
  readonly #streams = new Set<QueuedStream>();
  /** What could not be stored yet. */
  #batch: (QueuedBatch & { readonly bytes: number }) | undefined;
  #emptied = Promise.withResolvers<undefined>();
  /** Bytes that may be taken immediately. */
  #tokens: number;
  #filledAt = performance.now();
  #isClosed = false;

  constructor(room: SharedRoom, limits: Partial<QueueLimits> = {}) {
    this.#room = room;
    this.#limits = { ...defaultLimits, ...limits };
    this.#tokens = this.#limits.bytesPerSecond;
  }

  /** Whether there is something to store. */
  get isWaiting(): boolean {
    return this.#batch !== undefined || this.#moved.size > 0;
  }

  has(stream: QueuedStream): boolean {
    return this.#streams.has(stream);
  }

  /**
   * Takes a line. Resolves when the next one may be read.
   *
   * Beyond the rate, a line that was printed just now is dropped: otherwise the reader would fall behind the app for good, and
   * the lines would be lost without notice once the node rotates the file. Lines that wait in the file are read more slowly.
   */
  push(stream: QueuedStream, { at, text }: ReadLine, isLive: boolean): Promise<void> | undefined {
    if (this.#isClosed) return undefined;
    this.#streams.add(stream);
    this.#moved.add(stream);
    const bytes = text.length + lineBytes;
    this.#fill();
    if (isLive && this.#tokens < bytes) {
      this.#dropped.set(stream, { count: (this.#dropped.get(stream)?.count ?? 0) + 1, at });
      return undefined;
    }
    this.#tokens -= bytes;
    this.#lines.push({ stream, at, text });
    this.#bytes += bytes;
    this.#room.add(bytes);
    if (this.#bytes > this.#limits.waitingBytes || this.#room.isFull)
      return this.#emptied.promise.then(() => undefined);
    if (this.#tokens < 0) return sleep((-this.#tokens / this.#limits.bytesPerSecond) * 1_000);
    return undefined;
  }

  /** Stores what was taken. What `store` rejects is stored again at the next call, unchanged. */
  async flush(store: (batch: QueuedBatch) => Promise<void>): Promise<void> {
    const batch = (this.#batch ??= this.#takeBatch());
    await store(batch);
    // It may have been closed in the meantime, which gives the memory back.
    if (this.#batch !== batch) return;
    this.#room.add(-batch.bytes);
    this.#batch = undefined;
    this.#signalEmptied();
  }

  /** Drops what was not stored, and takes no more. */
  close(): void {
    this.#isClosed = true;
    this.#room.add(-(this.#bytes + (this.#batch?.bytes ?? 0)));
    this.#batch = undefined;
    [this.#lines, this.#bytes] = [[], 0];
    this.#moved.clear();
    this.#signalEmptied();
  }

  #takeBatch(): QueuedBatch & { readonly bytes: number } {
    const notes = [...this.#dropped].map(([stream, { count, at }]) => ({
      stream,
      at,
      text: `[moorage] ${count} ${count === 1 ? 'line is' : 'lines are'} missing here: the app printed more than ${this.#limits.bytesPerSecond} bytes a second.`,
    }));
    const batch = {
      lines: [...this.#lines, ...notes],
      streams: [...this.#moved].flatMap((stream) => {
        const { position } = stream.cursor;
        return position === undefined ? [] : { stream, position };
      }),
      dropped: [...this.#dropped.values()].reduce((sum, { count }) => sum + count, 0),
      bytes: this.#bytes,
    };
    [this.#lines, this.#bytes] = [[], 0];
    this.#dropped = new Map();
    this.#moved = new Set();
    return batch;
  }

  #fill(): void {
    const { bytesPerSecond } = this.#limits;
    const now = performance.now();
    this.#tokens = Math.min(bytesPerSecond, this.#tokens + ((now - this.#filledAt) / 1_000) * bytesPerSecond);
    this.#filledAt = now;
  }

  #signalEmptied(): void {
    this.#emptied.resolve(undefined);
    this.#emptied = Promise.withResolvers<undefined>();
  }
}
