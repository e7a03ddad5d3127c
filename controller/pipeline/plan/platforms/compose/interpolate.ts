// Expands variables and splits commands in a compose file as Docker Compose does.

/** Looks up a variable; undefined if it is not set. */
export type Lookup = (name: string) => string | undefined;

const innermost = /\$\{([A-Za-z_][A-Za-z0-9_]{0,100})(?:(:?[-?+])([^${}]{0,1000}))?\}/g;
const bare = /\$([A-Za-z_][A-Za-z0-9_]{0,100})/g;
const deepest = 4;
/** Stands for $$ until the end; does not occur in text. */
const dollar = '\u0000';

/** Expands a text's variables; undefined if one of them is not set. */
export function interpolate(text: string, lookup: Lookup): string | undefined {
  const missing = new Set<string>();
  let current = text.replaceAll(dollar, '').replaceAll('$$', dollar);
  for (let depth = 0; depth < deepest; depth += 1) {
    const next = current.replaceAll(innermost, (_whole, name: string, kind = '', other = '') =>
      resolveValue({ name, kind: String(kind), other: String(other) }, lookup, missing),
    );
    if (next === current) break;
    current = next;
  }
  current = current.replaceAll(bare, (_whole, name: string) =>
    resolveValue({ name, kind: '', other: '' }, lookup, missing),
  );
  return missing.size > 0 ? undefined : current.replaceAll(dollar, '$');
}

function resolveValue(
  { name, kind, other }: { name: string; kind: string; other: string },
  lookup: Lookup,
  missing: Set<string>,
): string {
  const found = lookup(name);
  if (kind.endsWith('+')) return found === undefined || found === '' ? '' : other;
  if (found !== undefined && (found !== '' || !kind.startsWith(':'))) return found;
  if (kind.endsWith('-')) return other;
  missing.add(name);
  return '';
}

/** Returns the name if the text is exactly one variable: ${NAME} or $NAME. */
export function readOnlyVariable(text: string): string | undefined {
  return /^\$\{?([A-Za-z_][A-Za-z0-9_]{0,100})(?::?\?[^}]{0,300})?\}?$/.exec(text.trim())?.[1];
}

/** Parses the lines of an .env file. */
export function parseEnv(text: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const line of text.slice(0, 64 * 1024).split('\n')) {
    const match =
      /^[ \t]{0,20}(?:export[ \t]{1,9})?([A-Za-z_][A-Za-z0-9_]{0,100})[ \t]{0,9}=[ \t]{0,9}(.{0,4000})$/.exec(
        line.replace(/\r$/, ''),
      );
    if (match?.[1] !== undefined) values.set(match[1], unquote(match[2] ?? ''));
  }
  return values;
}

function unquote(value: string): string {
  const quoted = /^(["'])(.{0,4000}?)\1/.exec(value);
  return quoted === null ? value.replace(/[ \t]{1,20}#.*$/, '').trim() : (quoted[2] ?? '');
}

/**
 * A part of a word: unquoted, in double quotes, in single quotes, escaped with a backslash; or whitespace between
 * words.
 */
const piece = /\\([\s\S])|"((?:[^"\\]|\\[\s\S]){0,4000})"|'([^']{0,4000})'|([^\s"'\\]{1,4000})|(\s{1,4000})/y;

/** Splits a command into words; undefined if a quote is not closed. */
export function splitWords(command: string): string[] | undefined {
  const text = command.slice(0, 4_000).trim();
  const found: string[] = [];
  let isNew = true;
  piece.lastIndex = 0;
  while (piece.lastIndex < text.length) {
    const match = piece.exec(text);
    if (match === null) return undefined;
    const isBlank = match[5] !== undefined;
    if (!isBlank) found.push(isNew ? toPlainText(match) : `${found.pop() ?? ''}${toPlainText(match)}`);
    isNew = isBlank;
  }
  return found;
}

function toPlainText([, escaped, double, single, plain]: RegExpExecArray): string {
  return escaped ?? double?.replaceAll(/\\([\s\S])/g, '$1') ?? single ?? plain ?? '';
}
