// Numbers, money, times and dates as readers of each language write them.
import { type Html, html } from '../http/index.ts';
import { type Language, languageTags } from './language.ts';

export interface Formats {
  readonly integer: (value: number) => string;
  /** `45K`, `4.5万`. */
  readonly compact: (value: number) => string;
  /** `$0.00124`: at least two decimals, and three digits that count. */
  readonly money: (value: number) => string;
  /** `87.5%` of a part of one. */
  readonly percent: (part: number) => string;
  /** `840 ms`, `1.2 s`. */
  readonly duration: (milliseconds: number) => string;
  readonly decimal: (value: number) => string;
  /** A date as HTML, with the time for programs. */
  readonly date: (time: string) => Html;
  readonly dateTime: (time: string) => Html;
  readonly list: (items: readonly string[]) => string;
}

/** Digits behind the point of the smallest amount that is kept apart. */
const finest = 12;

/** Two, and of less than a dollar as many as show three digits that count. */
function digitsOf(value: number): number {
  return value > 0 && value < 1 ? Math.min(finest, 2 - Math.floor(Math.log10(value))) : 2;
}

function make(language: Language): Formats {
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
    money: (value) => amounts[digitsOf(value)]?.format(value) ?? String(value),
    percent: (part) => percent.format(part),
    duration: (value) => (value < 1_000 ? milliseconds.format(value) : seconds.format(value / 1_000)),
    decimal: (value) => decimal.format(value),
    date: (time) => timeElement(time, (date) => day.format(date)),
    dateTime: (time) => timeElement(time, (date) => `${moment.format(date)} UTC`),
    list: (items) => lists.format(items),
  };
}

/** What is no time is shown as it was written. */
function timeElement(time: string, format: (date: Date) => string): Html {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return html`<span>${time}</span>`;
  return html`<time datetime="${date.toISOString()}">${format(date)}</time>`;
}

/** They take a while to make, and are the same for every page. */
export const formats: Readonly<Record<Language, Formats>> = { en: make('en'), zh: make('zh') };
