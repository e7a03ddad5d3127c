// Tasks as data: what manifests/bench holds is valid, seeded instances are fresh and the same everywhere, templates name what there is.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import {
  toCanonicalJson,
  render,
  renderText,
  readPointer,
} from '../../../../../../api/catalog/bench/tasks/template.ts';
import {
  generatorNames,
  generators,
  formatInWords,
  createRandom,
} from '../../../../../../api/catalog/bench/tasks/generators.ts';
import { benchFolder, createInstance, loadBenchmarks } from '../../../../../../api/catalog/bench/tasks/task.ts';

const seeds = { seed: 'one', heldBack: 'two' };

test('the benchmarks of manifests/bench are valid, and each has at least five tasks with a birthday', () => {
  const benchmarks = loadBenchmarks();
  assert.ok(benchmarks.some(({ app }) => app === 'chat-ui-4'));
  for (const { app, tasks } of benchmarks) {
    assert.ok(tasks.length >= 5, app);
    for (const { born, title_zh } of tasks)
      assert.ok(!Number.isNaN(Date.parse(born)) && /\p{Script=Han}/u.test(title_zh));
  }
});

test('an instance is the same for the same seed, and another one for each run and each seed', () => {
  for (const task of loadBenchmarks().flatMap(({ tasks }) => tasks)) {
    const first = createInstance(task, 1, seeds);
    assert.deepEqual(createInstance(task, 1, seeds), first);
    const others = [
      createInstance(task, 2, seeds),
      createInstance(task, 3, seeds),
      createInstance(task, 1, { ...seeds, seed: 'three' }),
    ];
    for (const { hash, prompt } of others) assert.ok(hash !== first.hash && prompt !== first.prompt);
    // Even runs come from the seed that is held back.
    assert.equal(createInstance(task, 2, { ...seeds, seed: 'three' }).hash, others[0]?.hash);
    assert.doesNotMatch(first.prompt, /\{\{/);
  }
});

test('generators give what they promise, for many seeds', () => {
  for (const name of generatorNames) {
    const all = Array.from({ length: 200 }, (_none, i) => toCanonicalJson(generators[name](createRandom(`seed ${i}`))));
    assert.ok(new Set(all).size >= 198, `${name} repeats itself`);
  }
  for (let i = 0; i < 200; i += 1) {
    const story = generators['arithmetic-story'](createRandom(`story ${i}`));
    const [boxes = 0, each = 0, broken = 0, share = 1, price = 0] = [...String(story['story']).matchAll(/\d+/g)].map(
      Number,
    );
    assert.equal(story['answer'], Math.floor((boxes * each - broken) / share) * price);
  }
});

test('numbers are written in words', () => {
  assert.equal(formatInWords(421_007), 'four hundred twenty-one thousand seven');
  assert.equal(formatInWords(10_000), 'ten thousand');
  assert.equal(formatInWords(999_999), 'nine hundred ninety-nine thousand nine hundred ninety-nine');
  assert.equal(formatInWords(40), 'forty');
});

test('templates keep the type of a value that stands alone, and name what is missing', () => {
  const values = { n: 3, list: [1, { a: 'b' }], text: 'say "hi"' };
  assert.deepEqual(render({ a: '{{n}}', b: ['{{list}}', 'n is {{n}}: {{list}}'] }, values), {
    a: 3,
    b: [[1, { a: 'b' }], 'n is 3: [1,{"a":"b"}]'],
  });
  assert.equal(renderText('{{ text }}', values), 'say "hi"');
  assert.throws(() => renderText('{{other}}', values), /names \{\{other\}\}; there are: list, n, text/);
});

test('pointers find values, also inside of a text that is JSON', () => {
  const document = { data: ['x', '["q","a"]'], 'a/b': { '~': 1 } };
  assert.equal(readPointer(document, '/data/1#/1'), 'a');
  assert.equal(readPointer(document, '/a~1b/~0'), 1);
  assert.equal(readPointer(document, ''), document);
  assert.equal(readPointer(document, '/data/7/x'), undefined);
  assert.equal(readPointer(document, '/data/0#/0'), undefined);
  assert.equal(readPointer(document, '/data/constructor'), undefined);
});

test('a file with a mistake is refused with its name and field', () => {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-tasks-'));
  try {
    cpSync(benchFolder, folder, { recursive: true });
    const task = join(folder, 'chat-ui-4', 'own.yaml');
    const text = (fields: string): string =>
      `slug: own\ntitle: Own\ntitle_zh: 自己\nborn: 2026-11-22\ngenerator: number-words\n${fields}`;
    const refuses = (fields: string, why: RegExp): void => {
      writeFileSync(task, text(fields));
      assert.throws(() => loadBenchmarks(folder), why);
    };
    refuses(
      'prompt: "{{nothing}}"\ngrader: {kind: contains, values: [a]}',
      /own\.yaml is not valid: .*\{\{nothing\}\}/,
    );
    refuses('prompt: "{{number}}"\ngrader: {kind: guess}', /own\.yaml is not valid:\n {2}grader/);
    refuses('prompt: "{{number}}"\ngrader: {kind: contains, values: [a]}\nextra: 1', /own\.yaml is not valid/);
    refuses(
      'prompt: "{{number}}"\ngrader: {kind: contains, values: [a]}\nsteps: [{method: GET, path: /}]',
      /no step captures "answer"/,
    );
    writeFileSync(task, text('prompt: "{{number}}"\ngrader: {kind: contains, values: ["{{words}}"]}'));
    assert.equal(loadBenchmarks(folder).find(({ app }) => app === 'chat-ui-4')?.tasks.length, 6);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
