// JSON that means one thing: the canonical text of a value (RFC 8785), which is what is hashed and signed, and a parser that
// refuses text which other parsers would read differently.
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';

/** @throws Error for what JSON cannot say, and for text that is not Unicode */
export function canonical(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('this value has no JSON form');
  return text;
}

/** SHA-256 of the canonical text, in hex. */
export function digestOf(value: unknown): string {
  return createHash('sha256').update(canonical(value)).digest('hex');
}

/**
 * Parses JSON. Of a member that appears twice, some parsers keep the first and some the last, so a signature of one
 * reading would vouch for the other. @throws SyntaxError for text that is not JSON, and for a member that appears twice
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const name = findRepeatedMember(text);
  if (name !== undefined) throw new SyntaxError(`the member ${JSON.stringify(name)} is there twice`);
  return value;
}

/** Strings and punctuation; what lies between them has no names. */
const token = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]/g;

/** An object or list that is open where the text is read. */
interface Level {
  /** Of an object: the names that it has so far. */
  readonly names: Set<string> | undefined;
  /** Whether the next string is a name. */
  atName: boolean;
}

/** `text` is valid JSON, so a string in an object is a name unless a colon precedes it. */
function findRepeatedMember(text: string): string | undefined {
  const levels: Level[] = [];
  for (const [found] of text.matchAll(token)) {
    const level = levels.at(-1);
    if (found === '{') levels.push({ names: new Set(), atName: true });
    else if (found === '[') levels.push({ names: undefined, atName: false });
    else if (found === '}' || found === ']') levels.pop();
    else if (level?.names !== undefined && !addName(level, level.names, found)) return JSON.parse(found) as string;
  }
  return undefined;
}

/** @returns false for a name that the object has already */
function addName(level: Level, names: Set<string>, found: string): boolean {
  if (found === ',' || found === ':') {
    level.atName = found === ',';
    return true;
  }
  if (!level.atName) return true;
  // Decoded, since "a" and "\u0061" are the same name.
  const name = JSON.parse(found) as string;
  return !names.has(name) && names.add(name) === names;
}
