// Checks English with Harper (WebAssembly). Runs in a worker process.
import { Dialect, LocalLinter, SuggestionKind, type Lint } from 'harper.js';
import { slimBinary } from 'harper.js/slimBinary';
import { maxSuggestions, type Match } from './match.ts';

const dialects: Readonly<Record<string, Dialect>> = {
  gb: Dialect.British,
  au: Dialect.Australian,
  ca: Dialect.Canadian,
  in: Dialect.Indian,
};
const linter = new LocalLinter({ binary: slimBinary });

export default async function check({ text, language }: { text: string; language: string }): Promise<Match[]> {
  const dialect = dialects[language.toLowerCase().split('-')[1] ?? ''] ?? Dialect.American;
  if ((await linter.getDialect()) !== dialect) await linter.setDialect(dialect);
  const lints = await linter.lint(text, { language: 'plaintext' });
  return lints.map((lint) => matchOf(text, lint));
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
