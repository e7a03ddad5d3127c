// How a transaction in the ledger differs from what it was when it was linked, in words.
import { canonical } from '../format/canonical.ts';
import { leaf, type Leaf } from '../format/leaf.ts';

type Entry = Leaf['entries'][number];

/**
 * `now`: the transaction as the ledger has it, null where it has none. `usesFrom`: the first day of which uses are kept;
 * older ones are dropped, and their calls with them.
 */
export function differences(then: Leaf, now: unknown, usesFrom: string): string[] {
  if (now === null) return [`it was deleted; it was ${canonical(then)}`];
  const read = leaf.safeParse(now);
  if (!read.success) return ['it was changed: an entry has no account, or a value is none'];
  const changed = (['reference', 'kind', 'at'] as const)
    .filter((field) => read.data[field] !== then[field])
    .map((field) => `its ${field} is ${quote(read.data[field])}, it was ${quote(then[field])}`);
  return [
    ...changed,
    ...entryDifferences(then.entries, read.data.entries),
    ...callDifferences(then.call, read.data.call, usesFrom),
  ];
}

/** Transactions that were linked without their call are compared without it. */
function callDifferences(was: Leaf['call'], is: Leaf['call'], usesFrom: string): string[] {
  if (was === undefined) return [];
  if (is === undefined) return was.at.slice(0, 10) < usesFrom ? [] : [`the use of its call ${was.hold} was deleted`];
  return Object.entries(was).flatMap(([field, value]) => {
    const now = is[field as keyof typeof was];
    return now === value ? [] : [`the ${field} of its call is ${quote(now)}, it was ${quote(value)}`];
  });
}

function entryDifferences(then: readonly Entry[], now: readonly Entry[]): string[] {
  const lines = [...new Set([...then, ...now].map(({ line }) => line))].sort((a, b) => a - b);
  return lines.flatMap((line) => {
    const [was, is] = [then, now].map((entries) => entries.find((entry) => entry.line === line));
    if (was === undefined) return [`entry ${line} was inserted: ${canonical(is)}`];
    if (is === undefined) return [`entry ${line} was deleted: it was ${canonical(was)}`];
    return [
      ...(was.amount === is.amount ? [] : [`entry ${line} has amount ${is.amount}, it was ${was.amount}`]),
      ...(canonical(was.account) === canonical(is.account)
        ? []
        : [`entry ${line} is on account ${canonical(is.account)}, it was on ${canonical(was.account)}`]),
    ];
  });
}

function quote(text: string | null): string {
  return JSON.stringify(text);
}
