import assert from 'node:assert/strict';
import { test } from 'vitest';
import { meantField, nearestNames, unknownName } from '../../../lib/similar-names.ts';

const tools = ['render_diagram', 'make_chart', 'make_slides', 'echo'];

test('names are near by their letters or by a part, three at most, the nearest first', () => {
  assert.deepEqual(nearestNames('render-diagam', tools), ['render_diagram']);
  assert.deepEqual(nearestNames('MakeChart', tools), ['make_chart']);
  assert.deepEqual(nearestNames('diagram', tools), ['render_diagram']);
  assert.deepEqual(nearestNames('weather', tools), []);
  assert.deepEqual(nearestNames('', tools), []);
});

test('a field is meant where it is a slip away, and short ones by one letter alone', () => {
  const fields = ['width', 'height', 'to', 'x_label'];
  assert.equal(meantField('widht', fields), 'width');
  assert.equal(meantField('xlabel', fields), 'x_label');
  assert.equal(meantField('ti', fields), 'to');
  assert.equal(meantField('ab', fields), undefined);
  assert.equal(meantField('colour', fields), undefined);
  assert.equal(meantField('é', ['s']), undefined);
  assert.equal(meantField('any', []), undefined);
});

test('the problem of an unknown name shows it short, the similar ones, and where all are', () => {
  const type = { slug: 'unknown-thing', status: 404, title: 'Unknown', description: 'None.' };
  const all = 'GET /t lists all.';
  const near = unknownName(type, { says: 'There is no', name: 'ecko', names: tools, all });
  assert.equal(near.message, 'There is no "ecko". Did you mean echo? GET /t lists all.');
  assert.deepEqual(near.members['nearest'], ['echo']);
  const far = unknownName(type, { says: 'There is no', name: `${'x'.repeat(59)}😀`, names: tools, all });
  assert.equal(far.message, `There is no "${'x'.repeat(59)}\uFFFD". GET /t lists all.`);
});
