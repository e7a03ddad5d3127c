// What SearXNG takes as a query and as a language: operators that it would answer with a redirect are refused, and
// languages are written as it writes them.
import { z } from 'zod';
import { findLanguage } from '../languages.ts';

/** `!!g words` sends on to Google, and `!!` alone to the first result: neither is a search. */
const redirect = /(?:^|\s)(!!\S*)/;

export const queryField = z
  .string()
  .trim()
  .min(1)
  .max(500)
  .superRefine((query, context) => {
    const operator = redirect.exec(query)?.[1];
    if (operator === undefined) return;
    context.addIssue({
      code: 'custom',
      message: `contains ${operator}, which redirects to another site instead of searching`,
      params: {
        fix: `Remove ${operator}, or put it in quotation marks to search for it. Accepted operators: !name for one engine or category (such as !wikipedia), :code for a language (such as :de).`,
      },
    });
  });

const languageFix =
  'Send all, or a language with or without a country, such as en, pt-BR, zh-CN or zh-TW. Scripts are accepted for Chinese alone (zh-Hans, zh-Hant).';

export const languageField = z
  .string()
  .trim()
  .min(2)
  .max(40)
  .transform((text, context): string => {
    const code = searchLanguage(text);
    if (code !== undefined) return code;
    context.addIssue({
      code: 'custom',
      message: 'is not a language of the search engine',
      params: { fix: languageFix },
    });
    return z.NEVER;
  });

/** SearXNG's code of a language; undefined where it has none that says the same. */
export function searchLanguage(text: string): string | undefined {
  if (text.toLowerCase() === 'all') return 'all';
  const found = findLanguage(text);
  return found === undefined ? undefined : codeOf(new Intl.Locale(found.code), found.code);
}

function codeOf(locale: Intl.Locale, written: string): string | undefined {
  const { language, script, region } = locale;
  if (!isWritten(locale, written)) return undefined;
  const code = region === undefined ? language : `${language}-${region}`;
  if (script === undefined) return code;
  const exact = code === 'zh' ? (chinese[script] ?? code) : code;
  return new Intl.Locale(exact).maximize().script === script ? exact : undefined;
}

/** Whether it is a language, a script and a country alone: a variant, like that of ca-valencia, would be lost. */
function isWritten({ language, script, region }: Intl.Locale, code: string): boolean {
  const parts = [language, script, region].filter((part) => part !== undefined);
  return code === parts.join('-') && !/^\d/.test(region ?? '');
}

/** SearXNG writes the script of Chinese as the country where it is used. */
const chinese: Readonly<Record<string, string>> = { Hans: 'zh-CN', Hant: 'zh-TW' };
