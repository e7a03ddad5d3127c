// The ranking: values from benchmarks and callers, totals by the caller's own weights, and null where nothing is measured.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { parseMoney } from '../../../../../api/billing/ledger/money.ts';
import type { CatalogApp } from '../../../../../api/catalog/projects/records.ts';
import { Projects } from '../../../../../api/catalog/projects/projects.ts';
import { StarCounts } from '../../../../../api/catalog/projects/stars.ts';
import type { BenchmarkFigures, VisitFigures } from '../../../../../api/catalog/bench/bench.ts';
import {
  criteria,
  formulaList,
  formulas,
  type RankedApp,
  rankList,
  type RankList,
} from '../../../../../api/catalog/rank/criteria.ts';
import { createRankEndpoints } from '../../../../../api/catalog/rank/endpoints.ts';
import { Ranking } from '../../../../../api/catalog/rank/ranking.ts';
import { Retentions } from '../../../../../api/catalog/rank/retention.ts';
import { Stabilities } from '../../../../../api/catalog/rank/stability.ts';
import { listing } from '../../../../../crds/hosted-app.ts';
import { createApp } from '../../../../support/api/http-app.ts';
import { baseUrl, sampleApp, site } from '../../../../support/api/sample.ts';
import { createLiveStatus } from '../../../../support/discovery/sample.ts';
import { send } from '../../../../support/api/send.ts';

const known = (slug: string): CatalogApp => ({
  slug,
  listing: listing.parse({ title: slug.toUpperCase() }),
  titleZh: undefined,
  descriptionZh: undefined,
  source: `https://git.test/octo/${slug}`,
});
const figures = (passed: number, n: number, outages: number, usd?: string): BenchmarkFigures => ({
  quality: { passed, n, rate: n === 0 ? null : passed / n, interval: n === 0 ? null : [0.1, 0.9] },
  delivered: { passed, n: n + outages, rate: null, interval: null },
  cost: usd === undefined ? undefined : parseMoney(usd),
});

const live = new Map(
  ['a', 'b', 'c', 'd', 'e'].map((slug) => [
    slug,
    sampleApp(slug, known(slug).source, createLiveStatus(`https://${slug}.apps.test/`)),
  ]),
);
const retentions = new Retentions();
const stabilities = new Stabilities();
const projects = new Projects({
  baseUrl,
  apps: { apps: { get: (slug) => live.get(slug), listAll: () => [] }, site },
  // The last one is not deployed.
  catalog: ['a', 'b', 'c', 'd', 'e', 'f'].map(known),
  stars: new StarCounts(),
  readTelemetry: () => Promise.reject(new Error('not asked')),
  readBenchmark: () => Promise.resolve(undefined),
});
const benchmarks = new Map([
  ['a', figures(8, 10, 2, '0.8')],
  ['b', figures(9, 10, 0, '0.45')],
  ['c', figures(0, 10, 0, '0.1')],
  ['d', figures(5, 10, 0, '0')],
]);
const visits = new Map<string, VisitFigures>([
  ['a', { answered: { passed: 4, n: 5, rate: 0.8, interval: [0.38, 0.96] }, steps: 2, p50: 1_240, p95: 3_000 }],
  ['b', { answered: { passed: 0, n: 5, rate: 0, interval: [0, 0.43] }, steps: 3, p50: null, p95: null }],
]);
const ranking = new Ranking({
  baseUrl,
  projects,
  retentions,
  stabilities,
  readBenchmarks: () => Promise.resolve(benchmarks),
  readVisits: () => Promise.resolve(visits),
});
const app = createApp(createRankEndpoints(ranking, baseUrl));

async function rank(query = ''): Promise<RankList> {
  const response = await send(app, `/api/rank${query}`);
  assert.equal(response.status, 200, await response.clone().text());
  return rankList.strict().parse(await response.json());
}
async function appIn(slug: string, query = ''): Promise<RankedApp> {
  const found = (await rank(query)).apps.find((one) => one.slug === slug);
  assert.ok(found !== undefined);
  return found;
}

test('every live app has all five scores, each with its formula, and no total without weights [spec rank.scores endpoint.rank]', async () => {
  const { apps, weights, total, next } = await rank();
  assert.deepEqual([apps.map(({ slug }) => slug), weights, total, next], [['a', 'b', 'c', 'd', 'e'], null, 5, null]);
  for (const { score, score_reason, scores } of apps) {
    assert.deepEqual([score, score_reason], [null, 'No weights were sent.']);
    assert.deepEqual(Object.keys(scores), [...criteria]);
    for (const [criterion, one] of Object.entries(scores)) {
      assert.equal(one.formula, `${baseUrl}/api/rank/formulas#${criterion}`);
      assert.equal(one.value === null, one.reason !== null);
    }
  }
});

test('quality is the pass rate without outages, with its interval', async () => {
  const { quality } = (await appIn('a')).scores;
  assert.deepEqual([quality.value, quality.interval, quality.n, quality.reason], [0.8, [0.1, 0.9], 10, null]);
});

test('cost is relative to the cheapest success; where there is none, it is null', async () => {
  // a: 0.8 / 8 = 0.1 a success; b: 0.45 / 9 = 0.05.
  const costs = (await rank()).apps.map(({ scores }) => [scores.cost.value, scores.cost.reason]);
  assert.deepEqual(costs, [
    [0.5, null],
    [1, null],
    [null, 'No run of its benchmark passed.'],
    [null, 'The runs of its benchmark cost nothing.'],
    [null, 'No benchmark of this app has been run here.'],
  ]);
});

test('a cost that is not known yet is no low cost, and benchmarks that cannot be read are not called missing', async () => {
  const valuesOf = async (found: Promise<Map<string, BenchmarkFigures>>): Promise<unknown> => {
    const unvisited = (): Promise<never> => Promise.reject(new Error('no database'));
    const one = new Ranking({
      baseUrl,
      projects,
      retentions,
      stabilities,
      readBenchmarks: () => found,
      readVisits: unvisited,
    });
    const { items } = await one.getPage({ limit: 1 });
    assert.match(items[0]?.scores.onboarding.reason ?? '', /cannot be read right now/);
    const { quality, cost } = items[0]?.scores ?? assert.fail();
    return [quality.value, quality.reason, cost.value, cost.reason];
  };
  assert.deepEqual(await valuesOf(Promise.resolve(new Map([['a', figures(5, 10, 0)]]))), [
    0.5,
    null,
    null,
    'The cost of some runs of its benchmark is not known.',
  ]);
  const unread = 'Benchmarks cannot be read right now.';
  assert.deepEqual(await valuesOf(Promise.reject(new Error('no database'))), [null, unread, null, unread]);
});

test('onboarding is the share of first visits that got a useful answer, with requests and seconds beside it', async () => {
  const { onboarding } = (await appIn('a')).scores;
  assert.deepEqual([onboarding.value, onboarding.interval, onboarding.n], [0.8, [0.38, 0.96], 5]);
  assert.deepEqual(onboarding.detail, { requests: 2, seconds: { p50: 1.24, p95: 3 } });
  const inVain = (await appIn('b')).scores.onboarding;
  assert.deepEqual([inVain.value, inVain.detail], [0, { requests: 3, seconds: { p50: null, p95: null } }]);
});

test('what nothing records is null with a reason', async () => {
  const { onboarding, stability, retention } = (await appIn('c')).scores;
  assert.deepEqual([onboarding.value, stability.value, retention.value], [null, null, null]);
  assert.match(onboarding.reason ?? '', /^No first visit/);
  assert.match(stability.reason ?? '', /has not been read yet/);
  assert.match(retention.reason ?? '', /not been read yet/);
});

test('retention comes from the observations, and from new ones when they are made', async () => {
  const week = 168;
  retentions.set(
    new Map([
      [
        'a',
        [
          { time: 0, left: true, count: 1 },
          { time: week, left: false, count: 3 },
        ],
      ],
    ]),
  );
  const { retention } = (await appIn('a')).scores;
  assert.deepEqual([retention.value, retention.n], [0.75, 4]);
  const [low = 0, high = 0] = retention.interval ?? [];
  assert.ok(low < 0.75 && high > 0.75);
  retentions.set(new Map([['a', [{ time: week, left: false, count: 3 }]]]));
  assert.equal((await appIn('a')).scores.retention.value, 1);
  assert.match((await appIn('b')).scores.retention.reason ?? '', /^Nobody has called/);
});

test('stability is the share of requests without a server error, where there are enough of them', async () => {
  stabilities.set(
    new Map([
      ['a', { days: 3, answered: 200, failed: 10 }],
      ['b', { days: 2, answered: 2_000, failed: 0 }],
      ['c', { days: 30, answered: 99, failed: 0 }],
    ]),
  );
  const { stability } = (await appIn('a')).scores;
  assert.deepEqual([stability.value, stability.n, stability.reason], [0.95, 200, null]);
  const [low = 0, high = 0] = stability.interval ?? [];
  assert.ok(low > 0.9 && low < 0.95 && high > 0.95 && high < 0.98);
  for (const slug of ['b', 'c', 'd']) {
    const none = (await appIn(slug)).scores.stability;
    assert.equal(none.value, null);
    assert.match(none.reason ?? '', /^Fewer than 100 requests on 3 days/);
  }
});

test('the total is the mean by the weights that were sent, the highest first', async () => {
  const { apps, weights } = await rank('?weights=quality:3,cost:1');
  assert.deepEqual(weights, { quality: 3, cost: 1 });
  assert.deepEqual(
    apps.map(({ slug, score }) => [slug, score]),
    [
      ['b', 0.925],
      ['a', 0.725],
      ['c', null],
      ['d', null],
      ['e', null],
    ],
  );
  assert.equal(apps[2]?.score_reason, 'Not measured for this app: cost.');
});

test('a criterion that is not measured leaves no total: nothing is filled in; one of weight 0 does not matter', async () => {
  assert.equal((await appIn('b', '?weights=quality:1,stability:0.001')).score, null);
  assert.equal((await appIn('b', '?weights=quality:1,stability:0')).score, 0.9);
});

test('pages go on in the order of the total', async () => {
  const seen: string[] = [];
  let path: string | null = '/api/rank?weights=quality:1&limit=2';
  while (path !== null) {
    const response = await send(app, path);
    const { apps, next } = rankList.parse(await response.json());
    seen.push(...apps.map(({ slug }) => slug));
    assert.equal(response.headers.get('link'), next === null ? null : `<${next}>; rel="next"`);
    path = next === null ? null : next.slice(baseUrl.length);
  }
  assert.deepEqual(seen, ['b', 'a', 'd', 'c', 'e']);
});

test('a cursor of other weights is refused', async () => {
  const { next } = await rank('?weights=quality:1&limit=2');
  const cursor = new URL(next ?? '').searchParams.get('cursor') ?? '';
  assert.equal((await send(app, `/api/rank?weights=quality:2&cursor=${cursor}`)).status, 400);
});

for (const [weights, says] of [
  ['', /no criterion/],
  ['fun:1', /fun:1/],
  ['quality', /no criterion with a weight/],
  ['quality:-1', /no criterion with a weight/],
  ['quality:1e3', /no criterion with a weight/],
  ['quality:1,quality:2', /twice/],
  ['quality:0', /no weight above 0/],
] as const)
  test(`weights that are refused: ${weights}`, async () => {
    const response = await send(app, `/api/rank?weights=${weights}`);
    assert.equal(response.status, 400);
    const { errors } = (await response.json()) as { errors: { field: string; message: string }[] };
    assert.deepEqual(
      errors.map(({ field }) => field),
      ['weights'],
    );
    assert.match(errors.map(({ message }) => message).join(), says);
  });

test('the formulas are there as JSON and as text, one for each criterion and the total', async () => {
  const json = await send(app, '/api/rank/formulas');
  const { formulas: read } = formulaList.strict().parse(await json.json());
  assert.deepEqual(
    read.map(({ id }) => id),
    [...criteria, 'score'],
  );
  const text = await send(app, '/api/rank/formulas', { headers: { accept: 'text/plain' } });
  assert.equal(text.headers.get('content-type'), 'text/plain; charset=utf-8');
  const lines = await text.text();
  for (const { id, formula } of formulas) assert.ok(lines.includes(`(#${id})`) && lines.includes(formula), id);
});
