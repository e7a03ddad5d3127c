// Attacks on secrets: what is left of them in logs, an app that prints all that it was given, and a token that got out.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { labels } from '../../../crds/names.ts';
import { judged, notTried, type Attack } from '../attack.ts';
import type { Answer, AskOptions, Victim } from '../victim.ts';

const name = 'attack-secrets';

/** Prints its environment and what could be made of it, and crashes. */
const server = `import base64, json, os, sys, urllib.parse
print(json.dumps(dict(os.environ)), file=sys.stderr)
for value in os.environ.values():
    print(value, urllib.parse.quote(value), base64.b64encode(value.encode()).decode(), file=sys.stderr)
sys.exit(1)
`;
const files = {
  'server.py': server,
  Dockerfile: 'FROM python:3.13-slim-trixie\nCOPY server.py /\nEXPOSE 8080\nCMD ["python", "/server.py"]\n',
  'moorage.yaml':
    'listing: {title: Attack, description: Prints its secrets}\nrun: {env: [{name: SESSION_SECRET, value: "${{secret}}"}]}\n',
};

const secretList = z.object({
  items: z.array(z.object({ data: z.record(z.string(), z.string()).optional() })),
});

/** The values of the Secrets that were made for the app, by their keys; read with the rights of an operator. */
async function listSecrets(victim: Victim): Promise<[string, string][]> {
  const selector = `${labels.app}=${name}`;
  const text = await victim.kubectl([
    ...['-n', await victim.appsNamespace(), 'get', 'secrets', '-l', selector, '-o', 'json'],
  ]);
  return secretList
    .parse(JSON.parse(text))
    .items.flatMap(({ data = {} }) => Object.entries(data))
    .map(([key, value]): [string, string] => [key, Buffer.from(value, 'base64').toString('utf8')])
    .filter(([key]) => key !== 'base-url');
}

const leak: Attack = {
  name: 'an app that crashes shows its passwords and tokens in the public status, a log or an event',
  needs: 'git',
  run: async (victim) => {
    const { live, output } = await victim.submit(name, files);
    const secrets = await listSecrets(victim);
    if (secrets.length === 0) return notTried('No Secret was made for the app.');
    const app = await victim.app(name);
    const [owner = '', repository = ''] = app.spec.source.repo
      .replace(/\.git$/, '')
      .split('/')
      .slice(-2);
    const path = `/api/submit-status/${owner}/${repository}`;
    const events = await victim.kubectl(['-n', await victim.appsNamespace(), 'get', 'events', '-o', 'json']);
    const places = {
      'the output of submit': output,
      'the status': (await victim.ask(path)).body,
      'the status page': (await victim.ask(`/status/${owner}/${repository}`)).body,
      'the log': (await victim.ask(`${path}/log`, { headers: { accept: 'text/plain' } })).body,
      'the HostedApp': JSON.stringify(app),
      'an event': events,
    };
    const forms = secrets.flatMap(([, value]) => [value, Buffer.from(value).toString('base64')]);
    const open = Object.entries(places)
      .filter(([, text]) => forms.some((form) => text.includes(form)))
      .map(([place]) => place);
    if (live || !/\[secret\]/.test(places['the status']))
      return notTried('The status has no log of a crash that could show something.');
    return judged(
      open.length === 0,
      open.length === 0
        ? `${secrets.length} secrets are in none of ${Object.keys(places).length} places.`
        : `A secret is in ${open.join(', ')}.`,
    );
  },
};

/** Invented keys of an attack before may have used up what this network may send in a minute. */
async function askBelowLimit(victim: Victim, path: string, options: AskOptions): Promise<Answer> {
  for (let tries = 0; tries < 5; tries += 1) {
    const answer = await victim.ask(path, options);
    if (answer.status !== 429) return answer;
    await delay(Number(answer.headers['retry-after'] ?? 10) * 1_000);
  }
  return await victim.ask(path, options);
}

const stolenToken: Attack = {
  name: "an app's leaked token calls models at the public address",
  needs: 'git',
  run: async (victim) => {
    const token = (await listSecrets(victim)).find(([key]) => key === 'token')?.[1];
    if (token === undefined) return notTried('The app has no token for models.');
    const headers = { authorization: `Bearer ${token}` };
    const answers = await Promise.all([
      askBelowLimit(victim, '/v1/models', { headers }),
      askBelowLimit(victim, '/v1/chat/completions', {
        method: 'POST',
        headers,
        json: { model: 'alpha-v4-flash', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 5 },
      }),
    ]);
    const statuses = answers.map(({ status }) => status);
    return judged(
      statuses.every((status) => status === 401),
      `/v1/models and /v1/chat/completions answer ${statuses.join(' and ')}.`,
    );
  },
};

const podNames = z.object({ items: z.array(z.object({ metadata: z.object({ name: z.string() }) })) });
/** Prints which of these texts is in a file of the folder of the access log. */
const search = `const fs = require('node:fs');
const folder = '/var/log/gateway/';
const text = fs.readdirSync(folder).map((file) => fs.readFileSync(folder + file, 'utf8')).join('');
console.log(JSON.stringify(process.argv.slice(1).map((word) => text.includes(word))));`;

const query: Attack = {
  name: "a key or a prompt in a request's query stays in the gateway's access log",
  needs: 'kubectl',
  run: async (victim) => {
    const gateway = ['-n', 'moorage-gateway'];
    const pods = await victim
      .kubectl([...gateway, 'get', 'pods', '-l', 'app.kubernetes.io/name=traefik', '-o', 'json'])
      .catch(() => '{"items":[]}');
    const [pod] = podNames.parse(JSON.parse(pods)).items;
    if (pod === undefined) return notTried('The gateway is not that of a local cluster.');
    const [planted, marker] = [`planted-${randomUUID()}`, `marker-${randomUUID()}`];
    for (const path of ['/', '/t', '/api/models']) await victim.ask(`${path}?api_key=${planted}`);
    await victim.ask(`/${marker}?prompt=${planted}`);
    const [isLogged, isLeaked] = await victim.until(
      'the access log has the last request',
      async () => {
        const run = ['exec', pod.metadata.name, '-c', 'shipper', '--', 'node', '-e', search, marker, planted];
        const found = z.array(z.boolean()).parse(JSON.parse(await victim.kubectl([...gateway, ...run])));
        return found[0] === true ? found : undefined;
      },
      30,
    );
    return judged(
      isLogged === true && isLeaked === false,
      `Four requests are logged, ${isLeaked === true ? 'with' : 'without'} their queries.`,
    );
  },
};

export const secretAttacks: readonly Attack[] = [query, leak, stolenToken];
