// Keeps the signed record of the ledger up to date: links new transactions, seals days that ended, signs a checkpoint.
import type { KeyObject } from 'node:crypto';
import { type Database, runAsTask, type Transaction } from '../../billing/index.ts';
import { type Checkpoint, computeDayDigest, type LedgerDay, type OpenDay } from './format/documents.ts';
import {
  computeRoot,
  extendChain,
  getNextDay,
  hashLeafText,
  startChain,
  toCanonicalJson,
  TreeBuilder,
} from './format/hashes.ts';
import { findSignatureFault, type KeySet, signDocument, type Signed } from './format/signature.ts';
import * as statements from './ledger-log-queries.ts';
import { addDay, addLinks, hashes, waiting } from './ledger-log-queries.ts';

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
  const linked = await linkWaitingTransactions(transaction, state, clock.today, batch);
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

/** The state of the record; each part of a step advances it. */
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
  const sealed = newest === undefined ? null : { day: newest.document.day, digest: computeDayDigest(newest.document) };
  if (!isSame([sealed, heads], [expected.sealed, expected.open]))
    throw new Error(
      'links and days in the database are not those that were signed last: somebody changed them. Run npm run verify -- --database',
    );
  return { newest: newest?.document, open: new Map(heads.map((head) => [head.day, head])) };
}

function isSame(
  ours: [Checkpoint['sealed'], readonly OpenDay[]],
  signed: [Checkpoint['sealed'], readonly OpenDay[]],
): boolean {
  const formatState = ([sealed, open]: typeof ours): string =>
    JSON.stringify([sealed?.day, sealed?.digest, open.map(({ day, count, head }) => [day, count, head])]);
  return formatState(ours) === formatState(signed);
}

async function sealDays(transaction: Transaction, state: LogState, clock: Clock, signer: Signer): Promise<number> {
  for (let sealed = 0; ; sealed += 1) {
    const day = state.newest === undefined ? [...state.open.keys()].sort()[0] : getNextDay(state.newest.day);
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
    sealed: newest === undefined ? null : { day: newest.day, digest: computeDayDigest(newest) },
    open: [...open.values()].sort((a, b) => (a.day < b.day ? -1 : 1)),
  });
  await transaction.query(statements.writeCheckpoint, [JSON.stringify(document)]);
}

interface Link {
  readonly id: string;
  readonly day: string;
  readonly position: number;
  readonly leaf: string;
  readonly hash: string;
  readonly chain: string;
}

/** Links up to `limit` waiting transactions. @returns how many */
export async function linkWaitingTransactions(
  transaction: Transaction,
  state: LogState,
  today: string,
  limit: number,
): Promise<number> {
  const rows = await transaction.query(waiting, [limit]);
  if (rows.length === 0) return 0;
  const links = rows.map(({ leaf, day }): Link => {
    const into = chooseDay(day, state.newest?.day, today);
    const before = state.open.get(into) ?? { count: 0, head: startChain(into).toString('hex') };
    const text = toCanonicalJson(leaf);
    const hash = hashLeafText(text);
    const chain = extendChain(Buffer.from(before.head, 'hex'), hash).toString('hex');
    state.open.set(into, { day: into, count: before.count + 1, head: chain });
    return { id: leaf.id, day: into, position: before.count, leaf: text, hash: hash.toString('hex'), chain };
  });
  const readColumn = (of: (link: Link) => unknown): unknown[] => links.map(of);
  await transaction.query(addLinks, [
    readColumn(({ id }) => id),
    readColumn(({ day }) => day),
    readColumn(({ position }) => position),
    readColumn(({ leaf }) => leaf),
    readColumn(({ hash }) => hash),
    readColumn(({ chain }) => chain),
  ]);
  return links.length;
}

/** The day of its own time; today where that day is sealed, or is still to come. Never a sealed one, whatever the clock says. */
function chooseDay(ownDay: string | null, sealed: string | undefined, today: string): string {
  const isOpen = (day: string): boolean => sealed === undefined || day > sealed;
  if (ownDay !== null && ownDay <= today && isOpen(ownDay)) return ownDay;
  return isOpen(today) || sealed === undefined ? today : getNextDay(sealed);
}

interface Sealing {
  readonly day: string;
  readonly state: LogState;
  readonly at: string;
  readonly signer: Signer;
}

/** Hashes read at once: so many are hashed in some 20 ms, and requests are answered in between. */
const step = 5_000;

/** @throws Error when the links of the day are not those of its chain */
export async function sealDay(transaction: Transaction, { day, state, at, signer }: Sealing): Promise<LedgerDay> {
  const head = state.open.get(day)?.head ?? startChain(day).toString('hex');
  const { count, chain, tiles } = await readLinks(transaction, day);
  if (chain.toString('hex') !== head)
    throw new Error(
      `${day} cannot be sealed: its links are not those of its chain, so somebody changed them. Run npm run verify -- --database`,
    );
  const document = await signer.sign({
    type: 'ledger-day' as const,
    issuer: signer.issuer,
    day,
    sealed_at: at,
    count,
    head,
    root: computeRoot(tiles).toString('hex'),
    previous: state.newest === undefined ? null : computeDayDigest(state.newest),
  });
  await transaction.query(addDay, [day, JSON.stringify(document), Buffer.concat(tiles).toString('hex')]);
  return document;
}

async function readLinks(
  transaction: Transaction,
  day: string,
): Promise<{ count: number; chain: Buffer; tiles: Buffer[] }> {
  const tree = new TreeBuilder();
  let chain = startChain(day);
  for (let count = 0; ;) {
    const rows = await transaction.query(hashes, [day, count, step]);
    for (const { hash } of rows) {
      tree.add(hash);
      chain = extendChain(chain, hash);
    }
    count += rows.length;
    if (rows.length < step) return { count, chain, tiles: tree.computeTiles() };
  }
}

export class Signer {
  readonly issuer: string;
  readonly #key: KeyObject;
  readonly #keys: KeySet;

  /** `issuer`: address of the installation, which stands in each document. */
  constructor(issuer: string, key: KeyObject, keys: KeySet) {
    this.issuer = issuer;
    this.#key = key;
    this.#keys = keys;
  }

  sign<Document extends object>(document: Document): Promise<Signed<Document>> {
    return signDocument(document, this.#key);
  }

  /** @throws Error when a document of the record was not signed by one of our keys */
  async check(what: string, document: unknown): Promise<void> {
    const fault = await findSignatureFault(document, this.#keys);
    if (fault !== undefined)
      throw new Error(
        `${what} cannot be continued: ${fault}. If the key was replaced, add its public key to MOORAGE_RECEIPT_PUBLIC_KEYS; if not, the database was changed: run npm run verify -- --database`,
      );
  }
}
