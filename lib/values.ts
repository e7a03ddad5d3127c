// Converts plain values in ways that several rooms share: durations, time limits, CSV, HTML, sparse objects, sorted lists.

/** Milliseconds of a duration in the form `[Nh][Nm][Ns]`, like 90s, 5m or 1h30m. @throws RangeError for any other text. */
export function parseDuration(text: string): number {
  const match = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(text);
  if (match === null || text === '') throw new RangeError(`not a duration: ${text}`);
  const [hours, minutes, seconds] = [match[1], match[2], match[3]].map((part) => Number(part ?? 0));
  return ((hours ?? 0) * 3600 + (minutes ?? 0) * 60 + (seconds ?? 0)) * 1000;
}

/**
 * A signal that aborts with a TimeoutError after so many milliseconds, and keeps no process alive. Unlike a signal of
 * `AbortSignal.timeout`, its timer holds it: `AbortSignal.any` holds its sources weakly, so that a limit that was
 * collected in the meantime would never fire.
 */
export function createTimeLimit(ms: number): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => {
    controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'));
  }, ms).unref();
  return controller.signal;
}

export type CsvValue = string | number | boolean | Date | object | null | undefined;

/** One line of CSV (RFC 4180) with its line end, safe to open in a spreadsheet. */
export function toCsvLine(values: readonly CsvValue[]): string {
  return `${values.map(formatCsvField).join(',')}\r\n`;
}

function formatCsvField(value: CsvValue): string {
  if (value === null || value === undefined) return '';
  const text =
    value instanceof Date ? value.toISOString() : typeof value === 'object' ? JSON.stringify(value) : String(value);
  // A spreadsheet would run text that begins like this as a formula.
  const safe = /^[=+\-@\t\r]/.test(text) && typeof value === 'string' && !/^-?\d/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes text for the content of an HTML element or for an attribute in quotes. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '');
}

/** `Fields` with those that may be undefined made optional. */
export type OptionalFields<Fields> = {
  [Key in keyof Fields as undefined extends Fields[Key] ? never : Key]: Fields[Key];
} & {
  [Key in keyof Fields as undefined extends Fields[Key] ? Key : never]?: Exclude<Fields[Key], undefined>;
};

/** A copy without undefined fields: in status and manifests an absent field and an undefined one are not the same. */
export function omitUndefined<Fields extends object>(fields: Fields): OptionalFields<Fields> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as OptionalFields<Fields>;
}

/**
 * Sorts the current items, of which few have changed since `previous` was sorted. Items sorted before come first, so that
 * the sort finds them in order and only has to merge the new ones.
 */
export function sortAgain<Item>(
  previous: readonly Item[],
  current: Iterable<Item>,
  compare: (a: Item, b: Item) => number,
): Item[] {
  const added = new Set(current);
  const remaining = previous.filter((item) => added.delete(item));
  return [...remaining, ...[...added].sort(compare)].sort(compare);
}

/** Escapes what has a meaning in a regular expression. */
export function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** Writes JSON in ASCII, which is all that a header carries. */
export function toAsciiJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
