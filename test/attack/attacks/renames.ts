// Attacks on the names of apps: names of others, of the platform and of the past, names that block submissions, and what the API
// could write if it were taken over.
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { judged, type Attack } from '../attack.ts';
import type { Answer, Victim } from '../victim.ts';
import { files, findSlug, getOwnApp, hostOwnApp, makeKey } from './own-app.ts';

const named = z.looseObject({ slug: z.string() });

interface OwnApp {
  readonly slug: string;
  readonly key: string;
}

function rename(victim: Victim, { slug, key }: OwnApp, to: string): Promise<Answer> {
  return victim.ask(`/api/apps/${slug}/rename`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    json: { slug: to },
  });
}

function makeName(): string {
  return `attack-${randomBytes(4).toString('hex')}-x`;
}

async function readName(victim: Victim, { slug, key }: OwnApp): Promise<string> {
  const { body } = await victim.ask(`/api/apps/${slug}`, { headers: { authorization: `Bearer ${key}` } });
  return named.safeParse(JSON.parse(body)).data?.slug ?? '';
}

/** Renames an app of the attacker to each name, and lists those that were accepted. */
async function tryNames(victim: Victim, names: readonly string[], statuses: readonly number[]): Promise<string[]> {
  const own = await getOwnApp(victim);
  const before = await readName(victim, own);
  const accepted: string[] = [];
  for (const name of names) {
    const { status } = await rename(victim, own, name);
    if (!statuses.includes(status)) accepted.push(`${JSON.stringify(name)}: ${status}`);
  }
  const after = await readName(victim, own);
  return before === after ? accepted : [...accepted, `the app is called ${after} now`];
}

const forbiddenNames: Attack = {
  name: 'an author renames an app to a name of the platform, of a catalog app, of a preview or of no form at all',
  needs: 'git',
  run: async (victim) => {
    const names = [
      ...['moorage', 'api', 'git', 'admin', 'login', 'www', 'mail', 'wpad', 'autodiscover', 'www1', 'mta-sts'],
      ...['chat-ui-1', 'slide-generator', 'hello--pr-1', 'hello--admin', 'a--b', 'xn--hello-x'],
      ...['Hello', 'hello.evil', '*', '-', 'a-', '9a', 'a_b', 'héllo', 'a'.repeat(41), '../hello', 'hello%00'],
      ...['"><script>alert(1)</script>', 'a\r\nx: y', 'hello-0123abcd'],
    ];
    const accepted = await tryNames(victim, names, [400]);
    return judged(accepted.length === 0, accepted[0] ?? `${names.length} names were refused.`);
  },
};

const nameOfAnother: Attack = {
  name: "an author renames an app to the name of another author's app",
  needs: 'git',
  run: async (victim) => {
    const slug = await findSlug(victim);
    const accepted = await tryNames(victim, [slug], [409]);
    return judged(accepted.length === 0, accepted[0] ?? `${slug} was refused.`);
  },
};

const appOfAnother: Attack = {
  name: "somebody renames an app of another author, with another app's key or with one of their own",
  needs: 'git',
  run: async (victim) => {
    const { key } = await getOwnApp(victim);
    const slug = await findSlug(victim);
    const statuses = [];
    for (const each of [key, makeKey(), ''])
      statuses.push((await rename(victim, { slug, key: each }, makeName())).status);
    const isHeld = statuses.every((status) => [401, 403, 404, 429].includes(status));
    return judged(isHeld, `Three requests were answered with ${statuses.join(', ')}.`);
  },
};

const formerNameOfAnother: Attack = {
  name: 'an author takes the former name or the first name of an app that was renamed',
  needs: 'git',
  run: async (victim) => {
    const other = await hostOwnApp(victim, 'attack-renamed', files);
    const passed = makeName();
    const [first, second] = [await rename(victim, other, passed), await rename(victim, other, makeName())];
    if (first.status !== 200 || second.status !== 200)
      throw new Error(`the app was not renamed: ${first.status}, ${second.status}`);
    const accepted = await tryNames(victim, [passed, other.slug], [409]);
    const headers = { authorization: `Bearer ${(await getOwnApp(victim)).key}` };
    const { status } = await victim.ask(`/api/apps/${passed}`, { headers });
    if (![401, 403, 404, 429].includes(status))
      accepted.push(`the former name opens the app to another key: ${status}`);
    return judged(accepted.length === 0, accepted[0] ?? 'Both names were refused, and open nothing to another key.');
  },
};

const sameNameAtOnce: Attack = {
  name: 'two apps are renamed to one name at the same moment',
  needs: 'git',
  run: async (victim) => {
    const apps = [await hostOwnApp(victim, 'attack-racer-1', files), await hostOwnApp(victim, 'attack-racer-2', files)];
    const name = makeName();
    const answers = await Promise.all([...apps, ...apps].map(async (own) => (await rename(victim, own, name)).status));
    const names = await Promise.all(apps.map((own) => readName(victim, own)));
    const holders = names.filter((each) => each === name).length;
    return judged(holders === 1, `${holders} apps have the name; the answers were ${answers.join(', ')}.`);
  },
};

/** What the API could write if it were taken over. */
const writtenByApi: Attack = {
  name: 'the API, taken over, gives an app the address of another one',
  needs: 'git',
  run: async (victim) => {
    const { slug } = await getOwnApp(victim);
    const other = (await victim.liveApp()).metadata;
    const namespace = await victim.appsNamespace();
    const as = `--as=system:serviceaccount:${victim.systemNamespace}:moorage-api`;
    const patch = ['-n', namespace, 'patch', 'happ', slug, as, '--type=merge', '-p'];
    await victim.kubectl([...patch, JSON.stringify({ spec: { control: { slug: other.name } } })]);
    try {
      await victim.until(
        'the operator to try it',
        async () => {
          const { status } = await victim.app(slug);
          return status?.conditions?.find(({ reason }) => reason === 'RouteRefused');
        },
        60,
      );
      const route = ['-n', namespace, 'get', 'httproute', other.name, '-o'];
      const owner = await victim.kubectl([...route, 'jsonpath={.metadata.ownerReferences[*].uid}']);
      return judged(owner.trim() === other.uid, `The route of ${other.name} belongs to ${owner.trim()}.`);
    } finally {
      await victim.kubectl([...patch, JSON.stringify({ spec: { control: { slug: null } } })]);
    }
  },
};

export const renameAttacks: readonly Attack[] = [
  forbiddenNames,
  nameOfAnother,
  appOfAnother,
  formerNameOfAnother,
  sameNameAtOnce,
];

export const renameRightAttacks: readonly Attack[] = [writtenByApi];
