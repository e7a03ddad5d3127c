// Verifies every link: it matches its leaf, follows the previous link, and its transaction is unchanged in the ledger.
import type { Transaction } from '../../../billing/index.ts';
import { leaf, type Leaf } from '../format/documents.ts';
import { computeRoot, extendChain, hashLeafText, startChain, toCanonicalJson, TreeBuilder } from '../format/hashes.ts';
import { type LinkRow, links } from './verify-queries.ts';

/** The figures computed from the links of a day. */
export interface DayFigures {
  readonly count: number;
  readonly head: string;
  readonly root: string;
  /** Roots of its tiles, in hex. */
  readonly tiles: string;
}

/** The state of walking a day's links. */
interface Walk {
  readonly day: string;
  readonly tree: TreeBuilder;
  next: number;
  chain: Buffer;
}

/** The figures of each day that has links. `report` takes what is wrong; `page` links are read at a time. */
export async function walkLinks(
  transaction: Transaction,
  report: (finding: string) => void,
  page = 2_000,
): Promise<Map<string, DayFigures>> {
  const figures = new Map<string, DayFigures>();
  let walk: Walk | undefined;
  let from: readonly [string, number] = ['-infinity', -1];
  for (;;) {
    const rows = await transaction.query(links, [...from, page]);
    for (const row of rows) {
      if (walk?.day !== row.day) {
        if (walk !== undefined) figures.set(walk.day, computeFigures(walk));
        walk = { day: row.day, tree: new TreeBuilder(), next: 0, chain: startChain(row.day) };
      }
      checkLink(walk, row, report);
    }
    const last = rows.at(-1);
    if (last === undefined) break;
    from = [last.day, last.position];
  }
  if (walk !== undefined) figures.set(walk.day, computeFigures(walk));
  return figures;
}

export function computeFigures({ tree, next, chain }: Omit<Walk, 'day'>): DayFigures {
  const tiles = tree.computeTiles();
  return {
    count: next,
    head: chain.toString('hex'),
    root: computeRoot(tiles).toString('hex'),
    tiles: Buffer.concat(tiles).toString('hex'),
  };
}

function checkLink(walk: Walk, row: LinkRow, report: (finding: string) => void): void {
  const reportFinding = (what: string): void => {
    report(`${row.day}, transaction ${row.id}: ${what}`);
  };
  if (row.position !== walk.next)
    report(`${row.day}: ${row.position - walk.next} links before position ${row.position} were deleted or moved`);
  const hash = Buffer.from(row.hash, 'hex');
  if (!hashLeafText(row.leaf).equals(hash)) reportFinding('the leaf or the hash of its link was changed');
  const chain = extendChain(walk.chain, hash);
  if (chain.toString('hex') !== row.chain)
    reportFinding('its link does not follow the one before: links were changed, or put in another order');
  walk.tree.add(hash);
  walk.next = row.position + 1;
  // From here on as it is stored, so that each break is named once.
  walk.chain = Buffer.from(row.chain, 'hex');
  compareLeaf(row, reportFinding);
}

function compareLeaf(row: LinkRow, reportFinding: (what: string) => void): void {
  const linked = readLeaf(row.leaf);
  if (linked === undefined) reportFinding('the leaf of its link is not readable');
  else if (linked.id !== row.id) reportFinding(`its link has the leaf of transaction ${linked.id}`);
  else for (const difference of findDifferences(linked, row.ledger, row.uses_from)) reportFinding(difference);
}

/** undefined for a text that is not the canonical form of a leaf. */
function readLeaf(text: string): Leaf | undefined {
  try {
    const parsed = leaf.parse(JSON.parse(text));
    return toCanonicalJson(parsed) === text ? parsed : undefined;
  } catch {
    return undefined;
  }
}

type Entry = Leaf['entries'][number];

/**
 * `now`: the transaction as the ledger has it, null where it has none. `usesFrom`: the first day of which uses are kept;
 * older ones are dropped, and their calls with them.
 */
export function findDifferences(then: Leaf, now: unknown, usesFrom: string): string[] {
  if (now === null) return [`it was deleted; it was ${toCanonicalJson(then)}`];
  const parsed = leaf.safeParse(now);
  if (!parsed.success) return ['it was changed: an entry has no account, or a value is none'];
  const changed = (['reference', 'kind', 'at'] as const)
    .filter((field) => parsed.data[field] !== then[field])
    .map((field) => `its ${field} is ${quote(parsed.data[field])}, it was ${quote(then[field])}`);
  return [
    ...changed,
    ...findEntryDifferences(then.entries, parsed.data.entries),
    ...findCallDifferences(then.call, parsed.data.call, usesFrom),
  ];
}

/** Transactions that were linked without their call are compared without it. */
function findCallDifferences(was: Leaf['call'], is: Leaf['call'], usesFrom: string): string[] {
  if (was === undefined) return [];
  if (is === undefined) return was.at.slice(0, 10) < usesFrom ? [] : [`the use of its call ${was.hold} was deleted`];
  return Object.entries(was).flatMap(([field, value]) => {
    const now = is[field as keyof typeof was];
    return now === value ? [] : [`the ${field} of its call is ${quote(now)}, it was ${quote(value)}`];
  });
}

function findEntryDifferences(then: readonly Entry[], now: readonly Entry[]): string[] {
  const lines = [...new Set([...then, ...now].map(({ line }) => line))].sort((a, b) => a - b);
  return lines.flatMap((line) => {
    const [was, is] = [then, now].map((entries) => entries.find((entry) => entry.line === line));
    if (was === undefined) return [`entry ${line} was inserted: ${toCanonicalJson(is)}`];
    if (is === undefined) return [`entry ${line} was deleted: it was ${toCanonicalJson(was)}`];
    return [
      ...(was.amount === is.amount ? [] : [`entry ${line} has amount ${is.amount}, it was ${was.amount}`]),
      ...(toCanonicalJson(was.account) === toCanonicalJson(is.account)
        ? []
        : [`entry ${line} is on account ${toCanonicalJson(is.account)}, it was on ${toCanonicalJson(was.account)}`]),
    ];
  });
}

function quote(text: string | null): string {
  return JSON.stringify(text);
}
