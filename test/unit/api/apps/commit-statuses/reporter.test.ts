// Commit statuses from the status of an app to its forge: each one in order, again after a crash, and never with a token that
// the forge rejects. The forge is a fake one on loopback.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'vitest';
import { z } from 'zod';
import { StatusReporter, type ReporterOptions } from '../../../../../api/apps/commit-statuses/reporter.ts';
import { endedText } from '../../../../../api/apps/commit-statuses/statuses.ts';
import { CommitStatusStore } from '../../../../../api/apps/commit-statuses/store.ts';
import { type App, createAppIndex, formatKeyRepository } from '../../../../../api/apps/hosted-apps.ts';
import { forgeKinds } from '../../../../../api/apps/sign-in/config.ts';
import { type Database, openDatabase } from '../../../../../api/billing/index.ts';
import { GuardedFetcher } from '../../../../../api/tools/index.ts';
import type { HostedAppStatus } from '../../../../../crds/hosted-app.ts';
import type { WritableStore } from '../../../../../lib/kubernetes/index.ts';
import { baseUrl, namespace, sampleApp, sampleApps, silent } from '../../../../support/api/sample.ts';
import { type FakeForge, MemoryForgeTokens, startFakeForge } from '../../../../support/apps/fake-forge.ts';
import { buildPreview } from '../../../../support/apps/sample.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';

const [first = '', second = ''] = ['a', 'b'].map((letter) => letter.repeat(40));
const statusUrl = `${baseUrl}/status/octo/mine?host=git.test`;

let database: Database;
let forge: FakeForge;
let cache: WritableStore<App>;
let tokens: MemoryForgeTokens;
let store: CommitStatusStore;
let resourceVersion = 10;

beforeEach(async () => {
  [database, forge] = await Promise.all([openDatabase(migratedDatabase), startFakeForge('gitea')]);
  ({ store: cache } = sampleApps());
  tokens = new MemoryForgeTokens();
  store = new CommitStatusStore(() => database);
  forge.tokens.set('good', 'write');
});
afterEach(async () => {
  await forge.stop();
  await database.close();
});

/** One replica of the API. */
function createReplica(options: Partial<ReporterOptions> = {}): StatusReporter {
  return new StatusReporter({
    apps: createAppIndex(cache, namespace),
    ...{ store, tokens, baseUrl, log: silent },
    providers: [{ host: 'git.test', forge: 'gitea', apiUrl: forge.apiUrl }],
    fetcher: new GuardedFetcher({ allow: [forge.host] }),
    ending: new AbortController().signal,
    times: { firstMs: 0 },
    ...options,
  });
}

function createLive(commit: string): HostedAppStatus {
  const since = '2026-11-01T00:00:00Z';
  return {
    ...{ phase: 'Live', since, url: 'https://mine.apps.test/', source: { commit } },
    served: { image: 'registry.test/app@sha256:0', commit, since },
  };
}

function createRejected(commit: string, message: string): HostedAppStatus {
  const rejection = { rule: 'build/failed', message, fix: 'Fix it.', log: 'password=hunter2' };
  return { phase: 'Rejected', since: '2026-11-01T00:00:00Z', source: { commit }, rejection };
}

function put(app: App): App {
  resourceVersion += 1;
  const made = { ...app, metadata: { ...app.metadata, resourceVersion: String(resourceVersion) } };
  cache.set(made);
  return made;
}
const putApp = (status: HostedAppStatus): App => put(sampleApp('mine', undefined, status));

async function setToken(app: App, token = 'good'): Promise<void> {
  const { version } = await store.setToken(app.metadata.uid, formatKeyRepository(app));
  await tokens.write(app.metadata.uid, { version, token });
}

async function run(replica: StatusReporter): Promise<void> {
  await replica.notice();
  await replica.deliver();
}

/** State, description and target URL of each request. */
const listSent = (): string[] =>
  forge.requests.map(({ body }) => [body['state'], body['description'], body['target_url']].map(String).join(' | '));

async function runSql(text: string): Promise<unknown[]> {
  return database.query({ name: `test-${text}`.slice(0, 60), text, row: z.looseObject({}) }, []);
}

test('a commit is pending while it is built, and then live or rejected', async () => {
  const replica = createReplica();
  await setToken(putApp({ phase: 'Building', source: { commit: first } }));
  await run(replica);
  // Another stage of the same build is no news.
  putApp({ phase: 'Deploying', source: { commit: first } });
  await run(replica);
  putApp(createLive(first));
  await run(replica);
  putApp({ ...createLive(first), phase: 'Building', source: { commit: second } });
  await run(replica);
  putApp({ ...createLive(first), ...createRejected(second, 'app.py does not parse. It is Python.\nhunter3') });
  await run(replica);
  await run(createReplica());
  assert.deepEqual(listSent(), [
    `pending | The commit is being built and started. | ${statusUrl}`,
    'success | The app is live. | https://mine.apps.test/',
    `pending | The commit is being built and started. | ${statusUrl}`,
    `failure | app.py does not parse. | ${statusUrl}`,
  ]);
  assert.deepEqual([...new Set(forge.requests.map(({ body }) => body['context']))], ['moorage']);
  assert.deepEqual(
    forge.requests.map(({ path }) => path),
    [first, first, second, second].map((commit) => `/repos/octo/mine/statuses/${commit}`),
  );
});

for (const kind of forgeKinds)
  test(`the API of ${kind} takes each state, and the answers that it documents count`, async () => {
    await forge.stop();
    forge = await startFakeForge(kind);
    forge.tokens.set('good', 'write').set('reader', 'read');
    const providers = [{ host: 'git.test', forge: kind, apiUrl: forge.apiUrl }];
    const replica = createReplica({ providers, fetcher: new GuardedFetcher({ allow: [forge.host] }) });
    const app = putApp({ phase: 'Building', source: { commit: first } });
    await setToken(app);
    await run(replica);
    putApp({ phase: 'Building', source: { commit: second } });
    await run(replica);
    putApp(createLive(second));
    await run(replica);
    const isGitLab = kind === 'gitlab';
    assert.deepEqual(
      [...forge.states],
      [
        [first, isGitLab ? 'canceled' : 'error'],
        [second, 'success'],
      ],
    );
    const third = 'c'.repeat(40);
    putApp(createRejected(third, 'x'.repeat(400)));
    forge.missing.add(third);
    await run(replica);
    const [missing] = await store.list(app.metadata.uid, 1);
    assert.deepEqual([missing?.delivery, missing?.description.length], ['abandoned', 140]);
    assert.equal((await store.findToken(app.metadata.uid))?.refused_at, null, 'one commit is not the token');
    for (const [token, status] of [
      ['bad', 401],
      ['reader', 403],
    ] as const) {
      await setToken(app, token);
      putApp(createRejected(String(status).padEnd(40, '0'), 'No.'));
      await run(replica);
      assert.equal((await store.findToken(app.metadata.uid))?.refused_status, status);
    }
  });

test('attack: a token that the forge rejects is not sent again until it changes', async () => {
  const replica = createReplica();
  const app = putApp(createLive(first));
  await setToken(app, 'revoked');
  await run(replica);
  putApp(createLive(second));
  for (let times = 0; times < 3; times += 1) await run(replica);
  await runSql("update author.commit_status set due_at = now() - interval '1 hour'");
  await run(createReplica());
  assert.equal(forge.requests.length, 1);
  await setToken(app);
  await run(replica);
  assert.deepEqual([...forge.states].sort(), [
    [first, 'success'],
    [second, 'success'],
  ]);
});

test('two replicas on one database report a status once', async () => {
  await setToken(putApp(createLive(first)));
  const replicas = [createReplica(), createReplica()];
  await Promise.all(replicas.map((replica) => replica.notice()));
  await Promise.all([...replicas, ...replicas].map((replica) => replica.deliver()));
  await run(createReplica());
  assert.equal(forge.requests.length, 1);
});

test('a process that is killed while it reports loses nothing', async () => {
  await setToken(putApp(createLive(first)));
  const killed = createReplica();
  await killed.notice();
  // Claimed, and nothing more.
  assert.equal((await store.claim(60_000, 10)).length, 1);
  const survivor = createReplica();
  assert.equal(await survivor.deliver(), 0, 'the lease has not ended');
  await runSql("update author.commit_status set due_at = now() - interval '1 second'");
  assert.equal(await survivor.deliver(), 1);
  assert.equal(forge.states.get(first), 'success');
});

test('a status that changes while the one before is being sent is sent after it', async () => {
  const app = putApp({ phase: 'Building', source: { commit: first } });
  await setToken(app);
  const [one, other] = [createReplica(), createReplica()];
  await one.notice();
  forge.during = async () => {
    forge.during = () => Promise.resolve();
    putApp(createLive(first));
    await other.notice();
    assert.equal(await other.deliver(), 0, 'the first one may still arrive');
  };
  await one.deliver();
  await other.deliver();
  assert.deepEqual(
    forge.requests.map(({ body }) => body['state']),
    ['pending', 'success'],
  );
});

test('a replica whose cache lags behind undoes nothing', async () => {
  await setToken(putApp({ phase: 'Building', source: { commit: first } }));
  const behind = cache;
  ({ store: cache } = sampleApps());
  putApp(createLive(first));
  await run(createReplica());
  cache = behind;
  await run(createReplica());
  assert.equal(forge.states.get(first), 'success');
});

test('attack: a preview is reported with the token of its app, and has none itself', async () => {
  const app = putApp(createLive(first));
  await setToken(app);
  const preview = put(
    buildPreview(app, 'pr-12', 'refs/pull/12/head', {
      ...createRejected(second, 'It prints.\u0007\n::set-output::'),
      served: undefined,
    }),
  );
  await run(createReplica());
  assert.deepEqual([...forge.states].sort(), [
    [first, 'success'],
    [second, 'failure'],
  ]);
  assert.deepEqual([...tokens.stored.keys()], [app.metadata.uid]);
  assert.equal(await store.findToken(preview.metadata.uid), undefined);
  assert.ok(!JSON.stringify([...cache.list(namespace)]).includes('good'));
  assert.ok(listSent().includes(`failure | It prints. | ${statusUrl}`));
});

test('of an app and a preview with the same commit, the app counts', async () => {
  const app = putApp(createLive(first));
  await setToken(app);
  put(buildPreview(app, 'pr-12', 'refs/pull/12/head', { ...createRejected(first, 'No.'), served: undefined }));
  await run(createReplica());
  assert.deepEqual([...forge.states], [[first, 'success']]);
});

test('the build of a preview that is gone ends', async () => {
  const app = putApp(createLive(first));
  await setToken(app);
  const preview = put(
    buildPreview(app, 'pr-12', 'refs/pull/12/head', {
      phase: 'Building',
      source: { commit: second },
      served: undefined,
    }),
  );
  await run(createReplica());
  assert.equal(forge.states.get(second), 'pending');
  cache.remove(preview);
  await run(createReplica());
  assert.equal(forge.states.get(second), 'pending', 'another replica may not have seen the preview yet');
  await runSql("update author.commit_status set changed_at = now() - interval '11 minutes'");
  await run(createReplica());
  assert.equal(forge.states.get(second), 'error');
  assert.ok(listSent().includes(`error | ${endedText} | ${statusUrl}`));
});

test('a forge that fails or limits requests is tried again, with growing pauses and for 24 hours', async () => {
  await setToken(putApp(createLive(first)));
  const replica = createReplica();
  forge.faults.push({ status: 502 }, { status: 403, headers: { 'x-ratelimit-remaining': '0', 'retry-after': '600' } });
  await run(replica);
  await replica.deliver();
  assert.equal(await replica.deliver(), 0, 'the forge asked for ten minutes');
  const waiting = (await store.list('uid-mine', 1))[0];
  assert.ok(waiting !== undefined && waiting.due_at.getTime() - Date.now() > 500_000);
  assert.match(waiting.last_error ?? '', /limits requests/);
  await runSql("update author.commit_status set due_at = now(), changed_at = now() - interval '25 hours'");
  forge.faults.push({ status: 500 });
  await replica.deliver();
  assert.equal((await store.list('uid-mine', 1))[0]?.delivery, 'abandoned');
});

test('attack: a redirect of the forge is not followed, so nobody else gets the token', async () => {
  await setToken(putApp(createLive(first)));
  const other = await startFakeForge('gitea');
  try {
    const location = `${other.apiUrl}/repos/octo/mine/statuses/${first}`;
    forge.faults.push({ status: 307, headers: { location } });
    const replica = createReplica({ fetcher: new GuardedFetcher({ allow: [forge.host, other.host] }) });
    await run(replica);
    await replica.deliver();
    assert.equal(other.requests.length, 0);
    const [status] = await store.list('uid-mine', 1);
    assert.deepEqual([status?.delivery, status?.last_error?.includes('redirects')], ['abandoned', true]);
  } finally {
    await other.stop();
  }
});

test('attack: a forge inside the network gets no token', async () => {
  await setToken(putApp(createLive(first)));
  await run(createReplica({ fetcher: new GuardedFetcher() }));
  assert.equal(forge.requests.length, 0);
  assert.equal((await store.list('uid-mine', 1))[0]?.delivery, 'abandoned');
});

test('attack: a token is not sent for another repository than the one that it was set for', async () => {
  await setToken(putApp(createLive(first)));
  put(sampleApp('mine', 'https://git.test/octo/theirs', createLive(first)));
  await run(createReplica());
  assert.equal(forge.requests.length, 0);
});

test('a token that was not stored completely is not used, and a leftover is deleted', async () => {
  const app = putApp(createLive(first));
  await setToken(app);
  // Killed between the row and the Secret.
  await store.setToken(app.metadata.uid, formatKeyRepository(app));
  const replica = createReplica();
  await run(replica);
  assert.equal(forge.requests.length, 0);
  assert.match((await store.list('uid-mine', 1))[0]?.last_error ?? '', /not stored completely/);
  // Killed between the end of the row and that of the Secret.
  await store.deleteToken(app.metadata.uid);
  assert.equal(await replica.purge(), 1);
  assert.equal(tokens.stored.size, 0);
});
