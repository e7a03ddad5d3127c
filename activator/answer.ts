// The activator's own answers: a problem for programs, a waiting page for people, and how long a request waits for either.
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { activatorProblems as problems } from '../crds/reports.ts';
import { Problem, buildProblemBody, problemMediaType } from '../lib/problem.ts';
import { escapeHtml } from '../lib/values.ts';
import type { AppView } from './directory.ts';
import type { Refusal, RefusalKind } from './wake.ts';

/** Marks a response that the app has not made. */
export const waitingHeader = 'moorage-activator';

const types = {
  unknown: problems.unknownApp,
  stopped: problems.appStopped,
  failed: problems.appNotStarting,
  waking: problems.appWaking,
  full: problems.appWaking,
  limited: problems.tooManyHeld,
  asleep: problems.appWaking,
  broken: problems.appBroken,
  locked: problems.accessRequired,
  wrong: problems.wrongAccessKey,
} as const satisfies Record<RefusalKind, unknown>;

/** Answers with a problem (RFC 9457). */
export function sendProblem(
  request: IncomingMessage,
  response: ServerResponse,
  refusal: Refusal,
  { baseUrl, id, preference }: { readonly baseUrl: string; readonly id: string; readonly preference?: string },
): void {
  const problem = new Problem(types[refusal.kind], refusal.message);
  const path = (request.url ?? '/').split('?')[0] ?? '/';
  const body = `${JSON.stringify(buildProblemBody(problem, baseUrl, path, id))}\n`;
  response.writeHead(problem.type.status, {
    ...buildOwnHeaders(refusal.kind),
    'content-type': problemMediaType,
    'content-length': Buffer.byteLength(body),
    ...(refusal.retryAfter === undefined ? {} : { 'retry-after': String(refusal.retryAfter) }),
    ...(preference === undefined ? {} : { 'preference-applied': preference }),
    ...(problem.type.status === 401 ? { 'www-authenticate': 'Bearer realm="moorage app"' } : {}),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/**
 * Sends the client of a renamed app to its new address, with the same method and body (308). No client may store that: the app
 * can get its former name back, and two stored redirects would lead in a circle.
 */
export function sendMoved(request: IncomingMessage, response: ServerResponse, origin: string): void {
  const path = request.url?.startsWith('/') === true ? request.url : '/';
  response.writeHead(308, {
    ...buildOwnHeaders('moved'),
    'content-length': 0,
    location: `${origin}${path}`,
  });
  response.end();
}

/** Answers with the waiting page. */
export function sendPage(request: IncomingMessage, response: ServerResponse, app: AppView, retryAfter: number): void {
  const { body, headers } = renderWaitingPage(app.view.title, request.headers['accept-language'], retryAfter);
  response.writeHead(503, {
    ...buildOwnHeaders('waking'),
    ...headers,
    'content-length': Buffer.byteLength(body),
    'retry-after': String(retryAfter),
  });
  response.end(body);
}

/** The connection closes, because an unread body would be parsed as the next request. */
export function buildOwnHeaders(kind: RefusalKind | 'moved'): Record<string, string> {
  return { 'cache-control': 'no-store', [waitingHeader]: kind, connection: 'close' };
}

// How long a request waits for a waking app, and which answer it gets then.

export interface Patience {
  readonly kind: 'page' | 'problem';
  readonly afterMs: number;
  /** Seconds that the client wants to wait (Prefer: wait, RFC 7240). */
  readonly wait?: number;
}

/** A person should see soon that something happens. */
const pageMs = 1_000;
/** A waiting page that reloads is answered by the app itself if it comes up within this time. */
const reloadMs = 20_000;

export interface PatientRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

/**
 * @param limitMs how long a request without a preference waits
 * @param rests whether the app may rest; one that does not is away only for the few seconds of a rollout
 */
export function choosePatience(request: PatientRequest, limitMs: number, rests = true): Patience {
  const wait = parsePreferredWait(request.headers['prefer']);
  if (wait !== undefined) return { kind: 'problem', afterMs: Math.min(wait * 1000, limitMs), wait };
  if (!isNavigation(request)) return { kind: 'problem', afterMs: limitMs };
  return { kind: 'page', afterMs: Math.min(isReload(request) || !rests ? reloadMs : pageMs, limitMs) };
}

/** Seconds of `wait` in the header Prefer. */
function parsePreferredWait(header: string | string[] | undefined): number | undefined {
  const text = Array.isArray(header) ? header.join(',') : (header ?? '');
  const match = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,6})"?\s*(?=$|[,;])/i.exec(text);
  return match === null ? undefined : Number(match[1]);
}

/** A person opens a page. Fetches and frames have another mode, and other programs do not send this header. */
function isNavigation({ method, headers }: PatientRequest): boolean {
  return (
    method === 'GET' &&
    headers['sec-fetch-mode'] === 'navigate' &&
    (headers['accept'] ?? '').toLowerCase().includes('text/html')
  );
}

/** The waiting page sends its own address as the Referer. */
function isReload({ url = '', headers }: PatientRequest): boolean {
  const { referer, host = '' } = headers;
  if (referer === undefined || !URL.canParse(referer)) return false;
  const from = new URL(referer);
  return from.host === host && `${from.pathname}${from.search}` === url;
}

// The page that a person sees while an app wakes. It reloads itself without a script.

const style = `
:root{color-scheme:light dark;--ink:#1c1f24;--faint:#5b6472;--paper:#fbfbfa;--line:#d9dce1;--mark:#2563a8}
@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--faint:#a3abb8;--paper:#15181c;--line:#363c45;--mark:#7db4ec}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{width:min(26rem,calc(100vw - 3rem));text-align:center}
h1{margin:0 0 .5rem;font-size:1.25rem;font-weight:600;overflow-wrap:anywhere}
p{margin:0;color:var(--faint)}
.bar{height:3px;margin:1.5rem 0;border-radius:2px;background:var(--line);overflow:hidden}
.bar::before{content:"";display:block;width:35%;height:100%;border-radius:2px;background:var(--mark);animation:go 1.6s ease-in-out infinite alternate}
@keyframes go{from{transform:translateX(-20%)}to{transform:translateX(205%)}}
@media(prefers-reduced-motion:reduce){.bar::before{animation:none;width:100%}}
`;

const texts = {
  en: {
    formatTitle: (app: string) => `${app} is waking up`,
    why: 'It was asleep because nobody used it. This page opens it as soon as it is ready',
    usual: (seconds: number) => `, usually within ${seconds === 1 ? 'a second' : `${seconds} seconds`}.`,
  },
  zh: {
    formatTitle: (app: string) => `${app} 正在唤醒`,
    why: '由于无人使用，它已休眠。准备就绪后，此页面会自动打开它',
    usual: (seconds: number) => `，通常在 ${seconds} 秒内。`,
  },
} as const;

/** @param language header Accept-Language @param seconds how long a wake of the app usually takes */
export function renderWaitingPage(
  app: string,
  language: string | undefined,
  seconds: number,
): { body: string; headers: Record<string, string> } {
  const lang = chooseLanguage(language);
  const text = texts[lang];
  const title = escapeHtml(text.formatTitle(app));
  const main = `<h1>${title}</h1>
<div class="bar" role="progressbar" aria-label="${title}"></div>
<p>${text.why}${text.usual(seconds)}</p>
`;
  const { body, headers } = renderDocument({
    ...{ lang, title, style, main },
    policy: "form-action 'none'; frame-ancestors 'self'",
  });
  // The page reloads after a second, and stays visible until there is an answer.
  return { body, headers: { ...headers, refresh: '1' } };
}

/** The language of a page. @param header Accept-Language */
export function chooseLanguage(header: string | undefined): 'en' | 'zh' {
  return /^\s*zh\b/i.test(header ?? '') ? 'zh' : 'en';
}

interface PageParts {
  readonly lang: 'en' | 'zh';
  /** HTML, as is `main`. */
  readonly title: string;
  readonly style: string;
  readonly main: string;
  /** Directives of the Content-Security-Policy about forms and frames. */
  readonly policy: string;
}

/** A page without scripts, and its headers. */
export function renderDocument({ lang, title, style: css, main, policy }: PageParts): {
  body: string;
  headers: Record<string, string>;
} {
  const hash = createHash('sha256').update(css).digest('base64');
  const body = `<!doctype html>
<html lang="${lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>${title}</title>
<style>${css}</style>
</head>
<body>
<main>
${main}</main>
</body>
</html>
`;
  return {
    body,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-language': lang,
      'content-security-policy': `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; ${policy}`,
      // The Referer shows that the next request comes from this page.
      'referrer-policy': 'same-origin',
      'x-robots-tag': 'noindex',
      'x-content-type-options': 'nosniff',
      vary: 'accept-language',
    },
  };
}
