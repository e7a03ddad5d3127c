// Ships the access log: reads, sends, moves the position and frees the disk, in this order and one batch at a time.
import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { Logger } from '../../../../lib/telemetry.ts';
import { assignRuns, type GatewayRecord, type NumberedRequest, readRecord, type RunBatch } from '../gateway-record.ts';
import type { Attributes } from '../log-receiver.ts';
import {
  findLog,
  type LogFile,
  type Mark,
  type Position,
  readInode,
  readLines,
  readPosition,
  writePosition,
} from './log-file.ts';
import type { Send } from './sender.ts';

export interface ShipOptions {
  readonly log: string;
  readonly limitBytes: number;
  readonly send: Send;
  readonly metrics: ShipperMetrics;
  readonly logger: Logger;
  /** Ends it immediately; otherwise it ends once `draining` is aborted and everything is sent. */
  readonly signal: AbortSignal;
  readonly draining: AbortSignal;
  /** Poll interval while the log does not grow. */
  readonly pollMs?: number;
}

const chunkBytes = 2 * 1_048_576;
const batchLines = 2_000;
/**
 * Wait after the last lines of the log were sent, in polls. Sent as they come, records would cost a request and a transaction
 * for each handful.
 */
const restPolls = 5;
/** The gateway may write into a file for a while after it was renamed. */
const quietPolls = 25;
const freeEveryBytes = 8 * 1_048_576;

/** Ships until it is to end. @throws the reason of the signal, or an error of the file system */
export async function ship(options: ShipOptions): Promise<void> {
  const shipper = new Shipper(options, await readPosition(`${options.log}.position`));
  await shipper.run();
}

class Shipper {
  readonly #options: ShipOptions;
  #position: Position;
  #lines = batchLines;
  #freedAt = 0;
  #canFree = true;

  constructor(options: ShipOptions, position: Position) {
    this.#options = options;
    this.#position = position;
  }

  async run(): Promise<void> {
    const { log, signal, draining } = this.#options;
    for (;;) {
      signal.throwIfAborted();
      const file = await findLog(log, this.#position.inode).catch(ignoreMissing);
      if (file === undefined) {
        if (draining.aborted) return;
        await this.#pause();
        continue;
      }
      let isRotated: boolean;
      try {
        isRotated = await this.#follow(file);
      } finally {
        await file.close();
      }
      if (!isRotated) return;
      if (file.path !== log) await file.remove();
    }
  }

  /** Sends the contents of a file. @returns whether the log was rotated */
  async #follow(file: LogFile): Promise<boolean> {
    const { log, signal, draining } = this.#options;
    await this.#begin(file);
    for (let empty = 0; ;) {
      signal.throwIfAborted();
      const isRotated = (await readInode(log)) !== file.inode;
      const outcome = await this.#advance(file);
      if (outcome === 'batch') {
        empty = 0;
        continue;
      }
      if (outcome === 'rest') empty = 0;
      else if (draining.aborted) return false;
      else empty += isRotated ? 1 : 0;
      if (empty > quietPolls) return true;
      await this.#pause(outcome === 'rest' ? restPolls : 1);
    }
  }

  async #begin(file: LogFile): Promise<void> {
    this.#freedAt = 0;
    if (this.#position.inode !== file.inode) await this.#move({ inode: file.inode, offset: 0 });
  }

  /** Sends the next lines. @returns whether there were none, all that there were, or a batch of more */
  async #advance(file: LogFile): Promise<'none' | 'rest' | 'batch'> {
    const { metrics, logger } = this.#options;
    await this.#restartIfTruncated(file);
    await this.#dropOldest(file);
    const bytes = await file.read(this.#position.offset, chunkBytes);
    const chunk = readLines(bytes, this.#lines);
    if (chunk.bytes === 0 && bytes.length === chunkBytes) {
      logger.error({ bytes: bytes.length }, 'a line of the log is too long to be a record, skipping it');
      metrics.unreadable.inc();
      await this.#move({ offset: this.#position.offset + bytes.length });
      return 'batch';
    }
    // Dropped records are reported even if no line follows them.
    if (chunk.bytes === 0 && this.#position.dropped.length === 0) return 'none';
    const isRest = bytes.length < chunkBytes && chunk.records.length + chunk.unreadable < this.#lines;
    if (!(await this.#send(file, chunk.records))) return 'batch';
    metrics.shipped.inc(chunk.records.length);
    metrics.unreadable.inc(chunk.unreadable);
    await this.#move({ offset: this.#position.offset + chunk.bytes, dropped: [] });
    await this.#free(file);
    return isRest ? 'rest' : 'batch';
  }

  /** Records that were sent before keep their ids, so sending them again changes nothing. */
  async #restartIfTruncated(file: LogFile): Promise<void> {
    const { offset } = this.#position;
    if ((await file.size()) >= offset) return;
    this.#options.logger.error(
      { offset },
      'the log is shorter than the part already sent, reading it again from its start',
    );
    this.#freedAt = 0;
    await this.#move({ offset: 0 });
  }

  /** @returns false if the batch must be read again: smaller, or without records that were dropped since */
  async #send(file: LogFile, records: readonly Attributes[]): Promise<boolean> {
    const { send, signal, logger } = this.#options;
    const resource = { 'service.name': 'gateway', 'service.instance.id': this.#position.gateway };
    const all = [...this.#position.dropped.map(toLossRecord), ...records];
    // The log grows while the receiver is away, so the limit has to hold between retries too.
    const isWanted = (): Promise<boolean> => this.#isWithinLimit(file);
    const sent = all.length === 0 ? 'acknowledged' : await send({ resource, records: all }, { signal, isWanted });
    if (sent === 'abandoned') return false;
    if (sent === 'too large' && this.#lines === 1) {
      logger.error('a record is too large for the receiver, skipping it');
      return true;
    }
    this.#lines = sent === 'too large' ? Math.max(1, Math.floor(this.#lines / 2)) : batchLines;
    return sent === 'acknowledged';
  }

  async #isWithinLimit(file: LogFile): Promise<boolean> {
    const waiting = (await file.size()) - this.#position.offset;
    this.#options.metrics.waiting.set(waiting);
    return waiting <= this.#options.limitBytes;
  }

  /** Drops the oldest records where too many wait, and remembers which, so that the receiver learns of it. */
  async #dropOldest(file: LogFile): Promise<void> {
    const { limitBytes, metrics, logger } = this.#options;
    while (!(await this.#isWithinLimit(file))) {
      const bytes = await file.read(this.#position.offset, chunkBytes);
      const chunk = readLines(bytes, batchLines);
      const records = chunk.records.map(readRecord).filter((record): record is GatewayRecord => !('wrong' in record));
      const runs = assignRuns<NumberedRequest>([], [...this.#position.dropped.map(toRequest), ...records]);
      metrics.dropped.inc(chunk.records.length);
      logger.error(
        { records: chunk.records.length, limit: limitBytes },
        'too many records are waiting, dropping the oldest',
      );
      await this.#move({
        offset: this.#position.offset + (chunk.bytes === 0 ? bytes.length : chunk.bytes),
        dropped: runs.flatMap(toMarks),
      });
      await this.#free(file);
    }
  }

  async #free(file: LogFile): Promise<void> {
    const { offset } = this.#position;
    if (!this.#canFree || offset - this.#freedAt < freeEveryBytes) return;
    this.#freedAt = offset;
    try {
      await file.free(offset);
    } catch (error) {
      this.#canFree = false;
      this.#options.logger.error(
        { err: error },
        'the file system cannot free part of a file: rotate the log, or move it to ext4, xfs, btrfs or tmpfs',
      );
    }
  }

  async #move(to: Partial<Position>): Promise<void> {
    this.#position = { ...this.#position, ...to };
    await writePosition(`${this.#options.log}.position`, this.#position);
  }

  async #pause(polls = 1): Promise<void> {
    const { pollMs = 200, signal, draining } = this.#options;
    const either = AbortSignal.any([signal, draining]);
    if (draining.aborted) return;
    await sleep(polls * pollMs, undefined, { signal: either }).catch(() => undefined);
  }
}

function toRequest({ counter, startNs, endNs }: Mark): NumberedRequest {
  return { counter: BigInt(counter), startNs: BigInt(startNs), endNs: BigInt(endNs), isLost: true };
}

/**
 * The first and the newest of the dropped records of a run. Without the first, the receiver could not see that a run began: a
 * number above the highest of the previous run would continue that run.
 */
function toMarks({ records: [first], after }: RunBatch<NumberedRequest>): Mark[] {
  const newest = { counter: after.newest, startNs: after.newestStartNs, endNs: after.lastEndNs };
  const ends = first === undefined || first.counter === after.newest ? [newest] : [first, newest];
  return ends.map(({ counter, startNs, endNs }) => ({
    counter: counter.toString(),
    startNs: startNs.toString(),
    endNs: endNs.toString(),
  }));
}

/** Says that this number was given out, and that it and those before it that did not come are lost. */
function toLossRecord({ counter, startNs, endNs }: Mark): Attributes {
  return {
    RequestCount: BigInt(counter),
    StartUTC: BigInt(startNs),
    Duration: BigInt(endNs) - BigInt(startNs),
    DownstreamStatus: 0,
    'moorage.lost': 'true',
  };
}

function ignoreMissing(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
  throw error;
}

export interface ShipperMetrics {
  readonly shipped: Counter;
  readonly dropped: Counter;
  readonly unreadable: Counter;
  readonly waiting: Gauge;
}

export function createShipperMetrics(registry: Registry): ShipperMetrics {
  const registers = [registry];
  return {
    shipped: new Counter({
      name: 'moorage_shipper_records_total',
      help: 'Records of the access log that the receiver has acknowledged.',
      registers,
    }),
    dropped: new Counter({
      name: 'moorage_shipper_dropped_total',
      help: 'Records that were dropped because too many waited; the receiver reports them as lost.',
      registers,
    }),
    unreadable: new Counter({
      name: 'moorage_shipper_unreadable_total',
      help: 'Lines of the access log that are no records.',
      registers,
    }),
    waiting: new Gauge({
      name: 'moorage_shipper_waiting_bytes',
      help: 'Bytes of the access log that are not sent yet.',
      registers,
    }),
  };
}
