// The languages of pages: how one is chosen, its words, and its formats of numbers, money and times. The address or the
// browser's preference chooses the language; no cookie stores it.
import Negotiator from 'negotiator';
import { en, type Text } from './text/en.ts';
import { zh } from './text/zh.ts';
import { type Html, html } from '../http/index.ts';

export const languages = ['en', 'zh'] as const;
export type Language = (typeof languages)[number];

/** Language tags for HTML and HTTP. */
export const languageTags: Readonly<Record<Language, string>> = { en: 'en', zh: 'zh-Hans' };

export interface LanguageChoice {
  readonly language: Language;
  /** The address names the language, so links from this page keep it. */
  readonly isNamed: boolean;
}

/** @param named language in the address @param accepted the Accept-Language header */
export function chooseLanguage(named: unknown, accepted: string | null): LanguageChoice {
  const choice = languages.find((language) => language === named);
  if (choice !== undefined) return { language: choice, isNamed: true };
  // English if the browser accepts none of these languages.
  const [preferred] = new Negotiator({ headers: { 'accept-language': accepted ?? '*' } }).languages([...languages]);
  return { language: languages.find((language) => language === preferred) ?? 'en', isNamed: false };
}

export type { Text };
/** The words of pages by language. */
export const texts: Readonly<Record<Language, Text>> = { en, zh };

/** Numbers, money, times and dates as a language writes them. */
export interface Formats {
  readonly integer: (value: number) => string;
  /** `45K`, `4.5万`. */
  readonly compact: (value: number) => string;
  /** `$0.00124`: at least two decimals and three significant digits. */
  readonly money: (value: number) => string;
  /** `87.5%` for 0.875. */
  readonly percent: (part: number) => string;
  /** `840 ms`, `1.2 s`. */
  readonly duration: (milliseconds: number) => string;
  readonly decimal: (value: number) => string;
  /** A date as HTML, with a machine-readable time. */
  readonly date: (time: string) => Html;
  readonly dateTime: (time: string) => Html;
  readonly list: (items: readonly string[]) => string;
}

/** Most decimals that an amount is shown with. */
const finest = 12;

/** Counts the decimals: two, or for less than a dollar as many as show three significant digits. */
function countDigits(value: number): number {
  return value > 0 && value < 1 ? Math.min(finest, 2 - Math.floor(Math.log10(value))) : 2;
}

function createFormats(language: Language): Formats {
  const tag = languageTags[language];
  const number = (options: Intl.NumberFormatOptions): Intl.NumberFormat => new Intl.NumberFormat(tag, options);
  const usd = { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' } as const;
  const [integer, compact, percent, decimal, seconds, milliseconds] = [
    number({ maximumFractionDigits: 0 }),
    number({ notation: 'compact', maximumFractionDigits: 1 }),
    number({ style: 'percent', maximumFractionDigits: 1 }),
    number({ maximumFractionDigits: 2 }),
    number({ style: 'unit', unit: 'second', unitDisplay: 'short', maximumFractionDigits: 1 }),
    number({ style: 'unit', unit: 'millisecond', unitDisplay: 'short', maximumFractionDigits: 0 }),
  ];
  const amounts = Array.from({ length: finest + 1 }, (_none, digits) =>
    number({ ...usd, minimumFractionDigits: 2, maximumFractionDigits: Math.max(2, digits) }),
  );
  const day = new Intl.DateTimeFormat(tag, { dateStyle: 'medium', timeZone: 'UTC' });
  const moment = new Intl.DateTimeFormat(tag, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' });
  const lists = new Intl.ListFormat(tag, { type: 'conjunction' });
  return {
    integer: (value) => integer.format(value),
    compact: (value) => compact.format(value),
    money: (value) => amounts[countDigits(value)]?.format(value) ?? String(value),
    percent: (part) => percent.format(part),
    duration: (value) => (value < 1_000 ? milliseconds.format(value) : seconds.format(value / 1_000)),
    decimal: (value) => decimal.format(value),
    date: (time) => renderTime(time, (date) => day.format(date)),
    dateTime: (time) => renderTime(time, (date) => `${moment.format(date)} UTC`),
    list: (items) => lists.format(items),
  };
}

/** Shows an invalid time as it was written. */
function renderTime(time: string, format: (date: Date) => string): Html {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return html`<span>${time}</span>`;
  return html`<time datetime="${date.toISOString()}">${format(date)}</time>`;
}

/** Created once, because that takes a while and they are the same for every page. */
export const formats: Readonly<Record<Language, Formats>> = { en: createFormats('en'), zh: createFormats('zh') };
