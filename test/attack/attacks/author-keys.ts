// Attacks on the keys and sessions of authors: keys that are missing, made up, another author's or stale, and forged forms.
import { randomBytes } from 'node:crypto';
import { judged, notTried, type Attack } from '../attack.ts';
import type { Answer, Victim } from '../victim.ts';
import {
  actions,
  askOwn,
  countActions,
  describeFaults,
  endpoints,
  files,
  findSlug,
  getOwnApp,
  issueKey,
  listAnswered,
  makeKey,
  reads,
  sendForm,
  signIn,
} from './own-app.ts';

const readWithoutKey: Attack = {
  name: 'a stranger reads the private side of an app without a key',
  needs: 'address',
  run: async (victim) => {
    const answered = await listAnswered(victim, await findSlug(victim), {}, reads);
    return judged(answered.length === 0, describeFaults(answered, `${reads.length} requests were refused.`));
  },
};

const actWithoutKey: Attack = {
  name: 'a stranger changes an app without a key',
  needs: 'address',
  run: async (victim) => {
    const answered = await listAnswered(victim, await findSlug(victim), {}, actions);
    return judged(answered.length === 0, describeFaults(answered, `${actions.length} requests were refused.`));
  },
};

const madeUpKey: Attack = {
  name: 'a stranger reads or changes an app with a key that was made up',
  needs: 'address',
  run: async (victim) => {
    const slug = await findSlug(victim);
    const keys = [`Bearer ${makeKey()}`, 'Bearer null', 'Bearer ', 'Basic YTpi', `bearer ${makeKey().slice(0, 20)}`];
    const answered: string[] = [];
    for (const authorization of keys) answered.push(...(await listAnswered(victim, slug, { authorization })));
    const count = keys.length * endpoints.length;
    return judged(answered.length === 0, describeFaults(answered, `${count} requests were refused.`));
  },
};

const keyElsewhere: Attack = {
  name: 'a key in the address, a cookie or another header opens an app, and so gets into logs and histories',
  needs: 'git',
  run: async (victim) => {
    const { slug, key } = await getOwnApp(victim);
    const faults: string[] = [];
    for (const path of [`?key=${key}`, `?access_token=${key}`, `/audit?authorization=Bearer%20${key}`]) {
      const { status } = await victim.ask(`/api/apps/${slug}${path}`);
      if (status < 400) faults.push(`${path.split('=')[0] ?? ''} opens it`);
    }
    for (const headers of [{ cookie: `key=${key}` }, { 'x-api-key': key }, { 'proxy-authorization': `Bearer ${key}` }])
      faults.push(...(await listAnswered(victim, slug, headers, reads.slice(0, 2))));
    return judged(faults.length === 0, describeFaults(faults, 'The key is read from one header alone.'));
  },
};

const anotherAuthor: Attack = {
  name: "an author uses their key for another author's app",
  needs: 'git',
  run: async (victim) => {
    const [slug, { key }] = [await findSlug(victim), await getOwnApp(victim)];
    const answered = await listAnswered(victim, slug, { authorization: `Bearer ${key}` });
    return judged(answered.length === 0, describeFaults(answered, `${endpoints.length} requests were refused.`));
  },
};

const oracle: Attack = {
  name: "the answer to a wrong key shows whether it is another app's",
  needs: 'git',
  run: async (victim) => {
    const [slug, { key }] = [await findSlug(victim), await getOwnApp(victim)];
    const ask = async (wrong: string): Promise<string> => {
      const { status, body } = await victim.ask(`/api/apps/${slug}`, { headers: { authorization: `Bearer ${wrong}` } });
      return `${status} ${body.replaceAll(/"(?:instance|request_id)":"[^"]*"/g, '').replaceAll(/\d+ seconds/g, '')}`;
    };
    const [known, unknown] = [await ask(key), await ask(makeKey())];
    return judged(
      known === unknown && !known.startsWith('2'),
      known === unknown
        ? `Both get ${known.slice(0, 3)}.`
        : `They differ: ${known.slice(0, 200)}, ${unknown.slice(0, 200)}`,
    );
  },
};

const guessing: Attack = {
  name: 'a stranger tries one key after the other',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const guess = async (): Promise<Answer> =>
      victim.ask(`/api/apps/${own.slug}`, { headers: { authorization: `Bearer ${makeKey()}` } });
    let count = 1;
    let refusal = await guess();
    // Each replica of the API counts by itself.
    for (; refusal.status !== 429 && count < 60; count += 1) refusal = await guess();
    // A stranger must not keep the author out, whose network may be the same.
    const { status } = await askOwn(victim, own, '');
    const faults = [
      ...(refusal.status === 429 ? [] : [`key ${count} gets ${refusal.status}`]),
      ...(refusal.headers['retry-after'] === undefined ? ['the refusal does not say when to try again'] : []),
      ...(status === 200 ? [] : [`the author gets ${status}`]),
    ];
    return judged(
      faults.length === 0,
      describeFaults(faults, `After ${count} keys a network is refused, except with the right one.`),
    );
  },
};

const stolenLine: Attack = {
  name: "an author commits the line of another app's key to their own repository",
  needs: 'git',
  run: async (victim) => {
    const [slug, own] = [await findSlug(victim), await getOwnApp(victim)];
    const other = await issueKey(victim, slug);
    await victim.host(own.slug, { ...files, '.moorage-owner': `${own.line}\n${other.line}\n` });
    const answered = await listAnswered(victim, slug, { authorization: `Bearer ${other.key}` });
    // It opens no app: the line names the repository that it is for.
    const { status } = await victim.ask(`/api/apps/${own.slug}`, { headers: { authorization: `Bearer ${other.key}` } });
    if (status < 400) answered.push(`the key of ${slug} opens ${own.slug}`);
    return judged(answered.length === 0, describeFaults(answered, `${endpoints.length + 1} requests were refused.`));
  },
};

const staleLine: Attack = {
  name: 'a key whose line was removed from the newest commit still restarts its app',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    await victim.host(own.slug, { ...files, '.moorage-owner': '# no keys\n' });
    const answered: string[] = [];
    for (const path of ['/restart', '/suspend']) {
      const { status } = await askOwn(victim, own, path, { method: 'POST' });
      if (![403, 429].includes(status)) answered.push(`${path} answers ${status}`);
    }
    await victim.host(own.slug, { ...files, '.moorage-owner': `${own.line}\n` });
    return judged(answered.length === 0, describeFaults(answered, 'Its actions are refused.'));
  },
};

/** Paths with which one app could be taken for another, or a path for an app. */
const confused = [
  '%2e%2e/hello',
  '..%2fhello',
  'hello%2f..%2fother',
  '%00',
  'hello%00',
  'hello.',
  'ｈello',
  '-hello',
  'a'.repeat(300),
];

const slugConfusion: Attack = {
  name: 'a name with dots, slashes, zeros or other letters is taken for the name of an app',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const names = [
      ...confused,
      own.slug.toUpperCase(),
      `${own.slug}.`,
      `${own.slug}%20`,
      `${own.slug}%00`,
      `x%2f${own.slug}`,
    ];
    const faults: string[] = [];
    for (const name of names)
      for (const path of ['', '/audit']) {
        const { status } = await victim.ask(`/api/apps/${name}${path}`, {
          headers: { authorization: `Bearer ${own.key}` },
        });
        if (status < 400 || status >= 500) faults.push(`${name.slice(0, 40)}${path} answers ${status}`);
      }
    return judged(faults.length === 0, describeFaults(faults, `${2 * names.length} requests were refused.`));
  },
};

const foreignForm: Attack = {
  name: 'a page of another site sends a form of a signed-in author',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const { cookie, token } = await signIn(victim, own);
    const before = await countActions(victim, own, 'restart');
    const origins = ['https://evil.example', `https://${own.slug}.${victim.baseUrl.host}`, 'null'];
    const faults: string[] = [];
    for (const headers of [...origins.map((origin) => ({ origin })), { 'sec-fetch-site': 'cross-site' }])
      for (const sent of [token, 'AAAA']) {
        const form = { action: 'restart', token: sent };
        const { status } = await sendForm(victim, own.slug, form, { ...headers, cookie });
        if (status < 400) faults.push(`${JSON.stringify(headers)} answers ${status}`);
      }
    if ((await countActions(victim, own, 'restart')) > before) faults.push('the app was restarted');
    return judged(faults.length === 0, describeFaults(faults, '8 forms were refused.'));
  },
};

const foreignToken: Attack = {
  name: 'a form is sent without the token of its session, with that of another, or in a type that needs no permission',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const [session, other] = [await signIn(victim, own), await signIn(victim, own)];
    const before = await countActions(victim, own, 'restart');
    const tokens = ['', other.token, `${session.token.slice(0, -1)}!`, session.token.toUpperCase()];
    const faults: string[] = [];
    for (const token of tokens) {
      const { status } = await sendForm(victim, own.slug, { action: 'restart', token }, { cookie: session.cookie });
      if (status < 400) faults.push(`a wrong token answers ${status}`);
    }
    const { status } = await victim.ask(`/apps/${own.slug}/manage`, {
      method: 'POST',
      headers: { 'content-type': 'text/plain', accept: 'text/html', cookie: session.cookie },
      text: `action=restart&token=${other.token}`,
    });
    if (status < 400) faults.push(`text/plain answers ${status}`);
    if ((await countActions(victim, own, 'restart')) > before) faults.push('the app was restarted');
    return judged(faults.length === 0, describeFaults(faults, `${tokens.length + 1} forms were refused.`));
  },
};

const cookieAtApi: Attack = {
  name: 'a page of another site calls the API with the session of a signed-in author',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const { cookie } = await signIn(victim, own);
    const answered = await listAnswered(victim, own.slug, { cookie, origin: 'https://evil.example' });
    const { headers } = await victim.ask(`/api/apps/${own.slug}`, {
      headers: { cookie, origin: 'https://evil.example' },
    });
    if (headers['access-control-allow-credentials'] === 'true') answered.push('other sites may send credentials');
    return judged(
      answered.length === 0,
      describeFaults(answered, 'A session opens pages, and no endpoint of the API.'),
    );
  },
};

const madeUpSession: Attack = {
  name: 'a session that was made up, cut or changed is accepted',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const { cookie, token } = await signIn(victim, own);
    const [name = '', value = ''] = cookie.split('=');
    const flipped = `${value.startsWith('A') ? 'B' : 'A'}${value.slice(1)}`;
    const values = ['', 'AAAA', randomBytes(120).toString('base64url'), flipped, value.slice(0, -4), `${value}AAAA`];
    const faults: string[] = [];
    for (const wrong of values) {
      const headers = { cookie: `${name}=${wrong}` };
      const { status, headers: answered } = await sendForm(victim, own.slug, { action: 'restart', token }, headers);
      if (status < 400) faults.push(`${wrong.slice(0, 10)} answers ${status}`);
      if (answered['set-cookie'] !== undefined) faults.push(`${wrong.slice(0, 10)} gets a cookie`);
    }
    return judged(faults.length === 0, describeFaults(faults, `${values.length} sessions were refused.`));
  },
};

const fixation: Attack = {
  name: 'a session that was planted before the sign-in becomes the session of the author',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const planted = (await signIn(victim, own)).cookie;
    const { cookie, token } = await signIn(victim, own, { cookie: planted });
    const faults = cookie === planted ? ['the planted session is kept'] : [];
    // The forms of the new session do not accept the planted one, which the attacker knows.
    const { status } = await sendForm(victim, own.slug, { action: 'restart', token }, { cookie: planted });
    if (status < 400) faults.push(`the planted session sends forms of the new one: ${status}`);
    return judged(faults.length === 0, describeFaults(faults, 'Each sign-in makes a new session.'));
  },
};

const cookieScope: Attack = {
  name: 'a hosted app, a script or an unencrypted connection gets the session of an author',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const { header, cookie } = await signIn(victim, own);
    const wanted = [/^__Host-/, /; Path=\//i, /; Secure/i, /; HttpOnly/i, /; SameSite=Strict/i, /; Max-Age=\d{1,4}\b/i];
    const faults = wanted
      .filter((pattern) => !pattern.test(header))
      .map((pattern) => `the cookie lacks ${pattern.source}`);
    if (/; Domain=/i.test(header)) faults.push('the cookie is sent to hosted apps');
    if (header.includes(own.key)) faults.push('the cookie shows the key');
    const slug = await findSlug(victim);
    const { body } = await victim.ask(`/apps/${slug}/manage`, { headers: { cookie, accept: 'text/html' } });
    if (body.includes('name="token"')) faults.push(`it opens ${slug}`);
    return judged(faults.length === 0, describeFaults(faults, 'The cookie is bound to its host, app and hour.'));
  },
};

const cachedPage: Attack = {
  name: 'the page of an author stays in a cache, shows in a frame or sends its address elsewhere',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const { cookie } = await signIn(victim, own);
    const { headers, body } = await readPage(victim, own.slug, cookie);
    if (!body.includes('name="token"')) return notTried('The page of the author did not open.');
    const faults = [
      ...(String(headers['cache-control']).includes('no-store') ? [] : ['it may be cached']),
      ...(/frame-ancestors 'none'/.test(String(headers['content-security-policy'])) ? [] : ['it may be framed']),
      ...(/script-src 'self'/.test(String(headers['content-security-policy'])) ? [] : ['scripts may be injected']),
      ...(headers['referrer-policy'] === 'same-origin' ? [] : ['its address is sent to other sites']),
      ...(body.includes(own.key) ? ['it shows the key'] : []),
    ];
    return judged(
      faults.length === 0,
      describeFaults(faults, 'It is not stored, not framed, and runs no foreign script.'),
    );
  },
};

async function readPage(victim: Victim, slug: string, cookie: string): ReturnType<Victim['ask']> {
  return victim.ask(`/apps/${slug}/manage`, { headers: { cookie, accept: 'text/html' } });
}

export const authorKeyAttacks: readonly Attack[] = [
  readWithoutKey,
  actWithoutKey,
  madeUpKey,
  keyElsewhere,
  anotherAuthor,
  oracle,
  slugConfusion,
  foreignForm,
  foreignToken,
  cookieAtApi,
  madeUpSession,
  fixation,
  cookieScope,
  cachedPage,
  stolenLine,
  guessing,
];

/** It replaces the line of the shared app, so it comes last. */
export const staleKeyAttacks: readonly Attack[] = [staleLine];
