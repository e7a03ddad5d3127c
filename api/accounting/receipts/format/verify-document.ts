// Verifies a signed document against public keys and sealed days, and names everything that does not match.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import {
  checkpoint,
  computeDayDigest,
  hashLeaf,
  type Leaf,
  type LeafAccount,
  ledgerDay,
  type LedgerDay,
  provenDocument,
  type ProvenDocument,
  type ProvenLine,
  sumAmounts,
  sumCharged,
  sumPostedTo,
} from './documents.ts';
import { computeRootFromPath, getNextDay, toCanonicalJson } from './hashes.ts';
import { describeShapeFault, findSignatureFault, type KeySet, readSigned } from './signature.ts';

/** What a document is verified against. */
export interface Evidence {
  readonly keys: KeySet;
  /** Sealed days by day, whose signatures are checked already. */
  readonly days: ReadonlyMap<string, LedgerDay>;
  /** The last day that must be sealed by now; without it, only the known days count as sealed. */
  readonly due?: string;
}

export interface Verdict {
  /** One sentence per fault; empty if the document is valid. */
  readonly findings: readonly string[];
  readonly lines: number;
  /** Lines whose transaction is in a sealed day. */
  readonly proven: number;
  /** Lines of the earlier form of charges: only call, caller, day and amounts are in the leaf. */
  readonly unbound: number;
}

const typedDocument = z.looseObject({ type: z.string() });

/** Of any document that an installation signs; of a list of days, too. */
export async function verifyDocument(document: unknown, evidence: Evidence): Promise<Verdict> {
  switch (typedDocument.safeParse(document).data?.type) {
    case undefined:
      return createVerdict('it has no type, so it is no document of an installation');
    case 'ledger-days':
      return verifyDays(document, evidence.keys);
    case 'ledger-day':
      return createVerdict(...listFault(await readSigned(ledgerDay, document, evidence.keys)));
    case 'ledger-checkpoint':
      return verifyCheckpoint(document, evidence);
    default:
      return verifyLines(document, evidence);
  }
}

function createVerdict(...findings: string[]): Verdict {
  return { findings, lines: 0, proven: 0, unbound: 0 };
}

function listFault({ fault }: { fault?: string }): string[] {
  return fault === undefined ? [] : [fault];
}

/** Each day is signed, and names the one before it. */
async function verifyDays(document: unknown, keys: KeySet): Promise<Verdict> {
  const parsed = z.looseObject({ days: z.array(ledgerDay) }).safeParse(document);
  if (!parsed.success) return createVerdict(describeShapeFault(parsed.error));
  const findings: string[] = [];
  for (const day of parsed.data.days) {
    const fault = await findSignatureFault(day, keys);
    if (fault !== undefined) findings.push(`${day.day}: ${fault}`);
  }
  return createVerdict(...findings, ...findChainFaults(parsed.data.days));
}

/** What is wrong with the order of some days; they may begin anywhere, and the newest may come first. */
export function findChainFaults(days: readonly LedgerDay[]): string[] {
  const sorted = [...days].sort((a, b) => (a.day < b.day ? -1 : 1));
  return sorted.slice(1).flatMap((day, index) => {
    const before = sorted[index];
    if (before === undefined) return [];
    if (day.day !== getNextDay(before.day)) return [`${getNextDay(before.day)}: the day is missing`];
    return day.previous === computeDayDigest(before)
      ? []
      : [`${day.day}: it follows another ${before.day} than this one`];
  });
}

async function verifyCheckpoint(document: unknown, { keys, days }: Evidence): Promise<Verdict> {
  const reading = await readSigned(checkpoint, document, keys);
  if (reading.fault !== undefined) return createVerdict(reading.fault);
  const { sealed } = reading.value;
  const known = sealed === null ? undefined : days.get(sealed.day);
  return known !== undefined && computeDayDigest(known) !== sealed?.digest
    ? createVerdict(`it was made after another ${known.day} than the one that is published`)
    : createVerdict();
}

async function verifyLines(document: unknown, evidence: Evidence): Promise<Verdict> {
  const reading = await readSigned(provenDocument, document, evidence.keys);
  return reading.fault === undefined ? checkLines(reading.value, evidence) : createVerdict(reading.fault);
}

/** What a kind of document adds to the checks of every line. */
interface Form {
  /** Days of which the line speaks. Once one is sealed, the line needs a proof. */
  readonly listDays: (line: ProvenLine) => readonly unknown[];
  /** Whether a line without a transaction claims an amount. */
  readonly findClaim: (line: ProvenLine) => string | undefined;
  /** What the line or the document says otherwise than the transaction. */
  readonly findFault: (line: ProvenLine, leaf: Leaf, posted: string) => string | undefined;
  /** Of the document itself. */
  readonly listFaults: () => string[];
}

export function checkLines(document: ProvenDocument, evidence: Evidence): Verdict {
  const { lines } = document;
  const form = findForm(document);
  const seen = new Set<string>();
  const findings = lines.flatMap((line, index) => {
    const fault = findRepetition(line, seen) ?? findLineFault(line, form, evidence);
    return fault === undefined ? [] : [`line ${index + 1}: ${fault}`];
  });
  const isEarlier = document.type === 'charges';
  return {
    findings: [...findings, ...form.listFaults()],
    lines: lines.length,
    proven: lines.filter(({ proof }) => proof !== null).length,
    unbound: isEarlier ? lines.filter(({ leaf }) => leaf !== null && leaf.call === undefined).length : 0,
  };
}

function findForm(document: ProvenDocument): Form {
  switch (document.type) {
    case 'charges':
    case 'charges-2':
      return createChargesForm(document);
    case 'statement':
      return createStatementForm(document);
    default:
      return { listDays: () => [], findClaim: () => undefined, findFault: () => undefined, listFaults: () => [] };
  }
}

/** A transaction, or a call, stands in one line of a document. */
function findRepetition({ leaf, account, hold }: ProvenLine, seen: Set<string>): string | undefined {
  const names = [
    ...(leaf === null ? [] : [[toCanonicalJson([leaf.id, account]), `transaction ${leaf.id}`] as const]),
    ...(hold === undefined ? [] : [[toCanonicalJson(hold), `call ${JSON.stringify(hold)}`] as const]),
  ];
  for (const [name, what] of names) {
    if (seen.has(name)) return `${what} is in an earlier line already`;
    seen.add(name);
  }
  return undefined;
}

function findLineFault(line: ProvenLine, form: Form, evidence: Evidence): string | undefined {
  const { leaf, proof } = line;
  const sealed = [leaf?.at, ...form.listDays(line)]
    .map(parseDay)
    .find((day) => day !== undefined && isSealed(day, evidence));
  if (leaf === null) return findClaim(line, form, sealed);
  const fault = findAmountFault(line, leaf);
  if (fault !== undefined) return fault;
  if (proof === null && sealed !== undefined)
    return `transaction ${leaf.id} has no proof, although ${sealed} is over: fetch the document again`;
  return form.findFault(line, leaf, String(line.amount)) ?? findProofFault(line, evidence.days);
}

/** Of a line without a transaction; on a sealed day it may not even claim an amount. */
function findClaim(line: ProvenLine, form: Form, sealed: string | undefined): string | undefined {
  if (line.amount !== null || line.proof !== null) return 'it has an amount or a proof without a transaction';
  const claim = form.findClaim(line);
  return claim === undefined || sealed === undefined ? undefined : `it has ${claim}, and no transaction`;
}

function findAmountFault({ account, amount }: ProvenLine, leaf: Leaf): string | undefined {
  if (sumAmounts(leaf.entries.map((entry) => entry.amount)) !== '0') return `transaction ${leaf.id} does not sum to 0`;
  const posted = account === null ? undefined : sumPostedTo(leaf, account);
  if (posted === undefined) return `transaction ${leaf.id} posts nothing to the account of this line`;
  return posted === amount ? undefined : `its amount is ${String(amount)}, transaction ${leaf.id} posts ${posted}`;
}

/** The UTC day of a time; undefined for a value that is none. */
function parseDay(time: unknown): string | undefined {
  return typeof time === 'string' && /^\d{4}-\d\d-\d\d/.test(time) ? time.slice(0, 10) : undefined;
}

/** Days are sealed in their order, so whatever precedes a sealed day is sealed. */
function isSealed(day: string, { days, due = '' }: Evidence): boolean {
  return day <= due || [...days.keys()].some((known) => day <= known);
}

/** Whether the transaction is in the day that the proof names. */
function findProofFault({ leaf, proof }: ProvenLine, days: Evidence['days']): string | undefined {
  if (leaf === null || proof === null) return undefined;
  const day = days.get(proof.day);
  if (day === undefined) return `the sealed day ${proof.day} is not known: give it with --days`;
  const path = proof.path.map((hash) => Buffer.from(hash, 'hex'));
  return computeRootFromPath(hashLeaf(leaf), proof.position, day.count, path)?.toString('hex') === day.root
    ? undefined
    : `transaction ${leaf.id} is not in the sealed day ${proof.day} as this line has it`;
}

/** The first field that is not what the transaction has. */
function findDifference(
  leaf: Leaf,
  shown: Record<string, unknown>,
  recorded: Record<string, unknown>,
): string | undefined {
  const field = Object.keys(recorded).find((name) => shown[name] !== recorded[name]);
  return field === undefined
    ? undefined
    : `its ${field} is ${String(shown[field])}, transaction ${leaf.id} has ${String(recorded[field])}`;
}

/** Every field of a charge is in its leaf. Leaves of the earlier form have no call: there, the entries say whose it is. */
function createChargesForm(document: ProvenDocument): Form {
  const { type, caller, day } = document;
  return {
    listDays: ({ at }) => [at],
    findClaim: (line) => (line['cost_usd'] === null && (line['charged_usd'] ?? null) === null ? undefined : 'a cost'),
    findFault: (line, leaf, posted) => {
      const { account, at } = line;
      if (parseDay(at) !== day) return `it is of ${String(at)}, the document is of ${String(day)}`;
      const amounts = { cost_usd: posted, charged_usd: sumCharged(leaf) };
      const { call } = leaf;
      if (call === undefined) {
        if (type !== 'charges') return `transaction ${leaf.id} does not have the call that it settles`;
        const hold = leaf.reference.replace(/^settle:/, '');
        return findDifference(leaf, { ...line, caller }, { ...amounts, hold, caller: account?.owner });
      }
      return leaf.reference === `settle:${call.hold}`
        ? findDifference(leaf, { ...line, caller }, { ...amounts, ...call })
        : `transaction ${leaf.id} settles another call than it has`;
    },
    listFaults: () => [],
  };
}

const statement = z.looseObject({
  author: z.string(),
  month: z.string(),
  opening_usd: z.string(),
  lines: z.array(z.looseObject({ kind: z.string(), amount_usd: z.string() })),
});

/** What a line says is hashed into the reference of its transaction, in the order of `revenue.digest`. */
const statementLine = z.looseObject({
  kind: z.string(),
  app: z.string().nullable(),
  day: z.string().nullable(),
  item: z.string().nullable(),
  price_version: z.string().nullable(),
  uses: z.int(),
  gross_usd: z.string(),
  share: z.string().nullable(),
  amount_usd: z.string(),
  events_sha256: z.string().nullable(),
  event: z.string().nullable(),
  reason: z.string().nullable(),
});

function createStatementForm(document: ProvenDocument): Form {
  const { author, month } = document;
  const authorAccount: LeafAccount = { kind: 'author', owner: String(author), day: null };
  return {
    listDays: ({ posted_at: time }) => [time],
    findClaim: () => 'an amount',
    findFault: (line, leaf, posted) => {
      const creditedAmount = negateText(posted);
      const { posted_at: time } = line;
      if (toCanonicalJson(line.account) !== toCanonicalJson(authorAccount))
        return `its account is not that of ${authorAccount.owner}`;
      if (Date.parse(String(time)) !== Date.parse(leaf.at))
        return `its posted_at is ${String(time)}, transaction ${leaf.id} has ${leaf.at}`;
      const difference = findDifference(leaf, line, { amount_usd: creditedAmount, transaction: leaf.id });
      if (difference !== undefined) return difference;
      const key = leaf.reference.slice(0, leaf.reference.lastIndexOf(':'));
      const digest = digestLine(line, { key, author: authorAccount.owner, month: String(month) });
      return leaf.reference === `${key}:${String(digest)}`
        ? undefined
        : `it says something else than when transaction ${leaf.id} was posted`;
    },
    listFaults: () => findSumFaults(document),
  };
}

/** Undefined for a line that is not readable. */
function digestLine(
  line: ProvenLine,
  { key, author, month }: { key: string; author: string; month: string },
): string | undefined {
  const parsed = statementLine.safeParse(line);
  if (!parsed.success) return undefined;
  const {
    kind,
    app,
    day,
    item,
    price_version: version,
    uses,
    gross_usd: gross,
    share,
    events_sha256: events,
    event,
    reason,
  } = parsed.data;
  const fields = [
    ...[key, author, month, kind, app, day, item, version, String(uses), sumAmounts([gross])],
    ...[share === null ? null : String(Math.round(Number(share) * 1_000_000)), sumAmounts([parsed.data.amount_usd])],
    ...[events, event, reason],
  ];
  return createHash('sha256')
    .update(fields.map((field) => field ?? '').join('\n'))
    .digest('hex');
}

/** The sums of a statement against its lines. What was owed before the month is in earlier statements. */
function findSumFaults(document: ProvenDocument): string[] {
  const parsed = statement.safeParse(document);
  if (!parsed.success) return ['it is not readable as a statement'];
  const { opening_usd: opening, lines } = parsed.data;
  const sumFor = (...kinds: string[]): string =>
    sumAmounts(lines.filter(({ kind }) => kinds.includes(kind)).map(({ amount_usd: amount }) => amount)) ?? 'no amount';
  const sums = {
    earned_usd: sumFor('share', 'late'),
    corrected_usd: sumFor('refund', 'dispute', 'correction'),
    paid_usd: negateText(sumFor('payout')),
    closing_usd: sumAmounts([opening, ...lines.map(({ amount_usd: amount }) => amount)]),
  };
  return Object.entries(sums).flatMap(([field, sum]) => {
    const shown = String(parsed.data[field]);
    return sumAmounts([shown]) === sum ? [] : [`its ${field} is ${shown}, its lines come to ${String(sum)}`];
  });
}

function negateText(amount: string): string {
  if (amount === '0') return amount;
  return amount.startsWith('-') ? amount.slice(1) : `-${amount}`;
}
