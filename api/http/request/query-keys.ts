// Refuses keys in URLs, which end up in logs and histories.
import { Problem } from '../../../lib/problem.ts';
import { keyInQuery } from '../problems/problems.ts';

const names = /^(api[-_]?key|access[-_]?token|authorization|bearer)$/i;
const values = /^(bearer\s+)?(sk-|moorage-[a-z0-9-]+\.[\w-]{43}$)/i;

/** @throws Problem (key-in-query) that names the parameter, not its value */
export function refuseKeys(query: Readonly<Record<string, string | string[]>>): void {
  for (const [name, given] of Object.entries(query)) {
    const suspicious = names.test(name) || [given].flat().some((value) => values.test(value.trim()));
    if (suspicious)
      throw new Problem(
        keyInQuery,
        `Query parameter "${name.slice(0, 40)}" contains a key. Send it in a header instead (Authorization: Bearer sk-…), and revoke the key that you sent.`,
      );
  }
}
