// Pages of a sorted list: a cursor holds the sort key of the last item, so that what comes and goes moves nothing else.
import { z } from 'zod';
import { createValidationProblem } from '../http/index.ts';

/** What an item is sorted by, part for part; parts of all keys of a list have the same types, and no two keys are equal. */
export type SortKey = readonly (string | number)[];

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Of all pages. */
  readonly total: number;
  /** Cursor of the next page. */
  readonly next: string | undefined;
}

export interface PageRequest {
  readonly limit: number;
  readonly cursor: string | undefined;
  /** Name of the order: a cursor of another one is refused. */
  readonly order: string;
}

/** Query parameters of every list. */
export const pageFields = {
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(200)
    .default(50)
    .describe('Maximum number of entries, 1 to 200; default 50.'),
  cursor: z
    .string()
    .max(1_000)
    .optional()
    .describe('Cursor: part of `next` of the previous page. The other parameters must stay the same.'),
};

export function compareKeys(a: SortKey, b: SortKey): number {
  for (const [index, part] of a.entries()) {
    const other = b[index];
    if (other === undefined) return 1;
    if (part < other) return -1;
    if (part > other) return 1;
  }
  return a.length - b.length;
}

/** One page of items that are sorted by `keyOf`. @throws Problem (invalid-request) for a cursor of another list */
export function createPage<Item>(
  sorted: readonly Item[],
  keyOf: (item: Item) => SortKey,
  { limit, cursor, order }: PageRequest,
): Page<Item> {
  const start = cursor === undefined ? 0 : findIndexAfter(sorted, keyOf, readCursor(cursor, order));
  const items = sorted.slice(start, start + limit);
  const last = items.at(-1);
  const isLast = last === undefined || start + items.length >= sorted.length;
  return { items, total: sorted.length, next: isLast ? undefined : writeCursor(order, keyOf(last)) };
}

/** Index of the first item behind a key. */
function findIndexAfter<Item>(sorted: readonly Item[], keyOf: (item: Item) => SortKey, key: SortKey): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const item = sorted[middle];
    if (item !== undefined && compareKeys(keyOf(item), key) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

const cursorContent = z.tuple([z.string()], z.union([z.string(), z.number()]));

function writeCursor(order: string, key: SortKey): string {
  return Buffer.from(JSON.stringify([order, ...key])).toString('base64url');
}

function readCursor(cursor: string, order: string): SortKey {
  try {
    const [of, ...key] = cursorContent.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')));
    if (of === order && key.length > 0) return key;
  } catch {
    // Said below.
  }
  throw createValidationProblem([
    {
      in: 'query',
      field: 'cursor',
      message: 'is not a cursor of this list in this order',
      fix: 'Take it from `next` of the previous page, and keep the other parameters. Omit it for the first page.',
    },
  ]);
}

/** The URL of the next page, and the header that says the same (RFC 8288). */
export function createNextLink(
  url: string,
  query: Readonly<Record<string, string | number | undefined>>,
  cursor: string | undefined,
): { readonly url: string | null; readonly headers: Readonly<Record<string, string>> } {
  if (cursor === undefined) return { url: null, headers: {} };
  const parameters = new URLSearchParams();
  const nextQuery: typeof query = { ...query, cursor };
  for (const [name, value] of Object.entries(nextQuery)) if (value !== undefined) parameters.set(name, String(value));
  const next = `${url}?${parameters.toString()}`;
  return { url: next, headers: { link: `<${next}>; rel="next"` } };
}
