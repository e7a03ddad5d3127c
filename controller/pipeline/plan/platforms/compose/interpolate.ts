// Resolves ${VARIABLE:-default} in a compose file as Docker Compose does, from what the repository itself says.

/** Value of a variable; undefined: nobody says. */
export type Lookup = (name: string) => string | undefined;

const innermost = /\$\{([A-Za-z_][A-Za-z0-9_]{0,100})(?:(:?[-?+])([^${}]{0,1000}))?\}/g;
const bare = /\$([A-Za-z_][A-Za-z0-9_]{0,100})/g;
const deepest = 4;
/** Stands for $$ until the end; no text has it. */
const dollar = '\u0000';

/** The text with its variables; undefined when one of them is nobody's. */
export function interpolate(text: string, lookup: Lookup): string | undefined {
  const missing = new Set<string>();
  let current = text.replaceAll(dollar, '').replaceAll('$$', dollar);
  for (let depth = 0; depth < deepest; depth += 1) {
    const next = current.replaceAll(innermost, (_whole, name: string, kind = '', other = '') =>
      valueOf({ name, kind: String(kind), other: String(other) }, lookup, missing),
    );
    if (next === current) break;
    current = next;
  }
  current = current.replaceAll(bare, (_whole, name: string) => valueOf({ name, kind: '', other: '' }, lookup, missing));
  return missing.size > 0 ? undefined : current.replaceAll(dollar, '$');
}

function valueOf(
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

/** The variable that a text consists of: ${NAME} or $NAME alone. */
export function onlyVariable(text: string): string | undefined {
  return /^\$\{?([A-Za-z_][A-Za-z0-9_]{0,100})(?::?\?[^}]{0,300})?\}?$/.exec(text.trim())?.[1];
}

/** Lines of an .env file. */
export function parseEnv(text: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const line of text.slice(0, 64 * 1024).split('\n')) {
    const match =
      /^[ \t]{0,20}(?:export[ \t]{1,9})?([A-Za-z_][A-Za-z0-9_]{0,100})[ \t]{0,9}=[ \t]{0,9}(.{0,4000})$/.exec(
        line.replace(/\r$/, ''),
      );
    if (match?.[1] !== undefined) values.set(match[1], plain(match[2] ?? ''));
  }
  return values;
}

function plain(value: string): string {
  const quoted = /^(["'])(.{0,4000}?)\1/.exec(value);
  return quoted === null ? value.replace(/[ \t]{1,20}#.*$/, '').trim() : (quoted[2] ?? '');
}
