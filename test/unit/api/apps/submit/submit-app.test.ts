// Names for an app: the repository's own first, always fit for the cluster, never a reserved one.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import {
  buildManifest,
  computeRetryTime,
  createSubmitter,
  listSlugCandidates,
} from '../../../../../api/apps/submit/submit-app.ts';
import { submittedFields, submittedModelFields } from '../../../../../crds/field-access.ts';
import { isReserved } from '../../../../../crds/names.ts';
import { parseRepository, hashRepository } from '../../../../../lib/repository.ts';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import { annotations } from '../../../../../crds/names.ts';
import { ApiError, type Client } from '../../../../../lib/kubernetes/index.ts';
import { namespace, sampleApp, sampleApps } from '../../../../support/api/sample.ts';

const hosts = { allowed: ['git.test'], insecure: [] };
const candidates = (text: string): readonly string[] => listSlugCandidates(parseRepository(text, hosts));

for (const [repo, first, second] of [
  ['octo/Chat-UI', 'chat-ui', 'octo-chat-ui'],
  ['octo/chat_ui.git', 'chat-ui', 'octo-chat-ui'],
  ['octo/api', 'octo-api', undefined],
  // What programs and people trust by its name alone.
  ['octo/wpad', 'octo-wpad', undefined],
  ['octo/autodiscover', 'octo-autodiscover', undefined],
  ['octo/mta-sts', 'octo-mta-sts', undefined],
  ['octo/accounts', 'octo-accounts', undefined],
  ['octo/mx1', 'octo-mx1', undefined],
  // An app of the catalog, which only the operator of the installation deploys.
  ['octo/pdf-translate', 'octo-pdf-translate', undefined],
  ['octo/3d-viewer', 'app-3d-viewer', 'octo-3d-viewer'],
  ['4chan/2048', 'app-2048', 'app-4chan-2048'],
] as const) {
  test(`names of ${repo}`, () => {
    assert.equal(candidates(repo)[0], first);
    if (second !== undefined) assert.equal(candidates(repo)[1], second);
  });
}

test('avoids reserved names that owner and repository make together', () => {
  assert.ok(!candidates('mta/sts').includes('mta-sts'));
  assert.ok(!candidates('accounts/_').includes('accounts'));
  assert.ok(!candidates('chat/ui-1').includes('chat-ui-1'));
});

test('finds a candidate for a name without usable characters', () => {
  assert.match(candidates('octo/_').at(-1) ?? '', /^[a-z][a-z0-9-]*-[0-9a-f]{8}$/);
});

test('lists only DNS labels, and ends with one that is unique to the repository', () => {
  const segment = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,60}[A-Za-z0-9_]$/);
  fc.assert(
    fc.property(segment, segment, (owner, name) => {
      const repository = parseRepository(`https://git.test/${owner}/${name}`, hosts);
      const slugs = listSlugCandidates(repository);
      assert.ok(slugs.length > 0);
      for (const slug of slugs) {
        assert.match(slug, /^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$/);
        assert.equal(isReserved(slug), false);
      }
      assert.ok(slugs.at(-1)?.endsWith(hashRepository(repository.url).slice(0, 8)));
    }),
  );
});

function listSetFields(options: { readonly modelsUsd?: string }): string[] {
  const repository = parseRepository('https://git.test/octo/chat', hosts);
  const submission = {
    repository,
    contact: 'a@example.org',
    note: 'It does.',
    caller: 'a',
    network: 'b',
    isPrivate: true,
  };
  const { spec } = buildManifest('chat', { namespace: 'apps', ...options }, submission, 'hash') as unknown as {
    readonly spec: Readonly<Record<string, object>>;
  };
  return Object.entries(spec).flatMap(([section, fields]) => Object.keys(fields).map((name) => `${section}.${name}`));
}

test('a submission sets the fields that the admission policy lets the API set', () => {
  assert.deepEqual(listSetFields({}).sort(), [...submittedFields].sort());
  assert.deepEqual(listSetFields({ modelsUsd: '0.25' }).sort(), [...submittedFields, ...submittedModelFields].sort());
});

// The waits between retries of one app: a minute, doubling with each retry of the same commit, at most a day.

const end = Date.parse('2026-01-02T00:00:00Z');
const minute = 60_000;

function rejected(runs: number, commit = 'a'): App {
  const app = sampleApp('hello');
  const history = Array.from({ length: runs }, (_, index) => ({
    number: runs - index,
    job: `job-${index}`,
    commit: 'a',
    reason: 'rebuild requested',
    result: 'Rejected' as const,
    finishedAt: new Date(end - index * minute).toISOString(),
  }));
  const noted = { [annotations.rebuild]: new Date(end - 10 * minute).toISOString() };
  return {
    ...app,
    metadata: { ...app.metadata, ...(runs > 1 ? { annotations: noted } : {}) },
    status: { history, source: { commit } },
  };
}

test('builds the same commit ever more rarely if it is retried again and again', () => {
  const waits = [1, 2, 3, 4, 5, 12, 13, 20].map((runs) => (computeRetryTime(rejected(runs), minute) - end) / minute);
  assert.deepEqual(waits, [-end / minute, 1, 2, 4, 8, 1024, 1440, 1440]);
});

test('starts over with a new commit', () => {
  assert.equal(computeRetryTime(rejected(8, 'b'), minute), end - 9 * minute);
});

// What the API server answers when several apps are created at once and it cannot count one of them in the quota.
const quotaConflict = new ApiError(409, 'Conflict', 'Operation cannot be fulfilled on resourcequotas "moorage"');

/** Submits octo/chat to an API server that refuses the first creations. */
async function submitAfter(refusals: number, holder?: App): Promise<string> {
  let left = refusals;
  const client = {
    list: () => Promise.resolve({ items: [] }),
    get: () => Promise.resolve(holder),
    create: (_: unknown, manifest: { metadata: { name: string } }) =>
      (left -= 1) >= 0 ? Promise.reject(quotaConflict) : Promise.resolve(sampleApp(manifest.metadata.name)),
  } as unknown as Client;
  const apps = { ...sampleApps().apps, waitForApp: () => Promise.resolve() };
  const limits = { perCallerAndDay: 9, perNetwork: 9, apps: 9 };
  const submit = createSubmitter({ client, apps, namespace, limits, pollMs: 1 });
  const repository = parseRepository('https://git.test/octo/chat', hosts);
  const { app } = await submit({ repository, caller: 'a', network: 'b' });
  return app.metadata.name;
}

test('keeps the name of the repository when the API server could not count the app in the quota', async () => {
  assert.equal(await submitAfter(2), 'chat');
});

test('takes the next name if another repository has the first one', async () => {
  assert.equal(await submitAfter(1, sampleApp('chat', 'https://git.test/someone/chat')), 'octo-chat');
});
