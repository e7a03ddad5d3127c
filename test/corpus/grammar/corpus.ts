// The sentences of this folder, and how an answer of check_grammar is judged: half of them are right, half have one known
// error, marked as {wrong=>right}, or {wrong=>right|also right}.
import { readFileSync } from 'node:fs';

export const languages = ['en', 'de', 'fr', 'es'] as const;

export interface Sentence {
  readonly given: string;
  /** What it may become; a right sentence only stays. */
  readonly accepted: readonly string[];
  readonly isRight: boolean;
}

export type Verdict = 'kept' | 'corrected' | 'missed' | 'changed wrongly';

const marked = /\{([^{}]*)=>([^{}]*)\}/;

export function sentencesOf(language: (typeof languages)[number]): Sentence[] {
  return readFileSync(new URL(`${language}.txt`, import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const found = marked.exec(line);
      if (found === null) return { given: line, accepted: [line], isRight: true };
      const [, wrong = '', right = ''] = found;
      return {
        given: line.replace(marked, () => wrong),
        accepted: right.split('|').map((each) => line.replace(marked, () => each)),
        isRight: false,
      };
    });
}

export function verdictOf({ given, accepted, isRight }: Sentence, corrected: string): Verdict {
  if (corrected === given) return isRight ? 'kept' : 'missed';
  return accepted.includes(corrected) ? 'corrected' : 'changed wrongly';
}

export interface Score {
  readonly right: number;
  readonly wrong: number;
  /** Of the changed sentences, those that were changed rightly. */
  readonly precision: number;
  /** Of the sentences with an error, those that were corrected. */
  readonly recall: number;
}

export function scoreOf(verdicts: readonly Verdict[]): Score {
  const count = (...kinds: readonly Verdict[]): number => verdicts.filter((each) => kinds.includes(each)).length;
  const [good, bad] = [count('corrected'), count('changed wrongly')];
  return {
    right: good,
    wrong: bad,
    precision: good + bad === 0 ? 1 : good / (good + bad),
    recall: good / Math.max(1, verdicts.length - count('kept')),
  };
}
