// make_chart draws specifications with their own data, and nothing from elsewhere.
import assert from 'node:assert/strict';
import { afterAll, test } from 'vitest';
import { createMakeChartTool } from '../../../api/tools/builtin/make-chart/make-chart.ts';
import { createWorkers } from '../../../api/tools/engine/workers/pool.ts';
import { call, isProblem, createServices, shortenTasks, patience } from '../../support/tools/call.ts';
import { countColours } from '../../support/tools/colours.ts';

const workers = createWorkers(patience);
afterAll(() => workers.close());
const tool = createMakeChartTool(createServices({ workers }));
const example = tool.example.spec as Record<string, unknown>;
const chart = async (
  spec: unknown,
  more: Record<string, unknown> = {},
): Promise<{ result: Record<string, unknown>; svg: string }> => {
  const { result, artifact } = await call(tool, { spec, format: 'svg', ...more });
  return { result, svg: new TextDecoder().decode(artifact?.bytes) };
};
const point = (url: string): unknown => ({
  data: { values: [{ a: 1, u: url }] },
  mark: 'point',
  encoding: { x: { field: 'a', type: 'quantitative' }, href: { field: 'u' } },
});

test('draws a Vega-Lite specification as PNG and SVG', async () => {
  const { result, artifact } = await call(tool, tool.example);
  assert.deepEqual(
    [result.format, result.language, result.warnings, artifact?.mediaType, artifact?.fileName],
    ['png', 'vega-lite', [], 'image/png', 'chart.png'],
  );
  assert.ok((await countColours(artifact?.bytes)) > 2);
  const { svg } = await chart(example);
  for (const text of ['Feb', 'sales', 'month']) assert.ok(svg.includes(`>${text}</text>`), text);
});

test('draws a Vega specification', async () => {
  const { result, svg } = await chart({
    $schema: 'https://vega.github.io/schema/vega/v6.json',
    width: 50,
    height: 40,
    data: [{ name: 't', values: [{ x: 1 }] }],
    marks: [
      {
        type: 'rect',
        from: { data: 't' },
        encode: {
          enter: { x: { field: 'x' }, width: { value: 20 }, height: { signal: '3 * 4' }, fill: { value: 'red' } },
        },
      },
    ],
  });
  assert.equal(result.language, 'vega');
  assert.match(svg, /fill="red"/);
});

test(
  'attack: evaluates patterns in expressions in bounded time, or rejects them by name',
  { timeout: 30_000 },
  async () => {
    const text = `${'a'.repeat(5_000)}!`;
    const drawn = (transform: unknown): ReturnType<typeof chart> =>
      chart({ ...example, data: { values: [{ month: text, sales: 1 }] }, transform: [transform] });
    const since = performance.now();
    for (const calculate of [
      'test(/^(a+)+$/, datum.month)',
      "test(regexp('^(a+)+$'), datum.month)",
      "replace(datum.month, regexp('^(a+)+$'), 'x')",
    ])
      assert.deepEqual((await drawn({ calculate, as: 'found' })).result.warnings, [], calculate);
    assert.ok(performance.now() - since < 9_000);
    for (const filter of ['test(/(?=a)b/, datum.month)', "test(regexp('(?=a)b'), datum.month)"])
      await assert.rejects(drawn({ filter }), isProblem('unprocessable', /uses a look-ahead/), filter);
  },
);

test('loads no external data, images or maps', async () => {
  for (const url of [
    'http://127.0.0.1:1/x.csv',
    'https://example.org/x.json',
    'file:///etc/passwd',
    '/etc/passwd',
    'package.json',
    '//127.0.0.1/x',
    'data:text/csv,a,1',
  ]) {
    await assert.rejects(
      chart({ ...example, data: { url } }),
      isProblem('unprocessable', /is not loaded\. Put the data into data.values/),
      url,
    );
    await assert.rejects(
      chart({
        data: { values: [{ u: url }] },
        mark: { type: 'image', width: 10, height: 10 },
        encoding: { url: { field: 'u' } },
      }),
      isProblem('unprocessable', /is not loaded/),
      url,
    );
  }
  assert.match((await chart(point('https://good.test/'))).svg, /href="https:\/\/good.test\/"/);
  await assert.rejects(chart(point('javascript:alert(1)')), isProblem('unprocessable', /is not loaded/));
});

test('explains what is wrong with a specification', async () => {
  for (const spec of [
    { mark: 'nosuch', data: { values: [] } },
    {},
    { ...example, transform: [{ calculate: 'datum.a +', as: 'b' }] },
  ])
    await assert.rejects(
      chart(spec),
      isProblem('unprocessable', /^The chart in spec cannot be drawn: ./),
      JSON.stringify(spec),
    );
  await assert.rejects(chart([]), /must be a Vega-Lite specification/);
  await assert.rejects(chart({ ...example, width: 1e6 }), isProblem('unprocessable', /maximum is 8000 per side/));
});

test('keeps expressions inside the sandbox', async () => {
  for (const calculate of [
    'constructor.constructor("return process")()',
    'datum.constructor.constructor("return process.pid")()',
    'this.process',
    'process.env',
    '[].map.constructor("return 1")()',
    'toString.constructor("return process")()',
  ]) {
    const outcome = await chart({ ...example, transform: [{ calculate, as: 'month' }] }).then(
      ({ svg }) => svg,
      (error: unknown) => {
        assert.ok(isProblem('unprocessable', /./)(error));
        return '';
      },
    );
    assert.doesNotMatch(outcome, new RegExp(`PATH|\\[object process\\]|>${process.pid}<`));
  }
});

test('stops endless growth, and draws the next chart', async () => {
  const impatient = createMakeChartTool(
    createServices({ workers: shortenTasks(workers, { fromMs: 10_000, toMs: 2_000 }) }),
  );
  const bombs = [
    {
      data: { sequence: { start: 0, stop: 1e10, as: 'x' } },
      mark: 'point',
      encoding: { x: { field: 'x', type: 'quantitative' } },
    },
    {
      data: { values: [{ a: 1 }] },
      transform: [{ calculate: 'sequence(1e9)', as: 'x' }, { flatten: ['x'] }],
      mark: 'point',
      encoding: { x: { field: 'x', type: 'quantitative' } },
    },
  ];
  for (const spec of bombs)
    await assert.rejects(
      call(impatient, { spec, format: 'svg' }),
      isProblem('tool-limit', /longer than 2 s|256 MB of memory/),
      JSON.stringify(spec).slice(0, 100),
    );
  assert.match((await chart(example)).svg, /<svg/);
});
