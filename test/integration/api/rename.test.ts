// Renames and submissions through two replicas of the API, on a real PostgreSQL with the rights of the API and a real API server:
// at most one app gets a name, however late the cache of a replica is.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { createControlWriter } from '../../../api/apps/author/control.ts';
import { SlugClaims } from '../../../api/apps/author/rename.ts';
import { type App, createAppIndex, hostedApps } from '../../../api/apps/hosted-apps.ts';
import { createSubmitter, type Submission } from '../../../api/apps/submit/submit-app.ts';
import { readSlug } from '../../../crds/slugs.ts';
import { createAuthorKey, hashAuthorKey } from '../../../lib/ownership-file.ts';
import { type Client, createClient } from '../../../lib/kubernetes/index.ts';
import { parseAcceptedRepository } from '../../../lib/repository.ts';
import { setStatus, startAppsServer } from '../../support/api/apps-server.ts';
import { apiUser, applyText, namespaces } from '../../support/api/replica.ts';
import { namespace } from '../../support/api/sample.ts';
import { type AppsSample, sampleAppsServer } from '../../support/apps/sample.ts';
import { type ApiServer, openConnection } from '../../support/kubernetes/api-server.ts';
import { sharePostgres, type SharedPostgres } from '../../support/ledger/postgres.ts';

const key = createAuthorKey();
const names = ['one', 'two'] as const;
let server: ApiServer;
let postgres: SharedPostgres;
let client: Client;
/** Their caches change only when a test says so. */
let replicas: AppsSample[];

beforeAll(async () => {
  [server, postgres] = [await startAppsServer(), await sharePostgres()];
  for (const name of names) {
    await applyText(
      server,
      `apiVersion: moorage.dev/v1alpha1
kind: HostedApp
metadata: {name: ${name}, namespace: ${namespaces.apps}}
spec: {source: {repo: "https://git.test/octo/${name}"}}
`,
    );
    await setStatus(server, name, { authorKeys: [hashAuthorKey(key, `git.test/octo/${name}`)] });
  }
  client = createClient(await openConnection(server, apiUser));
  const writeControl = createControlWriter({ client, apps: { waitForApp: () => Promise.resolve() } });
  const environment = { DATABASE_URL: await postgres.createDatabase('rename') };
  replicas = [];
  for (let number = 0; number < 2; number += 1)
    replicas.push(
      await sampleAppsServer({
        environment,
        author: {
          lookUpKeys: ({ name }) =>
            Promise.resolve({
              ...{ ok: true, commit: 'c'.repeat(40), reference: 'refs/heads/main' },
              authorKeys: [hashAuthorKey(key, `git.test/octo/${name}`)],
            }),
          createSecret: () => Promise.resolve(),
          maximumReplicas: 3,
          readApp,
          // The cache of these replicas is of another namespace.
          writeControl: (app, ...change) =>
            writeControl({ ...app, metadata: { ...app.metadata, namespace: namespaces.apps } }, ...change),
        },
      }),
    );
  await refresh();
});
afterAll(async () => {
  for (const replica of replicas) await replica.stop();
  client.close();
  await postgres.stop();
  await server.stop();
});

function readApp(name: string): Promise<App | undefined> {
  return client.get(hostedApps, { name, namespace: namespaces.apps });
}

async function listApps(): Promise<App[]> {
  return (await client.list(hostedApps, { namespace: namespaces.apps })).items;
}

/** What a watch does. */
async function refresh(): Promise<void> {
  const apps = await listApps();
  for (const { store } of replicas)
    store.replace(apps.map((app) => ({ ...app, metadata: { ...app.metadata, namespace } })));
}

/** Claims last longer than a test. */
async function endClaims(): Promise<void> {
  const database = replicas[0]?.models.ledger.get().database;
  await database?.query({ name: 'test-end-claims', text: 'delete from author.slug_claim', row: z.unknown() }, []);
}

const answer = z.looseObject({ type: z.string().optional() });

async function rename(replica: number, app: string, slug: string): Promise<string> {
  const response = await replicas[replica]?.request(`/api/apps/${app}/rename`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ slug }),
  });
  if (response === undefined) assert.fail(`no replica ${replica}`);
  const { type } = answer.parse(await response.json());
  return `${response.status} ${type?.split('/').at(-1) ?? ''}`.trim();
}

async function countHolders(slug: string): Promise<number> {
  return (await listApps()).filter((app) => readSlug(app) === slug || app.metadata.name === slug).length;
}

test('attack: of 20 renames to one name, through two replicas whose caches know of none, one app gets it', async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, (_, index) => rename(index % 2, names[Math.floor(index / 2) % 2] ?? '', 'wanted')),
  );
  assert.equal(await countHolders('wanted'), 1);
  const [holder] = (await listApps()).filter((app) => readSlug(app) === 'wanted');
  assert.equal(outcomes.filter((outcome) => outcome === '200').length, 1, outcomes.join());
  assert.deepEqual([...new Set(outcomes)].sort(), ['200', '409 slug-taken', '422 setting-refused']);
  // Nothing else of either app has changed.
  const before = holder?.metadata.name === 'one' ? 'two' : 'one';
  assert.equal((await readApp(before))?.spec.control?.slug, undefined);
});

test('the other replica refuses the name before and after its cache has it', async () => {
  await endClaims();
  await refresh();
  const loser = (await listApps()).find((app) => readSlug(app) !== 'wanted') ?? assert.fail('none');
  assert.equal(await rename(1, loser.metadata.name, 'wanted'), '409 slug-taken');
  const winner = (await listApps()).find((app) => readSlug(app) === 'wanted') ?? assert.fail('none');
  assert.equal(await rename(1, loser.metadata.name, winner.metadata.name), '409 slug-taken');
});

function createSubmission(index: number): Submission {
  const repository = parseAcceptedRepository(`https://git.test/owner${index}/contested`);
  return { repository, caller: `caller${index}`, network: `network${index}` };
}

test('attack: of submissions and renames of one name at the same time, one gets it', async () => {
  for (let round = 0; round < 5; round += 1) {
    await endClaims();
    await refresh();
    const submitters = replicas.map(({ store, models }) =>
      createSubmitter({
        client,
        apps: createAppIndex(store, namespace),
        namespace: namespaces.apps,
        pollMs: 60_000,
        limits: { perCallerAndDay: 1_000, perNetwork: 1_000, apps: 1_000 },
        claims: new SlugClaims(() => models.ledger.get().database),
      }),
    );
    const [submitted] = await Promise.all([
      submitters[round % 2]?.(createSubmission(round)),
      rename((round + 1) % 2, 'one', 'contested'),
    ]);
    assert.equal(await countHolders('contested'), 1, `round ${round}`);
    assert.notEqual(submitted, undefined);
    // Begin again.
    const apps = await listApps();
    for (const app of apps.filter(({ metadata }) => /contested/.test(metadata.name)))
      await server.kubectl('delete', 'hostedapp', app.metadata.name, '-n', namespaces.apps, '--timeout=30s');
    await server.kubectl(
      ...['patch', 'hostedapp', 'one', '-n', namespaces.apps, '--type=merge'],
      ...['-p', JSON.stringify({ spec: { control: null } })],
    );
  }
});

test('a submission takes no name that an app has by now, or had until lately', async () => {
  await endClaims();
  await refresh();
  assert.equal(await rename(0, 'one', 'contested'), '200');
  await endClaims();
  await refresh();
  const [replica] = replicas;
  if (replica === undefined) assert.fail('no replica');
  const submit = createSubmitter({
    client,
    apps: createAppIndex(replica.store, namespace),
    namespace: namespaces.apps,
    pollMs: 60_000,
    limits: { perCallerAndDay: 1_000, perNetwork: 1_000, apps: 1_000 },
    claims: new SlugClaims(() => replica.models.ledger.get().database),
  });
  const submission = submit(createSubmission(9));
  // The cache of the sample has another namespace, so the new app is not seen there.
  const { app } = await submission;
  assert.equal(app.metadata.name, 'owner9-contested');
});
