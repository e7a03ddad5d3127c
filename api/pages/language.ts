// The language of a page: that of the address, else the one that the browser prefers. No cookie keeps it.
import Negotiator from 'negotiator';

export const languages = ['en', 'zh'] as const;
export type Language = (typeof languages)[number];

/** Tags as HTML and HTTP name them. */
export const languageTags: Readonly<Record<Language, string>> = { en: 'en', zh: 'zh-Hans' };

export interface LanguageChoice {
  readonly language: Language;
  /** The address names it: links from this page keep it. */
  readonly named: boolean;
}

/** @param named as the address has it @param accepted the Accept-Language header */
export function chooseLanguage(named: unknown, accepted: string | null): LanguageChoice {
  const found = languages.find((language) => language === named);
  if (found !== undefined) return { language: found, named: true };
  // Whoever accepts nothing that is here reads English.
  const [preferred] = new Negotiator({ headers: { 'accept-language': accepted ?? '*' } }).languages([...languages]);
  return { language: languages.find((language) => language === preferred) ?? 'en', named: false };
}
