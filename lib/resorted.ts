// Sorts a list again of which little has changed.

/**
 * The current items in order. What was sorted before comes first, so that the sort finds it in order and only has to
 * merge what is new.
 */
export function resorted<Item>(
  previous: readonly Item[],
  current: Iterable<Item>,
  compare: (a: Item, b: Item) => number,
): Item[] {
  const added = new Set(current);
  const kept = previous.filter((item) => added.delete(item));
  return [...kept, ...[...added].sort(compare)].sort(compare);
}
