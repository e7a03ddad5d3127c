// Matches of a grammar checker: decides which of them count and which are certain enough to correct the text. Code,
// addresses and names are never corrected, since a checker knows only words.
import { distance } from 'fastest-levenshtein';
import { z } from 'zod';

export const maxMatches = 500;
export const maxSuggestions = 5;

export const match = z.object({
  offset: z.int().describe('Start of the match, in UTF-16 code units.'),
  length: z.int().describe('Length of the match, in UTF-16 code units.'),
  text: z.string().describe('Matched text.'),
  message: z.string().describe('What is wrong.'),
  kind: z.string().describe('Kind of error, as the checker names it.'),
  suggestions: z
    .array(z.string())
    .describe(`Replacements, best first, at most ${maxSuggestions}. An empty string means: delete the text.`),
});
export type Match = z.output<typeof match>;
export const matches = z.array(match);

const languageToolSpelling = 'misspelling';
/** Kinds that mean that a word is not in the dictionary. */
const spellingKinds = new Set(['Spelling', 'Typo', languageToolSpelling]);
/** Kinds that suggest another wording: reported, but applied only if they are known errors (`sureMessages`). */
const styleKinds = new Set([
  'Style',
  'Enhancement',
  'Readability',
  'Redundancy',
  'Regionalism',
  'Miscellaneous',
  'Formatting',
  'WordChoice',
  'style',
  'register',
  'locale-violation',
]);
/** Messages of Harper for errors that it reports under those kinds. */
const sureMessages =
  /^(?:Incorrect indefinite article|Did you mean `than`|Did you mean the closed compound `|Use `have` rather than `of`|`Affect` is usually|`affect` is usually|You probably mean the adverb `every day`|Using `(?:more|most)` and)|must be in the gerund form/;
/** Harper reads the period of an abbreviation as the end of a sentence. */
const sentenceCase = 'This sentence does not start with a capital letter';

export interface JudgedMatches {
  readonly matches: readonly Match[];
  /** The matches whose first suggestion is applied to the text. */
  readonly applied: readonly Match[];
}

/** @param found in text order */
export function judgeMatches(text: string, language: string, found: readonly Match[]): JudgedMatches {
  const ranges = findProtectedRanges(text);
  const kept = found
    .filter((match) => !isProtected(text, match, ranges) && !isFalseAlarm(text, language, match))
    .map((match) => rankMeaning(match));
  return {
    matches: kept.map(({ match }) => match),
    applied: kept.flatMap(({ match, isSure }) => (isSure ? match : [])),
  };
}

/** Applies the first suggestion of each match; of overlapping matches, only the first. */
export function applyCorrections(text: string, ordered: readonly Match[]): string {
  let [result, at] = ['', 0];
  for (const {
    offset,
    length,
    suggestions: [first],
  } of ordered) {
    if (first === undefined || offset < at) continue;
    result += text.slice(at, offset) + first;
    at = offset + length;
  }
  return result + text.slice(at);
}

function isFalseAlarm(text: string, language: string, match: Match): boolean {
  if (spellingKinds.has(match.kind)) return canBeName(text, match, language);
  // A changed name.
  if (match.kind === 'WordChoice' && /^\p{Lu}/u.test(match.text)) return !isSentenceStart(text, match.offset);
  if (match.message === sentenceCase) return /\p{Lu}\p{L}{0,4}\.\s*$/u.test(text.slice(0, match.offset));
  const [first = ''] = match.suggestions;
  return match.kind === 'Capitalization' && isSentenceStart(text, match.offset) && /^\p{Ll}/u.test(first);
}

/** Puts the meant word first, and reports whether it is certain. */
function rankMeaning(match: Match): { readonly match: Match; readonly isSure: boolean } {
  const meant = findMeaning(match);
  if (meant === undefined) return { match, isSure: false };
  const suggestions = [meant, ...match.suggestions.filter((each) => each !== meant)];
  return { match: { ...match, suggestions }, isSure: true };
}

function findMeaning(match: Match): string | undefined {
  const { kind, text, message, suggestions } = match;
  const [first] = suggestions;
  if (first === undefined || (styleKinds.has(kind) && !sureMessages.test(message))) return undefined;
  if (isUnknownWord(match)) return findMeantWord(text, suggestions, { ordered: kind === languageToolSpelling });
  // A rule knows the error, as in "teh"; but splitting a word is a guess.
  if (spellingKinds.has(kind)) return first.includes(' ') && !text.includes(' ') ? undefined : first;
  // Commas are a matter of taste.
  if (first.replaceAll(',', '') === text) return undefined;
  // The first suggestion of Harper is the one of its rule; with LanguageTool, any can be meant.
  return /^\p{Lu}/u.test(kind) ? first : findLeastChange(text, suggestions);
}

/** Whether the only reason for the match is that no dictionary has the word. */
function isUnknownWord({ kind, message, text }: Match): boolean {
  return kind === languageToolSpelling ? !text.includes(' ') : message.startsWith('Did you mean to spell');
}

type TextRange = readonly [start: number, end: number];

/** Code and addresses. Each pattern is linear: none nests repetitions. */
const protectedPatterns: readonly RegExp[] = [
  // Fenced and inline code, tags, templates.
  /```[^]*?```/g,
  /`[^`\n]{1,500}`/g,
  /<\/?[a-zA-Z][^<>\n]{0,500}>/g,
  /\$?\{[^{}\n]{0,200}\}|\$[A-Za-z_]\w*/g,
  // Addresses of the web, of mail, of people; tags and issues.
  /\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s<>"”’)]+/gi,
  /\bwww\.[^\s<>"”’)]+/gi,
  /[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64}/g,
  /[@#][\w-]+/g,
  // Paths and files.
  /(?<![\w/])(?:~|\.{1,2})?\/[\w.-]+(?:\/[\w.-]+)*/g,
  /\b[\w.-]+\/[\w./-]*\.[a-z]\w*/gi,
  /\b[A-Z]:\\[^\s]+/g,
  /\b[\w-]+\.[a-zA-Z][a-zA-Z0-9]{0,5}\b(?!\.[A-Z])/g,
  // Identifiers, calls, options, versions, abbreviations.
  /\b\w*[a-z0-9][A-Z]\w*/g,
  /\b\w+(?:_\w+)+/g,
  /\b\w+\(\)?/g,
  /\b(?:null|undefined|NaN|stdin|stdout|stderr)\b/g,
  /(?<![\w-])--?[a-z][\w-]*/gi,
  /\b\w*\d[\w.]*/g,
  /\b[A-Z]{2,}s?\b/g,
];

export function findProtectedRanges(text: string): TextRange[] {
  return protectedPatterns.flatMap((pattern) =>
    [...text.matchAll(pattern)].map(({ index, 0: found }): TextRange => [index, index + found.length]),
  );
}

/** Whether a match concerns something that is not a word of the language. */
function isProtected(text: string, { offset, length }: Match, ranges: readonly TextRange[]): boolean {
  const end = offset + length;
  if (ranges.some(([from, to]) => from < end && offset < to)) return true;
  // A part of a compound token.
  return /[\w@/\\]/.test(text[end] ?? '') && /\w$/.test(text.slice(offset, end));
}

/**
 * Whether a word that is not in the dictionary can be a name: it has an unexpected capital, letters that English lacks,
 * or is followed by another capitalized word.
 */
function canBeName(text: string, { offset, length }: Match, language: string): boolean {
  const word = text.slice(offset, offset + length);
  if (!/^\p{Lu}/u.test(word)) return /[^\p{ASCII}’]/u.test(word) && language.startsWith('en');
  if (language.startsWith('en') && /[^\p{ASCII}’]/u.test(word)) return true;
  if (/^ \p{Lu}/u.test(text.slice(offset + length, offset + length + 2))) return true;
  // German capitalizes every noun.
  return !language.startsWith('de') && !isSentenceStart(text, offset);
}

function isSentenceStart(text: string, offset: number): boolean {
  return /(?:^|[.!?…:\n]["'”’»)\]]*\s*|[\n\r]\s*)["'“‘„«([¿¡]*$/u.test(text.slice(Math.max(0, offset - 40), offset));
}

/** Costs of likely slips: swapped letters, a letter not doubled, a missing apostrophe or accent, a capital. */
const [caseOnly, apostrophe, likely, missing] = [0, 0.25, 0.5, 0.8];
const contraction = /(?:n't|'(?:m|re|ve|ll|d))$/;

interface SlipOptions {
  /** Whether suggestions are ordered by likelihood, so that the first of several equally near ones is taken. */
  readonly ordered: boolean;
}

/**
 * Finds the word that was meant: the nearest suggestion that a slip explains. Undefined if none or several are as near.
 */
export function findMeantWord(
  word: string,
  suggestions: readonly string[],
  { ordered }: SlipOptions,
): string | undefined {
  const costs = suggestions
    .map((suggestion) => ({ suggestion, cost: estimateCost(word, suggestion) }))
    .filter(({ cost }) => cost <= chooseCostLimit(word));
  const least = Math.min(...costs.map(({ cost }) => cost));
  const [first, ...others] = costs.filter(({ cost }) => cost - least < apostrophe);
  return others.length > 0 && !ordered ? undefined : first?.suggestion;
}

/** Short words have many near neighbours by chance. */
function chooseCostLimit(word: string): number {
  if (word.length <= 4) return missing;
  return word.length >= 6 && !/^\p{Lu}/u.test(word) ? 2 : 1;
}

/** Finds the suggestion that changes least; undefined if two tie. */
function findLeastChange(text: string, suggestions: readonly string[]): string | undefined {
  const [first, second] = suggestions
    .map((suggestion) => ({ suggestion, far: distance(text, suggestion) }))
    .sort((one, other) => one.far - other.far);
  return first !== undefined && first.far !== second?.far ? first.suggestion : undefined;
}

function estimateCost(word: string, suggestion: string): number {
  // Splitting a word that no dictionary has is a guess.
  if (suggestion.includes(' ')) return Number.POSITIVE_INFINITY;
  if (suggestion.toLowerCase() === word.toLowerCase()) return caseOnly;
  const [one, other] = [word.toLowerCase(), suggestion.toLowerCase().replaceAll('’', "'")];
  if (other.replace("'", '') === one) return contraction.test(other) ? apostrophe : 3;
  if (stripAccents(other) === stripAccents(one)) return apostrophe;
  if (isSwapped(one, other) || removeDoubles(other) === removeDoubles(one)) return likely;
  return countLetterChanges(one, other);
}

function countLetterChanges(one: string, other: string): number {
  const far = distance(one, other);
  // A letter is omitted more often than wrong, and the first letter is rarely wrong.
  if (far === 1 && other.length > one.length) return missing;
  return one[0] === other[0] ? far : far + 1;
}

/** Removes accents and writes ß as ss, as on keyboards that lack them and in Switzerland. */
function stripAccents(word: string): string {
  return word.replaceAll('ß', 'ss').normalize('NFD').replaceAll(/\p{M}/gu, '');
}

function isSwapped(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  const at = Array.from(one).findIndex((letter, index) => letter !== other[index]);
  return at >= 0 && one[at] === other[at + 1] && one[at + 1] === other[at] && one.slice(at + 2) === other.slice(at + 2);
}

function removeDoubles(word: string): string {
  return word.replaceAll(/(.)\1/g, '$1');
}
