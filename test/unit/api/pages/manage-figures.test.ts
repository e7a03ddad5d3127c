// The figures on the author's page: a bar for each value, grey where nothing was measured, and the same values as a table.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { z } from 'zod';
import type { figuresView } from '../../../../api/apps/author/figures.ts';
import { readFigureRange, renderFigures } from '../../../../api/pages/manage-figures.ts';
import { createVisit, type Visit } from '../../../../api/pages/visit.ts';
import { baseUrl } from '../../../support/api/sample.ts';

type Figures = z.output<typeof figuresView>;
type Bucket = Figures['buckets'][number];

const open = (lang = 'en'): Visit =>
  createVisit(
    { baseUrl, isServed: () => true },
    { path: '/apps/mine/manage', query: { lang, range: '7d' }, headers: new Headers() },
  );
const from = Date.parse('2026-11-26T10:00:00Z');
const measures = {
  ...{ requests: 1_200, errors_4xx: 0, errors_5xx: 7, latency_ms: 85.5, cpu_cores: 0.0123, memory_mib: 64.5 },
  ...{ model_cost_usd: '0.000000000001', model_costs_pending: 0 },
};
const buckets = Array.from({ length: 24 }, (_none, index): Bucket => ({
  start: new Date(from + index * 3_600_000).toISOString(),
  end: new Date(from + (index + 1) * 3_600_000).toISOString(),
  ...measures,
}));
const figures: Figures = {
  ...{ slug: 'mine', range: '24h', bucket: 'hour', buckets, unmeasured: {} },
  ...{ since: '2026-11-26T10:00:00.000Z', until: '2026-11-27T10:00:00.000Z' },
  earnings: [
    { day: '2026-11-26', earnings_usd: '-0.25' },
    { day: '2026-11-27', earnings_usd: null },
  ],
  total: { ...measures, earnings_usd: '-0.25' },
};

const render = (changes: Partial<Figures> = {}, visit = open()): string =>
  renderFigures({ slug: 'mine', figures: { ...figures, ...changes } }, visit).toString();
/** Path of one class in the plot of a measure, split into its boxes. */
function listBoxes(page: string, measure: string, kind: 'bar' | 'gap'): string[] {
  const [, plot = ''] = page.split(`id="figure-${measure}-about"`);
  const [, path = ''] = new RegExp(`class="${kind}" d="([^"]*)"`).exec(plot) ?? assert.fail(`no ${kind} in ${measure}`);
  return path.split('Z').filter((box) => box !== '');
}

test.each(['en', 'zh'])('each plot has a title, a description and bars, in %s', (language) => {
  const page = render({}, open(language));
  const plots = [...page.matchAll(/role="img"\s+aria-labelledby="(\S+) (\S+)"/g)];
  assert.equal(plots.length, 8);
  for (const [, title = '', about = ''] of plots) {
    assert.match(page, new RegExp(`<title id="${title}">[^<]+</title>`));
    assert.match(page, new RegExp(`<desc id="${about}">[^<]+</desc>`));
  }
  const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
  assert.deepEqual(ids, [...new Set(ids)]);
  assert.doesNotMatch(page, /style=|<script|NaN|Infinity|undefined/);
  assert.deepEqual([listBoxes(page, 'requests', 'bar').length, listBoxes(page, 'requests', 'gap').length], [24, 0]);
});

test('a time without a measurement is grey, and 0 is no bar', () => {
  const page = render({
    buckets: buckets.map((bucket, index) => ({
      ...bucket,
      ...(index < 4 ? { requests: null, latency_ms: null } : { latency_ms: index < 10 ? null : 5 }),
      cpu_cores: index < 8 ? 0 : 0.5,
    })),
  });
  const count = (measure: string): number[] =>
    (['bar', 'gap'] as const).map((kind) => listBoxes(page, measure, kind).length);
  assert.deepEqual(count('requests'), [20, 4]);
  // Without requests there is no latency, which is no gap.
  assert.deepEqual(count('latency-ms'), [14, 4]);
  assert.deepEqual(count('cpu-cores'), [16, 0]);
  assert.deepEqual(count('earnings-usd'), [0, 1]);
});

test('a young app has its bars at the right end, and before them nothing was measured', () => {
  const page = render({ buckets: buckets.slice(-3), range: '7d' });
  assert.deepEqual([listBoxes(page, 'requests', 'bar').length, listBoxes(page, 'requests', 'gap').length], [3, 165]);
  const [last = ''] = listBoxes(page, 'requests', 'bar').slice(-1);
  assert.match(last, /H348V/, 'ends at the frame');
  const [, plot = ''] = page.split('id="figure-requests-about"');
  const labels = [...(plot.split('</svg>')[0] ?? '').matchAll(/text-anchor="middle"\s*>([^<]+)</g)];
  assert.deepEqual(
    labels.map(([, label]) => label),
    ['11-21', '11-23', '11-25', '11-27'],
    'the axis has the days before it too',
  );
  assert.match(render({ buckets: [] }), /first full hour after the app was created/);
});

test('ticks of counts are whole, and those of small amounts fit next to the plot', () => {
  const listTicks = (page: string, measure: string): string[] => {
    const [, plot = ''] = page.split(`id="figure-${measure}-about"`);
    const [svg = ''] = plot.split('</svg>');
    return [...svg.matchAll(/text-anchor="end"\s*>([^<]+)</g)].map(([, tick = '']) => tick);
  };
  const page = render({
    buckets: buckets.map((bucket) => ({ ...bucket, requests: 7, model_cost_usd: '0.0000012' })),
  });
  assert.deepEqual(listTicks(page, 'requests'), ['0', '3', '6', '9']);
  assert.deepEqual(listTicks(page, 'model-cost-usd'), ['0', '$0.00005', '$0.0001']);
  const free = render({ buckets: buckets.map((bucket) => ({ ...bucket, model_cost_usd: '0' })) });
  assert.deepEqual(listTicks(free, 'model-cost-usd'), ['0', '$0.005', '$0.01']);
});

test('the plot of model costs says how many are not known yet', () => {
  const page = render({ total: { ...figures.total, model_costs_pending: 3 } });
  assert.match(page, /Model cost <span class="total">\$0\.000000000001 <small>and 3 not known yet<\/small>/);
});

test('the table has every value, and money with every digit', () => {
  const [first = assert.fail(), ...rest] = buckets;
  const page = render({ buckets: [{ ...first, model_costs_pending: 2 }, ...rest] });
  const [, table = ''] = page.split('<details>');
  assert.equal([...table.matchAll(/<th scope="row">/g)].length, 26);
  for (const text of ['1,200', '86 ms', '0.012', '64.5', '$0.000000000001', 'and 2 not known yet', '-$0.25'])
    assert.ok(table.includes(text), text);
  assert.match(table, /not measured/);
});

test('what is missing altogether says why, in the language of the page', () => {
  const missing = { requests: null, errors_4xx: null, errors_5xx: null, latency_ms: null };
  const changes = {
    buckets: buckets.map((bucket) => ({ ...bucket, ...missing })),
    unmeasured: { requests: 'No gateway has sent its access log yet.' },
  };
  const page = render(changes);
  assert.equal(page.split('No gateway has sent its access log yet.').length - 1, 4);
  assert.equal([...page.matchAll(/<svg/g)].length, 4);
  assert.match(render({ earnings: [] }), /Earnings begin with the first full day/);
  assert.equal(render(changes, open('zh')).split('尚无网关发送过访问日志。').length - 1, 4);
});

test('links choose the range and keep the language, and the language keeps the range', () => {
  const visit = open('zh');
  const page = render({}, visit);
  assert.match(page, /href="\/apps\/mine\/manage\?range=24h&amp;lang=zh#figures" aria-current="true"/);
  assert.match(page, /class="button quiet" href="\/apps\/mine\/manage\?range=30d&amp;lang=zh#figures"/);
  assert.equal(visit.toLanguageLink('en'), '/apps/mine/manage?range=7d&lang=en');
  assert.deepEqual(['7d', '1y', undefined].map(readFigureRange), ['7d', '24h', '24h']);
});
