// One visit of a page: its language, its words and formats, and its links.
import type { RequestFields } from '../http/index.ts';
import {
  type Formats,
  formats,
  chooseLanguage,
  type Language,
  type LanguageChoice,
  type Text,
  texts,
} from './language.ts';

/** Shared by all pages of an installation. */
export interface PageSite {
  /** Like https://moorage.localhost, without a slash at the end. */
  readonly baseUrl: string;
  /** Whether this installation serves this path. Other links are not shown. */
  readonly isServed: (path: string) => boolean;
}

export type LinkQuery = Readonly<Record<string, string | number | undefined>>;

export interface Visit extends LanguageChoice {
  readonly site: PageSite;
  readonly text: Text;
  readonly format: Formats;
  /** Path of this page, percent-encoded. */
  readonly path: string;
  readonly query: RequestFields;
  /** Creates a link inside the site, which keeps the language if the address names it. */
  readonly link: (path: string, query?: LinkQuery) => string;
  /** The path of this page in a language, with the rest of its query. */
  readonly toLanguageLink: (language: Language) => string;
}

export interface VisitRequest {
  readonly path: string;
  readonly query: RequestFields;
  readonly headers: Headers;
}

export function createVisit(site: PageSite, { path, query, headers }: VisitRequest): Visit {
  const choice = chooseLanguage(query['lang'], headers.get('accept-language'));
  return {
    ...choice,
    site,
    text: texts[choice.language],
    format: formats[choice.language],
    path,
    query,
    link: (to, more = {}) => addQuery(to, { ...more, lang: choice.isNamed ? choice.language : undefined }),
    toLanguageLink: (language) => addQuery(path, { ...selectKnownFields(query), lang: language }),
  };
}

function addQuery(path: string, query: LinkQuery): string {
  const fields = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  const text = new URLSearchParams(fields).toString();
  return text === '' ? path : `${path}?${text}`;
}

/** Query fields that pages use. Others, such as those of trackers, are not passed on. */
const knownFields = [
  'q',
  'category',
  'cursor',
  'before',
  'range',
  'host',
  'repo',
  'onboarding',
  'quality',
  'cost',
  'stability',
  'retention',
];

function selectKnownFields(query: RequestFields): Record<string, string | undefined> {
  return Object.fromEntries(knownFields.map((name) => [name, readField(query, name)]));
}

/** Reads a field that a form may send several times, such as check boxes. */
export function readList(fields: RequestFields, name: string): string[] {
  return Object.hasOwn(fields, name) ? [fields[name] ?? []].flat() : [];
}

/** Reads a field of a query or form; undefined unless it was sent exactly once. */
export function readField(fields: RequestFields, name: string): string | undefined {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
  return typeof value === 'string' ? value : undefined;
}
