// Attacks on signing in: tokens of an app that go too far, and sign-ins at a forge that somebody else began, chose or repeated.
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { type Attack, judged, notTried, type Outcome } from '../attack.ts';
import type { Answer, AskOptions, Victim } from '../victim.ts';
import { findSlug, getOwnApp } from './own-app.ts';

// Tokens

const created = z.looseObject({ token: z.string(), id: z.string() });
/** The slug of the app whose author is the attacker. */
const name = 'attack-author';

async function getOwnKey(victim: Victim): Promise<string> {
  return (await getOwnApp(victim)).key;
}

async function askWith(victim: Victim, token: string, path: string, options: AskOptions = {}): Promise<Answer> {
  return victim.ask(`/api/apps/${path}`, { ...options, headers: { authorization: `Bearer ${token}` } });
}

async function makeToken(victim: Victim, key: string, scopes: string[]): Promise<z.output<typeof created>> {
  const json = { name: 'attack', scopes, expires_in_days: 1 };
  const { status, body } = await askWith(victim, key, `${name}/tokens`, { method: 'POST', json });
  if (status !== 200) throw new Error(`no token was made: ${status} ${body.slice(0, 200)}`);
  return created.parse(JSON.parse(body));
}

/** A header's value; of several, all. */
function readHeader(headers: Answer['headers'], header: string): string {
  return [headers[header] ?? ''].flat().join(', ');
}

/** Held if each answer is a refusal. */
function judgeRefusals(answers: readonly (readonly [what: string, answer: Answer])[]): Outcome {
  const open = answers.filter(([, { status }]) => ![400, 401, 403, 404, 429].includes(status));
  const cookies = answers.filter(([, { headers }]) =>
    /__Host-moorage-author=[^;]/.test(readHeader(headers, 'set-cookie')),
  );
  const faults = [
    ...open.map(([what, { status }]) => `${what} answers ${status}`),
    ...cookies.map(([what]) => `${what} begins a session`),
  ];
  return judged(
    faults.length === 0,
    faults.length === 0 ? `${answers.length} attempts were refused.` : `${faults.join('; ')}.`,
  );
}

const everyScope = ['read', 'logs', 'deploy', 'control', 'secrets', 'settings'];

const beyondScope: Attack = {
  name: 'a holder of a token that only reads changes the app',
  needs: 'git',
  run: async (victim) => {
    const { token } = await makeToken(victim, await getOwnKey(victim), ['read', 'logs']);
    const attempts: readonly (readonly [string, AskOptions])[] = [
      ['restart', { method: 'POST' }],
      ['suspend', { method: 'POST' }],
      ['deploy', { method: 'POST' }],
      ['secrets/TOKEN', { method: 'PUT', json: { value: 'x' } }],
      ['settings', { method: 'PUT', json: { replicas: 1 } }],
      ['push-hook-secret', { method: 'POST' }],
    ];
    const answers: [string, Answer][] = [];
    for (const [path, options] of attempts)
      answers.push([path, await askWith(victim, token, `${name}/${path}`, options)]);
    return judgeRefusals(answers);
  },
};

const mintingToken: Attack = {
  name: 'a token makes another token, revokes one, or deletes its app',
  needs: 'git',
  run: async (victim) => {
    const { token, id } = await makeToken(victim, await getOwnKey(victim), everyScope);
    const json = { name: 'again', scopes: everyScope, expires_in_days: 365 };
    return judgeRefusals([
      ['making a token', await askWith(victim, token, `${name}/tokens`, { method: 'POST', json })],
      ['revoking a token', await askWith(victim, token, `${name}/tokens/${id}`, { method: 'DELETE' })],
      ['deleting the app', await askWith(victim, token, name, { method: 'DELETE' })],
    ]);
  },
};

const anotherApp: Attack = {
  name: 'a token of one app opens another',
  needs: 'git',
  run: async (victim) => {
    const { token } = await makeToken(victim, await getOwnKey(victim), everyScope);
    const slug = (await victim.liveApp()).metadata.name;
    return judgeRefusals([
      ['reading', await askWith(victim, token, slug)],
      ['restarting', await askWith(victim, token, `${slug}/restart`, { method: 'POST' })],
    ]);
  },
};

const revokedToken: Attack = {
  name: 'a revoked token still opens its app',
  needs: 'git',
  run: async (victim) => {
    const key = await getOwnKey(victim);
    const { token, id } = await makeToken(victim, key, everyScope);
    if ((await askWith(victim, token, name)).status !== 200) return notTried('The token opens nothing to begin with.');
    await askWith(victim, key, `${name}/tokens/${id}`, { method: 'DELETE' });
    return judgeRefusals([
      ['reading', await askWith(victim, token, name)],
      ['restarting', await askWith(victim, token, `${name}/restart`, { method: 'POST' })],
    ]);
  },
};

const endlessToken: Attack = {
  name: 'an author makes a token that never expires',
  needs: 'git',
  run: async (victim) => {
    const key = await getOwnKey(victim);
    const answers: [string, Answer][] = [];
    for (const days of [undefined, null, 0, -1, 366, 1e9, '30'])
      answers.push([
        `${String(days)} days`,
        await askWith(victim, key, `${name}/tokens`, { method: 'POST', json: { name: 'x', expires_in_days: days } }),
      ]);
    return judgeRefusals(answers);
  },
};

const madeUpAccount: Attack = {
  name: 'a stranger sends a token or a signed-in account that they made up',
  needs: 'address',
  run: async (victim) => {
    const slug = await findSlug(victim);
    const answers: [string, Answer][] = [];
    for (const text of [
      `mat-${randomBytes(32).toString('base64url')}`,
      `mas-${randomBytes(200).toString('base64url')}`,
      'mas-',
      `mas-${Buffer.from('{"provider":"github","login":"octo","token":"x","expires":9999999999999}').toString('base64url')}`,
    ])
      for (const [path, method] of [
        [slug, 'GET'],
        [`${slug}/restart`, 'POST'],
      ] as const)
        answers.push([`${method} with ${text.slice(0, 8)}`, await askWith(victim, text, path, { method })]);
    return judgeRefusals(answers);
  },
};

// Sign-ins at a forge

const listed = z.looseObject({ providers: z.array(z.looseObject({ id: z.string() })).min(1) });
const html = { accept: 'text/html' };

interface BegunSignIn {
  readonly provider: string;
  readonly way: URL;
  readonly cookie: string;
}

/** Begins a sign-in as a browser does; undefined where no forge is configured. */
async function begin(victim: Victim, app = 'hello'): Promise<BegunSignIn | undefined> {
  const { status, body } = await victim.ask('/api/sign-in');
  if (status !== 200) return undefined;
  const provider = listed.parse(JSON.parse(body)).providers[0]?.id ?? '';
  const { headers } = await victim.ask(`/sign-in/${provider}?app=${app}`, { headers: html });
  const cookie = readHeader(headers, 'set-cookie').split(';')[0] ?? '';
  return { provider, way: new URL(readHeader(headers, 'location')), cookie };
}

function defineSignInAttack(
  attackName: string,
  attempt: (victim: Victim, begun: BegunSignIn) => Promise<readonly (readonly [string, Answer])[]>,
): Attack {
  return {
    name: attackName,
    needs: 'address',
    run: async (victim) => {
      const begun = await begin(victim);
      if (begun === undefined) return notTried('No forge to sign in at is configured here (signIn.providersSecret).');
      return judgeRefusals(await attempt(victim, begun));
    },
  };
}

async function comeBack(
  victim: Victim,
  { provider, way, cookie }: BegunSignIn,
  query: Readonly<Record<string, string>>,
): Promise<Answer> {
  const state = way.searchParams.get('state') ?? '';
  const search = new URLSearchParams({ state, ...query }).toString();
  const headers = { ...html, ...(cookie === '' ? {} : { cookie }) };
  return victim.ask(`/sign-in/${provider}/callback?${search}`, { headers });
}

const madeUpCode = { code: randomBytes(16).toString('hex') };

/** They need an installation where accounts of a forge sign in. */
export const signInAttacks: readonly Attack[] = [
  defineSignInAttack('the state of a sign-in is used twice', async (victim, begun) => [
    ['the first', await comeBack(victim, begun, madeUpCode)],
    ['the second', await comeBack(victim, begun, madeUpCode)],
  ]),
  defineSignInAttack('a code of somebody else is put into a sign-in', async (victim, begun) => [
    ['another code', await comeBack(victim, begun, madeUpCode)],
  ]),
  defineSignInAttack('a link signs a person in with the account of the attacker', async (victim, begun) => {
    const other = await begin(victim);
    return [
      ['without a cookie', await comeBack(victim, { ...begun, cookie: '' }, madeUpCode)],
      [
        'with the cookie of another sign-in',
        await comeBack(victim, { ...begun, cookie: other?.cookie ?? '' }, madeUpCode),
      ],
    ];
  }),
  defineSignInAttack('a sign-in ends with an identity token that the attacker wrote', async (victim, begun) => {
    const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const nonce = begun.way.searchParams.get('nonce') ?? '';
    const token = `${encode({ alg: 'none' })}.${encode({ iss: begun.way.origin, sub: 'octo', nonce })}.`;
    return [
      ['with a code', await comeBack(victim, begun, { ...madeUpCode, id_token: token })],
      ['alone', await comeBack(victim, (await begin(victim)) ?? begun, { id_token: token, access_token: 'x' })],
    ];
  }),
  defineSignInAttack('a sign-in leads to another site', async (victim, { provider }) => {
    const answers: [string, Answer][] = [];
    for (const app of ['//evil.example', 'https://evil.example', '../../x', '%5C%5Cevil.example', 'a/b'])
      answers.push([app, await victim.ask(`/sign-in/${provider}?app=${app}`, { headers: html })]);
    return answers;
  }),
  defineSignInAttack('a cookie from before a sign-in is a session', async (victim, { cookie }) => {
    const slug = await findSlug(victim);
    const sealed = cookie.slice(cookie.indexOf('=') + 1);
    const answers: [string, Answer][] = [];
    for (const session of [cookie, `__Host-moorage-author=${sealed}`, '__Host-moorage-author=chosen'])
      answers.push([
        session.slice(0, 30),
        await victim.ask(`/apps/${slug}/manage`, {
          method: 'POST',
          headers: { ...html, 'content-type': 'application/x-www-form-urlencoded', cookie: session },
          text: 'action=restart&token=x',
        }),
      ]);
    return answers;
  }),
];

export const allSignInAttacks: readonly Attack[] = [
  madeUpAccount,
  ...signInAttacks,
  beyondScope,
  mintingToken,
  anotherApp,
  revokedToken,
  endlessToken,
];
