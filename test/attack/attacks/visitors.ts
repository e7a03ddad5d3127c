// Attacks on protected apps: visitors without a key, with somebody else's session, through other doors, and by guessing.
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { judged, type Attack, type Outcome } from '../attack.ts';
import type { Answer, AskOptions, Victim } from '../victim.ts';
import { hostOwnApp } from './own-app.ts';

const password = `attack-${randomBytes(12).toString('base64url')}`;

/** Prints what it received, so that a request that reached it can be recognized. */
const echo = `import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ('the app itself\\n' + str(self.headers)).encode()
        self.send_response(200); self.send_header('content-length', str(len(body))); self.end_headers(); self.wfile.write(body)
    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('', int(os.environ['PORT'])), Handler).serve_forever()
`;
const reached = /the app itself/;

/** A protected app of the attacker, with everything that its author knows. */
interface ProtectedApp {
  readonly name: string;
  readonly url: string;
  readonly author: Readonly<Record<string, string>>;
  readonly key: string;
}

const hosted = new WeakMap<Victim, Map<string, Promise<ProtectedApp>>>();

/** Hosts each app once for all attacks of this file. */
async function hostProtected(victim: Victim, name = 'attack-visit'): Promise<ProtectedApp> {
  const apps = hosted.get(victim) ?? new Map<string, Promise<ProtectedApp>>();
  hosted.set(victim, apps);
  const app = apps.get(name) ?? createProtected(victim, name);
  apps.set(name, app);
  return app;
}

async function createProtected(victim: Victim, name: string): Promise<ProtectedApp> {
  const owned = await hostOwnApp(victim, name, { 'app.py': echo, 'requirements.txt': '' });
  const author = { authorization: `Bearer ${owned.key}` };
  const url = (await victim.app(name)).status?.url ?? '';
  await setPassword(victim, { name, author }, password);
  const created = await victim.ask(`/api/apps/${name}/access/keys`, {
    method: 'POST',
    headers: author,
    json: { name: 'team' },
  });
  const { key } = z.looseObject({ key: z.string() }).parse(JSON.parse(created.body));
  await victim.until(
    'the app to be protected',
    async () => ((await victim.ask(new URL(url))).status === 401 ? true : undefined),
    60,
  );
  return { name, url, author, key };
}

async function setPassword(
  victim: Victim,
  { name, author }: Pick<ProtectedApp, 'name' | 'author'>,
  text: string,
): Promise<void> {
  const json = { access: 'password', password: text };
  const { status, body } = await victim.ask(`/api/apps/${name}/access`, { method: 'PUT', headers: author, json });
  if (status !== 200) throw new Error(`the password could not be set: ${status} ${body.slice(0, 200)}`);
}

async function signIn(
  victim: Victim,
  url: string,
  secret: string,
  { to = '/', ...headers }: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return victim.ask(new URL('/.moorage/sign-in', url), {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    text: new URLSearchParams({ secret, to }).toString(),
  });
}

function readCookie({ headers }: Answer): string {
  return String([headers['set-cookie']].flat()[0]).split(';')[0] ?? '';
}

type Attempt = readonly [what: string, path: string | URL, options: AskOptions];

/** Sends each request, and reports those that reached the app. */
async function judgeAttempts(victim: Victim, url: string, attempts: readonly Attempt[]): Promise<Outcome> {
  const open: string[] = [];
  for (const [what, path, options] of attempts) {
    const { status, body } = await victim.ask(new URL(path, url), options);
    if (reached.test(body) || status < 300) open.push(`${what}: ${status}`);
  }
  return judged(
    open.length === 0,
    open.length === 0 ? `${attempts.length} requests were refused.` : `${open.join('; ')}.`,
  );
}

/** An attack on the protected app, in the forms that {@link judgeAttempts} sends. */
function defineAttempts(
  name: string,
  list: (app: ProtectedApp, victim: Victim) => Promise<readonly Attempt[]> | readonly Attempt[],
): Attack {
  return {
    name,
    needs: 'git',
    run: async (victim) => {
      const app = await hostProtected(victim);
      return judgeAttempts(victim, app.url, await list(app, victim));
    },
  };
}

const withHeaders = (what: string, headers: Readonly<Record<string, string>>): Attempt => [what, '/', { headers }];

const withoutKey = defineAttempts('a stranger opens a protected app with no key, or one made up', () => [
  ['no key', '/', {}],
  ['another method', '/', { method: 'POST', text: 'x' }],
  withHeaders('a key made up', { authorization: `Bearer mvk-${randomBytes(32).toString('base64url')}` }),
  withHeaders('Basic', { authorization: `Basic ${Buffer.from(`a:${password}`).toString('base64')}` }),
  withHeaders('the password as a token', { authorization: `Bearer ${password}` }),
]);

const keyInUrl = defineAttempts('a key in a URL opens a protected app, and so ends up in logs', ({ key }) =>
  ['key', 'access_key', 'token', 'access_token', 'moorage-access', 'password'].map((field) => [
    field,
    `/?${field}=${key}`,
    {},
  ]),
);

const wrongHost = defineAttempts('another form of the host name passes a protected app by', ({ url }) => {
  const { hostname, host } = new URL(url);
  return [
    hostname.toUpperCase(),
    `${hostname}.`,
    `${hostname}:80`,
    `${hostname}:99999`,
    `.${hostname}`,
    `x.${host}`,
  ].map((name) => withHeaders(name, { host: name }));
});

const address = defineAttempts(
  'the address of the gateway instead of the host name passes a protected app by',
  ({ url }) => {
    const { hostname } = new URL(url);
    return ['127.0.0.1', '[::1]', 'localhost', '2130706433'].map((host) =>
      withHeaders(host, { host, 'x-forwarded-host': hostname }),
    );
  },
);

const smuggled = defineAttempts('a request says itself that it was admitted', () => [
  withHeaders('admitted', { 'moorage-admitted': 'true' }),
  withHeaders('activator', { 'moorage-activator': 'admitted' }),
  withHeaders('probe', { 'moorage-probe': 'x'.repeat(64) }),
  withHeaders('probe and agent', { 'moorage-probe': '', 'user-agent': 'moorage-operator' }),
  withHeaders('forwarded', { 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '127.0.0.1', forwarded: 'for=127.0.0.1' }),
  withHeaders('rewritten path', { 'x-original-url': '/.moorage/sign-in', 'x-rewrite-url': '/.moorage/sign-in' }),
  withHeaders('connection', { 'moorage-access': 'mvk-x', cookie: '__Host-moorage-visit=' }),
  ['path of the platform', '/.moorage/sign-in/../', {}],
  ['encoded path', '/.moorage%2fsign-in', {}],
]);

const anotherApp: Attack = {
  name: 'the session or the key of one protected app opens another one',
  needs: 'git',
  run: async (victim) => {
    const [own, other] = [await hostProtected(victim, 'attack-visit-2'), await hostProtected(victim)];
    const cookie = readCookie(await signIn(victim, own.url, password));
    if (!reached.test((await victim.ask(new URL(own.url), { headers: { cookie } })).body))
      throw new Error('the session does not open its own app');
    return judgeAttempts(victim, other.url, [
      withHeaders('session', { cookie }),
      withHeaders('key', { authorization: `Bearer ${own.key}` }),
      withHeaders('key of the author', own.author),
    ]);
  },
};

const oldSession: Attack = {
  name: 'a session outlives the password that began it',
  needs: 'git',
  run: async (victim) => {
    const app = await hostProtected(victim);
    const cookie = readCookie(await signIn(victim, app.url, password));
    const isOpen = async (): Promise<boolean> =>
      reached.test((await victim.ask(new URL(app.url), { headers: { cookie } })).body);
    if (!(await isOpen())) throw new Error('the session does not open the app');
    await setPassword(victim, app, `${password}-2`);
    try {
      const ended = await victim
        .until('the end', async () => ((await isOpen()) ? undefined : true), 30)
        .catch(() => false);
      const old = await signIn(victim, app.url, password);
      // 429 is for a wrong password after many of this network. The right one is never limited.
      const isRefused = old.status === 403 || old.status === 429;
      return judged(ended && isRefused, `Session ended: ${String(ended)}; old password: ${old.status}.`);
    } finally {
      await setPassword(victim, app, password);
      const retry = async (): Promise<true | undefined> =>
        (await signIn(victim, app.url, password)).status === 303 ? true : undefined;
      await victim.until('the password to be back', retry, 60);
    }
  },
};

const siblingPage = defineAttempts("a page of another app uses a visitor's session", async ({ url }, victim) => {
  const cookie = readCookie(await signIn(victim, url, password));
  const evil = url.replace(/\/\/[^.]+/, '//evil');
  return [
    withHeaders('fetch', { cookie, origin: new URL(evil).origin }),
    withHeaders('sandboxed frame', { cookie, origin: 'null' }),
    withHeaders('image', { cookie, 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' }),
    withHeaders('frame', {
      cookie,
      'sec-fetch-site': 'same-site',
      'sec-fetch-mode': 'navigate',
      'sec-fetch-dest': 'iframe',
    }),
    ['form', '/', { method: 'POST', text: 'x', headers: { cookie, origin: new URL(evil).origin } }],
  ];
});

const guessing: Attack = {
  name: 'a stranger guesses the password without limit, or locks visitors out by guessing',
  needs: 'git',
  run: async (victim) => {
    const { url } = await hostProtected(victim);
    const statuses: number[] = [];
    // Each replica of the activator counts on its own.
    for (let index = 0; index < 60 && statuses.at(-1) !== 429; index += 1)
      statuses.push((await signIn(victim, url, `guess number ${index}`)).status);
    const right = (await signIn(victim, url, password)).status;
    const isHeld =
      statuses.at(-1) === 429 && statuses.every((status) => status === 403 || status === 429) && right === 303;
    return judged(isHeld, `Wrong passwords: ${statuses.join(', ')}; then the right one: ${right}.`);
  },
};

const redirect: Attack = {
  name: 'the sign-in page leads a visitor to another host, or shows what an attacker wrote',
  needs: 'git',
  run: async (victim) => {
    const { url } = await hostProtected(victim);
    const faults: string[] = [];
    for (const to of [
      '//evil.example/',
      '/\\evil.example/',
      'https://evil.example/',
      '/.//evil.example',
      '/\t/evil.example',
    ]) {
      const location = String((await signIn(victim, url, password, { to })).headers['location']);
      if (location !== '/') faults.push(`${to} leads to ${location}`);
    }
    const page = await victim.ask(new URL('/?"><script>alert(1)</script>', url), { headers: { accept: 'text/html' } });
    if (page.body.includes('<script')) faults.push('the page has a script');
    return judged(faults.length === 0, faults.length === 0 ? 'All lead to the app.' : `${faults.join('; ')}.`);
  },
};

const throughPlatform: Attack = {
  name: 'a protected app is called through the API, its tools or MCP',
  needs: 'git',
  run: async (victim) => {
    const { name } = await hostProtected(victim);
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const headers = { accept: 'application/json, text/event-stream' };
    const answers = [
      await victim.ask(`/api/projects/${name}/call/`),
      await victim.ask(`/api/projects/${name}/tools`),
      await victim.ask(`/mcp/${name}`, { method: 'POST', headers, json: call }),
    ];
    const open = answers.filter(({ body }) => reached.test(body));
    return judged(open.length === 0, `Answers: ${answers.map(({ status }) => status).join(', ')}.`);
  },
};

const shownCredentials: Attack = {
  name: 'a protected app, or a reader of its record, learns what opens it',
  needs: 'git',
  run: async (victim) => {
    const { name, url, author, key } = await hostProtected(victim);
    const cookie = readCookie(await signIn(victim, url, password));
    const seen = await victim.ask(new URL(url), { headers: { cookie: `a=b; ${cookie}` } });
    const byKey = await victim.ask(new URL(url), { headers: { authorization: `Bearer ${key}` } });
    if (!reached.test(seen.body) || !reached.test(byKey.body)) throw new Error('the app was not reached');
    const shown = [seen.body, byKey.body];
    for (const path of ['', '/access', '/audit', '/export', '/settings'])
      shown.push((await victim.ask(`/api/apps/${name}${path}`, { headers: author })).body);
    const text = shown.join('\n');
    const faults = [key, password, cookie.split('=')[1] ?? '', 'scrypt-1'].filter((secret) => text.includes(secret));
    return judged(
      faults.length === 0,
      faults.length === 0 ? 'Nothing was shown.' : `${faults.length} secrets were shown.`,
    );
  },
};

export const visitorAttacks: readonly Attack[] = [
  withoutKey,
  keyInUrl,
  wrongHost,
  address,
  smuggled,
  siblingPage,
  guessing,
  redirect,
  throughPlatform,
  shownCredentials,
  anotherApp,
  oldSession,
];
