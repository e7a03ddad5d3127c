// Faults in specifications are named where they stand, with what was meant; sound ones pass.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { SchemaCheck } from '../../../../../../api/tools/builtin/make-chart/schema-check.ts';
import { chartsOf } from '../../../../../corpus/charts/judge.ts';

const check = new SchemaCheck('vega-lite/vega-lite-schema.json', ['values', 'datasets', 'usermeta']);
const x = { field: 'a', type: 'quantitative' };
const bar = { data: { values: [{ a: 1 }] }, mark: 'bar', encoding: { x } };

test('finds no fault in the examples of the documentation', () => {
  for (const { name, input } of chartsOf('gallery')) assert.equal(check.findFault(input['spec']), undefined, name);
});

test.each<[object, RegExp]>([
  [{ ...bar, mark: 'barr' }, /^spec\.mark is "barr"\. Did you mean "bar"\?/],
  [{ ...bar, mark: { type: 'lines' } }, /^spec\.mark\.type is "lines"\. Did you mean "line"\?/],
  [
    { ...bar, encoding: { x: { feild: 'a' } } },
    /^spec\.encoding\.x has an unknown property "feild"\. Did you mean "field"\?/,
  ],
  [{ ...bar, encoding: { x: { ...x, aggregate: 'avg' } } }, /^spec\.encoding\.x\.aggregate is "avg".*average/],
  [{ ...bar, transform: [{ filtre: 'datum.a > 1' }] }, /^spec\.transform\[0\].*"filtre"\. Did you mean "filter"\?/],
  [{ ...bar, width: '600' }, /^spec\.width is "600"; expected: a number, container/],
  [{ ...bar, config: { axis: { lableFont: 'x' } } }, /^spec\.config\.axis.*Did you mean "labelFont"\?/],
  [{ data: bar.data }, /^spec has no mark/],
  [
    { data: bar.data, layer: [{ mark: 'bar', encoding: { x: { ...x, scale: { zeroo: true } } } }] },
    /^spec\.layer\[0\]\.encoding\.x\.scale.*"zero"/,
  ],
])('%j', (spec, words) => {
  assert.match(check.findFault(spec) ?? '', words);
});
