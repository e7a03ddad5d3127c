// Canonical JSON (RFC 8785): the one text that stands for a value, so that a hash or a signature of it means the value.
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
