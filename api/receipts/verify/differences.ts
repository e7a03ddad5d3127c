// How a transaction in the ledger differs from what it was when it was linked, in words.
import { canonical } from '../format/canonical.ts';
import { leaf, type Leaf } from '../format/leaf.ts';

type Entry = Leaf['entries'][number];

/** `now`: the transaction as the ledger has it, null where it has none. */
export function differences(then: Leaf, now: unknown): string[] {
  if (now === null) return [`it was deleted; it was ${canonical(then)}`];
  const read = leaf.safeParse(now);
  if (!read.success) return ['it was changed: an entry has no account, or a value is none'];
  const changed = (['reference', 'kind', 'at'] as const)
    .filter((field) => read.data[field] !== then[field])
    .map((field) => `its ${field} is ${quote(read.data[field])}, it was ${quote(then[field])}`);
  return [...changed, ...entryDifferences(then.entries, read.data.entries)];
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

function quote(text: string): string {
  return JSON.stringify(text);
}
