// The log and the messages of a pipeline hold nothing secret of what it was given.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { MaskedLines, maskMessage, pipelineMask } from '../../../../controller/pipeline/mask.ts';

const token = 'chat.0f8fad5b-d9cb-469f-a165-70867728950e.abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG';
const build = {
  env: [{ name: 'NPM_TOKEN', value: 'hunter2hunter2' }],
  args: [{ name: 'VERSION', value: '1.2.3-beta' }],
};
const mask = pipelineMask({ input: { build } as never, pushToken: token });

test('lines are masked, also when a secret comes in pieces', () => {
  const printed: string[] = [];
  const lines = new MaskedLines(mask, (text) => {
    printed.push(text);
  });
  for (const piece of ['push with ', token.slice(0, 30), token.slice(30), '\nnpm ERR hunter2', 'hunter2 1.2.3-beta\nü'])
    lines.write(Buffer.from(piece));
  assert.deepEqual(printed, ['push with [secret]\n', 'npm ERR [secret] 1.2.3-beta\n']);
  lines.end();
  assert.equal(printed.at(-1), 'ü');
});

test('a line that never ends is passed on, and fills no memory', () => {
  let printed = 0;
  const lines = new MaskedLines(mask, (text) => {
    printed += text.length;
  });
  for (let n = 0; n < 100; n += 1) lines.write(Buffer.alloc(10_000, 'a'));
  assert.ok(printed > 900_000);
});

test('findings, log and fault are masked; what identifies an image is not', () => {
  const finding = { rule: 'build/failed', severity: 'error', message: `401 for ${token}`, fix: 'Look.' } as const;
  const rejected = maskMessage({ rejected: true, findings: [finding], log: 'NPM_TOKEN=hunter2hunter2' }, mask);
  assert.doesNotMatch(JSON.stringify(rejected), /hunter2|abcdefghij/);
  assert.deepEqual(maskMessage({ fault: `no ${token}` }, mask), { fault: 'no [secret]' });
});
