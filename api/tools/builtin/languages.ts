// Languages by code or by name, as callers write them and as prompts name them.
import { createValidationProblem } from '../../http/index.ts';

export interface Language {
  /** BCP 47, like `de` or `pt-BR`. */
  readonly code: string;
  /** In English, like `Brazilian Portuguese`. */
  readonly name: string;
}

const english = new Intl.DisplayNames('en', { type: 'language', fallback: 'none' });
const letters = Array.from('abcdefghijklmnopqrstuvwxyz');
/** Found by name as well, beside those with a code of two letters. Any other is found by its code. */
const moreCodes = [
  'yue',
  'fil',
  'haw',
  'ceb',
  'hmn',
  'ast',
  'gsw',
  'nds',
  'ckb',
  'pt-BR',
  'pt-PT',
  'zh-Hans',
  'zh-Hant',
  'en-GB',
  'en-US',
  'es-MX',
  'es-419',
  'fr-CA',
  'fr-CH',
  'de-CH',
  'de-AT',
  'sr-Latn',
  'sr-Cyrl',
];

let names: Map<string, string> | undefined;

/** Codes by name in lower case, in English and in the language itself. Made when first asked for. */
function codesByName(): Map<string, string> {
  if (names !== undefined) return names;
  const codes = [...letters.flatMap((first) => letters.map((second) => first + second)), ...moreCodes].filter(
    (code) => english.of(code) !== undefined,
  );
  names = new Map(
    codes
      .flatMap((code) =>
        [english, new Intl.DisplayNames(code, { type: 'language', fallback: 'none' })]
          .flatMap((display) => display.of(code)?.toLowerCase() ?? [])
          .map((name): [string, string] => [name, code]),
      )
      .reverse(),
  );
  return names;
}

/** Reads `de`, `pt-BR`, `zh_hant`, `German`, `Deutsch`; undefined for what is no language. */
export function findLanguage(text: string): Language | undefined {
  const written = text.trim();
  const code = codesByName().get(written.toLowerCase()) ?? canonical(written.replaceAll('_', '-'));
  const name = code === undefined ? undefined : english.of(code);
  return code === undefined || name === undefined || ['und', 'mul', 'zxx', 'mis'].includes(code)
    ? undefined
    : { code, name };
}

/** Without extensions, like `-u-co-phonebk`, which say nothing about the language, and have no name. */
function canonical(code: string): string | undefined {
  try {
    return new Intl.Locale(code).baseName;
  } catch {
    return undefined;
  }
}

/** The language that a field of a call names. @throws a problem where it is none */
export function languageOf(field: 'to' | 'from', text: string): Language {
  const language = findLanguage(text);
  if (language !== undefined) return language;
  throw createValidationProblem([
    {
      in: 'query',
      field,
      message: 'is not a language',
      fix: 'Send a code such as de, pt-BR or zh-Hant, or a name such as German.',
    },
  ]);
}
