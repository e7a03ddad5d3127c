// Refuses keys in URLs, which end up in logs and histories.
import { Problem } from '../../../lib/problem.ts';
import { keyInQuery } from '../problems/problems.ts';

const names = /^(api[-_]?key|access[-_]?token|authorization|bearer)$/i;
/** The value of an Authorization header, and the token of a hosted app. */
const credentials = /^(bearer\s+sk-\S|(bearer\s+)?moorage-[a-z0-9-]+\.[\w-]{43}$)/i;

/** What may be a key of a model router, wherever it stands in a text: 20 characters are the fewest that routers make. */
const candidates = /(?<![\w-])sk-([\w-]{20,})/g;
/** Fewer different characters than any random key of that length has. */
const minDistinct = 8;
/** Part of a text that people write, like `notes`, `Q3`, `2026`, `RandomForest`; random characters rarely look like it. */
const word = /^(?:\d+|[a-z]+|[A-Z]+|(?:[A-Z]?[a-z]{2,})(?:[A-Z][a-z]{2,})*|[A-Za-z0-9]{1,3})$/;

/** @throws Problem (key-in-query) that names the parameter, not its value */
export function rejectKeysInQuery(query: Readonly<Record<string, string | string[]>>): void {
  for (const [name, given] of Object.entries(query)) {
    const suspicious = names.test(name) || [given].flat().some(containsKey);
    if (suspicious)
      throw new Problem(
        keyInQuery,
        `Query parameter "${name.slice(0, 40)}" contains a key. Send it in a header instead (Authorization: Bearer sk-…), and revoke the key that you sent.`,
      );
  }
}

/** `sk-` alone is also how names begin: SK-II, sk-SK, sk-learn. A key is long and reads as nothing. */
function containsKey(value: string): boolean {
  if (credentials.test(value.trim())) return true;
  return [...value.matchAll(candidates)].some(([, secret = '']) => isRandom(secret));
}

function isRandom(text: string): boolean {
  if (new Set(text).size < minDistinct) return false;
  return !text
    .split(/[-_]+/)
    .filter((part) => part !== '')
    .every((part) => word.test(part));
}
