// Attacks on what reaches an app from forges and leaves it to its author: push hooks, webhooks, mails and their links.
import { createHmac, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { judged, notTried, type Attack } from '../attack.ts';
import type { Answer, Victim } from '../victim.ts';
import { askOwn, describeFaults, findSlug, getOwnApp, listAnswered, type OwnApp } from './own-app.ts';

const push = JSON.stringify({ ref: 'refs/heads/main', after: 'b'.repeat(40) });
/** What a refusal may answer, also where hooks are not configured. */
const refused: readonly number[] = [400, 401, 403, 404, 409, 413, 429];

async function sendPush(
  victim: Victim,
  slug: string,
  headers: Readonly<Record<string, string>>,
  text = push,
): Promise<Answer> {
  return victim.ask(`/api/apps/${slug}/push-hook`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    text,
  });
}

const sign = (secret: string, text: string): Record<string, string> => ({
  'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(text).digest('hex')}`,
  'x-github-event': 'push',
});

const hook = z.looseObject({ secret: z.string() });

/** The secret of the push hook of the attacker's app. @throws Error if there is none, so that nothing is judged */
async function readHookSecret(victim: Victim, own: OwnApp): Promise<string> {
  const { status, body } = await askOwn(victim, own, '/push-hook-secret', { method: 'POST' });
  if (status !== 200) throw new Error(`there is no push hook: ${status}`);
  return hook.parse(JSON.parse(body)).secret;
}

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
    const faults: string[] = [];
    for (const headers of forged) {
      const { status } = await sendPush(victim, slug, headers);
      if (!refused.includes(status)) faults.push(`${Object.keys(headers).join(', ')}: ${status}`);
    }
    return judged(faults.length === 0, describeFaults(faults, `${forged.length} events were refused.`));
  },
};

const foreignPush: Attack = {
  name: 'the secret of the push hook of one app triggers builds of another',
  needs: 'git',
  run: async (victim) => {
    const [slug, own] = [await findSlug(victim), await getOwnApp(victim)];
    const secret = await readHookSecret(victim, own);
    const genuine = await sendPush(victim, own.slug, sign(secret, push));
    if (genuine.status !== 202) return notTried(`The event of the app itself answers ${genuine.status}.`);
    const proofs = [sign(secret, push), { authorization: `Bearer ${secret}` }, { 'x-gitlab-token': secret }];
    const faults: string[] = [];
    for (const headers of proofs) {
      const { status } = await sendPush(victim, slug, headers);
      if (!refused.includes(status)) faults.push(`${Object.keys(headers)[0] ?? ''}: ${status}`);
    }
    return judged(faults.length === 0, describeFaults(faults, 'Three events were refused.'));
  },
};

const changedPush: Attack = {
  name: 'a push event is changed after it was signed',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const headers = sign(await readHookSecret(victim, own), push);
    const bodies = [`${push} `, push.replace('main', 'evil'), '', `{"payload":${push}}`];
    const faults: string[] = [];
    for (const text of bodies) {
      const { status } = await sendPush(victim, own.slug, headers, text);
      if (!refused.includes(status)) faults.push(`${text.slice(0, 40)} answers ${status}`);
    }
    return judged(faults.length === 0, describeFaults(faults, `${bodies.length} events were refused.`));
  },
};

const accepted = z.looseObject({ polled: z.boolean() });

const otherEvents: Attack = {
  name: 'a genuine event of another repository, branch or kind deploys something else',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const secret = await readHookSecret(victim, own);
    const events = [
      { ref: 'refs/heads/evil', repository: { full_name: 'evil/repository' } },
      { ref: 'refs/heads/main', repository: { full_name: '../../x' } },
      { ref: 'refs/pull/1/head' },
      { ref: 'refs/heads/not-the-branch' },
    ].map((event) => JSON.stringify(event));
    const faults: string[] = [];
    for (const text of events) {
      const { status, body } = await sendPush(victim, own.slug, sign(secret, text), text);
      if (status !== 202 || accepted.parse(JSON.parse(body)).polled)
        faults.push(`${text} answers ${status}, and is polled`);
    }
    const deleted = { ...sign(secret, push), 'x-github-event': 'delete' };
    const { status, body } = await sendPush(victim, own.slug, deleted);
    if (status !== 202 || accepted.parse(JSON.parse(body)).polled) faults.push('an event of another kind is polled');
    return judged(faults.length === 0, describeFaults(faults, `${events.length + 1} events have no effect.`));
  },
};

const replayedPush: Attack = {
  name: 'a recorded push event is sent again and again, and starts a build each time',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const headers = sign(await readHookSecret(victim, own), push);
    const describe = async (): Promise<string> => {
      const { status } = await victim.app(own.slug);
      const builds = status?.history?.map(({ number }) => number) ?? [];
      return `at ${status?.source?.commit} after builds ${builds.join(', ')}`;
    };
    const before = await describe();
    const statuses = new Set<number>();
    for (let count = 0; count < 20; count += 1) statuses.add((await sendPush(victim, own.slug, headers)).status);
    if (!statuses.has(202)) return notTried(`The events get ${[...statuses].join(', ')}.`);
    const faults = [...statuses].filter((status) => status >= 500).map((status) => `an event gets ${status}`);
    const after = await describe();
    if (after !== before) faults.push(`the app was ${before} and is ${after}`);
    return judged(
      faults.length === 0,
      describeFaults(faults, 'Twenty events build nothing, as there is no new commit.'),
    );
  },
};

const replacedSecret: Attack = {
  name: 'a secret of the push hook that others know triggers builds after it was replaced and ended',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const known = await readHookSecret(victim, own);
    const options = { method: 'POST', json: { end_previous: true } } as const;
    const { status, body } = await askOwn(victim, own, '/push-hook-secret/replace', options);
    if (status !== 200) return notTried(`The secret could not be replaced: ${status}.`);
    const { secret } = hook.parse(JSON.parse(body));
    if ((await sendPush(victim, own.slug, sign(secret, push))).status !== 202)
      return notTried('The new secret is not accepted.');
    const old = await sendPush(victim, own.slug, sign(known, push));
    const log = await askOwn(victim, own, '/audit');
    const faults = [
      ...(refused.includes(old.status) ? [] : [`the old secret gets ${old.status}`]),
      ...(log.body.includes(secret) || log.body.includes(known) ? ['the audit log has a secret'] : []),
    ];
    return judged(faults.length === 0, describeFaults(faults, 'The old secret is refused, and neither is in the log.'));
  },
};

const largePush: Attack = {
  name: 'a push event that is too large occupies the API',
  needs: 'address',
  run: async (victim) => {
    const { status } = await sendPush(
      victim,
      await findSlug(victim),
      {},
      JSON.stringify({ ref: 'x'.repeat(3_000_000) }),
    );
    return judged(status === 413, `3 MB answer ${status}.`);
  },
};

/** Addresses inside, in all spellings that a URL has. */
const inside = [
  'https://127.0.0.1/',
  'https://127.1/',
  'https://2130706433/',
  'https://0x7f000001/',
  'https://0177.0.0.1/',
  'https://[::1]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[64:ff9b::7f00:1]/',
  'https://[fd00::1]/',
  'https://10.96.0.1/',
  'https://169.254.169.254/latest/meta-data',
  'https://192.168.0.1/',
  'https://100.64.0.1/',
  'https://0.0.0.0/',
  'https://localhost/',
  'http://example.org/',
  'file:///etc/passwd',
  'gopher://127.0.0.1:25/',
  'https://user:password@example.org/',
];

/** Tries to set these webhooks, and lists those that are taken. */
async function listTakenWebhooks(victim: Victim, own: OwnApp, urls: readonly string[]): Promise<string[]> {
  const faults: string[] = [];
  for (const url of urls) {
    const { status } = await askOwn(victim, own, '/notifications/webhook', { method: 'PUT', json: { url } });
    if (status < 400 || status === 500) faults.push(`${url} answers ${status}`);
  }
  const { status, body } = await askOwn(victim, own, '/notifications');
  if (status !== 200 || /"webhook":\{/.test(body)) faults.push('a webhook is set');
  return faults;
}

const internalWebhook: Attack = {
  name: 'the webhook of an app calls an address inside the cluster, or another protocol',
  needs: 'git',
  run: async (victim) => {
    const faults = await listTakenWebhooks(victim, await getOwnApp(victim), inside);
    return judged(faults.length === 0, describeFaults(faults, `${inside.length} addresses were refused.`));
  },
};

const resolvingWebhook: Attack = {
  name: 'the webhook of an app has a name that resolves to an address inside (DNS rebinding)',
  needs: 'git',
  run: async (victim) => {
    const names = [
      'kubernetes.default.svc',
      'kubernetes.default.svc.cluster.local',
      `moorage-api.${victim.systemNamespace}.svc`,
      `moorage-api.${victim.systemNamespace}.svc.cluster.local.`,
      'metadata.google.internal',
      'localhost.',
      'a.localhost',
    ];
    const urls = names.map((name) => `https://${name}/`);
    const faults = await listTakenWebhooks(victim, await getOwnApp(victim), urls);
    return judged(faults.length === 0, describeFaults(faults, `${names.length} names were refused.`));
  },
};

const injectedHeaders: Attack = {
  name: 'an address of a contact adds headers or recipients to a mail',
  needs: 'git',
  run: async (victim) => {
    const own = await getOwnApp(victim);
    const addresses = [
      'a@example.org\r\nBcc: victim@example.org',
      'a@example.org, victim@example.org',
      'a@example.org>\r\nSubject: x',
      '"a\r\n"@example.org',
      'Victim <victim@example.org>',
      'a@example.org?subject=x',
      'a@[127.0.0.1]',
      `${'a'.repeat(300)}@example.org`,
      '',
    ];
    const faults: string[] = [];
    for (const address of addresses) {
      const { status } = await askOwn(victim, own, '/notifications/contacts', { method: 'POST', json: { address } });
      if (status !== 400) faults.push(`${JSON.stringify(address.slice(0, 40))} answers ${status}`);
    }
    return judged(faults.length === 0, describeFaults(faults, `${addresses.length} addresses were refused.`));
  },
};

const forgedLinks: Attack = {
  name: 'a forged link stops the mails of an author, or confirms the address of somebody else',
  needs: 'address',
  run: async (victim) => {
    const signature = randomBytes(32).toString('base64url');
    const uid = 'f47ac10b-58cc-4372-a567-0e02b2c3d479';
    const contact = 'a'.repeat(32);
    const tokens = {
      stop: [`${uid}.${contact}.${signature}`, `${uid}.${contact}.`, 'x', 'a'.repeat(290)],
      confirm: [`${uid}.${contact}.${uid}.${signature}`, `${uid}.${contact}.${signature}`, '..%2f..%2f', '%00'],
    };
    const faults: string[] = [];
    for (const [name, forged] of Object.entries(tokens))
      for (const token of forged)
        for (const path of [`/api/notifications/${name}/${token}`, `/notifications/${name}/${token}`]) {
          const { status } = await victim.ask(path, { method: 'POST' });
          if (status < 400 || status >= 500) faults.push(`${path.slice(0, 40)} answers ${status}`);
        }
    return judged(faults.length === 0, describeFaults(faults, '16 links were refused.'));
  },
};

const takenOver: Attack = {
  name: 'a stranger makes themselves a contact of an app, or sends its notifications elsewhere',
  needs: 'address',
  run: async (victim) => {
    const requests = [
      ['POST', '/notifications/contacts', { address: 'attacker@example.org' }],
      ['PUT', '/notifications/webhook', { url: 'https://evil.example/' }],
      ['PUT', '/notifications/mail/events', { events: ['live'] }],
      ['DELETE', '/notifications/webhook'],
      ['POST', '/notifications/test'],
    ] as const;
    const slug = await findSlug(victim);
    const answered = await listAnswered(victim, slug, {}, requests);
    // A submission names a contact, and is a claim: it does not replace that of the author.
    return judged(answered.length === 0, describeFaults(answered, `${requests.length} requests were refused.`));
  },
};

export const authorNoticeAttacks: readonly Attack[] = [
  forgedPush,
  foreignPush,
  changedPush,
  otherEvents,
  replayedPush,
  replacedSecret,
  largePush,
  internalWebhook,
  resolvingWebhook,
  injectedHeaders,
  forgedLinks,
  takenOver,
];
