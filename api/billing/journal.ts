// The journal: what calls cost, in a file from before their answers are sent until the ledger has it, so that a process that is
// killed in between loses nothing. What is in a file twice, or is settled already, is harmless: the first cost stands.
import {
  closeSync,
  constants,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import type { SettleRequest } from './ledger/ledger.ts';
import { formatMoney, parseMoney } from './ledger/money.ts';
import { money } from './ledger/shapes.ts';

/** After so many bytes a new file is begun, and the old one is removed once all of it is settled. */
const maxBytes = 4 * 1024 * 1024;

export interface JournalEntry extends SettleRequest {
  /** Another hold, which is given back once this is settled. */
  readonly frees?: string | undefined;
}

interface JournalFile {
  readonly path: string;
  readonly descriptor: number;
  readonly unsettled: Set<string>;
  bytes: number;
}

/** Files of a process that ended before all of them was settled. */
export interface LeftEntries {
  readonly path: string;
  readonly entries: readonly JournalEntry[];
  /** Lines that cannot be read: the last one where the process ended in the middle of it, whose answer was never sent. */
  readonly broken: number;
}

export class Journal {
  readonly #folder: string;
  readonly #left: Set<LeftEntries>;
  readonly #files = new Map<string, JournalFile>();
  #current: JournalFile;

  /** Opens a folder that no other process uses meanwhile. @throws Error when it cannot be written */
  constructor(folder: string) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#folder = folder;
    const names = readdirSync(folder).filter((name) => name.endsWith('.journal'));
    this.#left = new Set(names.map((name) => readEntries(join(folder, name))));
    this.#current = this.#begin();
  }

  /** What processes before this one have left, and is not settled yet. */
  get left(): readonly LeftEntries[] {
    return [...this.#left];
  }

  /** When this returns, the entry outlives the process. @throws Error when the disk is full */
  write(entry: JournalEntry): void {
    if (this.#current.bytes >= maxBytes) this.#current = this.#begin();
    const file = this.#current;
    // Begun with a line of its own: what a full disk cut off spoils no entry but its own.
    const line = Buffer.from(`\n${JSON.stringify(fieldsOf(entry))}\n`);
    const written = writeSync(file.descriptor, line);
    file.bytes += written;
    if (written < line.length) throw new Error(`the journal took ${written} of ${line.length} bytes`);
    file.unsettled.add(entry.hold);
    this.#files.set(entry.hold, file);
  }

  /** The ledger has it. */
  settled(hold: string): void {
    const file = this.#files.get(hold);
    if (file === undefined) return;
    this.#files.delete(hold);
    file.unsettled.delete(hold);
    if (file.unsettled.size > 0) return;
    if (file !== this.#current) this.#remove(file);
    // Most of the time there is nothing unsettled, so the file stays as small as that.
    else if (file.bytes > 65_536) this.#empty(file);
  }

  /** All that a process has left is settled; where a hold of it is not known, the file is kept for people under another name. */
  forget(left: LeftEntries, keep: boolean): void {
    this.#left.delete(left);
    if (keep) renameSync(left.path, `${left.path}.unknown`);
    else unlinkSync(left.path);
  }

  /** Removes the file if nothing in it is unsettled. */
  close(): void {
    const file = this.#current;
    if (file.unsettled.size === 0) this.#remove(file);
    else closeSync(file.descriptor);
  }

  #begin(): JournalFile {
    const path = join(this.#folder, `${randomUUID()}.journal`);
    const descriptor = openSync(path, constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY, 0o600);
    return { path, descriptor, unsettled: new Set(), bytes: 0 };
  }

  #empty(file: JournalFile): void {
    ftruncateSync(file.descriptor);
    file.bytes = 0;
  }

  #remove({ descriptor, path }: JournalFile): void {
    closeSync(descriptor);
    unlinkSync(path);
  }
}

function fieldsOf({ cost, lines = [], ...rest }: JournalEntry): Record<string, unknown> {
  return {
    ...rest,
    cost: formatMoney(cost),
    lines: lines.map(({ account, amount }) => ({ account, amount: formatMoney(amount) })),
  };
}

const count = z.int().optional();
const name = z.string().optional();

const entryShape = z.object({
  hold: z.uuid(),
  frees: z.uuid().optional(),
  cost: z.string().transform((text) => parseMoney(text)),
  source: z.enum(['billed', 'router_computed', 'router_record', 'tariff', 'estimated']),
  usage: z
    .object({
      kind: z.string(),
      caller: name,
      app: name,
      model: name,
      tool: name,
      tokensIn: count,
      tokensOut: count,
      latencyMs: count,
      priceVersion: name,
      request: name,
    })
    .optional(),
  lines: z.array(
    z.object({
      account: z.object({ kind: z.string(), owner: z.string(), daily: z.boolean() }),
      amount: money,
    }),
  ),
});

function readEntries(path: string): LeftEntries {
  const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean);
  const read = lines.map((line) => entryShape.safeParse(parsed(line)));
  const entries = read.flatMap(({ data }) => (data === undefined ? [] : [data as JournalEntry]));
  return { path, entries, broken: lines.length - entries.length };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    return undefined;
  }
}
