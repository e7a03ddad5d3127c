// Attacks on own domains: names that nobody gets, domains of others, records of other apps, and the certificates.
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { judged, notTried, type Attack, type Outcome } from '../attack.ts';
import type { Answer, AskOptions, Victim } from '../victim.ts';
import { findSlug, getOwnApp, hostOwnApp, files } from './own-app.ts';

const domainsNamespace = 'moorage-domains';
const gateways = 'gateways.gateway.networking.k8s.io';

const record = z.object({ name: z.string(), value: z.string() });
const proof = z.looseObject({ records: z.object({ txt: record, cname: record }) });
const list = z.looseObject({
  domains: z.array(z.looseObject({ domain: z.string(), state: z.string() })),
});
type DomainEntries = z.output<typeof list>['domains'];

/** The requests of the attacker about the domains of an app, their own unless it is named. */
interface DomainCalls {
  readonly slug: string;
  send(method: NonNullable<AskOptions['method']>, path?: string, json?: unknown): Promise<Answer>;
  list(): Promise<DomainEntries>;
}

function openDomains(victim: Victim, { slug, key }: { slug: string; key: string }): DomainCalls {
  const headers = { authorization: `Bearer ${key}` };
  const send: DomainCalls['send'] = (method, path = '', json) =>
    victim.ask(`/api/apps/${slug}/domains${path}`, { method, headers, json });
  return {
    ...{ slug, send },
    async list() {
      const { status, body } = await send('GET');
      if (status !== 200) throw new Error(`the domains could not be read: ${status} ${body.slice(0, 200)}`);
      return list.parse(JSON.parse(body)).domains;
    },
  };
}

async function openOwnDomains(victim: Victim): Promise<DomainCalls> {
  const calls = openDomains(victim, await getOwnApp(victim));
  for (const { domain } of await calls.list().catch((): DomainEntries => [])) await calls.send('DELETE', `/${domain}`);
  return calls;
}

function makeDomain(): string {
  return `attack-${randomBytes(6).toString('hex')}.example.com`;
}

const forbiddenNames: Attack = {
  name: 'an author takes a name of the platform, of the cluster, of everybody, or no name at all',
  needs: 'git',
  run: async (victim) => {
    const calls = await openOwnDomains(victim);
    const { hostname } = victim.baseUrl;
    const names = [
      ...[hostname, `x.${hostname}`, hostname.toUpperCase(), `${hostname}.`, 'localhost', 'x.localhost', 'local'],
      ...['moorage-api.moorage-system.svc', 'kubernetes.default.svc.cluster.local', 'metadata.google.internal'],
      ...['127.0.0.1', '0x7f.1', '2130706433', '[::1]', '169.254.169.254', '１２７.0.0.1'],
      ...['com', 'co.uk', 'github.io', '*.example.com', 'example.com/..', 'a@example.com', 'example.com:443'],
      ...['a.example.com\r\nx: y', '"><script>alert(1)</script>', '../../hostedapps', 'a b.example.com', 'xn--a.com'],
    ];
    const accepted: string[] = [];
    for (const name of names) {
      const { status } = await calls.send('POST', '', { domain: name });
      if (status !== 400) accepted.push(`${JSON.stringify(name)}: ${status}`);
    }
    return judged(
      accepted.length === 0,
      accepted.length === 0 ? `${names.length} names were refused.` : accepted.join('; '),
    );
  },
};

const domainOfOthers: Attack = {
  name: "an author adds, checks or removes a domain of another author's app",
  needs: 'git',
  run: async (victim) => {
    const { key } = await getOwnApp(victim);
    const calls = openDomains(victim, { slug: await findSlug(victim), key });
    const answers = [
      await calls.send('GET'),
      await calls.send('POST', '', { domain: makeDomain() }),
      await calls.send('POST', '/shop.example.com/check'),
      await calls.send('DELETE', '/shop.example.com'),
    ];
    const statuses = answers.map(({ status }) => status);
    const isHeld = statuses.every((status) => [403, 404, 429].includes(status));
    return judged(isHeld, `Four requests were answered with ${statuses.join(', ')}.`);
  },
};

const withoutLimit: Attack = {
  name: 'an author collects domains without limit',
  needs: 'git',
  run: async (victim) => {
    const calls = await openOwnDomains(victim);
    const statuses: number[] = [];
    const names = Array.from({ length: 7 }, makeDomain);
    for (const domain of names) statuses.push((await calls.send('POST', '', { domain })).status);
    for (const domain of names) await calls.send('DELETE', `/${domain}`);
    if (statuses[0] !== 200) return notTried(`No domain could be added: ${statuses[0] ?? ''}`);
    return judged(
      statuses.slice(-2).every((status) => status === 422),
      `Answers: ${statuses.join(', ')}.`,
    );
  },
};

const sharedRecord: Attack = {
  name: 'the record that proves a domain for one app, or one domain, proves it for another one',
  needs: 'git',
  run: async (victim) => {
    const second = await hostOwnApp(victim, 'attack-author-2', files);
    const apps = [await openOwnDomains(victim), openDomains(victim, second)];
    const names = [makeDomain(), makeDomain()];
    const values: string[] = [];
    for (const calls of apps)
      for (const domain of names) {
        const { body } = await calls.send('POST', '', { domain });
        const { txt, cname } = proof.parse(JSON.parse(body)).records;
        values.push(txt.value, cname.value);
        await calls.send('DELETE', `/${domain}`);
      }
    return judged(values.length === 8 && new Set(values).size === 8, `${new Set(values).size} of 8 records differ.`);
  },
};

export const domainAttacks: readonly Attack[] = [forbiddenNames, domainOfOthers, withoutLimit, sharedRecord];

// Those that need a cluster.

const unproven: Attack = {
  name: 'an app answers at a domain that nobody has proven',
  needs: 'git',
  run: async (victim) => {
    const calls = await openOwnDomains(victim);
    const domain = makeDomain();
    await calls.send('POST', '', { domain });
    const checked = await victim.until(
      'a lookup',
      async () => (await calls.list()).find((each) => each['checked_at'] !== undefined),
      60,
    );
    const routes = await victim.kubectl(['-n', await victim.appsNamespace(), 'get', 'httproutes', '-o', 'name']);
    // The connection is one for the API; the request names the domain.
    const visit = await victim.ask('/', { headers: { host: domain } });
    await calls.send('DELETE', `/${domain}`);
    const isHeld = checked.state === 'Pending' && !routes.includes(domain) && visit.status === 404;
    return judged(isHeld, `It is ${checked.state}, and a visit is answered with ${visit.status}.`);
  },
};

/** What the API could write if it were taken over. */
const writtenByApi: Attack = {
  name: 'the API, taken over, gives an app the name of the platform, or says that a domain is proven',
  needs: 'git',
  run: async (victim) => {
    const { slug } = await openOwnDomains(victim);
    const { hostname } = victim.baseUrl;
    const namespace = await victim.appsNamespace();
    const as = `--as=system:serviceaccount:${victim.systemNamespace}:moorage-api`;
    const patch = ['-n', namespace, 'patch', 'happ', slug, as, '--type=merge', '-p'];
    const addedAt = new Date().toISOString();
    await victim.kubectl([...patch, JSON.stringify({ spec: { control: { domains: [{ name: hostname, addedAt }] } } })]);
    try {
      const refused = await victim.until(
        'the operator to judge it',
        async () => (await victim.app(slug)).status?.domains?.find(({ name }) => name === hostname),
        60,
      );
      const status = { status: { domains: [{ name: 'shop.example.com', state: 'Active', message: 'x' }] } };
      const isTaken = await victim.isTaken([...patch, JSON.stringify(status), '--subresource=status']);
      return judged(
        refused.state === 'Refused' && !isTaken,
        `The name is ${refused.state}; the status was ${isTaken ? 'written' : 'not written'}.`,
      );
    } finally {
      await victim.kubectl([...patch, JSON.stringify({ spec: { control: { domains: null } } })]);
    }
  },
};

const certificates: Attack = {
  name: 'a process that is taken over reads certificates of domains, or changes the Gateway of the platform',
  needs: 'kubectl',
  run: async (victim): Promise<Outcome> => {
    const namespace = victim.systemNamespace;
    const wrong: string[] = [];
    if (!(await victim.may({ namespace, name: 'moorage-operator' }, 'create', gateways, domainsNamespace)))
      return notTried('This installation offers no domains.');
    for (const name of ['moorage-operator', 'moorage-api', 'moorage-activator'])
      for (const [verb, what, where] of [
        ['get', 'secrets', domainsNamespace],
        ['list', 'secrets', domainsNamespace],
        ['create', 'secrets', domainsNamespace],
        ['patch', gateways, namespace],
        ['create', gateways, namespace],
      ] as const)
        if (await victim.may({ namespace, name }, verb, what, where)) wrong.push(`${name} may ${verb} ${what}`);
    return judged(wrong.length === 0, wrong.length === 0 ? 'None of 15 rights is there.' : `${wrong.join('; ')}.`);
  },
};

export const domainRightAttacks: readonly Attack[] = [unproven, writtenByApi, certificates];
