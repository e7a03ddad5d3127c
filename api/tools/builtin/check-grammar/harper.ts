// Detects the language of a text, and checks English with Harper (WebAssembly). Runs in a worker process.
import { Dialect, LocalLinter, SuggestionKind, type Lint } from 'harper.js';
import { slimBinary } from 'harper.js/slimBinary';
import { detected, otherLanguage } from './detect.ts';
import { maxSuggestions, type Match } from './match.ts';
import type { GrammarReply, GrammarTask } from './worker-task.ts';

const dialects: Readonly<Record<string, Dialect>> = {
  gb: Dialect.British,
  au: Dialect.Australian,
  ca: Dialect.Canadian,
  in: Dialect.Indian,
};
const american = new LocalLinter({ binary: slimBinary });
/** In a dialect that was named, or British. */
const other = new LocalLinter({ binary: slimBinary });

export default async function check({ text, language }: GrammarTask): Promise<GrammarReply> {
  if (language === 'auto') {
    const found = detected(text);
    return { detected: found, matches: found === 'en' ? await lint(text, 'en') : [] };
  }
  const other = otherLanguage(text, language);
  const isEnglish = other === undefined && /^en(-|$)/i.test(language);
  return { other, matches: isEnglish ? await lint(text, language) : [] };
}

async function lint(text: string, language: string): Promise<Match[]> {
  const dialect = dialects[language.toLowerCase().split('-')[1] ?? ''];
  if (dialect !== undefined) return lintAs(other, dialect, text);
  const found = await lintAs(american, Dialect.American, text);
  // Who names no dialect may write any: what is a word in Britain is no error.
  if (language !== 'en' || !found.some(({ kind }) => kind === 'Spelling')) return found;
  const british = new Set((await lintAs(other, Dialect.British, text)).map(({ offset }) => offset));
  return found.filter(({ kind, offset }) => kind !== 'Spelling' || british.has(offset));
}

async function lintAs(linter: LocalLinter, dialect: Dialect, text: string): Promise<Match[]> {
  if ((await linter.getDialect()) !== dialect) await linter.setDialect(dialect);
  return (await linter.lint(text, { language: 'plaintext' })).map((each) => matchOf(text, each));
}

function matchOf(text: string, lint: Lint): Match {
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
