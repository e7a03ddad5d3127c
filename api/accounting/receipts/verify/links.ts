// Walks all links: each has to be of its leaf, follow the one before, and have its transaction in the ledger unchanged.
import type { Transaction } from '../../../billing/index.ts';
import { canonical } from '../format/canonical.ts';
import { chainNext, chainStart } from '../format/chain.ts';
import { leaf, type Leaf } from '../format/leaf.ts';
import { hashLeaf, rootOf, TreeBuilder } from '../format/merkle.ts';
import { differences } from './differences.ts';
import { type LinkRow, links } from './statements.ts';

/** What the links of a day come to. */
export interface DayFigures {
  readonly count: number;
  readonly head: string;
  readonly root: string;
  /** Roots of its tiles, in hex. */
  readonly tiles: string;
}

/** A day while it is walked. */
interface Walk {
  readonly day: string;
  readonly tree: TreeBuilder;
  next: number;
  chain: Buffer;
}

/** The figures of each day that has links. `found` takes what is wrong. */
export async function walkLinks(
  transaction: Transaction,
  found: (finding: string) => void,
): Promise<Map<string, DayFigures>> {
  const figures = new Map<string, DayFigures>();
  let walk: Walk | undefined;
  let from: readonly [string, number] = ['-infinity', -1];
  for (;;) {
    const rows = await transaction.query(links, from);
    for (const row of rows) {
      if (walk?.day !== row.day) {
        if (walk !== undefined) figures.set(walk.day, figuresOf(walk));
        walk = { day: row.day, tree: new TreeBuilder(), next: 0, chain: chainStart(row.day) };
      }
      step(walk, row, found);
    }
    const last = rows.at(-1);
    if (last === undefined) break;
    from = [last.day, last.position];
  }
  if (walk !== undefined) figures.set(walk.day, figuresOf(walk));
  return figures;
}

export function figuresOf({ tree, next, chain }: Omit<Walk, 'day'>): DayFigures {
  const tiles = tree.tiles();
  return {
    count: next,
    head: chain.toString('hex'),
    root: rootOf(tiles).toString('hex'),
    tiles: Buffer.concat(tiles).toString('hex'),
  };
}

function step(walk: Walk, row: LinkRow, found: (finding: string) => void): void {
  const say = (what: string): void => {
    found(`${row.day}, transaction ${row.id}: ${what}`);
  };
  if (row.position !== walk.next)
    found(`${row.day}: ${row.position - walk.next} links before position ${row.position} were deleted or moved`);
  const hash = Buffer.from(row.hash, 'hex');
  if (!hashLeaf(row.leaf).equals(hash)) say('the leaf or the hash of its link was changed');
  const chain = chainNext(walk.chain, hash);
  if (chain.toString('hex') !== row.chain)
    say('its link does not follow the one before: links were changed, or put in another order');
  walk.tree.add(hash);
  walk.next = row.position + 1;
  // From here on as it is stored, so that each break is named once.
  walk.chain = Buffer.from(row.chain, 'hex');
  compare(row, say);
}

function compare(row: LinkRow, say: (what: string) => void): void {
  const linked = readLeaf(row.leaf);
  if (linked === undefined) say('the leaf of its link is not readable');
  else if (linked.id !== row.id) say(`its link has the leaf of transaction ${linked.id}`);
  else for (const difference of differences(linked, row.ledger, row.uses_from)) say(difference);
}

/** undefined for a text that is not the canonical form of a leaf. */
function readLeaf(text: string): Leaf | undefined {
  try {
    const read = leaf.parse(JSON.parse(text));
    return canonical(read) === text ? read : undefined;
  } catch {
    return undefined;
  }
}
