// Finds a language by the code or the name that a caller sends, and gives the name that prompts use.
import { createValidationProblem } from '../../http/index.ts';

export interface Language {
  /** BCP 47, like `de` or `pt-BR`. */
  readonly code: string;
  /** In English, like `Brazilian Portuguese`. */
  readonly name: string;
}

const englishNames = new Intl.DisplayNames('en', { type: 'language', fallback: 'none' });
const letters = Array.from('abcdefghijklmnopqrstuvwxyz');
/** Languages that are found by name, in addition to those with a two-letter code. Any other is found by its code only. */
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

let cachedCodes: Map<string, string> | undefined;

/** Codes by lower-case name, in English and in the language itself. Computed on first use. */
function loadCodesByName(): Map<string, string> {
  if (cachedCodes !== undefined) return cachedCodes;
  const codes = [...letters.flatMap((first) => letters.map((second) => first + second)), ...moreCodes].filter(
    (code) => englishNames.of(code) !== undefined,
  );
  cachedCodes = new Map(
    codes
      .flatMap((code) =>
        [englishNames, new Intl.DisplayNames(code, { type: 'language', fallback: 'none' })]
          .flatMap((display) => display.of(code)?.toLowerCase() ?? [])
          .map((name): [string, string] => [name, code]),
      )
      .reverse(),
  );
  return cachedCodes;
}

/** Accepts `de`, `pt-BR`, `zh_hant`, `German` and `Deutsch`. Undefined if the text is not a language. */
export function findLanguage(text: string): Language | undefined {
  const trimmed = text.trim();
  const code = loadCodesByName().get(trimmed.toLowerCase()) ?? canonicalize(trimmed.replaceAll('_', '-'));
  const name = code === undefined ? undefined : englishNames.of(code);
  return code === undefined || name === undefined || ['und', 'mul', 'zxx', 'mis'].includes(code)
    ? undefined
    : { code, name };
}

/** Drops extensions such as `-u-co-phonebk`, which have no name and do not change the language. */
function canonicalize(code: string): string | undefined {
  try {
    return new Intl.Locale(code).baseName;
  } catch {
    return undefined;
  }
}

/** Parses the language in a field of a call. @throws Problem (invalid-request) if it is not a language */
export function parseLanguage(field: 'to' | 'from', text: string): Language {
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
