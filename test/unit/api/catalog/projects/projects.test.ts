// GET /api/projects and its detail through the whole API: the eight, submitted apps, filters, pages and refusals.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import {
  projectDetail,
  projectList,
  type ProjectEntry,
  type ProjectList,
} from '../../../../../api/catalog/projects/views.ts';
import { listLiveApps } from '../../../../../api/apps/offer.ts';
import { catalogSlugs } from '../../../../../crds/names.ts';
import type { HostedAppStatus } from '../../../../../crds/hosted-app.ts';
import { baseUrl, sampleApp } from '../../../../support/api/sample.ts';
import { type AppsSample, sampleAppsServer } from '../../../../support/apps/sample.ts';
import { createLiveStatus } from '../../../../support/discovery/sample.ts';

let server: AppsSample;
beforeAll(async () => {
  server = await sampleAppsServer();
});
beforeEach(() => {
  server.store.replace([]);
});
afterAll(() => server.stop());

const list = async (query = ''): Promise<ProjectList> => {
  const response = await server.request(`/api/projects${query}`);
  assert.equal(response.status, 200);
  return projectList.strict().parse(await response.json());
};
const slugsOf = async (query = ''): Promise<string[]> => (await list(query)).projects.map(({ slug }) => slug);
/** With those that are not live. */
const everySlug = (query = ''): Promise<string[]> => slugsOf(`?state=all${query}`);
const entry = async (slug: string): Promise<ProjectEntry> => {
  const found = (await list('?state=all&limit=200')).projects.find((one) => one.slug === slug);
  assert.ok(found !== undefined, slug);
  return found;
};
const rejection = { rule: 'license/missing', message: 'No licence was found', fix: 'Add a LICENSE file' };
const since = '2026-02-01T00:00:00Z';

test('the eight are listed without a cluster, each with upstream, category and why it is not live [spec projects.entry endpoint.projects]', async () => {
  const { projects, total, next } = await list('?state=all');
  assert.deepEqual(projects.map(({ slug }) => slug).toSorted(), catalogSlugs.toSorted());
  assert.deepEqual([total, next], [8, null]);
  const titles = projects.map(({ title }) => title.toLowerCase());
  assert.deepEqual(titles, titles.toSorted());
  for (const {
    state,
    state_reason,
    url,
    since: from,
    status_url,
    repo,
    stars,
    stars_at,
    stars_reason,
    license,
    license_reason,
    title_zh,
  } of projects) {
    assert.deepEqual(
      [state, url, from, status_url, stars, stars_at, license],
      ['not_deployed', null, null, null, null, null, null],
    );
    assert.match(state_reason ?? '', /`npm run apps`/);
    assert.match(repo, /^https:\/\/github\.com\//);
    assert.ok(stars_reason !== null && license_reason !== null && title_zh !== null);
  }
});

test('a live app of the eight has its URL and since when, and no reason', async () => {
  server.store.set(
    sampleApp('chat-ui-1', 'https://git.test/mirror/open-webui', createLiveStatus('https://chat-ui-1.apps.test/')),
  );
  const {
    state,
    state_reason,
    url,
    since: from,
    repo,
    source,
    page,
    machine_readable,
    status_url,
  } = await entry('chat-ui-1');
  assert.deepEqual(
    [state, state_reason, url, from],
    ['live', null, 'https://chat-ui-1.apps.test/', '2026-01-01T00:00:00Z'],
  );
  assert.deepEqual([repo, source], ['https://github.com/open-webui/open-webui', 'https://git.test/mirror/open-webui']);
  assert.deepEqual([page, machine_readable], [`${baseUrl}/apps/chat-ui-1`, `${baseUrl}/api/projects/chat-ui-1`]);
  assert.equal(status_url, `${baseUrl}/api/submit-status/mirror/open-webui?host=git.test`);
  assert.equal((await list('?state=all')).total, 8);
  assert.deepEqual(await slugsOf(), ['chat-ui-1']);
});

const standings: readonly (readonly [state: string, status: HostedAppStatus | undefined, reason: RegExp])[] = [
  ['in_pipeline', undefined, /^Checking the repository/],
  ['in_pipeline', { phase: 'Building', since }, /^Building the image/],
  ['rejected', { phase: 'Rejected', since, rejection }, /^No licence was found\. Add a LICENSE file\.$/],
];
for (const [state, status, reason] of standings)
  test(`a submitted app that is ${state} (${status?.phase ?? 'new'}) appears beside the eight, with the reason`, async () => {
    server.store.set(sampleApp('draw', undefined, status));
    const shown = await entry('draw');
    assert.deepEqual([shown.state, shown.url, shown.title, shown.category], [state, null, 'draw', 'other']);
    assert.match(shown.state_reason ?? '', reason);
    assert.equal(shown.since, status?.since ?? '2026-01-01T00:00:00Z');
    assert.equal((await list('?state=all')).total, 9);
    assert.deepEqual(await slugsOf(), [], 'only live apps are listed unless another state is asked for');
  });

test('attack: what a stranger says of an app is shown once the app has been live, and not before', async () => {
  const text = '"><script>alert(1)</script>';
  const said = (status: HostedAppStatus): ReturnType<typeof sampleApp> => {
    const app = sampleApp('draw', undefined, status, { 'moorage.dev/caller': 'c' });
    return { ...app, spec: { ...app.spec, submission: { note: text } } };
  };
  const settings = JSON.stringify({ listing: { title: text, description: text, upstream: 'https://evil.test/' } });
  const built = { image: 'i', commit: 'a'.repeat(40), inputsHash: 'h', settings };
  server.store.replace([said({ phase: 'Rejected', since, rejection, built })]);
  assert.deepEqual(await everySlug(`&q=${encodeURIComponent('script')}`), []);
  const before = await entry('draw');
  assert.deepEqual([before.title, before.description], ['draw', '']);
  assert.equal(before.repo, before.source);
  assert.doesNotMatch(JSON.stringify(before), /<script|evil/);
  server.store.replace([]);
  server.store.replace([said({ ...createLiveStatus('https://draw.apps.test/'), built })]);
  assert.equal((await entry('draw')).title, text);
});

test('the tool list_apps and the list of projects have the same apps', async () => {
  server.store.replace([
    sampleApp('draw', undefined, createLiveStatus('https://draw.apps.test/')),
    sampleApp('gone', undefined, { phase: 'Rejected', since, rejection }),
  ]);
  assert.deepEqual(
    listLiveApps(server.store.list()).map(({ slug }) => slug),
    await slugsOf(),
  );
  assert.deepEqual(await slugsOf(), ['draw']);
});

test('a submitted app that has the name of one of the eight is not taken for it, unless it comes from the same repository', async () => {
  const submitted = { 'moorage.dev/caller': 'c' };
  server.store.set(sampleApp('chat-ui-1', undefined, createLiveStatus('https://chat-ui-1.apps.test/'), submitted));
  const { state, state_reason } = await entry('chat-ui-1');
  assert.equal(state, 'not_deployed');
  assert.match(state_reason ?? '', /^Another app has this name/);
  server.store.replace([]);
  server.store.replace([
    sampleApp(
      'chat-ui-1',
      'https://github.com/Open-WebUI/open-webui',
      createLiveStatus('https://chat-ui-1.apps.test/'),
      submitted,
    ),
  ]);
  assert.equal((await entry('chat-ui-1')).state, 'live');
});

test('filters: category, state and words in either language', async () => {
  server.store.replace([sampleApp('draw', undefined, { phase: 'Rejected', since, rejection })]);
  assert.deepEqual((await everySlug('&category=chat')).toSorted(), [
    'chat-ui-1',
    'chat-ui-2',
    'chat-ui-3',
    'chat-ui-4',
  ]);
  assert.deepEqual(await slugsOf('?state=rejected'), ['draw']);
  assert.deepEqual(await slugsOf('?state=live'), []);
  assert.deepEqual(await everySlug('&q=PDF%20formulas'), ['pdf-translate']);
  assert.deepEqual(await everySlug(`&q=${encodeURIComponent('演示文稿')}`), ['slide-generator']);
  assert.deepEqual(await everySlug('&q=pdf&category=chat'), []);
});

test('sorted by since, the newest comes first and what is not deployed last', async () => {
  server.store.replace([
    sampleApp('old', undefined, { phase: 'Rejected', since: '2026-01-02T00:00:00Z', rejection }),
    sampleApp('new', undefined, { phase: 'Rejected', since: '2026-03-02T00:00:00Z', rejection }),
  ]);
  assert.deepEqual((await everySlug('&sort=since')).slice(0, 2), ['new', 'old']);
});

test('pages: next leads through all of them, in the body and in Link', async () => {
  const seen: string[] = [];
  let path: string | null = '/api/projects?state=all&limit=3&sort=stars';
  while (path !== null) {
    const response = await server.request(path);
    const { projects, next, total } = projectList.parse(await response.json());
    assert.equal(total, 8);
    assert.equal(response.headers.get('link'), next === null ? null : `<${next}>; rel="next"`);
    assert.ok(next === null || new URL(next).searchParams.get('state') === 'all', String(next));
    seen.push(...projects.map(({ slug }) => slug));
    path = next === null ? null : next.slice(baseUrl.length);
  }
  assert.deepEqual(seen.toSorted(), catalogSlugs.toSorted());
});

test('the list is 304 for who has it, until an app changes', async () => {
  const first = await server.request('/api/projects');
  const etag = first.headers.get('etag') ?? '';
  const again = await server.request('/api/projects', { headers: { 'if-none-match': etag } });
  assert.deepEqual([again.status, await again.text()], [304, '']);
  server.store.set(sampleApp('draw', undefined, createLiveStatus('https://draw.apps.test/')));
  assert.equal((await server.request('/api/projects', { headers: { 'if-none-match': etag } })).status, 200);
});

test('the detail adds commit, telemetry and benchmark [spec projects.entry]', async () => {
  server.store.set(sampleApp('pdf-translate', undefined, createLiveStatus('https://pdf-translate.apps.test/')));
  const response = await server.request('/api/projects/pdf-translate');
  assert.equal(response.status, 200);
  const { commit, telemetry, benchmark, benchmark_reason, slug } = projectDetail.strict().parse(await response.json());
  assert.deepEqual([slug, commit, benchmark], ['pdf-translate', 'a'.repeat(40), null]);
  assert.equal(benchmark_reason, 'No benchmark of this app has been run here.');
  assert.deepEqual([telemetry['24h'].requests, telemetry['24h'].model_cost_usd], [0, 0]);
});

test('every one of the eight has a detail [spec projects.slugs endpoint.projects]', async () => {
  for (const slug of catalogSlugs) {
    const { commit, state } = projectDetail.parse(await (await server.request(`/api/projects/${slug}`)).json());
    assert.deepEqual([commit, state], [null, 'not_deployed']);
  }
});

test('an app that is not there is 404, with similar slugs [spec errors.404 endpoint.projects]', async () => {
  const response = await server.request('/api/projects/pdf-translator');
  assert.equal(response.status, 404);
  const problem = (await response.json()) as { type: string; detail: string; nearest: string[] };
  assert.equal(problem.type, `${baseUrl}/problems/unknown-project`);
  assert.equal(
    problem.detail,
    'There is no app "pdf-translator". Did you mean pdf-translate? GET /api/projects?state=all lists all apps.',
  );
  assert.deepEqual(problem.nearest, ['pdf-translate']);
  assert.equal((await server.request('/api/projects/__proto__')).status, 404);
});

for (const [query, field] of [
  ['?page=2', 'page'],
  ['?limit=0', 'limit'],
  ['?limit=201', 'limit'],
  ['?limit=many', 'limit'],
  ['?sort=cost', 'sort'],
  ['?category=fun', 'category'],
  ['?state=gone', 'state'],
  ['?cursor=x', 'cursor'],
  [`?q=${'a'.repeat(201)}`, 'q'],
] as const)
  test(`refused by name: ${query.slice(0, 20)}`, async () => {
    const response = await server.request(`/api/projects${query}`);
    assert.equal(response.status, 400);
    const { errors } = (await response.json()) as { errors: { in: string; field: string; fix: string }[] };
    assert.deepEqual(
      errors.map((error) => [error.in, error.field]),
      [['query', field]],
    );
    assert.ok((errors[0]?.fix ?? '') !== '');
  });
