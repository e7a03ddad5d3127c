// How long a request waits for an app that wakes, and what it gets then.
import type { IncomingHttpHeaders } from 'node:http';

export interface Patience {
  readonly kind: 'page' | 'problem';
  readonly afterMs: number;
  /** Seconds that the client wants to wait (Prefer: wait, RFC 7240). */
  readonly wait?: number;
}

/** A person should see soon that something happens. */
const pageMs = 1_000;
/** A page that waits already asks again, and is answered by the app itself if that comes up within this time. */
const reloadMs = 20_000;

export interface PatientRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

/**
 * @param limitMs what a request waits that says nothing of it
 * @param rests whether the app may rest; one that does not is away for a few seconds only, while a release replaces
 *   another
 */
export function choosePatience(request: PatientRequest, limitMs: number, rests = true): Patience {
  const wait = preferredWait(request.headers['prefer']);
  if (wait !== undefined) return { kind: 'problem', afterMs: Math.min(wait * 1000, limitMs), wait };
  if (!isNavigation(request)) return { kind: 'problem', afterMs: limitMs };
  return { kind: 'page', afterMs: Math.min(isReload(request) || !rests ? reloadMs : pageMs, limitMs) };
}

/** Seconds of `wait` in the header Prefer. */
function preferredWait(header: string | string[] | undefined): number | undefined {
  const text = Array.isArray(header) ? header.join(',') : (header ?? '');
  const found = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,6})"?\s*(?=$|[,;])/i.exec(text);
  return found === null ? undefined : Number(found[1]);
}

/** A person opens a page: fetches and frames of pages say otherwise, and other programs do not say this. */
function isNavigation({ method, headers }: PatientRequest): boolean {
  return (
    method === 'GET' &&
    headers['sec-fetch-mode'] === 'navigate' &&
    (headers['accept'] ?? '').toLowerCase().includes('text/html')
  );
}

/** The page that waits names itself as where it comes from. */
function isReload({ url = '', headers }: PatientRequest): boolean {
  const { referer, host = '' } = headers;
  if (referer === undefined || !URL.canParse(referer)) return false;
  const from = new URL(referer);
  return from.host === host && `${from.pathname}${from.search}` === url;
}
