// The app of an attacker who is its author, and how its endpoints and forms are called. One app serves all attacks on authors.
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Answer, AskOptions, Victim } from '../victim.ts';

export type Method = NonNullable<AskOptions['method']>;

/** Every endpoint of an author, with a body that a legitimate request could have. */
export const endpoints: readonly (readonly [method: Method, path: string, json?: unknown])[] = [
  ['GET', ''],
  ['GET', '/audit'],
  ['GET', '/figures'],
  ['GET', '/logs'],
  ['GET', '/crashes'],
  ['GET', '/secrets'],
  ['GET', '/settings'],
  ['GET', '/previews'],
  ['GET', '/export'],
  ['GET', '/notifications'],
  ['GET', '/tasks'],
  ['GET', '/tasks/clean/runs'],
  ['GET', '/runs'],
  ['POST', '/tasks/clean/runs'],
  ['POST', '/runs', { command: ['true'] }],
  ['POST', '/restart'],
  ['POST', '/suspend'],
  ['POST', '/resume'],
  ['POST', '/rebuild', { cache: true }],
  ['POST', '/rollback', { commit: 'a'.repeat(40) }],
  ['POST', '/deploy'],
  ['POST', '/restore'],
  ['POST', '/rename', { slug: 'renamed-by-a-stranger' }],
  ['POST', '/push-hook-secret'],
  ['POST', '/push-hook-secret/replace', {}],
  ['DELETE', '/push-hook-secret/previous'],
  ['GET', '/forge-token'],
  ['PUT', '/forge-token', { token: 'x' }],
  ['DELETE', '/forge-token'],
  ['GET', '/tokens'],
  ['POST', '/tokens', { name: 'x', expires_in_days: 1 }],
  ['DELETE', '/tokens/0123456789ab'],
  ['PUT', '/secrets/TOKEN', { value: 'x' }],
  ['DELETE', '/secrets/TOKEN'],
  ['PUT', '/settings', { replicas: 1 }],
  ['GET', '/access'],
  ['PUT', '/access', { access: 'public' }],
  ['POST', '/access/keys', { name: 'x' }],
  ['DELETE', '/access/keys/x'],
  ['GET', '/domains'],
  ['POST', '/domains', { domain: 'shop.example.com' }],
  ['POST', '/domains/shop.example.com/check'],
  ['DELETE', '/domains/shop.example.com'],
  ['PUT', '/notifications/webhook', { url: 'https://hooks.example.org/' }],
  ['DELETE', '/notifications/webhook'],
  ['PUT', '/notifications/mail'],
  ['PUT', '/notifications/mail/events', { events: ['live'] }],
  ['POST', '/notifications/contacts', { address: 'attacker@example.org' }],
  ['DELETE', `/notifications/contacts/${'a'.repeat(32)}`],
  ['POST', '/notifications/test'],
  ['DELETE', ''],
];
export const reads = endpoints.filter(([method]) => method === 'GET');
export const actions = endpoints.filter(([method]) => method !== 'GET');

type Headers = Readonly<Record<string, string>>;

/** Sends each of these requests, and lists those that were not refused. A path that does not exist here proves nothing. */
export async function listAnswered(
  victim: Victim,
  slug: string,
  headers: Headers,
  requests: readonly (readonly [method: Method, path: string, json?: unknown])[] = endpoints,
): Promise<string[]> {
  const answered: string[] = [];
  for (const [method, path, json] of requests) {
    const { status } = await victim.ask(`/api/apps/${slug}${path}`, { method, headers, json });
    if (![401, 403, 404, 429].includes(status)) answered.push(`${method} ${path} answers ${status}`);
  }
  return answered;
}

/** An app of somebody else. */
export async function findSlug(victim: Victim): Promise<string> {
  return victim.hasKubectl ? (await victim.liveApp()).metadata.name : 'hello';
}

export function makeKey(): string {
  return `mak-${randomBytes(32).toString('base64url')}`;
}

/** What the app prints: terminal commands, events and HTML, and the value of a secret. */
const printedLines = [
  '\\u001b[2J\\u001b[31mfake',
  'x\\r\\nevent: end\\r\\ndata: {}\\r\\n\\r\\n',
  '</pre><script>alert(1)</script>',
];

export const files = {
  'app.py': `import http.server, os
print('${printedLines.join("', '")}', os.environ.get('TOKEN'), flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'ok')
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('', int(os.environ['PORT'])), Handler).serve_forever()
`,
  'requirements.txt': '',
};

const issued = z.looseObject({ key: z.string(), line: z.string() });

/** A new key for an app, and the line that its repository would have to carry. */
export async function issueKey(victim: Victim, slug: string): Promise<z.output<typeof issued>> {
  return issued.parse(JSON.parse((await victim.ask(`/api/apps/${slug}/keys`, { method: 'POST' })).body));
}

export interface OwnApp {
  readonly slug: string;
  readonly key: string;
  readonly line: string;
}

const hosted = new WeakMap<Victim, Promise<OwnApp>>();

/** The attacker's app, which is hosted when it is first needed. */
export async function getOwnApp(victim: Victim): Promise<OwnApp> {
  const known = hosted.get(victim) ?? hostOwnApp(victim, 'attack-author', files);
  hosted.set(victim, known);
  return known;
}

/** Hosts an app of these files whose author is the attacker. */
export async function hostOwnApp(
  victim: Victim,
  slug: string,
  files: Readonly<Record<string, string>>,
): Promise<OwnApp> {
  // The key is for a repository, so it needs no build of a commit without its line.
  await victim.register(slug, files);
  const { key, line } = await victim.until(
    'the app in the API',
    async () => {
      const { body } = await victim.ask(`/api/apps/${slug}/keys`, { method: 'POST' });
      return issued.safeParse(JSON.parse(body)).data;
    },
    30,
  );
  await victim.host(slug, { ...files, '.moorage-owner': `${line}\n` });
  await victim.until(
    'the key to be reviewed',
    async () => ((await askOwn(victim, { slug, key, line }, '')).status === 200 ? true : undefined),
    60,
  );
  return { slug, key, line };
}

/** Sends a request with the key of the attacker to their app. */
export async function askOwn(
  victim: Victim,
  { slug, key }: OwnApp,
  path: string,
  { headers = {}, ...options }: AskOptions = {},
): Promise<Answer> {
  return victim.ask(`/api/apps/${slug}${path}`, {
    ...options,
    headers: { authorization: `Bearer ${key}`, ...headers },
  });
}

/** Sends a form to the author's page of an app. */
export async function sendForm(
  victim: Victim,
  slug: string,
  form: Readonly<Record<string, string>>,
  headers: Headers = {},
): Promise<Answer> {
  return victim.ask(`/apps/${slug}/manage`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html', ...headers },
    text: new URLSearchParams(form).toString(),
  });
}

export interface OwnSession {
  /** Name and value. */
  readonly cookie: string;
  /** The Set-Cookie header. */
  readonly header: string;
  /** Token of the forms. */
  readonly token: string;
}

/** Signs the attacker in to their own app. @throws Error if that fails, so that an attack on the session is not judged */
export async function signIn(victim: Victim, { slug, key }: OwnApp, headers: Headers = {}): Promise<OwnSession> {
  const { status, headers: answered } = await sendForm(victim, slug, { action: 'sign-in', key }, headers);
  const header = [answered['set-cookie'] ?? []].flat()[0] ?? '';
  if (status !== 303 || header === '') throw new Error(`signing in answered ${status}`);
  const cookie = header.split(';')[0] ?? '';
  const { body } = await victim.ask(`/apps/${slug}/manage`, { headers: { cookie, accept: 'text/html' } });
  const token = /name="token" value="([\w-]+)"/.exec(body)?.[1];
  if (token === undefined) throw new Error('the page of the author has no token');
  return { cookie, header, token };
}

/** The audit log of the attacker's app: an action that was carried out has an entry. */
export async function countActions(victim: Victim, app: OwnApp, action: string): Promise<number> {
  const { status, body } = await askOwn(victim, app, '/audit?limit=200');
  if (status !== 200) throw new Error(`the audit log answered ${status}`);
  const list = z.looseObject({ entries: z.array(z.looseObject({ action: z.string() })) }).parse(JSON.parse(body));
  return list.entries.filter((entry) => entry.action === action).length;
}

/** Joins what went wrong, or says what held. */
export function describeFaults(faults: readonly string[], held: string): string {
  return faults.length === 0 ? held : `${faults.join('; ')}.`;
}
