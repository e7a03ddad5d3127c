// The page on which a visitor of a protected app enters its password or a key. It works without a script.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isAccessKey, longestPassword, signInPath, type AccessCredential, type AccessPolicy } from '../crds/access.ts';
import { escapeHtml } from '../lib/values.ts';
import { findKey, isOwnOrigin, type PasswordChecks, type Sessions } from './access.ts';
import { buildOwnHeaders, chooseLanguage, renderDocument } from './answer.ts';
import type { AppView, Directory } from './directory.ts';

export interface SignInOptions {
  readonly directory: Pick<Directory, 'find'>;
  readonly sessions: Sessions;
  readonly passwords: PasswordChecks;
}

/** Whether a person would see the page: a browser opens a document. Old browsers send no Sec-Fetch headers. */
export function shouldShowPage({ method, headers }: IncomingMessage): boolean {
  const mode = headers['sec-fetch-mode'];
  const isNavigation = mode === undefined || mode === 'navigate';
  return (
    (method === 'GET' || method === 'HEAD') &&
    isNavigation &&
    (headers.accept ?? '').toLowerCase().includes('text/html')
  );
}

/** Whether a request is for the page's own path. */
export function isSignIn({ url = '' }: IncomingMessage): boolean {
  return url.split('?')[0] === signInPath;
}

/** Answers a request whose visitor has to sign in first. */
export function sendSignInPage(request: IncomingMessage, response: ServerResponse, app: AppView): void {
  const here = isSignIn(request) ? '/' : (request.url ?? '/');
  sendForm(request, response, app, { status: 401, to: here });
}

/** Leads a visitor who is signed in from the page to the app. */
export function sendToApp(response: ServerResponse, to: string, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(303, { ...buildOwnHeaders('locked'), location: to, ...headers });
  response.end();
}

/** Answers the form: begins a session, or shows the page again. */
export async function acceptSignIn(
  request: IncomingMessage,
  response: ServerResponse,
  { app, network }: { readonly app: AppView; readonly network: string },
  { directory, sessions, passwords }: SignInOptions,
): Promise<void> {
  const { access: policy } = app.view;
  const { origin } = request.headers;
  const form = await readForm(request);
  const to = toOwnPath(form?.get('to') ?? '/', request.headers.host ?? '');
  if (policy === undefined) {
    sendToApp(response, to);
    return;
  }
  const isForeign = origin !== undefined && !isOwnOrigin(origin, app, directory);
  if (form === undefined || isForeign) {
    sendForm(request, response, app, { status: 400, to, notice: 'unreadable' });
    return;
  }
  const found = await findCredential(policy, form.get('secret') ?? '', network, passwords);
  if ('hash' in found) sendToApp(response, to, { 'set-cookie': sessions.begin(app, found) });
  else if (found.kind === 'limited')
    sendForm(request, response, app, { status: 429, to, notice: 'limited', retryAfter: found.retryAfter });
  else sendForm(request, response, app, { status: 403, to, notice: 'wrong' });
}

async function findCredential(
  policy: AccessPolicy,
  secret: string,
  network: string,
  passwords: PasswordChecks,
): Promise<AccessCredential | { kind: 'wrong' } | { kind: 'limited'; retryAfter: number }> {
  const key = secret.trim();
  const password = policy.credentials.find(({ kind }) => kind === 'password');
  if (isAccessKey(key)) return findKey(policy, key) ?? { kind: 'wrong' };
  if (password === undefined || secret === '' || secret.length > longestPassword) return { kind: 'wrong' };
  const answer = await passwords.check(network, secret, password.hash);
  if (answer.kind === 'right') return password;
  return answer.kind === 'limited' ? answer : { kind: 'wrong' };
}

const maximumBody = 8_192;

/** The form in the body; undefined if it is none or too long. */
async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  const [type = ''] = (request.headers['content-type'] ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/x-www-form-urlencoded') return undefined;
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maximumBody) return undefined;
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString());
}

const longestPath = 2_000;

/** A path at this host, where a browser is sent after the sign-in. Everything else leads to /. */
function toOwnPath(to: string, host: string): string {
  const base = `https://${host}`;
  if (!to.startsWith('/') || to.length > longestPath || !URL.canParse(to, base)) return '/';
  const url = new URL(to, base);
  const path = `${url.pathname}${url.search}`;
  // A path that begins with two slashes names another host when a browser resolves it.
  const isOwn = url.host === new URL(base).host && !path.startsWith('//') && url.pathname !== signInPath;
  return isOwn ? path : '/';
}

const texts = {
  en: {
    title: (app: string) => `${app} is protected`,
    lead: {
      password: 'Enter the password that its author gave you. An access key works, too.',
      key: 'Enter the access key that its author gave you.',
      locked: 'Nobody can open it at the moment. Its author has to set who may visit it again.',
    },
    label: { password: 'Password', key: 'Access key' },
    submit: 'Open',
    notices: {
      wrong: { password: 'This is not the password.', key: 'This key does not open the app.' },
      limited: 'Too many wrong passwords came from your network. Wait a minute. The right one still works.',
      unreadable: 'The form could not be read. Enter it again.',
    },
    note: 'You stay signed in for eight hours. The app does not see what you enter.',
  },
  zh: {
    title: (app: string) => `${app} 受访问保护`,
    lead: {
      password: '请输入作者提供给您的密码，也可以使用访问密钥。',
      key: '请输入作者提供给您的访问密钥。',
      locked: '目前任何人都无法打开。作者需要重新设置谁可以访问。',
    },
    label: { password: '密码', key: '访问密钥' },
    submit: '打开',
    notices: {
      wrong: { password: '密码不正确。', key: '此密钥无法打开该应用。' },
      limited: '来自您所在网络的错误密码过多，请等待一分钟。正确的密码仍然有效。',
      unreadable: '无法读取表单，请重新输入。',
    },
    note: '登录状态保持八小时。应用看不到您输入的内容。',
  },
} as const;
type Text = (typeof texts)[keyof typeof texts];

interface FormAnswer {
  readonly status: number;
  /** Where the visitor wanted to go. */
  readonly to: string;
  readonly notice?: keyof Text['notices'];
  readonly retryAfter?: number;
}

function sendForm(request: IncomingMessage, response: ServerResponse, app: AppView, answer: FormAnswer): void {
  const { body, headers } = renderPage(app, chooseLanguage(request.headers['accept-language']), answer);
  response.writeHead(answer.status, {
    ...buildOwnHeaders('locked'),
    ...headers,
    'content-length': Buffer.byteLength(body),
    ...(answer.status === 401 ? { 'www-authenticate': 'Bearer realm="moorage app"' } : {}),
    ...(answer.retryAfter === undefined ? {} : { 'retry-after': String(answer.retryAfter) }),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

function renderPage(
  { view }: AppView,
  lang: keyof typeof texts,
  { to, notice }: FormAnswer,
): ReturnType<typeof renderDocument> {
  const text = texts[lang];
  const mode = view.access?.mode ?? 'locked';
  const title = escapeHtml(text.title(view.title));
  const said = notice === undefined || mode === 'locked' ? undefined : text.notices[notice];
  const shown = said === undefined || mode === 'locked' ? undefined : typeof said === 'string' ? said : said[mode];
  const main = `<p class="brand">Moorage</p>
<h1>${title}</h1>
<p>${text.lead[mode]}</p>
${shown === undefined ? '' : `<p class="notice" role="alert">${shown}</p>\n`}${mode === 'locked' ? '' : renderForm(text, mode, to)}`;
  return renderDocument({ lang, title, style, main, policy: "form-action 'self'; frame-ancestors 'none'" });
}

function renderForm(text: Text, mode: 'key' | 'password', to: string): string {
  return `<form method="post" action="${signInPath}">
<input type="hidden" name="to" value="${escapeHtml(to.length > longestPath ? '/' : to)}">
<label for="secret">${text.label[mode]}</label>
<input id="secret" name="secret" type="password" required autofocus maxlength="${longestPassword}" autocomplete="current-password">
<button type="submit">${text.submit}</button>
</form>
<p class="note">${text.note}</p>
`;
}

const style = `
:root{color-scheme:light dark;--ink:#1c1f24;--faint:#5b6472;--paper:#fbfbfa;--line:#b9bec6;--mark:#2563a8;--onmark:#fff;--bad:#a4262c}
@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--faint:#a3abb8;--paper:#15181c;--line:#4a515c;--mark:#7db4ec;--onmark:#10161d;--bad:#ff9a9a}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{width:min(24rem,calc(100vw - 3rem));padding:2rem 0}
.brand{margin:0 0 1.5rem;font-weight:700;letter-spacing:.02em;color:var(--mark)}
h1{margin:0 0 .5rem;font-size:1.25rem;font-weight:600;overflow-wrap:anywhere}
p{margin:0 0 1.25rem;color:var(--faint)}
.notice{padding:.5rem .75rem;border-left:3px solid var(--bad);color:var(--bad)}
label{display:block;margin-bottom:.25rem;font-weight:600}
input[type=password]{width:100%;padding:.6rem .7rem;font:inherit;color:inherit;background:transparent;border:1px solid var(--line);border-radius:6px}
button{width:100%;margin:.75rem 0 1.25rem;padding:.65rem;font:inherit;font-weight:600;color:var(--onmark);background:var(--mark);border:0;border-radius:6px;cursor:pointer}
:is(input,button):focus-visible{outline:2px solid var(--mark);outline-offset:2px}
.note{font-size:.875rem}
`;
