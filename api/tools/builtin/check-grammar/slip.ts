// Which word a misspelled one was meant to be: the one that a slip of the fingers is enough for.
import { distance } from 'fastest-levenshtein';

/** As likely slips cost: letters that changed places, a letter not doubled, a missing apostrophe or accent, a capital. */
const [caseOnly, apostrophe, likely, missing] = [0, 0.25, 0.5, 0.8];
const contraction = /(?:n't|'(?:m|re|ve|ll|d))$/;

export interface Ties {
  /** Whether the suggestions are in the order in which they are likely, so that the first of several as near is taken. */
  readonly ordered: boolean;
}

/** The one suggestion that is nearest, where it is near; undefined where several are about as near, or none. */
export function meantBy(word: string, suggestions: readonly string[], { ordered }: Ties): string | undefined {
  const costs = suggestions
    .map((suggestion) => ({ suggestion, cost: costOf(word, suggestion) }))
    .filter(({ cost }) => cost <= limitOf(word));
  const least = Math.min(...costs.map(({ cost }) => cost));
  const [first, ...others] = costs.filter(({ cost }) => cost - least < apostrophe);
  return others.length > 0 && !ordered ? undefined : first?.suggestion;
}

/** Of short words, many are as near by chance. */
function limitOf(word: string): number {
  if (word.length <= 4) return missing;
  return word.length >= 6 && !/^\p{Lu}/u.test(word) ? 2 : 1;
}

/** The suggestion that changes least, where one does. */
export function leastChange(text: string, suggestions: readonly string[]): string | undefined {
  const [first, second] = suggestions
    .map((suggestion) => ({ suggestion, far: distance(text, suggestion) }))
    .sort((one, other) => one.far - other.far);
  return first !== undefined && first.far !== second?.far ? first.suggestion : undefined;
}

function costOf(word: string, suggestion: string): number {
  // To take a word apart is a guess where no dictionary has it.
  if (suggestion.includes(' ')) return Number.POSITIVE_INFINITY;
  if (suggestion.toLowerCase() === word.toLowerCase()) return caseOnly;
  const [one, other] = [word.toLowerCase(), suggestion.toLowerCase().replaceAll('’', "'")];
  if (other.replace("'", '') === one) return contraction.test(other) ? apostrophe : 3;
  if (plain(other) === plain(one)) return apostrophe;
  if (isSwapped(one, other) || undoubled(other) === undoubled(one)) return likely;
  return lettersBetween(one, other);
}

function lettersBetween(one: string, other: string): number {
  const far = distance(one, other);
  // A letter is more often left out than wrong, and the first one is rarely wrong.
  if (far === 1 && other.length > one.length) return missing;
  return one[0] === other[0] ? far : far + 1;
}

/** Without accents, and with ss for ß: what is written where a keyboard lacks them, and the Swiss way. */
function plain(word: string): string {
  return word.replaceAll('ß', 'ss').normalize('NFD').replaceAll(/\p{M}/gu, '');
}

function isSwapped(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  const at = Array.from(one).findIndex((letter, index) => letter !== other[index]);
  return at >= 0 && one[at] === other[at + 1] && one[at + 1] === other[at] && one.slice(at + 2) === other.slice(at + 2);
}

function undoubled(word: string): string {
  return word.replaceAll(/(.)\1/g, '$1');
}
