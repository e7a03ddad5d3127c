// Whether what is live works: what its page shows, its own files, and what it asks of itself at once.
import type { Page, Request } from './page.ts';

export const works = ['live and works', 'live with faults', 'falsely live'] as const;
export interface PageVerdict {
  readonly verdict: (typeof works)[number];
  readonly faults: readonly string[];
  /** Hosts elsewhere that its page needs. */
  readonly elsewhere: readonly string[];
}

/** What an app shows in place of its page when it is broken. */
const broken =
  /Internal Server Error|Application error: a (?:client|server)-side exception|Traceback \(most recent call last\)|Bad Gateway|Service Unavailable|Cannot GET \/|ModuleNotFoundError|Error establishing a database connection/;

const calls: ReadonlySet<string> = new Set(['XHR', 'Fetch', 'EventSource']);
/** Asking who is there is answered so when nobody is. */
const ordinary: ReadonlySet<number> = new Set([401, 403]);

/**
 * Falsely live: the page is not there, shows an error, is empty, or none of the calls of itself is answered well.
 * With faults: some of its own files or calls fail, or what was declared to work does not.
 */
export function judgePage(page: Page, interaction?: { readonly works: boolean; readonly what: string }): PageVerdict {
  const host = new URL(page.url).host;
  const own = page.requests.filter(({ url }) => hostOf(url) === host);
  const elsewhere = [...new Set(page.requests.map(({ url }) => hostOf(url)))].filter(
    (each) => each !== '' && each !== host,
  );
  const fatal = fatalFaults(page, own);
  const faults = [...fatal, ...smallFaults(own), ...interactionFault(interaction)];
  const verdict = fatal.length > 0 ? works[2] : faults.length > 0 ? works[1] : works[0];
  return { verdict, faults, elsewhere };
}

function fatalFaults(page: Page, own: readonly Request[]): string[] {
  const asked = own.filter(({ type }) => calls.has(type));
  const deaf = asked.length > 0 && asked.every(({ status }) => !answered(status));
  return [...pageFaults(page), ...(deaf ? [`every call of itself fails: ${list(asked)}`] : [])];
}

function pageFaults(page: Page): string[] {
  const { status, text } = page;
  if (status === 0) return ['the page does not answer'];
  if (!answered(status)) return [`the page answers ${status}`];
  const shown = broken.exec(text)?.[0];
  if (shown !== undefined) return [`the page shows "${shown}"`];
  return isEmpty(page) && status < 400 ? [`the page is empty${describeException(page)}`] : [];
}

/** The first exception of a script explains an empty page. */
function describeException({ exceptions: [first] }: Page): string {
  return first === undefined ? '' : `: its script failed with "${(first.split('\n')[0] ?? '').slice(0, 200)}"`;
}

function smallFaults(own: readonly Request[]): string[] {
  // Each browser asks for an icon whether there is one or not.
  const failed = own.filter(
    ({ type, status, url }) => type !== 'Document' && !answered(status) && !/\/favicon\.ico$/.test(url),
  );
  return failed.length === 0 ? [] : [`fails: ${list(failed)}`];
}

function interactionFault(interaction: { works: boolean; what: string } | undefined): string[] {
  return interaction === undefined || interaction.works ? [] : [interaction.what];
}

const answered = (status: number): boolean => (status > 0 && status < 400) || ordinary.has(status);
const isEmpty = ({ text, elements }: Page): boolean => text.trim() === '' && elements < 5;

function list(requests: readonly Request[]): string {
  const words = requests
    .slice(0, 5)
    .map(({ url, status }) => `${new URL(url).pathname} ${status === 0 ? 'no answer' : status}`);
  return `${words.join(', ')}${requests.length > 5 ? `, and ${requests.length - 5} more` : ''}`;
}

function hostOf(url: string): string {
  return /^https?:/.test(url) ? new URL(url).host : '';
}
