// Submitting against a real API server: one app a repository however many ask at once, limits that hold, rights that
// suffice.
import assert from 'node:assert/strict';
import { afterAll, afterEach, beforeAll, beforeEach, test } from 'vitest';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import { resolveRevision } from '../../../controller/steps/source/source.ts';
import { createLookupClient, createLookupListener, type LookupAnswer } from '../../../lib/git/lookup.ts';
import { startGitServer } from '../../support/operator/git-server.ts';
import type { ApiServer } from '../../support/kubernetes/api-server.ts';
import { setStatus, startAppsServer } from '../../support/api/apps-server.ts';
import { namespaces, startReplica, type Replica, type ReplicaOptions } from '../../support/api/replica.ts';

let server: ApiServer;
const replicas: Replica[] = [];

beforeAll(async () => {
  server = await startAppsServer();
});
afterAll(() => server.stop());

beforeEach(async () => {
  await server.kubectl('delete', 'hostedapps', '--all', '-n', namespaces.apps, '--timeout=30s');
});
afterEach(async () => {
  await Promise.all(replicas.splice(0).map((replica) => replica.stop()));
});

async function replica(options?: ReplicaOptions): Promise<Replica> {
  const started = await startReplica(server, options);
  replicas.push(started);
  return started;
}

const answer = z.looseObject({
  slug: z.string().optional(),
  created: z.boolean().optional(),
  polled: z.boolean().optional(),
  retried: z.boolean().optional(),
  retry_at: z.string().optional(),
  message: z.string().optional(),
  status: z.union([z.string(), z.number()]),
  detail: z.string().optional(),
  type: z.string().optional(),
});
type Answer = z.output<typeof answer> & { code: number; retryAfter: string | null };

async function read(response: Response): Promise<Answer> {
  return {
    ...answer.parse(await response.json()),
    code: response.status,
    retryAfter: response.headers.get('retry-after'),
  };
}

const stored = z.object({
  items: z.array(
    z.object({
      metadata: z.looseObject({
        name: z.string(),
        labels: z.record(z.string(), z.string()).optional(),
        annotations: z.record(z.string(), z.string()).optional(),
      }),
      spec: z.looseObject({ source: z.looseObject({ repo: z.string() }) }),
    }),
  ),
});

async function apps(): Promise<z.output<typeof stored>['items']> {
  return stored.parse(JSON.parse(await server.kubectl('get', 'hostedapps', '-n', namespaces.apps, '-o', 'json'))).items;
}

test('one repository submitted 50 times in parallel on two replicas creates one app, once', async () => {
  const [one, two] = [await replica(), await replica()];
  const spellings = [
    'octo/chat',
    'https://git.test/octo/chat',
    'https://git.test/octo/chat.git',
    'https://GIT.test/octo/chat/',
    'Octo/Chat',
  ];
  const answers = await Promise.all(
    Array.from({ length: 50 }, async (_, index) =>
      read(await (index % 2 === 0 ? one : two).submit(spellings[index % spellings.length] ?? '')),
    ),
  );
  assert.deepEqual(new Set(answers.map(({ code }) => code)), new Set([200]));
  assert.deepEqual(new Set(answers.map(({ slug }) => slug)), new Set(['chat']));
  assert.equal(answers.filter(({ created }) => created === true).length, 1);
  assert.equal((await apps()).length, 1);
});

test('ten repositories with one name, each submitted five times in parallel on two replicas, create ten apps with different names', async () => {
  const both = [await replica(), await replica()] as const;
  const owners = Array.from({ length: 10 }, (_, index) => `owner${index}`);
  const answers = await Promise.all(
    Array.from({ length: 50 }, async (_, index) => {
      const owner = owners[index % 10] ?? '';
      return { owner, ...(await read(await both[index % 2 === 0 ? 0 : 1].submit(`${owner}/chat`))) };
    }),
  );
  assert.deepEqual(new Set(answers.map(({ code }) => code)), new Set([200]));
  const items = await apps();
  assert.equal(items.length, 10);
  assert.equal(new Set(items.map(({ spec }) => spec.source.repo)).size, 10);
  const names = items.map(({ metadata }) => metadata.name).sort();
  assert.equal(names.filter((name) => name === 'chat').length, 1);
  assert.equal(names.filter((name) => /^owner\d-chat$/.test(name)).length, 9);
  for (const { owner, slug } of answers)
    assert.equal(
      items.find(({ metadata }) => metadata.name === slug)?.spec.source.repo,
      `https://git.test/${owner}/chat`,
    );
  assert.equal(answers.filter(({ created }) => created === true).length, 10);
});

test('appends a hash to a name that is taken twice, and never assigns a reserved one', async () => {
  const api = await replica({ allowed: ['git.test', 'other.test'] });
  await api.submit('octo/chat');
  await api.submit('x/octo-chat');
  assert.match((await read(await api.submit('https://other.test/octo/chat'))).slug ?? '', /^chat-[0-9a-f]{8}$/);
  assert.equal((await read(await api.submit('octo/api'))).slug, 'octo-api');
});

test('a submission is known to its status immediately [spec endpoint.submit endpoint.submit-status events.polling]', async () => {
  const api = await replica();
  await api.submit('octo/chat');
  const status = await fetch(`${api.url}/api/submit-status/octo/chat`);
  assert.equal(status.status, 200);
  assert.deepEqual(answer.parse(await status.json()).status, 'in_pipeline');
});

test("a new app can call models within the installation's budget, if there is one", async () => {
  for (const [name, modelsUsd, models] of [
    ['with', '0.25', { enabled: true, dailyBudgetUsd: '0.25' }],
    ['without', undefined, { enabled: false, dailyBudgetUsd: '1' }],
  ] as const) {
    const api = await replica({ ...(modelsUsd === undefined ? {} : { modelsUsd }) });
    await api.submit(`octo/${name}`);
    const spec = await server.kubectl('get', 'happ', name, '-n', namespaces.apps, '-o', 'jsonpath={.spec.models}');
    assert.deepEqual(JSON.parse(spec), models);
  }
});

test('a resubmission checks for a new commit, but not more often than allowed', async () => {
  const api = await replica({ pollMs: 3_600_000 });
  const poll = async (): Promise<string | undefined> => (await apps())[0]?.metadata.annotations?.['moorage.dev/poll'];
  assert.equal((await read(await api.submit('octo/chat'))).polled, true);
  assert.equal(await poll(), undefined);
  const again = await read(await api.submit('octo/chat'));
  assert.deepEqual([again.created, again.polled], [false, true]);
  const first = await poll();
  assert.ok(first !== undefined);
  // The annotation reaches the cache by the watch.
  let third = await read(await api.submit('octo/chat'));
  for (let tries = 0; third.polled === true && tries < 50; tries += 1)
    third = await read(await api.submit('octo/chat'));
  assert.equal(third.polled, false);
});

async function reject(name: string, attempt?: string): Promise<void> {
  const status = {
    phase: 'Rejected',
    source: { commit: 'a'.repeat(40) },
    rejection: { rule: 'build/failed', message: 'It failed.', fix: 'Fix it.' },
    ...(attempt === undefined ? {} : { attempt }),
  };
  await setStatus(server, name, status);
}

async function statusBecomes(url: string, wanted: string): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    const { status } = answer.parse(await (await fetch(`${url}/api/submit-status/octo/chat`)).json());
    if (status === wanted) return;
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
  }
  assert.fail(`never ${wanted}`);
}

test('a rejected app submitted again ten times in parallel is retried once, and again only after a while', async () => {
  const api = await replica();
  await api.submit('octo/chat');
  await reject('chat');
  await statusBecomes(api.url, 'rejected');
  const answers = await Promise.all(Array.from({ length: 10 }, async () => read(await api.submit('octo/chat'))));
  assert.equal(answers.filter(({ retried }) => retried === true).length, 1);
  const second = answers.find(({ retried }) => retried === true);
  assert.equal(second?.status, 'in_pipeline');
  assert.match(second.message ?? '', /A new pipeline run was started/);
  const noted = (await apps())[0]?.metadata.annotations ?? {};
  const attempt = noted['moorage.dev/rebuild'];
  assert.ok(attempt !== undefined && noted['moorage.dev/poll'] === attempt);
  await statusBecomes(api.url, 'in_pipeline');
  await reject('chat', attempt);
  await statusBecomes(api.url, 'rejected');
  const early = await read(await api.submit('octo/chat'));
  assert.deepEqual([early.retried, early.retry_at], [false, new Date(Date.parse(attempt) + 60_000).toISOString()]);
  assert.match(early.message ?? '', /retry the same commit/);
});

test("a manually created app without labels is its repository's app", async () => {
  await server.kubectl(
    'create',
    '-n',
    namespaces.apps,
    '-f',
    new URL('../../fixtures/hosted-app-by-hand.yaml', import.meta.url).pathname,
  );
  const api = await replica();
  const { slug, created } = await read(await api.submit('octo/chat'));
  assert.deepEqual([slug, created], ['by-hand', false]);
});

test('limit per caller: of 30 parallel submissions exactly the limit succeeds, others are unaffected, and no caller is stored', async () => {
  const api = await replica({ perCallerAndDay: 7 });
  const answers = await Promise.all(
    Array.from({ length: 30 }, async (_, index) => read(await api.submit(`octo/app${index}`, `203.0.113.${index}`))),
  );
  assert.equal(answers.filter(({ code }) => code === 200).length, 7);
  const refused = answers.filter(({ code }) => code === 429);
  assert.equal(refused.length, 23);
  for (const { retryAfter, detail } of refused) {
    assert.ok(Number(retryAfter) > 86_000 && Number(retryAfter) <= 86_400);
    assert.match(detail ?? '', /the limit is 7/);
  }
  assert.equal((await read(await api.submit('octo/other', '198.51.100.1'))).code, 200);
  const items = await apps();
  assert.equal(items.length, 8);
  assert.doesNotMatch(JSON.stringify(items), /203\.0\.113|198\.51\.100/);
  const admitted = answers.find(({ code }) => code === 200)?.slug ?? '';
  assert.equal((await read(await api.submit(`octo/${admitted}`))).code, 200);
});

test('limit per network: of 30 parallel submissions from its subnets exactly the limit succeeds', async () => {
  const api = await replica({ perNetwork: 4 });
  const addresses = Array.from({ length: 30 }, (_, index) => `2001:db8:7:${index.toString(16)}00::1`);
  const answers = await Promise.all(
    addresses.map(async (address, index) => read(await api.submit(`octo/app${index}`, address))),
  );
  assert.equal(answers.filter(({ code }) => code === 200).length, 4);
  const refused = answers.filter(({ code }) => code !== 200);
  assert.ok(refused.every(({ code, type }) => code === 429 && type?.endsWith('/problems/too-many-apps')));
  assert.equal((await read(await api.submit('octo/other', '2001:db8:8::1'))).code, 200);
  const networks = (await apps()).map(({ metadata }) => metadata.labels?.['moorage.dev/network']);
  assert.deepEqual([networks.length, new Set(networks).size], [5, 2]);
});

test('limit of apps: of 30 parallel submissions exactly as many succeed as there is room for', async () => {
  const api = await replica({ apps: 5 });
  const answers = await Promise.all(
    Array.from({ length: 30 }, async (_, index) => read(await api.submit(`octo/app${index}`))),
  );
  assert.deepEqual(
    [answers.filter(({ code }) => code === 200).length, answers.filter(({ code }) => code === 503).length],
    [5, 25],
  );
  assert.ok(answers.filter(({ code }) => code === 503).every(({ type }) => type?.endsWith('/problems/platform-full')));
  assert.equal((await apps()).length, 5);
});

test('does not revive an app that is being deleted', async () => {
  const api = await replica();
  await api.submit('octo/chat');
  await server.kubectl(
    'patch',
    'hostedapp',
    'chat',
    '-n',
    namespaces.apps,
    '--type=merge',
    '-p',
    '{"metadata":{"finalizers":["moorage.dev/pipelines"]}}',
  );
  await server.kubectl('delete', 'hostedapp', 'chat', '-n', namespaces.apps, '--wait=false');
  let again = await read(await api.submit('octo/chat'));
  for (let tries = 0; again.code !== 409 && tries < 50; tries += 1) again = await read(await api.submit('octo/chat'));
  assert.deepEqual([again.code, again.retryAfter], [409, '60']);
  await server.kubectl(
    'patch',
    'hostedapp',
    'chat',
    '-n',
    namespaces.apps,
    '--type=merge',
    '-p',
    '{"metadata":{"finalizers":null}}',
  );
});

test('with the API server killed and restarted, the status is served from the cache, and submitting works again', async () => {
  const api = await replica();
  await api.submit('octo/chat');
  const restarted = server.restart();
  const seen: number[] = [];
  let code = 0;
  while (code !== 200) {
    seen.push((await fetch(`${api.url}/api/submit-status/octo/chat`)).status);
    ({ code } = await read(await api.submit('octo/second')));
    assert.ok([200, 503].includes(code), `answered ${code}`);
  }
  await restarted;
  assert.deepEqual(new Set(seen), new Set([200]));
  assert.deepEqual((await apps()).map(({ metadata }) => metadata.name).sort(), ['chat', 'second']);
});

test('a repository that does not exist takes no name; its address is rejected with an explanation', async () => {
  const git = await startGitServer();
  const token = 't'.repeat(32);
  const operator = createServer(
    createLookupListener({
      token,
      hosts: { allowed: [git.host], insecure: [git.host] },
      limit: 4,
      resolve: (repository) => resolveRevision({ repository }),
    }),
  );
  await new Promise<void>((resolve) => operator.listen(0, '127.0.0.1', resolve));
  const { port } = operator.address() as AddressInfo;
  const settings = { allowed: [git.host], insecure: [git.host] };
  const lookUp = createLookupClient({ operatorUrl: `http://127.0.0.1:${port}`, token });
  const one = await replica({ ...settings, lookUp });
  try {
    const missing = await read(await one.submit('owner/missing'));
    assert.deepEqual([missing.code, missing.type?.split('/').at(-1)], [422, 'repository-not-found']);
    assert.match(missing.detail ?? '', /No public repository was found .* Nothing was created\./);
    assert.deepEqual(await apps(), [], 'no name is taken');

    const other = await read(await one.submit(`${git.url}/tree/dev`));
    assert.equal(other.code, 400);
    assert.match(JSON.stringify(other), /names the branch dev, and the default branch \(main\)/);
    assert.deepEqual(await apps(), []);

    const found = await read(await one.submit(`${git.host}/owner/hello/tree/main?tab=readme#readme`));
    assert.deepEqual([found.code, found.created], [200, true]);
    assert.equal((await apps())[0]?.spec.source.repo, git.url);
    const again = await read(await one.submit(`${git.url}/tree/dev`));
    assert.equal(again.code, 400, 'also of a repository that is hosted');

    const wrong = await replica({
      ...settings,
      lookUp: createLookupClient({ operatorUrl: `http://127.0.0.1:${port}`, token: 'x' }),
    });
    const unknown = await read(await wrong.submit('stranger/hello'));
    assert.deepEqual([unknown.code, unknown.retryAfter], [503, '60']);
    assert.equal((await apps()).length, 1);
  } finally {
    operator.closeAllConnections();
    operator.close();
    await git.stop();
  }
});

test('only a network that submits many failing repositories has to wait', async () => {
  const lookUp = (): Promise<LookupAnswer> =>
    Promise.resolve({
      ok: false,
      final: true,
      rule: 'source/repository-not-found',
      message: 'None.',
      fix: 'Check it.',
    });
  const one = await replica({ lookUp });
  const codes = [];
  for (let index = 0; index < 31; index += 1) codes.push((await one.submit(`octo/none-${index}`)).status);
  assert.deepEqual([codes.slice(0, 30).every((code) => code === 422), codes[30]], [true, 429]);
  assert.equal((await one.submit('octo/none', '198.51.100.7')).status, 422);
  assert.deepEqual(await apps(), []);
});
