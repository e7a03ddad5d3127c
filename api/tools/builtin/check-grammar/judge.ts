// Decides which matches of a checker count, and which of them are sure enough to be applied to the text.
import type { Match } from './match.ts';
import { isProtected, mayBeName, protectedRanges, startsSentence } from './protect.ts';
import { leastChange, meantBy } from './slip.ts';

const languageToolSpelling = 'misspelling';
/** Kinds that say that a word is not in the dictionary. */
const spelling = new Set(['Spelling', 'Typo', languageToolSpelling]);
/** Kinds that say how else it could be said: reported, never applied, but for what is known to be an error. */
const style = new Set([
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
/** Harper's words about errors that it counts among those kinds. */
const sure =
  /^(?:Incorrect indefinite article|Did you mean `than`|Did you mean the closed compound `|Use `have` rather than `of`|`Affect` is usually|`affect` is usually|You probably mean the adverb `every day`|Using `(?:more|most)` and)|must be in the gerund form/;
/** Of a sentence: it takes the point of an abbreviation for its end. */
const sentenceCase = 'This sentence does not start with a capital letter';

export interface Judged {
  readonly matches: readonly Match[];
  /** Those of the matches whose first suggestion is put into the text. */
  readonly applied: readonly Match[];
}

/** `found` in text order. */
export function judged(text: string, language: string, found: readonly Match[]): Judged {
  const ranges = protectedRanges(text);
  const kept = found
    .filter((match) => !isProtected(text, match, ranges) && !isWrong(text, language, match))
    .map((match) => withMeaning(match));
  return {
    matches: kept.map(({ match }) => match),
    applied: kept.flatMap(({ match, isSure }) => (isSure ? match : [])),
  };
}

function isWrong(text: string, language: string, match: Match): boolean {
  if (spelling.has(match.kind)) return mayBeName(text, match, language);
  // Names that have become others.
  if (match.kind === 'WordChoice' && /^\p{Lu}/u.test(match.text)) return !startsSentence(text, match.offset);
  if (match.message === sentenceCase) return /\p{Lu}\p{L}{0,4}\.\s*$/u.test(text.slice(0, match.offset));
  const [first = ''] = match.suggestions;
  return match.kind === 'Capitalization' && startsSentence(text, match.offset) && /^\p{Ll}/u.test(first);
}

/** What was meant first, and whether that is sure. */
function withMeaning(match: Match): { readonly match: Match; readonly isSure: boolean } {
  const meant = meaningOf(match);
  if (meant === undefined) return { match, isSure: false };
  const suggestions = [meant, ...match.suggestions.filter((each) => each !== meant)];
  return { match: { ...match, suggestions }, isSure: true };
}

function meaningOf(match: Match): string | undefined {
  const { kind, text, message, suggestions } = match;
  const [first] = suggestions;
  if (first === undefined || (style.has(kind) && !sure.test(message))) return undefined;
  if (isUnknownWord(match)) return meantBy(text, suggestions, { ordered: kind === languageToolSpelling });
  // A rule that knows the error, as "teh"; but to take a word apart is a guess.
  if (spelling.has(kind)) return first.includes(' ') && !text.includes(' ') ? undefined : first;
  // Commas are a matter of taste.
  if (first.replaceAll(',', '') === text) return undefined;
  // Harper's first is the one its rule is about; of LanguageTool's, any may be meant.
  return /^\p{Lu}/u.test(kind) ? first : leastChange(text, suggestions);
}

/** What is said of a word for no other reason than that no dictionary has it. */
function isUnknownWord({ kind, message, text }: Match): boolean {
  return kind === languageToolSpelling ? !text.includes(' ') : message.startsWith('Did you mean to spell');
}
