// The manifest of requirements and the tests agree: each is shown by a test, and no test cites another.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { listCitations, listCitedIds } from '../support/citations.ts';
import { requirements } from '../requirements.ts';

const cited = listCitations();
const cite = (ids: string): string => `[spec ${ids}]`;

test('ids are unique and stand for a section', () => {
  const ids = requirements.map(({ id }) => id);
  assert.deepEqual(
    ids.filter((id, index) => ids.indexOf(id) !== index),
    [],
  );
  for (const { id, section } of requirements) assert.match(`${id} ${section}`, /^[a-z]+\.[a-z0-9-]+ [1-9](\.\d+)?$/);
});

test('every requirement is cited by a test', () => {
  const known = new Set(cited.map(({ id }) => id));
  assert.deepEqual(
    requirements.filter(({ id }) => !known.has(id)).map(({ id }) => id),
    [],
  );
});

test('no test cites what is not a requirement', () => {
  const known = new Set(requirements.map(({ id }) => id));
  assert.deepEqual(
    cited.filter(({ id }) => !known.has(id)),
    [],
  );
});

test('citations are read from titles and names of cases, not from comments', () => {
  const [one, two] = [
    `test('asks ${cite('ask.prompt ask.model')}', () => {});`,
    `bad('6 models ${cite('auth.key')}', x);`,
  ];
  assert.deepEqual(listCitedIds([one, two, `// ${cite('not.this')}`, ` * 'nor ${cite('this')}'`].join('\n')), [
    'ask.prompt',
    'ask.model',
    'auth.key',
  ]);
});
