// The plain form of a chart in a query and in a body.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { makeChartTool } from '../../../../../../api/tools/builtin/make-chart/make-chart.ts';
import { plainIn, plainSpec } from '../../../../../../api/tools/builtin/make-chart/plain-chart.ts';
import { ToolReader } from '../../../../../../api/tools/engine/reading.ts';
import { isProblem, servicesWith } from '../../../../../support/tools/call.ts';

const reader = new ToolReader(makeChartTool(servicesWith({})));
const rowsOf = (given: object): unknown => (plainSpec(given as never) as { data: { values: unknown } }).data.values;

test('lists in a query have commas, or are JSON', () => {
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

test('series are named by an object, or by a list', () => {
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

test('both at once, neither, and what would be lost are refused', () => {
  for (const [given, words] of [
    [{ values: [1], series: { a: [1] } }, /"series" cannot be combined with values/],
    [{ labels: ['a'] }, /"values" is missing/],
    [{ labels: ['a'], values: { a: 1 } }, /labels is sent too/],
    [{ type: 'line', values: [[1, 2]] }, /only scatter draws/],
    [{ values: [1], colour: 'red' }, /"colour" is not known|colour/],
  ] as const)
    assert.throws(() => plainSpec(given), isProblem('invalid-request', words), JSON.stringify(given));
});

test('a chart of Chart.js is the plain form, a specification is not', () => {
  assert.equal(plainIn({ mark: 'bar', type: 'x' }), undefined);
  assert.deepEqual(plainIn({ type: 'bar', data: { labels: ['a'], datasets: [{ label: 'p', data: [1] }] } }), {
    type: 'bar',
    labels: ['a'],
    series: [{ name: 'p', values: [1] }],
  });
});
