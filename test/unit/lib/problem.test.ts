import assert from 'node:assert/strict';
import { test } from 'vitest';
import { findMeantField, findNearestNames, createUnknownNameProblem } from '../../../lib/problem.ts';

const tools = ['render_diagram', 'make_chart', 'make_slides', 'echo'];

test('finds at most three similar names, by letters or by a part, nearest first', () => {
  assert.deepEqual(findNearestNames('render-diagam', tools), ['render_diagram']);
  assert.deepEqual(findNearestNames('MakeChart', tools), ['make_chart']);
  assert.deepEqual(findNearestNames('diagram', tools), ['render_diagram']);
  assert.deepEqual(findNearestNames('weather', tools), []);
  assert.deepEqual(findNearestNames('', tools), []);
});

test('finds the field that differs by a typo, for short names by one letter', () => {
  const fields = ['width', 'height', 'to', 'x_label'];
  assert.equal(findMeantField('widht', fields), 'width');
  assert.equal(findMeantField('xlabel', fields), 'x_label');
  assert.equal(findMeantField('ti', fields), 'to');
  assert.equal(findMeantField('ab', fields), undefined);
  assert.equal(findMeantField('colour', fields), undefined);
  assert.equal(findMeantField('é', ['s']), undefined);
  assert.equal(findMeantField('any', []), undefined);
});

test('the problem of an unknown name shows it shortened, similar names, and where to find all', () => {
  const type = { slug: 'unknown-thing', status: 404, title: 'Unknown', description: 'None.' };
  const all = 'GET /t lists all.';
  const near = createUnknownNameProblem(type, { says: 'There is no', name: 'ecko', names: tools, all });
  assert.equal(near.message, 'There is no "ecko". Did you mean echo? GET /t lists all.');
  assert.deepEqual(near.members['nearest'], ['echo']);
  const far = createUnknownNameProblem(type, { says: 'There is no', name: `${'x'.repeat(59)}😀`, names: tools, all });
  assert.equal(far.message, `There is no "${'x'.repeat(59)}\uFFFD". GET /t lists all.`);
});
