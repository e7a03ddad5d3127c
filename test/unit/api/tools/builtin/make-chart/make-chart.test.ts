// The plain form of a chart in a query and in a body.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  createMakeChartTool,
  readPlainForm,
  toVegaLite,
} from '../../../../../../api/tools/builtin/make-chart/make-chart.ts';
import { ToolReader } from '../../../../../../api/tools/engine/reading.ts';
import { isProblem, createServices } from '../../../../../support/tools/call.ts';

const reader = new ToolReader(createMakeChartTool(createServices({})));
const rowsOf = (given: object): unknown => (toVegaLite(given as never) as { data: { values: unknown } }).data.values;

test('accepts lists in a query as comma-separated text or JSON', () => {
  const { input } = reader.read('query', { kind: 'Column', labels: 'a, b', values: '[1,2]', ylabel: 'y' });
  assert.deepEqual(
    [input['type'], input['labels'], input['values'], input['y_label']],
    ['bar', ['a', 'b'], [1, 2], 'y'],
  );
  assert.deepEqual(rowsOf({ labels: ['a', 'b'], values: ['1', '2.5'] }), [
    { label: 'a', value: 1, series: '' },
    { label: 'b', value: 2.5, series: '' },
  ]);
});

test('names series by an object or by a list', () => {
  const labels = ['a'];
  const rows = [
    { label: 'a', value: 1, series: 'p' },
    { label: 'a', value: null, series: 'q' },
  ];
  assert.deepEqual(rowsOf({ labels, series: { p: [1], q: [null] } }), rows);
  assert.deepEqual(
    rowsOf({
      labels,
      series: [
        { name: 'p', values: [1] },
        { label: 'q', data: [null] },
      ],
    }),
    rows,
  );
  assert.deepEqual(rowsOf({ values: { a: 1 } }), [{ label: 'a', value: 1, series: '' }]);
});

test('rejects values together with series, neither of them, and input that would lose data', () => {
  for (const [given, words] of [
    [{ values: [1], series: { a: [1] } }, /"series" cannot be combined with values/],
    [{ labels: ['a'] }, /"values" is missing/],
    [{ labels: ['a'], values: { a: 1 } }, /labels is sent too/],
    [{ type: 'line', values: [[1, 2]] }, /only scatter draws/],
    [{ values: [1], colour: 'red' }, /"colour" is not known|colour/],
  ] as const)
    assert.throws(() => toVegaLite(given), isProblem('invalid-request', words), JSON.stringify(given));
});

test('detects a Chart.js chart as the plain form, but not a specification', () => {
  assert.equal(readPlainForm({ mark: 'bar', type: 'x' }), undefined);
  assert.deepEqual(readPlainForm({ type: 'bar', data: { labels: ['a'], datasets: [{ label: 'p', data: [1] }] } }), {
    type: 'bar',
    labels: ['a'],
    series: [{ name: 'p', values: [1] }],
  });
});
