// Attacks on what authors own: other people's keys, stale lines, forged pushes and forms, and what an app prints to its log.
import { createHmac, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { judged, notTried, type Attack } from '../attack.ts';
import type { Answer, AskOptions, Victim } from '../victim.ts';

/** Every endpoint of an author, with a body that a legitimate request could have. */
const endpoints: readonly (readonly [method: NonNullable<AskOptions['method']>, path: string, json?: unknown])[] = [
  ['GET', ''],
  ['GET', '/audit'],
  ['GET', '/logs'],
  ['GET', '/crashes'],
  ['GET', '/secrets'],
  ['GET', '/settings'],
  ['GET', '/export'],
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
  ['POST', '/push-hook-secret'],
  ['PUT', '/secrets/TOKEN', { value: 'x' }],
  ['DELETE', '/secrets/TOKEN'],
  ['PUT', '/settings', { replicas: 1 }],
  ['DELETE', ''],
];

/** Sends each of these requests, and lists those that were not refused. A path that does not exist here proves nothing. */
async function listAnswered(
  victim: Victim,
  slug: string,
  headers: Readonly<Record<string, string>>,
): Promise<string[]> {
  const answered: string[] = [];
  for (const [method, path, json] of endpoints) {
    const { status } = await victim.ask(`/api/apps/${slug}${path}`, { method, headers, json });
    if (![401, 403, 404, 429].includes(status)) answered.push(`${method} ${path} answers ${status}`);
  }
  return answered;
}

export async function findSlug(victim: Victim): Promise<string> {
  return victim.hasKubectl ? (await victim.liveApp()).metadata.name : 'hello';
}

const withoutKey: Attack = {
  name: 'a stranger reads or changes an app without a key, or with a key made up',
  needs: 'address',
  run: async (victim) => {
    const slug = await findSlug(victim);
    const keys = [undefined, `Bearer mak-${randomBytes(32).toString('base64url')}`, 'Bearer null', 'Basic YTpi'];
    const answered: string[] = [];
    for (const authorization of keys)
      answered.push(...(await listAnswered(victim, slug, authorization === undefined ? {} : { authorization })));
    return judged(
      answered.length === 0,
      answered.length === 0 ? `${keys.length * endpoints.length} requests were refused.` : `${answered.join('; ')}.`,
    );
  },
};

const script = (line: string): string => `import http.server, os
print(${line}, flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'ok')
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('', int(os.environ['PORT'])), Handler).serve_forever()
`;

const issued = z.looseObject({ key: z.string(), line: z.string() });

/** Hosts an app whose author is the attacker, and returns their key. */
export async function hostOwnApp(victim: Victim, name: string, line: string): Promise<{ key: string; line: string }> {
  const files = { 'app.py': script(line), 'requirements.txt': '' };
  await victim.host(name, files);
  const answer = await victim.ask(`/api/apps/${name}/keys`, { method: 'POST' });
  const { key, line: keyLine } = issued.parse(JSON.parse(answer.body));
  await victim.host(name, { ...files, '.moorage-owner': `${keyLine}\n` });
  await victim.until(
    'the key to be reviewed',
    async () => {
      const { status } = await victim.ask(`/api/apps/${name}`, { headers: { authorization: `Bearer ${key}` } });
      return status === 200 ? true : undefined;
    },
    60,
  );
  return { key, line: keyLine };
}

const anotherAuthor: Attack = {
  name: "an author uses their key for another author's app, also by committing the other app's line",
  needs: 'git',
  run: async (victim) => {
    const slug = await findSlug(victim);
    const other = issued.parse(JSON.parse((await victim.ask(`/api/apps/${slug}/keys`, { method: 'POST' })).body));
    const name = 'attack-author';
    const { key } = await hostOwnApp(victim, name, "'started'");
    await victim.host(name, {
      'app.py': script("'again'"),
      'requirements.txt': '',
      '.moorage-owner': `${other.line}\n`,
    });
    const answered = [
      ...(await listAnswered(victim, slug, { authorization: `Bearer ${key}` })),
      ...(await listAnswered(victim, slug, { authorization: `Bearer ${other.key}` })),
    ];
    // Its line is gone from the newest commit of its own app, too.
    const { status } = await victim.ask(`/api/apps/${name}/restart`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'x-forwarded-for': '192.0.2.77' },
    });
    if (![403, 429].includes(status)) answered.push(`a key whose line was removed restarts its app: ${status}`);
    return judged(
      answered.length === 0,
      answered.length === 0 ? `${2 * endpoints.length + 1} requests were refused.` : `${answered.join('; ')}.`,
    );
  },
};

const printedLines = [
  '\\u001b[2J\\u001b[31mfake',
  'x\\r\\nevent: end\\r\\ndata: {}\\r\\n\\r\\n',
  '</pre><script>alert(1)</script>',
];

const logInjection: Attack = {
  name: 'an app forges events, terminal commands or HTML in the log that its author reads, or prints a secret there',
  needs: 'git',
  run: async (victim) => {
    const name = 'attack-log';
    const secret = `attack-${randomBytes(12).toString('hex')}`;
    const { key } = await hostOwnApp(victim, name, `'${printedLines.join("', '")}', os.environ.get('TOKEN')`);
    const headers = { authorization: `Bearer ${key}` };
    const set = await victim.ask(`/api/apps/${name}/secrets/TOKEN`, {
      method: 'PUT',
      headers,
      json: { value: secret },
    });
    if (set.status !== 200) return notTried(`The secret could not be set: ${set.status} ${set.body.slice(0, 200)}`);
    const read = async (accept: string): Promise<Answer> =>
      victim.ask(`/api/apps/${name}/logs?tail=200`, { headers: { ...headers, accept } });
    const text = await victim.until(
      'the restarted app in its log',
      async () => {
        const { status, body } = await read('text/plain');
        return status === 200 && (body.match(/fake/g) ?? []).length >= 2 ? body : undefined;
      },
      90,
    );
    const events = await read('text/event-stream');
    const faults = [
      ...(text.includes(secret) || events.body.includes(secret) ? ['the log has the secret'] : []),
      // eslint-disable-next-line no-control-regex
      ...(/\u001b/.test(text) ? ['the text has escape sequences'] : []),
      // The API itself sends one, when there are no more lines.
      ...((events.body.match(/^event: end\r?$/gm) ?? []).length > 1 ? ['an event was forged'] : []),
    ];
    return judged(
      faults.length === 0,
      faults.length === 0 ? 'The log was masked and escaped.' : `${faults.join('; ')}.`,
    );
  },
};

const push = JSON.stringify({ ref: 'refs/heads/main', after: 'b'.repeat(40), repository: { full_name: 'octo/hello' } });

const forgedPush: Attack = {
  name: 'a stranger triggers builds with forged push events',
  needs: 'address',
  run: async (victim) => {
    const slug = await findSlug(victim);
    const wrong = createHmac('sha256', 'guess').update(push).digest('hex');
    const forged: Readonly<Record<string, string>>[] = [
      {},
      { 'x-hub-signature-256': `sha256=${wrong}`, 'x-github-event': 'push' },
      { 'x-hub-signature-256': 'sha256=', 'x-github-event': 'push' },
      { 'x-hub-signature': `sha1=${wrong.slice(0, 40)}`, 'x-github-event': 'push' },
      { 'x-gitlab-token': 'guess', 'x-gitlab-event': 'Push Hook' },
      { 'x-gitlab-token': '', 'x-gitlab-event': 'Push Hook' },
      { 'x-gitea-signature': wrong, 'x-gitea-event': 'push' },
      { 'x-moorage-signature': wrong },
      { authorization: 'Bearer guess' },
    ];
    const accepted: string[] = [];
    for (const headers of forged) {
      const { status } = await victim.ask(`/api/apps/${slug}/push-hook`, {
        method: 'POST',
        headers,
        json: JSON.parse(push),
      });
      if (![400, 401, 403, 404, 429].includes(status)) accepted.push(`${Object.keys(headers).join(', ')}: ${status}`);
    }
    return judged(
      accepted.length === 0,
      accepted.length === 0 ? `${forged.length} events were refused.` : `Accepted: ${accepted.join('; ')}.`,
    );
  },
};

const forms: Attack = {
  name: 'a page of another site, or a session that was made up, sends the forms of an author',
  needs: 'address',
  run: async (victim) => {
    const slug = await findSlug(victim);
    const attempts: Readonly<Record<string, string>>[] = [
      { origin: 'https://evil.example' },
      { origin: `https://${slug}.${victim.baseUrl.host}` },
      { 'sec-fetch-site': 'cross-site' },
      { cookie: '__Host-moorage-author=AAAA' },
      { cookie: `__Host-moorage-author=${randomBytes(120).toString('base64url')}` },
    ];
    const faults: string[] = [];
    for (const headers of attempts) {
      const { status, headers: answered } = await victim.ask(`/apps/${slug}/manage`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html', ...headers },
        text: 'action=suspend&token=AAAA',
      });
      if (status < 400) faults.push(`${JSON.stringify(headers)} answers ${status}`);
      if (answered['set-cookie'] !== undefined) faults.push(`${JSON.stringify(headers)} gets a cookie`);
    }
    return judged(
      faults.length === 0,
      faults.length === 0 ? `${attempts.length} forms were refused.` : `${faults.join('; ')}.`,
    );
  },
};

export const authorAttacks: readonly Attack[] = [withoutKey, forgedPush, forms, anotherAuthor, logInjection];
