// The page on which an author runs an app, with something in each of its sections, as a signed-in author sees it.
import { createAuthorKey, hashAuthorKey } from '../../../lib/ownership-file.ts';
import type { HostedAppStatus } from '../../../crds/hosted-app.ts';
import { CommitStatusStore } from '../../../api/apps/commit-statuses/store.ts';
import { addMonth } from '../apps/figures.ts';
import { knownGitea, MemoryForgeTokens } from '../apps/fake-forge.ts';
import { buildPreview, sampleAppsServer, type AppsSample } from '../apps/sample.ts';

export const managePath = '/apps/mine/manage';

const commits = ['b', 'c'].map((letter) => letter.repeat(40));
const settings = {
  tasks: [
    { name: 'clean', command: ['python', 'clean.py'], schedule: '0 3 * * *', timeZone: 'Europe/Berlin', timeout: '5m' },
    { name: 'import', command: ['python', 'import.py', '--from', 'https://example.org/a-long-path/records.json'] },
  ],
};

function buildStatus(status: HostedAppStatus | undefined, authorKey: string): HostedAppStatus {
  const [commit = '', earlier = ''] = commits;
  return {
    ...status,
    authorKeys: [authorKey],
    settings: { commit, values: JSON.stringify({ previews: { pullRequests: true, branches: ['feature/*'] } }) },
    built: { image: 'r/apps/mine@sha256:a', commit, inputsHash: 'x', settings: JSON.stringify(settings) },
    releases: [commit, earlier].map((each, index) => ({
      image: `r/apps/mine@sha256:${each}`,
      commit: each,
      port: 8000,
      ...{ readyAt: `2026-11-2${5 - index}T10:00:00Z`, servedSeconds: 0, bestSeconds: 900 },
      goodAt: `2026-11-2${5 - index}T10:10:00Z`,
    })),
    taskRuns: [
      {
        ...{ id: 'mine-clean-2', task: 'clean', trigger: 'schedule', commit, reason: 'Error', exitCode: 1 },
        ...{ startedAt: '2026-11-25T02:00:01Z', endedAt: '2026-11-25T02:00:09Z' },
      },
      {
        ...{ id: 'mine-command-1', task: 'command', trigger: 'manual', commit, reason: 'Completed', exitCode: 0 },
        ...{ startedAt: '2026-11-24T09:00:00Z', endedAt: '2026-11-24T09:00:04Z' },
      },
    ],
  };
}

/** Of the repository, which is private. */
const sampleDeployKey = {
  publicKey: `ssh-ed25519 ${'AAAAC3NzaC1lZDI1NTE5AAAAI'.padEnd(68, 'Q')} moorage`,
  fingerprint: `SHA256:${'x'.repeat(43)}`,
  page: 'https://git.test/octo/mine/settings/keys',
};

export interface ManagedPage {
  readonly listener: AppsSample['app'];
  /** Header Cookie of the author's session. */
  readonly cookie: string;
  readonly stop: () => Promise<void>;
}

export async function openManagedPage(): Promise<ManagedPage> {
  const key = createAuthorKey();
  const hash = hashAuthorKey(key, 'git.test/octo/mine');
  const sample = await sampleAppsServer({
    signInProviders: [knownGitea],
    submit: {
      lookUp: () =>
        Promise.resolve({ ok: false, rule: '', message: '', fix: '', final: false, deployKey: sampleDeployKey }),
    },
    // Nothing is sent.
    notificationTimes: { noticeMs: 3_600_000, deliverMs: 3_600_000 },
    author: {
      lookUpKeys: () =>
        Promise.resolve({ ok: true, commit: commits[0] ?? '', reference: 'refs/heads/main', authorKeys: [hash] }),
      createSecret: () => Promise.resolve(),
      readApp: () => Promise.resolve(undefined),
      maximumReplicas: 3,
      forgeTokens: new MemoryForgeTokens(),
      writeControl: (app) => Promise.resolve(app),
    },
  });
  const app = await sample.host(
    'mine',
    (_request, response) => response.end('ok'),
    (one) => ({
      ...one,
      spec: {
        ...one.spec,
        source: { ...one.spec.source, private: true },
        control: { formerSlugs: [{ name: 'my-first-name', until: '2099-01-01T00:00:00Z' }] },
      },
      status: buildStatus(one.status, hash),
    }),
  );
  const wakes = { count: 1, number: 1, p50Ms: 1_849, p95Ms: 1_849, recentMs: [1_849] };
  const idle = { state: 'Asleep' as const, since: '2026-11-01T08:10:00Z', number: 2, afterSeconds: 600, wakes };
  const rejection = { rule: 'license/missing', message: 'The repository has no license.', fix: '' };
  sample.store.set(buildPreview(app, 'pr-12', 'refs/pull/12/head', { idle }));
  sample.store.set(
    buildPreview(app, 'br-login', 'refs/heads/login', { served: undefined, phase: 'Rejected', rejection }),
  );
  const form = { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html' };
  const signedIn = await sample.request(managePath, {
    ...{ method: 'POST', headers: form, body: new URLSearchParams({ action: 'sign-in', key }).toString() },
  });
  const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  for (const token of [
    { name: 'ci', scopes: ['read', 'deploy', 'logs'], expires_in_days: 90 },
    { name: 'A colleague who only reads', expires_in_days: 30 },
  ]) {
    const made = await sample.request('/api/apps/mine/tokens', {
      ...{ method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' } },
      body: JSON.stringify(token),
    });
    if (!made.ok) throw new Error(await made.text());
  }
  await addMonth(sample.models.ledger.get().database, 'mine', 'git.test/octo', new Date());
  await addCommitStatuses(sample, key);
  return { listener: sample.app, cookie, stop: sample.stop };
}

/** A forge token that the forge rejects, and what was reported before. */
async function addCommitStatuses(sample: AppsSample, key: string): Promise<void> {
  const made = await sample.request('/api/apps/mine/forge-token', {
    ...{ method: 'PUT', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' } },
    body: JSON.stringify({ token: 'x' }),
  });
  if (!made.ok) throw new Error(await made.text());
  const store = new CommitStatusStore(() => sample.models.ledger.get().database);
  const [commit = '', earlier = ''] = commits;
  const shared = { source: 'uid-mine', wanted: undefined };
  const targetUrl = 'https://mine.moorage.test/';
  const description = 'requirements.txt:3: there is no release 9.9 of flask.';
  await store.record('uid-mine', [
    { ...shared, seen: '1', status: { commit: earlier, state: 'failure', description, targetUrl } },
    { ...shared, seen: '2', status: { commit, state: 'success', description: 'The app is live.', targetUrl } },
  ]);
  const [first, second] = await store.claim(0, 2);
  if (first === undefined || second === undefined) throw new Error('nothing is due');
  await store.finish(first, 'delivered');
  await store.retry(second, 0, 'The forge rejects the token (403).');
  await store.refuseToken(second, 403);
}
