// The manifest of requirements and the tests agree: each is shown by a test, or is not built yet and indeed not there.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { sampleServer } from '../support/api/sample.ts';
import { citations, citedIn } from '../support/citations.ts';
import { requirements } from '../requirements.ts';
import { send } from '../support/api/send.ts';

const cited = citations();
const cite = (ids: string): string => `[spec ${ids}]`;

test('ids are unique and stand for a section', () => {
  const ids = requirements.map(({ id }) => id);
  assert.deepEqual(
    ids.filter((id, index) => ids.indexOf(id) !== index),
    [],
  );
  for (const { id, section } of requirements) assert.match(`${id} ${section}`, /^[a-z]+\.[a-z0-9-]+ [1-9](\.\d+)?$/);
});

test('every requirement that is built is cited by a test', () => {
  const known = new Set(cited.map(({ id }) => id));
  assert.deepEqual(
    requirements.filter(({ id, planned }) => planned === undefined && !known.has(id)).map(({ id }) => id),
    [],
  );
});

test('no test cites what is not a requirement, or is said to be not built', () => {
  const built = new Set(requirements.filter(({ planned }) => planned === undefined).map(({ id }) => id));
  assert.deepEqual(
    cited.filter(({ id }) => !built.has(id)),
    [],
  );
});

test('what is said to be not built is not answered, and nothing defines it', async () => {
  const sources = globSync('api/**/*.ts', { cwd: join(import.meta.dirname, '../..') }).map((file) =>
    readFileSync(join(import.meta.dirname, '../..', file), 'utf8'),
  );
  const { app } = sampleServer();
  for (const absent of new Set(requirements.flatMap(({ planned }) => planned?.absent ?? []))) {
    assert.equal((await send(app, absent)).status, 404, absent);
    assert.equal(
      sources.some((text) => text.split('\n').some((line) => line.trim().startsWith(`path: '${absent}'`))),
      false,
      `${absent} is defined: take "planned" off its requirements, and cite them in tests`,
    );
  }
});

test('citations are read from titles and names of cases, not from comments', () => {
  const [one, two] = [
    `test('asks ${cite('ask.prompt ask.model')}', () => {});`,
    `bad('6 models ${cite('auth.key')}', x);`,
  ];
  assert.deepEqual(citedIn([one, two, `// ${cite('not.this')}`, ` * 'nor ${cite('this')}'`].join('\n')), [
    'ask.prompt',
    'ask.model',
    'auth.key',
  ]);
});
