// Brings the signed record of the ledger up to date: links what waits, seals days that are over, signs where it has got to.
import { type Database, runAsTask, type Transaction } from '../../../billing/index.ts';
import { dayAfter } from '../format/chain.ts';
import { dayDigest, type Checkpoint, type LedgerDay, type OpenDay } from '../format/documents.ts';
import { linkWaiting } from './link.ts';
import { sealDay } from './seal.ts';
import type { Signer } from './signer.ts';
import * as statements from './statements.ts';

export interface LogOptions {
  readonly database: Pick<Database, 'transaction'>;
  readonly signer: Signer;
  /** Maximum number of transactions linked at once. */
  readonly batch?: number;
  /** For how long after its end a day stays open for postings that commit late. */
  readonly marginMs?: number;
  /** For tests: instead of the clock of the database. */
  readonly now?: (() => Date) | undefined;
}

export const marginMs = 300_000;
/** Days sealed in one transaction, where many are behind. */
const maxDays = 100;

export interface LogStep {
  readonly linked: number;
  readonly sealed: number;
  /** Whether more is left to do at once. */
  readonly more: boolean;
}

/**
 * One step, in one database transaction: either all of it is kept or nothing, so a process may end at any time. Replicas
 * take turns. No lock is taken that a posting waits for.
 * @throws Error when the record in the database is not the one that was signed last
 */
export async function advanceLog(options: LogOptions): Promise<LogStep> {
  return runAsTask(() =>
    options.database.transaction(async (transaction) => {
      const [lock] = await transaction.query(statements.lock, []);
      return lock?.locked === true ? advance(transaction, options) : { linked: 0, sealed: 0, more: false };
    }),
  );
}

async function advance(transaction: Transaction, options: LogOptions): Promise<LogStep> {
  const { signer, batch = 5_000 } = options;
  const state = await readState(transaction, signer);
  const clock = await readClock(transaction, options);
  const linked = await linkWaiting(transaction, state, clock.today, batch);
  const more = linked === batch;
  // Whatever was committed when the batch was read is linked: what comes for a sealed day now goes to a later one.
  const sealed = more ? 0 : await sealDays(transaction, state, clock, signer);
  if (linked + sealed > 0) await signCheckpoint(transaction, state, clock.now, signer);
  return { linked, sealed, more: more || sealed === maxDays };
}

interface Clock {
  readonly now: string;
  readonly today: string;
  /** The last day of which no posting is waited for any more. */
  readonly settled: string;
}

async function readClock(transaction: Transaction, { now, marginMs: margin = marginMs }: LogOptions): Promise<Clock> {
  const [clock] = await transaction.query(statements.clock, [now?.() ?? null, margin]);
  if (clock === undefined) throw new Error('the database has no clock');
  return clock;
}

/** Where the record has got to; moved on by each part of a step. */
export interface LogState {
  newest: LedgerDay | undefined;
  /** By day, in order. */
  readonly open: Map<string, OpenDay>;
}

/** Reads it, and holds it against what was signed last: a record that was changed since is not signed again. */
async function readState(transaction: Transaction, signer: Signer): Promise<LogState> {
  const [signed] = await transaction.query(statements.readCheckpoint, []);
  const [newest] = await transaction.query(statements.newestDay, []);
  const heads = await transaction.query(statements.heads, [newest?.document.day ?? null]);
  if (signed !== undefined) await signer.check('the checkpoint', signed.document);
  const expected: Pick<Checkpoint, 'sealed' | 'open'> = signed?.document ?? { sealed: null, open: [] };
  const sealed = newest === undefined ? null : { day: newest.document.day, digest: dayDigest(newest.document) };
  if (!same([sealed, heads], [expected.sealed, expected.open]))
    throw new Error(
      'links and days in the database are not those that were signed last: somebody changed them. Run npm run verify -- --database',
    );
  return { newest: newest?.document, open: new Map(heads.map((head) => [head.day, head])) };
}

function same(
  ours: [Checkpoint['sealed'], readonly OpenDay[]],
  signed: [Checkpoint['sealed'], readonly OpenDay[]],
): boolean {
  const text = ([sealed, open]: typeof ours): string =>
    JSON.stringify([sealed?.day, sealed?.digest, open.map(({ day, count, head }) => [day, count, head])]);
  return text(ours) === text(signed);
}

async function sealDays(transaction: Transaction, state: LogState, clock: Clock, signer: Signer): Promise<number> {
  for (let sealed = 0; ; sealed += 1) {
    const day = state.newest === undefined ? [...state.open.keys()].sort()[0] : dayAfter(state.newest.day);
    if (day === undefined || day > clock.settled || sealed === maxDays) return sealed;
    state.newest = await sealDay(transaction, { day, state, at: clock.now, signer });
    state.open.delete(day);
  }
}

async function signCheckpoint(transaction: Transaction, state: LogState, at: string, signer: Signer): Promise<void> {
  const { newest, open } = state;
  const document = await signer.sign({
    type: 'ledger-checkpoint',
    issuer: signer.issuer,
    made_at: at,
    sealed: newest === undefined ? null : { day: newest.day, digest: dayDigest(newest) },
    open: [...open.values()].sort((a, b) => (a.day < b.day ? -1 : 1)),
  });
  await transaction.query(statements.writeCheckpoint, [JSON.stringify(document)]);
}
