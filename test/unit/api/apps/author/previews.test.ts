// Previews in the API: their author sees them, and no list, page or tool does.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { toPreviewsView } from '../../../../../api/apps/author/previews.ts';
import { appIndexers, createAppIndex, type App } from '../../../../../api/apps/hosted-apps.ts';
import { createAuthorKey, hashAuthorKey } from '../../../../../lib/ownership-file.ts';
import { createStore } from '../../../../../lib/kubernetes/index.ts';
import { hashRepository, parseAcceptedRepository } from '../../../../../lib/repository.ts';
import { buildPreview, sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';

const key = createAuthorKey();
const name = 'mine--pr-12';
let sample: AppsSample;
let app: App;
let preview: App;

beforeAll(async () => {
  sample = await sampleAppsServer({
    author: {
      createSecret: () => Promise.resolve(),
      maximumReplicas: 3,
      lookUpKeys: () => Promise.reject(new Error('not asked')),
      writeControl: () => Promise.reject(new Error('nothing is written')),
    },
  });
  const hashes = [hashAuthorKey(key, 'git.test/octo/mine')];
  const values = JSON.stringify({ previews: { pullRequests: true, limit: 2 } });
  app = await sample.host(
    'mine',
    (_request, response) => response.end('ok'),
    (one): App => ({
      ...one,
      status: { ...one.status, authorKeys: hashes, settings: { commit: 'c'.repeat(40), values } },
    }),
  );
  // A stranger's key in the pull request.
  const authorKeys = [hashAuthorKey(key, `git.test/octo/${name}`), ...hashes];
  preview = await sample.host(
    name,
    (_request, response) => response.end('ok'),
    () => buildPreview(app, 'pr-12', 'refs/pull/12/head', { authorKeys }),
  );
});
afterAll(() => sample.stop());

async function read(path: string, bearer?: string): Promise<{ status: number; text: string }> {
  const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  const response = await sample.request(path, { headers });
  return { status: response.status, text: await response.text() };
}

test('shows the author production and each preview', async () => {
  const { status, text } = await read('/api/apps/mine/previews', key);
  assert.equal(status, 200);
  const body = JSON.parse(text) as { limit: number; previews: object[]; production: { status: string } };
  assert.equal(body.limit, 2);
  assert.equal(body.production.status, 'live');
  assert.partialDeepStrictEqual(body.previews, [
    { name, label: '#12', reference: 'refs/pull/12/head', status: 'live' },
  ]);
});

test('attack: previews are shown to nobody without the key of the app', async () => {
  assert.equal((await read('/api/apps/mine/previews')).status, 401);
  assert.equal((await read('/api/apps/mine/previews', createAuthorKey())).status, 404);
});

test.each([`/api/apps/${name}`, `/api/apps/${name}/secrets`, `/api/apps/${name}/previews`, `/apps/${name}`])(
  'attack: a key in a pull request opens no app at %s',
  async (path) => {
    assert.equal((await read(path, key)).status, 404);
  },
);

test.each(['/agent-capabilities.json', '/api/projects', '/llms.txt', '/api/rank', '/api/tools'])(
  'lists no preview at %s',
  async (path) => {
    const { text } = await read(path);
    assert.doesNotMatch(text, /mine--pr-12/);
  },
);

test('finds the app by its repository, never a preview of it, and no preview of a namesake before it', () => {
  const store = createStore<App>({ indexers: appIndexers });
  const index = createAppIndex(store, app.metadata.namespace ?? '');
  const older = { ...preview, metadata: { ...preview.metadata, creationTimestamp: '2020-01-01T00:00:00Z' } };
  for (const each of [older, app]) store.set(each);
  assert.equal(index.get(name), undefined);
  assert.equal(index.size, 1);
  const hash = hashRepository(parseAcceptedRepository(app.spec.source.repo).url);
  assert.equal(index.findByRepository(hash)?.metadata.name, 'mine');
  assert.deepEqual(
    index.listPreviews(app).map(({ metadata }) => metadata.name),
    [name],
  );
  assert.deepEqual(index.listPreviews({ ...app, metadata: { ...app.metadata, uid: 'another' } }), []);
});

test('shows the first line of a rejection alone', () => {
  const rejection = { rule: 'build/failed', message: 'The build failed.\nSECRET=1', fix: 'Fix it.' };
  const rejected: App = { ...preview, status: { ...preview.status, phase: 'Rejected', rejection } };
  const [view] = toPreviewsView(app, [rejected], { domain: 'apps.test', port: 443 }).previews;
  assert.equal(view?.message, 'The build failed.');
});
