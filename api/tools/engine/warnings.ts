// Warnings about a call that was answered all the same: query parameters that no field reads, and the header that says
// so where there is no envelope.
import { distance } from 'fastest-levenshtein';

/** A link that collects parameters on its way is not answered by a list of them all. */
const maxWarnings = 10;
const maxNameCharacters = 60;

/** One for each parameter that is not known, with the field that may have been meant. */
export function unknownParameters(names: readonly string[], known: readonly string[]): string[] {
  const named = names.slice(0, maxWarnings).map((name) => {
    const meant = nearest(name, known);
    const shown = JSON.stringify(name.slice(0, maxNameCharacters).toWellFormed());
    return `Query parameter ${shown} is not known and was ignored.${meant === undefined ? '' : ` Did you mean "${meant}"?`}`;
  });
  const more = names.length - named.length;
  return more === 0 ? named : [...named, `${more} more query parameters are not known and were ignored.`];
}

/** A JSON list of strings, in ASCII. */
export function warningsHeader(warnings: readonly string[]): Record<string, string> {
  if (warnings.length === 0) return {};
  const text = JSON.stringify(warnings).replaceAll(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return { 'x-warnings': text };
}

function nearest(name: string, known: readonly string[]): string | undefined {
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[-_]/g, '').slice(0, maxNameCharacters);
  const [first] = known
    .map((field) => ({ field, far: distance(plain(name), plain(field)) }))
    .sort((a, b) => a.far - b.far);
  return first !== undefined && first.far <= Math.floor(first.field.length / 3) ? first.field : undefined;
}
