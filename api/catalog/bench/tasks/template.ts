// Fills templates, reads values from JSON by pointer, and hashes JSON documents.
import { createHash } from 'node:crypto';

export type Values = Readonly<Record<string, unknown>>;

const slot = /\{\{ ?([a-z][a-z0-9_.]{0,60}) ?\}\}/g;
const wholeSlot = /^\{\{ ?([a-z][a-z0-9_.]{0,60}) ?\}\}$/;

/** Fills the slots of a text. A value that is not text is written as JSON. @throws Error for a name without a value */
export function renderText(template: string, values: Values): string {
  return template.replaceAll(slot, (_whole, name: string) => {
    const value = lookUpValue(name, values);
    return typeof value === 'string' ? value : JSON.stringify(value);
  });
}

/** Fills the slots of a document. A string that is exactly one slot becomes the value itself, of any type. */
export function render(template: unknown, values: Values): unknown {
  if (typeof template === 'string') {
    const name = wholeSlot.exec(template)?.[1];
    return name === undefined ? renderText(template, values) : lookUpValue(name, values);
  }
  if (Array.isArray(template)) return template.map((part: unknown) => render(part, values));
  if (typeof template !== 'object' || template === null) return template;
  return Object.fromEntries(Object.entries(template).map(([name, part]) => [name, render(part, values)]));
}

function lookUpValue(name: string, values: Values): unknown {
  if (!Object.hasOwn(values, name))
    throw new Error(`the template names {{${name}}}; there are: ${Object.keys(values).sort().join(', ')}`);
  return values[name];
}

/** Returns the value at a JSON pointer, or undefined. After `#`, a second pointer reads into JSON text at the first. */
export function readPointer(document: unknown, pointer: string): unknown {
  const [outer = '', inner] = pointer.split('#');
  const part = readPart(document, outer);
  if (inner === undefined || typeof part !== 'string') return inner === undefined ? part : undefined;
  return readPart(parseJson(part), inner);
}

function readPart(document: unknown, pointer: string): unknown {
  let part = document;
  for (const escaped of pointer.split('/').slice(1)) {
    const name = escaped.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof part !== 'object' || part === null || !Object.hasOwn(part, name)) return undefined;
    part = (part as Record<string, unknown>)[name];
  }
  return part;
}

/** Parses JSON text. Returns undefined if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Formats JSON with the members of each object sorted by name, so that equal documents have equal hashes. */
export function toCanonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)))
      : part,
  );
}

export function hashSha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
