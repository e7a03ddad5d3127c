// Private repositories: how one is submitted with its deploy key, and that nobody but the author reads what comes of its source.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createDirectory } from '../../../../../api/apps/directory.ts';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import { appPrivate } from '../../../../../api/apps/problems.ts';
import { toStatusView } from '../../../../../api/apps/status-view.ts';
import { createSubmitEndpoints, type SubmitServices } from '../../../../../api/apps/submit/endpoints.ts';
import { createRepositoryCheck, createSubmitter } from '../../../../../api/apps/submit/submit-app.ts';
import { createAppRecord } from '../../../../../api/catalog/projects/records.ts';
import { Projects } from '../../../../../api/catalog/projects/projects.ts';
import type { CallContext, RequestContext } from '../../../../../api/http/index.ts';
import type { HostedAppStatus } from '../../../../../crds/hosted-app.ts';
import type { LookupAnswer } from '../../../../../lib/git/lookup.ts';
import type { Client } from '../../../../../lib/kubernetes/index.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { parseRepository } from '../../../../../lib/repository.ts';
import {
  baseUrl,
  hosts,
  namespace,
  sampleApp,
  sampleApps,
  sampleServices,
  site,
} from '../../../../support/api/sample.ts';

/** In every text that comes of the source. */
const hidden = 'HIDDEN';
const commit = 'c'.repeat(40);
const since = '2026-01-01T00:00:00Z';
const finding = {
  severity: 'warning' as const,
  rule: 'license/custom',
  file: `${hidden}.txt`,
  message: hidden,
  fix: hidden,
};
const rejection = { rule: `build/${hidden}`, file: `${hidden}.ts`, line: 3, message: hidden, fix: hidden, log: hidden };

const details: HostedAppStatus = {
  source: { commit, reference: `refs/heads/${hidden}` },
  findings: [finding],
  plan: { strategy: 'node', reason: hidden, dockerfile: hidden } as never,
  components: [{ name: hidden, kind: 'worker', ready: false, message: hidden }],
  conditions: [
    { type: 'Ready', status: 'False', reason: 'Building', message: hidden, lastTransitionTime: since },
    { type: 'Reviewed', status: 'False', reason: 'Rejected', message: hidden, lastTransitionTime: since },
  ] as never,
  history: [
    { number: 1, job: 'j', commit, reason: 'first build', result: 'Rejected', message: hidden, releaseMessage: hidden },
  ],
  page: { seenAt: since, status: 200, assets: 1, faults: [hidden] } as never,
};
const states: Readonly<Record<string, HostedAppStatus>> = {
  rejected: { ...details, phase: 'Rejected', since, rejection },
  in_pipeline: { ...details, phase: 'Building', since },
  live: {
    ...details,
    ...{ phase: 'Building', since, url: 'https://chat.apps.test/', rejection, warning: hidden },
    served: { image: 'i', commit, since },
  },
  updating: {
    ...details,
    ...{ phase: 'Building', since, url: 'https://chat.apps.test/' },
    served: { image: 'i', commit, since },
  },
};

function createPrivate(status?: HostedAppStatus): App {
  const app = sampleApp('chat', undefined, status);
  return { ...app, spec: { ...app.spec, source: { ...app.spec.source, private: true } } };
}

const linkBase = { baseUrl, site, defaultHost: hosts.allowed[0] };

test.for(Object.entries(states))('the status of a private repository says nothing of its source: %s', ([, status]) => {
  const app = createPrivate(status);
  const view = toStatusView(app, linkBase);
  assert.ok(!JSON.stringify(view).includes(hidden), JSON.stringify(view, undefined, 1));
  assert.deepEqual([view.private, view.readable], [true, undefined]);
  const own = toStatusView(app, linkBase, 'author');
  assert.equal(own.readable, true);
  assert.equal(own.findings?.[0]?.message, hidden);
  // What is not of the source stays.
  for (const name of ['status', 'repo', 'slug', 'url', 'commit', 'stage', 'since'] as const)
    assert.equal(view[name], own[name], name);
  const open = { ...app, spec: { ...app.spec, source: { repo: app.spec.source.repo } } } as App;
  assert.ok(JSON.stringify(toStatusView(open, linkBase)).includes(hidden), 'the test would find it');
});

test('says that there is a reason, and shows what the author has to do at the forge', () => {
  const view = toStatusView(createPrivate(states['rejected']), linkBase);
  assert.equal(view.rejection?.rule, 'source/private');
  assert.match(view.reason ?? '', /only its author sees why/);
  const refused = { rule: 'source/deploy-key-refused', message: 'No key.', fix: 'Add the key.' };
  const missing = toStatusView(createPrivate({ phase: 'Rejected', since, rejection: refused }), linkBase);
  assert.deepEqual(missing.rejection, refused);
});

test('neither the catalog nor a refused call shows the source', async () => {
  for (const status of Object.values(states)) {
    const { apps } = sampleApps(createPrivate(status));
    const projects = new Projects({
      ...{ baseUrl, catalog: [], apps: { apps, site, defaultHost: 'git.test', systemNamespace: 'system' } },
      stars: {
        getCountAt: () => ({ stars: null, license: null, reason: null, starsAt: undefined }),
        version: 0,
      } as never,
      readTelemetry: () => Promise.resolve({} as never),
      readBenchmark: () => Promise.resolve(undefined),
    });
    const detail = await projects.getDetail('chat');
    assert.ok(!JSON.stringify(detail).includes(hidden), JSON.stringify(detail));
    assert.equal(detail.private, true);
    assert.equal(createAppRecord(createPrivate(status)).source, 'https://git.test/octo/chat');
    if (status.served !== undefined) continue;
    const directory = createDirectory({ apps, site, baseUrl });
    assert.throws(
      () => directory.get('chat'),
      (error: unknown) => error instanceof Problem && !JSON.stringify([error.message, error.members]).includes(hidden),
    );
  }
});

const author = 'Bearer right';

/** Endpoints over one private app, whose author sends `Bearer right`. */
function createServices(changes: Partial<SubmitServices> = {}): SubmitServices {
  return sampleServices({
    apps: sampleApps(createPrivate(states['rejected'])).apps,
    identifyAuthor: (_slug, context) =>
      context.headers.get('authorization') === author
        ? Promise.resolve(undefined)
        : Promise.reject(new Problem(appPrivate, 'no')),
    ...changes,
  });
}

async function call(operation: string, authorization?: string, services = createServices()): Promise<Response> {
  const endpoint = createSubmitEndpoints(services).find((each) => each.operation === operation) ?? assert.fail();
  const context = {
    ...{ id: 'id', mediaType: 'text/plain', signal: new AbortController().signal, log: { info: () => undefined } },
    headers: new Headers(authorization === undefined ? {} : { authorization }),
    ...{ caller: () => ({ hash: 'a', network: 'b' }), onFinished: () => undefined },
  } as unknown as RequestContext & CallContext;
  return endpoint.run({ params: { owner: 'octo', name: 'chat' }, query: {}, body: undefined }, context);
}

test('the status opens to the key of the author, and is the same as without one for another key', async () => {
  const read = async (key?: string): Promise<string> => (await call('getSubmitStatus', key)).text();
  assert.match(await read(author), new RegExp(hidden));
  const closed = await read();
  assert.doesNotMatch(closed, new RegExp(hidden));
  assert.equal(await read('Bearer wrong'), closed);
});

test('the build log is for the author alone, and HEAD says no more', async () => {
  for (const key of [undefined, 'Bearer wrong'])
    await assert.rejects(
      call('followSubmitLog', key),
      (error: unknown) => error instanceof Problem && error.type === appPrivate,
    );
  const text = await (await call('followSubmitLog', author)).text();
  assert.match(text, new RegExp(hidden));
  const endpoint = createSubmitEndpoints(createServices()).find(({ operation }) => operation === 'followSubmitLog');
  const headers = new Headers();
  await assert.rejects(
    async () =>
      endpoint?.head({ params: { owner: 'octo', name: 'chat' }, query: {}, body: undefined }, { headers } as never),
    (error: unknown) => error instanceof Problem && error.type === appPrivate,
  );
});

// Submitting.

const key = { publicKey: 'ssh-ed25519 AAAA moorage', fingerprint: 'SHA256:x', page: 'https://git.test/octo/chat/keys' };
const absent: LookupAnswer = {
  ...{ ok: false, final: true, rule: 'source/repository-not-found', deployKey: key },
  ...{ message: 'No public repository was found.', fix: 'Check the address.' },
};
const opened: LookupAnswer = { ok: true, commit, reference: 'refs/heads/main', isPrivate: true };

test('shows the deploy key of a repository that is not public', async () => {
  const check = createRepositoryCheck({ lookUp: () => Promise.resolve(absent) });
  const repository = parseRepository('octo/chat', hosts);
  const problem: unknown = await check({ repository }, 'net').catch((error: unknown) => error);
  assert.ok(problem instanceof Problem);
  assert.equal(problem.type.slug, 'repository-not-found');
  assert.match(
    problem.message,
    /If it is private, add this deploy key at https:\/\/git\.test\/octo\/chat\/keys, .*: ssh-ed25519 AAAA moorage$/,
  );
  assert.deepEqual(problem.members['deploy_key'], {
    ...{ public_key: key.publicKey, fingerprint: key.fingerprint, page: key.page },
  });
});

async function submitPrivately(cached: App | undefined, answer: LookupAnswer): Promise<unknown[]> {
  const written: unknown[] = [];
  const client = {
    list: () => Promise.resolve({ items: [] }),
    get: () => Promise.resolve(undefined),
    create: (_: unknown, manifest: App) => {
      written.push(manifest.spec.source);
      return Promise.resolve({ ...sampleApp(manifest.metadata.name), spec: manifest.spec });
    },
    patch: (_: unknown, __: unknown, patch: { spec?: unknown }) => {
      if (patch.spec !== undefined) written.push(patch.spec);
      return Promise.resolve(cached);
    },
  } as unknown as Client;
  const apps = { ...sampleApps(...(cached === undefined ? [] : [cached])).apps, waitForApp: () => Promise.resolve() };
  const submit = createSubmitter({
    ...{ client, namespace, limits: { perCallerAndDay: 9, perNetwork: 9, apps: 9 }, pollMs: 1 },
    apps,
    checkRepository: createRepositoryCheck({ lookUp: () => Promise.resolve(answer) }),
  });
  await submit({ repository: parseRepository('octo/chat', hosts), caller: 'a', network: 'b' });
  return written;
}

test('an app that is read with its deploy key is private from its first write on', async () => {
  const repo = 'https://git.test/octo/chat';
  assert.deepEqual(await submitPrivately(undefined, opened), [{ repo, private: true }]);
  assert.deepEqual(await submitPrivately(undefined, { ok: true, commit, reference: 'refs/heads/main' }), [{ repo }]);
});

test('a repository that was public is closed when it is submitted again, and none is opened', async () => {
  const lost: HostedAppStatus = {
    conditions: [
      { type: 'SourceResolved', status: 'False', reason: 'RepositoryNotFound', message: '', lastTransitionTime: since },
    ] as never,
  };
  assert.deepEqual(await submitPrivately(sampleApp('chat', undefined, lost), opened), [{ source: { private: true } }]);
  assert.deepEqual(await submitPrivately(createPrivate(lost), { ok: true, commit, reference: 'x' }), []);
  assert.deepEqual(
    await submitPrivately(sampleApp('chat', undefined, {}), absent),
    [],
    'it is asked about only if it is lost',
  );
});

test('gives the deploy key of a repository, and says where there is none', async () => {
  const asked: unknown[] = [];
  const withKey = createServices({
    lookUp: (repository, query) => {
      asked.push([repository.url, query]);
      return Promise.resolve({ ...absent, final: false });
    },
  });
  assert.deepEqual(await (await call('getDeployKey', undefined, withKey)).json(), {
    ...{ repo: 'https://git.test/octo/chat', public_key: key.publicKey, fingerprint: key.fingerprint, page: key.page },
  });
  assert.deepEqual(asked, [['https://git.test/octo/chat', { via: 'none' }]]);
  const { deployKey: _none, ...without } = absent;
  const none = createServices({ lookUp: () => Promise.resolve(without) });
  for (const services of [none, createServices()])
    await assert.rejects(
      call('getDeployKey', undefined, services),
      (error: unknown) =>
        error instanceof Problem && error.type.slug === 'no-deploy-key' && error.message.includes('git.sshHostKeys'),
    );
});
