// Attacks that count on how an installation is set: limits that do not limit, names that mislead, an authority that signs too much.
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { judged, notTried, type Attack } from '../attack.ts';
import type { Victim } from '../victim.ts';

const slots: Attack = {
  name: 'one submitter holds every build slot',
  needs: 'kubectl',
  run: async (victim) => {
    const settings = await victim.settings();
    const concurrency = Number(settings['MOORAGE_BUILDS_CONCURRENCY']);
    const each = Number(settings['MOORAGE_BUILDS_PER_SUBMITTER']);
    return judged(
      each < concurrency,
      `One submitter may have ${each} of ${concurrency} (builds.perSubmitter, builds.concurrency).`,
    );
  },
};

const crowd: Attack = {
  name: 'a few networks fill the installation with apps permanently',
  needs: 'kubectl',
  run: async (victim) => {
    const api = await victim.environmentOf('moorage-api');
    const [each, all] = [Number(api['MOORAGE_APPS_PER_NETWORK']), Number(api['MOORAGE_MAX_APPS'])];
    const expires = (await victim.settings())['MOORAGE_APPS_EXPIRE_AFTER'] ?? '0s';
    return judged(
      each < all && !/^0+[smh]?$/.test(expires),
      `A network may have ${each} of ${all} apps; one that never goes live is deleted after ${expires}.`,
    );
  },
};

const submitted = z.looseObject({ slug: z.string() });
const trusted = ['wpad', 'autodiscover', 'mta-sts', 'accounts', 'www', 'api'];

const names: Attack = {
  name: 'an app takes a name that programs or people trust',
  needs: 'git',
  run: async (victim) => {
    // Pushed, since no name is taken for a repository that is not there. It has nothing that could run.
    const slugs = await Promise.all(trusted.map((name) => victim.register(name, {})));
    await victim.deleteApps(slugs.filter((slug) => slug !== undefined));
    const given = slugs.filter((slug) => slug !== undefined && trusted.includes(slug));
    const isTried = slugs.every((slug) => slug !== undefined);
    return judged(
      given.length === 0 && isTried,
      given.length === 0
        ? `Asked for ${trusted.join(', ')}; given: ${slugs.map((slug) => slug ?? 'nothing').join(', ')}.`
        : `Given: ${given.join(', ')}.`,
    );
  },
};

const phantom: Attack = {
  name: 'a repository that does not exist takes a name and a catalog entry',
  needs: 'git',
  run: async (victim) => {
    const name = `attack-phantom-${Date.now().toString(36)}`;
    const { status, body } = await victim.ask('/api/submit', {
      method: 'POST',
      json: { repo: victim.repositoryNamed(name), note: '"><script>alert(1)</script>' },
    });
    const read = submitted.safeParse(JSON.parse(body));
    if (read.success) victim.made(read.data.slug);
    const listed = (await victim.ask('/api/projects?state=all&limit=200')).body.includes(name);
    return judged(!read.success && !listed, `The submission was answered with ${status}; listed: ${String(listed)}.`);
  },
};

const oids = { constraints: '0603551d1e', pathLength: '30060101ff020100' };
const twoYears = 2 * 366 * 24 * 3_600_000;

const authority: Attack = {
  name: 'the local authority signs any site, for years',
  needs: 'address',
  run: (victim) => {
    const pem = victim.authority;
    if (pem === undefined) return Promise.resolve(notTried('This installation has no authority of its own.'));
    const certificate = new X509Certificate(pem);
    const hex = certificate.raw.toString('hex');
    const lasts = Date.parse(certificate.validTo) - Date.parse(certificate.validFrom);
    const missing = [
      ...(hex.includes(oids.constraints) ? [] : ['no name constraints']),
      ...(hex.includes(oids.pathLength) ? [] : ['no path length of 0']),
      ...(lasts <= twoYears ? [] : [`good for ${Math.round(lasts / 86_400_000)} days`]),
    ];
    return Promise.resolve(
      judged(
        missing.length === 0,
        missing.length === 0
          ? `Its names are constrained, its path has length 0, it ends on ${certificate.validTo}.`
          : `It has ${missing.join(', ')}.`,
      ),
    );
  },
};

const links: Attack = {
  name: 'symbolic links lead out of the repository, one by one',
  needs: 'git',
  run: async (victim) => {
    const { live, output } = await victim.submit('attack-links', {
      'index.html': '<!doctype html><title>links</title><p>hello\n',
      'a/b/one': '-> ../two',
      'a/two': '-> ../three',
      three: '-> ../../../../etc/passwd',
    });
    return judged(
      !live && /symlink|symbolic/.test(output),
      `The review said ${/rule +\S+/.exec(output)?.[0] ?? 'nothing'}.`,
    );
  },
};

const [authors, secret] = ['written-by-the-author', 'only-the-operator-knows'];

const environment: Attack = {
  name: 'the public status shows values that the operator of the installation set',
  needs: 'git',
  run: async (victim) => {
    const app = 'attack-status';
    await victim.host(app, {
      'index.html': '<!doctype html><title>status</title><p>hello\n',
      'moorage.yaml': `run: {env: [{name: ATTACKED, value: ${authors}}]}\n`,
    });
    const change = { spec: { run: { env: [{ name: 'ATTACKED', value: secret }] } } };
    await victim.kubectl([
      '-n',
      await victim.appsNamespace(),
      'patch',
      'happ',
      app,
      '--type=merge',
      '-p',
      JSON.stringify(change),
    ]);
    const { body } = await victim.until(
      'the variable in the status',
      async () => {
        const answer = await victim.ask(`/api/submit-status/local/${app}`);
        return answer.body.includes('ATTACKED') && !answer.body.includes(authors) ? answer : undefined;
      },
      60,
    );
    return judged(
      !body.includes(secret),
      body.includes(secret) ? 'Its value is shown.' : 'Its name is shown, its value is not.',
    );
  },
};

const held: Attack = {
  name: "one client fills the activators' queues, so that no other client can wake an app",
  needs: 'kubectl',
  run: async (victim) => {
    const activator = await victim.environmentOf('moorage-activator');
    const [client = 0, app = 0, all = 0] = ['HELD_PER_CLIENT', 'HELD_PER_APP', 'HELD'].map((name) =>
      Number(activator[`MOORAGE_ACTIVATOR_${name}`]),
    );
    return judged(
      client * 10 <= app && app < all,
      `A client may have ${client} of ${app} requests that are held for an app, and of ${all} in all.`,
    );
  },
};

const minimumHstsSeconds = 30 * 24 * 3_600;

/** What the address answers without TLS; undefined: nothing but a way to https. */
async function findPlainAnswer(victim: Victim): Promise<string | undefined> {
  const plain = new URL(`http://${victim.baseUrl.hostname}/`);
  try {
    const { status, headers } = await victim.ask(plain);
    const isRedirected = status >= 300 && status < 400 && String(headers['location']).startsWith('https://');
    return isRedirected ? undefined : `Plain http is answered with ${status}.`;
  } catch {
    return undefined;
  }
}

const downgrade: Attack = {
  name: 'a man in the middle redirects a returning visitor to plain http',
  needs: 'address',
  run: async (victim) => {
    const answer = await findPlainAnswer(victim);
    if (answer !== undefined) return judged(false, answer);
    // Browsers follow the header only where they trust the certificate.
    if (victim.baseUrl.hostname.endsWith('localhost') || victim.authority !== undefined)
      return judged(true, 'Plain http leads to https; browsers ignore HSTS of an authority of one installation.');
    const { headers } = await victim.ask('/');
    const header = String(headers['strict-transport-security'] ?? '');
    const seconds = Number(/max-age=(\d+)/.exec(header)?.[1] ?? 0);
    return judged(
      seconds >= minimumHstsSeconds,
      seconds === 0 ? 'There is no HSTS: set gateway.hstsSeconds.' : `HSTS holds for ${seconds} s.`,
    );
  },
};

const selected = z.record(z.string(), z.string()).default({});
const podList = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), labels: selected }),
      spec: z.object({ hostNetwork: z.boolean().default(false) }),
    }),
  ),
});
const policyList = z.object({
  items: z.array(
    z.object({
      spec: z.object({
        podSelector: z.strictObject({
          matchLabels: selected,
          matchExpressions: z
            .array(z.strictObject({ key: z.string(), operator: z.literal('In'), values: z.array(z.string()) }))
            .default([]),
        }),
        policyTypes: z.array(z.string()).default([]),
      }),
    }),
  ),
});

/** Pods of a namespace that no policy selects for both directions; those of the host's network are out of reach. */
async function findOpenPods(victim: Victim, namespace: string): Promise<string[]> {
  const list = async (what: string): Promise<unknown> =>
    JSON.parse(await victim.kubectl(['get', what, '-n', namespace, '-o', 'json']));
  const pods = podList.parse(await list('pods')).items.filter(({ spec }) => !spec.hostNetwork);
  const policies = policyList.parse(await list('networkpolicies')).items;
  return pods
    .filter(({ metadata: { labels } }) => {
      const own = policies.filter(
        ({ spec: { podSelector } }) =>
          Object.entries(podSelector.matchLabels).every(([name, value]) => labels[name] === value) &&
          podSelector.matchExpressions.every(({ key, values }) => values.includes(labels[key] ?? '')),
      );
      return ['Ingress', 'Egress'].some((type) => !own.some(({ spec }) => spec.policyTypes.includes(type)));
    })
    .map(({ metadata }) => `${namespace}/${metadata.name}`);
}

const openPods: Attack = {
  name: 'a pod of the platform, its gateway, storage or DNS accepts connections from every other pod',
  needs: 'kubectl',
  run: async (victim) => {
    const all = (await victim.kubectl(['get', 'namespaces', '-o', 'name'])).split('\n');
    const given = all.map((line) => line.replace('namespace/', ''));
    const own = new Set([
      ...[victim.systemNamespace, await victim.appsNamespace(), await victim.buildsNamespace()],
      // What `up` installs; in another cluster these belong to others.
      ...(given.includes('moorage-git')
        ? ['moorage-git', 'moorage-gateway', 'moorage-storage', 'local-path-storage', 'kube-system']
        : []),
    ]);
    const looked = given.filter((namespace) => own.has(namespace));
    const open = (await Promise.all(looked.map((namespace) => findOpenPods(victim, namespace)))).flat();
    return judged(
      open.length === 0,
      open.length === 0 ? `Every pod of ${looked.join(', ')} has policies.` : `Open: ${open.slice(0, 5).join(', ')}.`,
    );
  },
};

export const installationAttacks: readonly Attack[] = [
  slots,
  crowd,
  held,
  names,
  phantom,
  authority,
  links,
  environment,
  downgrade,
  openPods,
];
