// Links transactions into the chain of their day.
import type { Transaction } from '../../../billing/index.ts';
import { canonical } from '../format/canonical.ts';
import { chainNext, chainStart, dayAfter } from '../format/chain.ts';
import { hashLeaf } from '../format/merkle.ts';
import type { LogState } from './log.ts';
import { addLinks, waiting } from './statements.ts';

interface Link {
  readonly id: string;
  readonly day: string;
  readonly position: number;
  readonly leaf: string;
  readonly hash: string;
  readonly chain: string;
}

/** Links up to so many of those that wait. @returns how many */
export async function linkWaiting(
  transaction: Transaction,
  state: LogState,
  today: string,
  limit: number,
): Promise<number> {
  const rows = await transaction.query(waiting, [limit]);
  if (rows.length === 0) return 0;
  const links = rows.map(({ leaf, day }): Link => {
    const into = dayFor(day, state.newest?.day, today);
    const before = state.open.get(into) ?? { count: 0, head: chainStart(into).toString('hex') };
    const text = canonical(leaf);
    const hash = hashLeaf(text);
    const chain = chainNext(Buffer.from(before.head, 'hex'), hash).toString('hex');
    state.open.set(into, { day: into, count: before.count + 1, head: chain });
    return { id: leaf.id, day: into, position: before.count, leaf: text, hash: hash.toString('hex'), chain };
  });
  const column = (of: (link: Link) => unknown): unknown[] => links.map(of);
  await transaction.query(addLinks, [
    column(({ id }) => id),
    column(({ day }) => day),
    column(({ position }) => position),
    column(({ leaf }) => leaf),
    column(({ hash }) => hash),
    column(({ chain }) => chain),
  ]);
  return links.length;
}

/** The day of its own time; today where that day is sealed, or is still to come. Never a sealed one, whatever the clock says. */
function dayFor(own: string | null, sealed: string | undefined, today: string): string {
  const isOpen = (day: string): boolean => sealed === undefined || day > sealed;
  if (own !== null && own <= today && isOpen(own)) return own;
  return isOpen(today) || sealed === undefined ? today : dayAfter(sealed);
}
