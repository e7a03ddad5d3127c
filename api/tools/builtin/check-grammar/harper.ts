// Checks English with Harper (WebAssembly), and detects the language of a text, so that a text in another language than
// stated is rejected and not "corrected". Runs in a worker process.
import { Dialect, LocalLinter, SuggestionKind, type Lint } from 'harper.js';
import { slimBinary } from 'harper.js/slimBinary';
import { eld } from 'eld/small';
import { maxSuggestions, type Match, findProtectedRanges } from './judge.ts';
import type { GrammarReply, GrammarTask } from './check-grammar.ts';

const dialects: Readonly<Record<string, Dialect>> = {
  gb: Dialect.British,
  au: Dialect.Australian,
  ca: Dialect.Canadian,
  in: Dialect.Indian,
};
const american = new LocalLinter({ binary: slimBinary });
/** For the stated dialect, or British. */
const otherDialect = new LocalLinter({ binary: slimBinary });

export default async function check({ text, language }: GrammarTask): Promise<GrammarReply> {
  if (language === 'auto') {
    const found = detectLanguage(text);
    return { detected: found, matches: found === 'en' ? await lint(text, 'en') : [] };
  }
  const other = findOtherLanguage(text, language);
  const isEnglish = other === undefined && /^en(-|$)/i.test(language);
  return { other, matches: isEnglish ? await lint(text, language) : [] };
}

async function lint(text: string, language: string): Promise<Match[]> {
  const dialect = dialects[language.toLowerCase().split('-')[1] ?? ''];
  if (dialect !== undefined) return lintAs(otherDialect, dialect, text);
  const found = await lintAs(american, Dialect.American, text);
  // Without a stated dialect, any is accepted: a British word is not an error.
  if (language !== 'en' || !found.some(({ kind }) => kind === 'Spelling')) return found;
  const british = new Set((await lintAs(otherDialect, Dialect.British, text)).map(({ offset }) => offset));
  return found.filter(({ kind, offset }) => kind !== 'Spelling' || british.has(offset));
}

async function lintAs(linter: LocalLinter, dialect: Dialect, text: string): Promise<Match[]> {
  if ((await linter.getDialect()) !== dialect) await linter.setDialect(dialect);
  return (await linter.lint(text, { language: 'plaintext' })).map((each) => toMatch(text, each));
}

function toMatch(text: string, lint: Lint): Match {
  const { start, end } = lint.span();
  const there = text.slice(start, end);
  const suggestions = lint
    .suggestions()
    .slice(0, maxSuggestions)
    .map((suggestion) => {
      if (suggestion.kind() === SuggestionKind.Remove) return '';
      return suggestion.kind() === SuggestionKind.InsertAfter
        ? there + suggestion.get_replacement_text()
        : suggestion.get_replacement_text();
    });
  const match = {
    offset: start,
    length: end - start,
    text: there,
    message: lint.message(),
    kind: lint.lint_kind(),
    suggestions,
  };
  lint.free();
  return match;
}

/** Minimum for a guess: one or two words can look alike in many languages. */
const minWords = 3;
const minScore = 0.68;
/** How far the score of the stated language may be behind. */
const maxScoreGap = 0.1;

/** Detects the language of a text; undefined if it is uncertain. */
export function detectLanguage(text: string): string | undefined {
  const guess = guessLanguage(text);
  return guess !== undefined && guess.score >= minScore ? guess.language : undefined;
}

/** Detects the language of a text that certainly is not in `stated`; undefined otherwise. */
export function findOtherLanguage(text: string, stated: string): string | undefined {
  const guess = guessLanguage(text);
  const [base = ''] = stated.toLowerCase().split('-');
  if (guess === undefined || guess.score < minScore || guess.language === base) return undefined;
  const behind = guess.score - (guess.scores[base] ?? 0);
  return behind > maxScoreGap ? guess.language : undefined;
}

function guessLanguage(
  text: string,
):
  { readonly language: string; readonly score: number; readonly scores: Readonly<Record<string, number>> } | undefined {
  const prose = blankNames(blankCode(text));
  // In scripts without spaces, each character counts as a word.
  const words = prose.match(/[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}]|\p{L}+/gu) ?? [];
  if (words.length < minWords) return undefined;
  const guess = eld.detect(prose);
  const scores = guess.getScores();
  if (!guess.isReliable()) return undefined;
  return { language: guess.language, score: scores[guess.language] ?? 0, scores };
}

function blankCode(text: string): string {
  let prose = text;
  for (const [from, to] of findProtectedRanges(text))
    prose = prose.slice(0, from) + ' '.repeat(to - from) + prose.slice(to);
  return prose;
}

/** Drops capitalized words: names belong to any language. */
function blankNames(text: string): string {
  return text.replaceAll(/\p{Lu}[\p{L}’'-]*/gu, ' ');
}
