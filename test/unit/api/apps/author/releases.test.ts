// What an author does with the releases of an app, and how it is deleted, restored and exported.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { z } from 'zod';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import { listLiveApps } from '../../../../../api/apps/offer.ts';
import { toPublicStatus } from '../../../../../crds/public-status.ts';
import { createAuthorKey, hashAuthorKey } from '../../../../../lib/ownership-file.ts';
import { omitUndefined } from '../../../../../lib/values.ts';
import { sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';

const key = createAuthorKey();
const hash = hashAuthorKey(key, 'git.test/octo/mine');
const [oldest, twin, newest] = [
  `${'a'.repeat(7)}1${'0'.repeat(32)}`,
  `${'a'.repeat(7)}2${'0'.repeat(32)}`,
  'b'.repeat(40),
];
let sample: AppsSample;
/** As the cluster has it. */
let stored: App;

function store(app: App): void {
  const { resourceVersion } = app.metadata;
  stored = { ...app, metadata: { ...app.metadata, resourceVersion: String(Number(resourceVersion) + 1) } };
  sample.store.set(stored);
}

function record(commit: string): NonNullable<NonNullable<App['status']>['releases']>[number] {
  const times = { readyAt: '2026-11-21T12:00:00Z', servedSeconds: 0, bestSeconds: 0 };
  return { image: `r/apps/mine@sha256:${commit.charAt(7).repeat(64)}`, commit, port: 80, ...times };
}

beforeAll(async () => {
  sample = await sampleAppsServer({
    environment: { MOORAGE_DELETE_GRACE: '48h' },
    author: {
      createSecret: () => Promise.resolve(),
      maximumReplicas: 3,
      lookUpKeys: () =>
        Promise.resolve({ ok: true, commit: newest, reference: 'refs/heads/main', authorKeys: [hash] } as const),
      writeControl: (_app, change, request) => {
        const { metadata, spec } = stored;
        const control = omitUndefined({ ...spec.control, ...change(spec.control ?? {}) });
        const annotations = { ...metadata.annotations, ...request?.(stored) };
        store({ ...stored, metadata: { ...metadata, annotations }, spec: { ...spec, control } });
        return Promise.resolve(stored);
      },
    },
  });
});
afterAll(() => sample.stop());
beforeEach(async () => {
  stored = await sample.host(
    'mine',
    (_request, response) => response.end('ok'),
    (app): App => ({
      ...app,
      status: { ...app.status, authorKeys: [hash], releases: [newest, twin, oldest].map(record) },
    }),
  );
});

const answer = z.looseObject({ type: z.string().optional(), detail: z.string().optional() });

async function send(
  path: string,
  { method = 'POST', body }: { method?: string; body?: unknown } = {},
): Promise<{ status: number; kind: string | undefined; body: z.output<typeof answer>; headers: Headers }> {
  const response = await sample.request(`/api/apps/mine${path}`, {
    method,
    headers: {
      'x-forwarded-for': '203.0.113.1',
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const read = answer.parse(await response.json());
  return { status: response.status, kind: read.type?.split('/').at(-1), body: read, headers: response.headers };
}

test('rolls back to a kept release by its commit, and a deploy removes the pin and asks for the newest commit', async () => {
  const { status, body } = await send('/rollback', { body: { commit: oldest.slice(0, 8) } });
  assert.deepEqual([status, body['commit']], [200, oldest]);
  assert.deepEqual(stored.spec.control, { release: oldest });
  const pinned = (await send('', { method: 'GET' })).body['releases'];
  assert.deepEqual(
    z
      .array(z.looseObject({ pinned: z.boolean() }))
      .parse(pinned)
      .map((release) => release.pinned),
    [false, false, true],
  );
  assert.equal((await send('/deploy')).status, 200);
  assert.deepEqual(stored.spec.control, {});
  assert.match(stored.metadata.annotations?.['moorage.dev/poll'] ?? '', /^20\d\d-.*Z$/);
  assert.equal(stored.metadata.annotations?.['moorage.dev/rebuild'], undefined);
});

test('refuses a commit without a kept release, or with several, and lists the kept ones', async () => {
  for (const [commit, detail] of [
    ['c'.repeat(40), /^No kept release of mine has a commit that starts with c+\. Kept are: bbb/],
    ['a'.repeat(7), /^More than one kept release of mine/],
  ] as const) {
    const refused = await send('/rollback', { body: { commit } });
    assert.deepEqual([refused.status, refused.kind], [422, 'release-not-kept']);
    assert.match(refused.body.detail ?? '', detail);
    assert.deepEqual(
      z
        .array(z.looseObject({ commit: z.string() }))
        .parse(refused.body['releases'])
        .map((release) => release.commit),
      [newest, twin, oldest],
    );
  }
  assert.equal((await send('/rollback', { body: { commit: 'aaaaaa' } })).kind, 'invalid-request');
  assert.equal(stored.spec.control, undefined);
});

test('rebuilds with and without the cache, at most once a minute', async () => {
  assert.equal((await send('/rebuild', { body: { cache: false } })).status, 200);
  const { 'moorage.dev/poll': poll, 'moorage.dev/rebuild': rebuild } = stored.metadata.annotations ?? {};
  assert.equal(poll, rebuild);
  assert.match(rebuild ?? '', /^20\d\d-[0-9T:.-]{18,21}Z\.no-cache$/);
  // The admission policy accepts no other values.
  assert.match(rebuild ?? '', /^[0-9A-Za-z:.-]{1,40}$/);
  const early = await send('/rebuild', { body: {} });
  assert.deepEqual([early.status, early.kind], [429, 'too-many-rebuilds']);
  assert.ok(Number(early.headers.get('retry-after')) > 50);
  const before = new Date(Date.now() - 61_000).toISOString();
  stored = {
    ...stored,
    metadata: { ...stored.metadata, annotations: { 'moorage.dev/rebuild': `${before}.no-cache` } },
  };
  assert.equal((await send('/rebuild', { body: {} })).status, 200);
  assert.match(stored.metadata.annotations?.['moorage.dev/rebuild'] ?? '', /Z$/);
});

test('builds nothing while a release is pinned or the app is suspended', async () => {
  await send('/rollback', { body: { commit: newest } });
  assert.equal((await send('/rebuild', { body: {} })).kind, 'rebuild-refused');
  await send('/deploy');
  await send('/suspend');
  assert.equal((await send('/rebuild', { body: {} })).kind, 'rebuild-refused');
  assert.equal(stored.metadata.annotations?.['moorage.dev/rebuild'], undefined);
});

test('deletes an app after the grace period, offers it to nobody meanwhile, and restores it', async () => {
  assert.equal(listLiveApps([stored]).length, 1);
  const { status, body } = await send('', { method: 'DELETE' });
  const deleteAfter = stored.spec.control?.deleteAfter ?? '';
  assert.deepEqual([status, body['delete_after']], [200, deleteAfter]);
  assert.ok(Math.abs(Date.parse(deleteAfter) - Date.now() - 48 * 3_600_000) < 60_000);
  assert.deepEqual(listLiveApps([stored]), []);
  assert.equal(toPublicStatus(stored).status, 'rejected');
  assert.equal((await send('', { method: 'DELETE' })).body['delete_after'], deleteAfter, 'the time does not move');
  assert.equal((await send('/restore')).status, 200);
  assert.deepEqual(stored.spec.control, {});
  assert.equal(listLiveApps([stored]).length, 1);
});

test('exports what belongs to the author, without secret values', async () => {
  const control = { secrets: [{ name: 'API_KEY', version: 3 }], env: [{ name: 'MODE', value: 'fast' }] };
  store({ ...stored, spec: { ...stored.spec, control } });
  await send('/restart');
  const { status, headers, body } = await send('/export', { method: 'GET' });
  assert.equal(status, 200);
  assert.equal(headers.get('content-disposition'), 'attachment; filename="mine.json"');
  assert.deepEqual(Object.keys(body).sort(), [
    ...['audit', 'control', 'created_at', 'exported_at', 'history'],
    ...['releases', 'repository', 'secrets', 'settings', 'slug'],
  ]);
  assert.deepEqual(body['secrets'], ['API_KEY']);
  assert.equal(z.array(z.looseObject({ action: z.string() })).parse(body['audit'])[0]?.action, 'restart');
});
