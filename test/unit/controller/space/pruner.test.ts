// When an app is pruned: once for each pipeline, not while one runs, and again where the registry could not be asked.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import fc from 'fast-check';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import type { Job } from '../../../../controller/objects/kinds.ts';
import {
  createPruner,
  selectCaches,
  selectRemovable,
  type Pruner,
  type PruneSubject,
  type TaggedImage,
} from '../../../../controller/space/pruner.ts';
import { createSpaceMetrics } from '../../../../controller/space/space.ts';
import { formatTime, first, job } from '../../../support/operator/scenario.ts';

const digest = (number: number): string => `sha256:${String(number).repeat(64)}`;
const uid = '0a1b2c3d-0000-4000-8000-000000000000';
const state = { status: 200, asked: [] as string[], layers: [{ digest: digest(8), size: 10 }] as object[] | null };
const proxy = createServer(({ method = '', url = '' }, response) => {
  state.asked.push(`${method} ${url.replace(`.${uid}`, '')}`);
  const number = /build-(\d)$/.exec(url)?.[1] ?? '0';
  response.setHeader('docker-content-digest', digest(Number(number)));
  response.statusCode = method === 'DELETE' ? state.status : 200;
  const tags = url.includes('/apps/') ? ['build-1', 'build-2'] : [];
  response.end(JSON.stringify(url.endsWith('/tags/list') ? { tags } : { layers: state.layers }));
});
let url = '';
beforeAll(async () => {
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  url = `http://127.0.0.1:${z.object({ port: z.int() }).parse(proxy.address()).port}`;
});
afterAll(() => {
  proxy.close();
  proxy.closeAllConnections();
});

const subject: PruneSubject = {
  name: 'hello',
  namespace: 'moorage-apps',
  uid,
  deployment: undefined,
  status: {
    built: { image: `r/apps/hello@${digest(2)}`, commit: first, inputsHash: 'x' },
    history: [2, 1].map((number) => ({
      number,
      job: 'hello-1',
      commit: first,
      reason: '',
      result: 'Succeeded' as const,
      image: `r/apps/hello@${digest(number)}`,
      finishedAt: formatTime(0),
    })),
  },
};

function prunerOf(jobs: Job[], registry = new Registry()): Pruner {
  Object.assign(state, { status: 202, asked: [] });
  return createPruner({
    url,
    tokenSecret: 'push-token-secret-of-tests-0123456789',
    imageLimit: 0,
    cacheBytes: 1_000,
    listJobs: () => jobs,
    log: pino({ level: 'silent' }),
    metrics: createSpaceMetrics(registry),
  });
}

const removals = (): string[] => state.asked.filter((each) => each.startsWith('DELETE'));

test('prunes an app once per pipeline, and measures its bytes', async () => {
  const registry = new Registry();
  const pruner = prunerOf([], registry);
  pruner.schedule(subject);
  const stored = async (): Promise<string> => registry.metrics();
  await expect.poll(stored).toMatch(/moorage_registry_stored_bytes\{app="hello",kind="images"\} [1-9]/);
  assert.deepEqual(removals(), [`DELETE /v2/apps/hello/manifests/${digest(1)}`]);
  const asked = state.asked.length;
  pruner.schedule(subject);
  assert.equal(state.asked.length, asked);
});

test('keeps the image of a pinned release, which is built and among the releases', async () => {
  const image = `r/apps/hello@${digest(1)}`;
  const release = { image, commit: first, port: 80, readyAt: formatTime(0), servedSeconds: 0, bestSeconds: 0 };
  const { history } = subject.status;
  for (const status of [{ built: { image, commit: first, inputsHash: 'unknown' } }, { releases: [release] }]) {
    prunerOf([]).schedule({ ...subject, status: { ...(history === undefined ? {} : { history }), ...status } });
    await expect.poll(() => removals().length).toBe(1);
    assert.deepEqual(removals(), [`DELETE /v2/apps/hello/manifests/${digest(2)}`]);
  }
});

test('leaves an app alone while one of its pipelines runs', () => {
  prunerOf([job(first)]).schedule(subject);
  assert.deepEqual(state.asked, []);
});

const failures = async (registry: Registry): Promise<number> =>
  Number(/moorage_space_failures_total\{of="registry"\} (\d+)/.exec(await registry.metrics())?.[1] ?? '0');

test('retries each time if the registry fails', async () => {
  const registry = new Registry();
  const pruner = prunerOf([], registry);
  state.status = 500;
  for (let tries = 1; tries <= 3; tries += 1) {
    pruner.schedule(subject);
    await expect.poll(() => failures(registry)).toBe(tries);
  }
  assert.equal(removals().length, 3);
});

test('does not retry if the registry rejects, until there is another pipeline', async () => {
  const registry = new Registry();
  const pruner = prunerOf([], registry);
  state.status = 405;
  pruner.schedule(subject);
  await expect.poll(() => failures(registry)).toBe(1);
  pruner.schedule(subject);
  const [newest] = subject.status.history ?? [];
  assert.ok(newest);
  const history = [{ ...newest, number: 3 }, ...(subject.status.history ?? [])];
  pruner.schedule({ ...subject, status: { ...subject.status, history } });
  await expect.poll(() => failures(registry)).toBe(2);
  assert.equal(removals().length, 2);
});

test('holds a deleted app while the registry fails, but not forever, and not if it rejects', async () => {
  const pruner = prunerOf([]);
  const app = (minutes: number): Parameters<Pruner['removeApp']>[0] => ({
    apiVersion: 'moorage.dev/v1alpha1',
    kind: 'HostedApp',
    metadata: {
      name: 'hello',
      namespace: 'moorage-apps',
      uid,
      resourceVersion: '1',
      creationTimestamp: formatTime(0),
      deletionTimestamp: new Date(Date.now() - minutes * 60_000).toISOString(),
    },
    spec: {} as Parameters<Pruner['removeApp']>[0]['spec'],
  });
  const { signal } = new AbortController();
  state.status = 500;
  assert.deepEqual([await pruner.removeApp(app(1), signal), await pruner.removeApp(app(11), signal)], [false, true]);
  state.status = 405;
  assert.equal(await pruner.removeApp(app(1), signal), true);
  state.status = 202;
  assert.equal(await pruner.removeApp(app(1), signal), true);
});

test('removes an image without layers, such as one FROM scratch, with its app', async () => {
  state.layers = null;
  onTestFinished(() => {
    state.layers = [{ digest: digest(8), size: 10 }];
  });
  const pruner = prunerOf([]);
  assert.equal(
    await pruner.removeApp(
      { metadata: { name: 'hello', namespace: 'moorage-apps', uid } } as never,
      AbortSignal.timeout(5_000),
    ),
    true,
  );
  assert.equal(removals().length, 2);
});

// Which images of an app may be removed: never what serves, nor what a pipeline has pushed that is not recorded yet.

const imageDigest = (number: number): string => `sha256:${number.toString(16).padStart(64, '0')}`;
const tagged = (...numbers: number[]): TaggedImage[] =>
  numbers.map((number) => ({ tag: `build-${number}`, digest: imageDigest(number) }));
const past = (...numbers: number[]): { number: number; image: string }[] =>
  numbers.map((number) => ({ number, image: `registry.test/apps/hello.uid-1@${imageDigest(number)}` }));

test('keeps what serves, however old, and the newest images before it', () => {
  const records = { needed: new Set([imageDigest(1)]), history: past(5, 4, 3, 2, 1) };
  assert.deepEqual(selectRemovable(tagged(1, 2, 3, 4, 5), records, 2), [imageDigest(2), imageDigest(3)]);
  assert.deepEqual(selectRemovable(tagged(1, 2, 3, 4, 5), records, 0), [2, 3, 4, 5].map(imageDigest));
});

test('removes what a failed pipeline left, and tags that no pipeline was to push', () => {
  const history = [{ number: 3 }, ...past(2), { number: 1 }];
  const images = [...tagged(1, 2, 3), { tag: 'latest', digest: imageDigest(9) }];
  assert.deepEqual(
    selectRemovable(images, { needed: new Set([imageDigest(2)]), history }, 5),
    [1, 3, 9].map(imageDigest),
  );
});

test('keeps images that are not recorded yet, even if an older tag refers to the same image', () => {
  const images = [...tagged(1, 2), { tag: 'build-3', digest: imageDigest(1) }];
  assert.deepEqual(selectRemovable(images, { needed: new Set([imageDigest(2)]), history: past(2) }, 0), []);
});

test('property: keeps what is needed and the newest others, and nothing beyond the limit', () => {
  const numbers = fc.uniqueArray(fc.integer({ min: 1, max: 30 }), { maxLength: 20 });
  fc.assert(
    fc.property(numbers, numbers, fc.integer({ min: 0, max: 18 }), (built, needed, limit) => {
      const records = { needed: new Set(needed.map(imageDigest)), history: past(...built) };
      const gone = new Set(selectRemovable(tagged(...built), records, limit));
      const others = built.filter((number) => !needed.includes(number)).toSorted((a, b) => b - a);
      assert.deepEqual(
        built.filter((number) => !gone.has(imageDigest(number))).toSorted((a, b) => a - b),
        [...built.filter((number) => needed.includes(number)), ...others.slice(0, limit)].toSorted((a, b) => a - b),
      );
    }),
  );
});

test('keeps the images of all components that the status names, and knows the tags of components', async () => {
  const images = [
    { tag: 'build-1-api', digest: digest(1) },
    { tag: 'build-2-web', digest: digest(2) },
    { tag: 'build-3-web', digest: digest(3) },
    { tag: 'build-9-api', digest: digest(9) },
  ];
  const history = [3, 2, 1].map((number) => ({ number, image: `r/apps/hello@${digest(number)}` }));
  assert.deepEqual(selectRemovable(images, { needed: new Set([digest(1), digest(3)]), history }, 0), [digest(2)]);
  const components = [1, 2].map((number) => ({ name: `c${number}`, image: `r/apps/hello@${digest(number)}` }));
  const built = { image: `r/apps/hello@${digest(2)}`, commit: first, inputsHash: 'x', components };
  const pruner = prunerOf([]);
  pruner.schedule({ ...subject, status: { ...subject.status, built } });
  await expect.poll(() => state.asked.some((each) => each.includes('/cache/'))).toBe(true);
  assert.deepEqual(removals(), []);
});

test('keeps the caches of all components that fit together, the smallest first', () => {
  const toCache = (tag: string, ...sizes: number[]): Parameters<typeof selectCaches>[0][number] => ({
    tag,
    manifest: { digest: tag, blobs: new Map(sizes.map((size, index) => [`${tag.slice(0, 7)}${size}-${index}`, size])) },
  });
  const caches = [
    toCache('steps-web', 500),
    toCache('steps-api', 300, 100),
    toCache('steps-big', 5_000),
    toCache('image-big', 9_000),
    toCache('steps', 50),
    toCache('other', 1),
  ];
  assert.deepEqual(
    selectCaches(caches, 1_000).map(({ tag }) => tag),
    ['image-big', 'steps', 'steps-api', 'steps-web'],
  );
  assert.deepEqual(
    selectCaches(caches, 600).map(({ tag }) => tag),
    ['image-big', 'steps', 'steps-api'],
  );
});
