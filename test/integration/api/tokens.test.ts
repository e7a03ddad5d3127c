// Tokens and sign-ins through two replicas of the API, on a real PostgreSQL with the rights of the API and a real API server:
// what one replica gives or takes, the other knows immediately.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { createControlWriter, type WriteControl } from '../../../api/apps/author/control.ts';
import { type App, hostedApps } from '../../../api/apps/hosted-apps.ts';
import { createAuthorKey, hashAuthorKey } from '../../../lib/ownership-file.ts';
import { createClient } from '../../../lib/kubernetes/index.ts';
import { setStatus, startAppsServer } from '../../support/api/apps-server.ts';
import { apiUser, applyText, namespaces } from '../../support/api/replica.ts';
import { baseUrl, namespace } from '../../support/api/sample.ts';
import { type AppsSample, sampleAppsServer } from '../../support/apps/sample.ts';
import { type ApiServer, openConnection } from '../../support/kubernetes/api-server.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';
import { CookieJar, signInAtProvider, type SignInLab, startSignInLab } from '../../support/sign-in/lab.ts';

type Change = Parameters<WriteControl> extends [App, ...infer Rest] ? Rest : never;

const key = createAuthorKey();
const hash = hashAuthorKey(key, 'git.test/octo/hello');
let server: ApiServer;
let postgres: SharedPostgres;
let lab: SignInLab;
let replicas: AppsSample[];
let readStored: () => Promise<App | undefined>;
/** Keys of the newest commit. */
let current = [hash];

beforeAll(async () => {
  [server, postgres, lab] = [await startAppsServer(), await sharePostgres(), await startSignInLab(baseUrl)];
  lab.rights.set('ann', new Set(['octo/hello']));
  await applyText(
    server,
    `apiVersion: moorage.dev/v1alpha1
kind: HostedApp
metadata: {name: hello, namespace: ${namespaces.apps}}
spec: {source: {repo: "https://git.test/octo/hello"}}
`,
  );
  await setStatus(server, 'hello', { authorKeys: [hash] });
  const client = createClient(await openConnection(server, apiUser));
  readStored = () => client.get(hostedApps, { name: 'hello', namespace: namespaces.apps });
  const writeControl = createControlWriter({ client, apps: { waitForApp: () => Promise.resolve() } });
  const environment = { DATABASE_URL: await postgres.createDatabase('tokens') };
  const author = {
    lookUpKeys: () =>
      Promise.resolve({ ok: true, commit: 'c'.repeat(40), reference: 'refs/heads/main', authorKeys: current } as const),
    createSecret: () => Promise.resolve(),
    maximumReplicas: 3,
    // The cache of these replicas is of another namespace.
    writeControl: (app: App, ...change: Change) =>
      writeControl({ ...app, metadata: { ...app.metadata, namespace: namespaces.apps } }, ...change),
  };
  replicas = [];
  for (let number = 0; number < 2; number += 1) {
    const replica = await sampleAppsServer({ environment, author, signInProviders: [lab.provider] });
    const stored = (await readStored()) ?? assert.fail('no app');
    replica.store.set({ ...stored, metadata: { ...stored.metadata, namespace } });
    replicas.push(replica);
  }
});
afterAll(async () => {
  lab.close();
  for (const replica of replicas) await replica.stop();
  await postgres.stop();
  await server.stop();
});

const answer = z.looseObject({ token: z.string().optional(), id: z.string().optional(), type: z.string().optional() });

async function ask(
  replica: number,
  path: string,
  authorization: string,
  { method = 'GET', body }: { method?: string; body?: object } = {},
): Promise<{ status: number; body: z.output<typeof answer> }> {
  const response = await replicas[replica]?.request(`/api/apps/hello${path}`, {
    method,
    headers: {
      authorization: `Bearer ${authorization}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response?.status ?? 0, body: answer.parse(await response?.json()) };
}

async function create(scopes: string[]): Promise<{ token: string; id: string }> {
  const { status, body } = await ask(0, '/tokens', key, {
    method: 'POST',
    body: { name: 'CI', scopes, expires_in_days: 1 },
  });
  assert.equal(status, 200, JSON.stringify(body));
  return { token: body.token ?? '', id: body.id ?? '' };
}

test('a token of one replica restarts the app at another, and its revocation counts there', async () => {
  const { token, id } = await create(['control']);
  assert.equal((await ask(1, '/restart', token, { method: 'POST' })).status, 200);
  const first = (await readStored())?.spec.control?.restartedAt;
  assert.match(first ?? '', /^20/);
  assert.equal((await ask(1, '/deploy', token, { method: 'POST' })).status, 403);
  assert.equal((await ask(0, `/tokens/${id}`, key, { method: 'DELETE' })).status, 200);
  assert.equal((await ask(1, '/restart', token, { method: 'POST' })).status, 403);
  assert.equal((await readStored())?.spec.control?.restartedAt, first);
});

test('parallel requests make no more tokens than an app may have', async () => {
  const made = await Promise.all(
    Array.from({ length: 60 }, (_, number) =>
      ask(number % 2, '/tokens', key, { method: 'POST', body: { name: `t${number}`, expires_in_days: 1 } }),
    ),
  );
  const counts = Map.groupBy(made, ({ status }) => status);
  assert.deepEqual([counts.get(200)?.length, counts.get(409)?.length], [50, 10]);
});

test('attack: the runtime role changes no entry of the audit log', async () => {
  const { database } = replicas[0]?.models.ledger.get() ?? assert.fail('no ledger');
  for (const text of [`update author.action set actor = 'x'`, 'delete from author.action'])
    await assert.rejects(database.query({ name: `attack-${text.slice(0, 6)}`, text, row: z.unknown() }, []));
});

test('attack: a sign-in is ended at both replicas at the same time, and counts once', async () => {
  const jar = new CookieJar();
  const headers = (): Record<string, string> => ({ accept: 'text/html', cookie: jar.header });
  const [one, other] = replicas as [AppsSample, AppsSample];
  const begun = await one.request('/sign-in/forge?app=hello', { headers: headers() });
  jar.store(begun);
  const { pathname, search } = await signInAtProvider(begun.headers.get('location') ?? '', 'ann');
  const ended = await Promise.all(
    [one, other].map((replica) => replica.request(`${pathname}${search}`, { headers: headers() })),
  );
  assert.deepEqual(ended.map(({ status }) => status).toSorted(), [200, 403]);
  for (const response of ended) if (response.status === 200) jar.store(response);
  // The session of one replica is one at the other, and what it does is stored.
  const page = await (await other.request('/apps/hello/manage', { headers: headers() })).text();
  const token = /name="token" value="([\w-]+)"/.exec(page)?.[1] ?? assert.fail(page);
  const done = await other.request('/apps/hello/manage', {
    method: 'POST',
    headers: { ...headers(), 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ action: 'suspend', token }).toString(),
  });
  assert.equal(done.status, 303);
  assert.equal((await readStored())?.spec.control?.suspended, true);
});

test('attack: a token does not outlast the line of its key', async () => {
  current = [];
  const tokens = z
    .looseObject({ tokens: z.array(z.looseObject({ id: z.string() })) })
    .parse((await ask(0, '/tokens', key)).body);
  const [first] = tokens.tokens;
  current = [hash];
  await ask(0, `/tokens/${first?.id ?? ''}`, key, { method: 'DELETE' });
  const { token } = await create(['control']);
  current = [];
  assert.equal((await ask(1, '/resume', token, { method: 'POST' })).status, 403);
  assert.equal((await readStored())?.spec.control?.suspended, true);
});
