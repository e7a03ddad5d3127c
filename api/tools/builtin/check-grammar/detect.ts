// Detects the language of a text, so that one in another language than was named is refused, not "corrected". Runs in
// a worker process.
import { eld } from 'eld/small';
import { protectedRanges } from './protect.ts';

/** Below this no guess is reported: a word or two are alike in many languages. */
const minWords = 3;
const minScore = 0.68;
/** How far the language that was named may be behind. */
const maxBehind = 0.1;

/** The language that the text is surely in; undefined where that is not sure. */
export function detected(text: string): string | undefined {
  const guess = guessOf(text);
  return guess !== undefined && guess.score >= minScore ? guess.language : undefined;
}

/** The language that the text is in, where it surely is not `stated`; undefined otherwise. */
export function otherLanguage(text: string, stated: string): string | undefined {
  const guess = guessOf(text);
  const [base = ''] = stated.toLowerCase().split('-');
  if (guess === undefined || guess.score < minScore || guess.language === base) return undefined;
  const behind = guess.score - (guess.scores[base] ?? 0);
  return behind > maxBehind ? guess.language : undefined;
}

function guessOf(
  text: string,
):
  { readonly language: string; readonly score: number; readonly scores: Readonly<Record<string, number>> } | undefined {
  const prose = withoutNames(withoutCode(text));
  // Where words are not set apart, a sign is worth a word.
  const words = prose.match(/[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}]|\p{L}+/gu) ?? [];
  if (words.length < minWords) return undefined;
  const guess = eld.detect(prose);
  const scores = guess.getScores();
  if (!guess.isReliable()) return undefined;
  return { language: guess.language, score: scores[guess.language] ?? 0, scores };
}

function withoutCode(text: string): string {
  let prose = text;
  for (const [from, to] of protectedRanges(text))
    prose = prose.slice(0, from) + ' '.repeat(to - from) + prose.slice(to);
  return prose;
}

/** Names are of any language: words with a capital do not count. */
function withoutNames(text: string): string {
  return text.replaceAll(/\p{Lu}[\p{L}’'-]*/gu, ' ');
}
