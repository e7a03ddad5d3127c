// One visit of a page: its language, its words, and how its links are written.
import type { RequestFields } from '../http/index.ts';
import { type Formats, formats } from './format.ts';
import { chooseLanguage, type Language, type LanguageChoice } from './language.ts';
import { type Text, texts } from './text/index.ts';

/** What all pages of an installation share. */
export interface PageSite {
  /** Like https://moorage.localhost, without a slash at the end. */
  readonly baseUrl: string;
  /** Whether something answers at this path here: only such links are shown. */
  readonly answersAt: (path: string) => boolean;
}

export type LinkQuery = Readonly<Record<string, string | number | undefined>>;

export interface Visit extends LanguageChoice {
  readonly site: PageSite;
  readonly text: Text;
  readonly format: Formats;
  /** Path of this page, percent-encoded. */
  readonly path: string;
  readonly query: RequestFields;
  /** A link inside the site, which keeps the language where the address names it. */
  readonly link: (path: string, query?: LinkQuery) => string;
  /** This page in a language, with the rest of its query. */
  readonly inLanguage: (language: Language) => string;
}

export interface VisitRequest {
  readonly path: string;
  readonly query: RequestFields;
  readonly headers: Headers;
}

export function visitOf(site: PageSite, { path, query, headers }: VisitRequest): Visit {
  const choice = chooseLanguage(query['lang'], headers.get('accept-language'));
  return {
    ...choice,
    site,
    text: texts[choice.language],
    format: formats[choice.language],
    path,
    query,
    link: (to, more = {}) => withQuery(to, { ...more, lang: choice.named ? choice.language : undefined }),
    inLanguage: (language) => withQuery(path, { ...plain(query), lang: language }),
  };
}

function withQuery(path: string, query: LinkQuery): string {
  const fields = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  const text = new URLSearchParams(fields).toString();
  return text === '' ? path : `${path}?${text}`;
}

/** Fields of a query that a page knows: others, such as those of trackers, are not carried on. */
const known = [
  'q',
  'category',
  'cursor',
  'before',
  'host',
  'repo',
  'onboarding',
  'quality',
  'cost',
  'stability',
  'retention',
];

function plain(query: RequestFields): Record<string, string | undefined> {
  return Object.fromEntries(known.map((name) => [name, field(query, name)]));
}

/** A field of a query or a form that was given once. */
export function field(given: RequestFields, name: string): string | undefined {
  const value = Object.hasOwn(given, name) ? given[name] : undefined;
  return typeof value === 'string' ? value : undefined;
}
