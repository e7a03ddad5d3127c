// Hashes of data: the same for the same data, whatever the order of its members.
import { createHash } from 'node:crypto';

/** JSON with the members of each object in the order of their names. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)))
      : part,
  );
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
