// Fields are known from the data and from transforms, wherever a specification names them.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { findFieldFault } from '../../../../../../api/tools/builtin/make-chart/fields.ts';
import { chartsOf } from '../../../../../corpus/charts/judge.ts';

const values = [
  { k: 'a', n: 1, o: { p: 3 } },
  { k: 'b', n: 2, o: { p: 4 } },
];
const quantitative = (field: string): object => ({ field, type: 'quantitative' });
const faultOf = (spec: object): string | undefined => findFieldFault({ data: { values }, mark: 'bar', ...spec }, []);

test('finds no missing field in the examples of the documentation', () => {
  for (const { name, input } of chartsOf('gallery'))
    assert.equal(findFieldFault(input['spec'] as never, []), undefined, name);
});

test.each<[string, object]>([
  ['a path', { encoding: { x: quantitative('o.p') } }],
  ['a count', { encoding: { y: { aggregate: 'count' } } }],
  ['a fold', { transform: [{ fold: ['n'] }], encoding: { x: { field: 'key' }, y: quantitative('value') } }],
  ['a window', { transform: [{ window: [{ op: 'rank', as: 'r' }] }], encoding: { y: quantitative('r') } }],
  ['a pivot', { transform: [{ pivot: 'k', value: 'n' }], encoding: { y: quantitative('a') } }],
  ['a question', { transform: [{ filter: 'isValid(datum.z)' }], encoding: { y: quantitative('n') } }],
  ['a repeat', { repeat: ['n'], spec: { mark: 'bar', encoding: { x: quantitative({ repeat: 'repeat' } as never) } } }],
  ['text as CSV', { data: { values: 'q,r\n1,2', format: { type: 'csv' } }, encoding: { x: quantitative('r') } }],
])('accepts a field that exists: %s', (_, spec) => {
  assert.equal(faultOf(spec), undefined);
});

test.each<[string, object, RegExp]>([
  ['a channel', { encoding: { color: { field: 'kk' } } }, /encoding\.color names the field "kk".*Did you mean "k"\?/],
  [
    'a list of channels',
    { encoding: { tooltip: [{ field: 'k' }, { field: 'z' }] } },
    /tooltip\[1\] names the field "z"/,
  ],
  ['a path', { encoding: { x: quantitative('o.q') } }, /"o\.q", which the data has not/],
  ['a sort', { encoding: { x: { field: 'k', sort: { field: 'z', op: 'sum' } } } }, /"z"/],
  [
    'a condition',
    { encoding: { color: { condition: { test: 'true', field: 'z' }, value: 'red' } } },
    /condition names the field "z"/,
  ],
  [
    'an expression',
    { transform: [{ calculate: 'datum.n + datum["z"]', as: 's' }] },
    /transform\[0\] names the field "z"/,
  ],
  ['a transform', { transform: [{ aggregate: [{ op: 'sum', field: 'z', as: 's' }] }] }, /"z"/],
  [
    'a repeat',
    { repeat: ['z'], spec: { mark: 'bar', encoding: { x: quantitative({ repeat: 'repeat' } as never) } } },
    /"z"/,
  ],
  ['a facet', { facet: { field: 'z' }, spec: { mark: 'bar' } }, /facet\.facet names the field "z"/],
])('reports a field that does not exist: %s', (_, spec, words) => {
  assert.match(faultOf(spec) ?? '', words);
});
