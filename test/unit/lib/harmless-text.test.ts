// Lines of hostile logs: whatever a build prints, what leaves is short lines without controls.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { toHarmlessText, readLogLines } from '../../../lib/harmless-text.ts';

async function* chunks(parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield await Promise.resolve(part);
}

async function lines(...parts: readonly (string | Uint8Array)[]): Promise<string[]> {
  const read: string[] = [];
  for await (const line of readLogLines(
    chunks(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part))),
  ))
    read.push(line);
  return read;
}

test('ends lines at LF, CRLF and CR, no matter where chunks are cut', async () => {
  assert.deepEqual(await lines('a\nb\r', '\nc', 'd\r50%\r100%\n\n', 'e'), ['a', 'b', 'cd', '50%', '100%', 'e']);
});

test('joins a character that was cut in two', async () => {
  const [first, second] = [Buffer.from('ü').subarray(0, 1), Buffer.from('ü').subarray(1)];
  assert.deepEqual(await lines(first, second, '\n'), ['ü']);
});

for (const [name, line, shown] of [
  ['colours', '\u001b[31mred\u001b[0m', 'red'],
  ['window title', '\u001b]0;owned\u0007text', 'text'],
  ['backspaces', 'safe\b\b\b\bevil', 'safeevil'],
  ['C1 controls', 'a\u009b31mb', 'ab'],
  ['direction of writing', 'a\u202egpj.exe', 'agpj.exe'],
  ['link', '\u001b]8;;https://evil.example\u001b\\click\u001b]8;;\u001b\\', 'click'],
  ['unfinished command', 'a\u001b]0;title', 'a'],
  ['character set', 'a\u001b(0b\u001bcc', 'abc'],
  ['tab stays', 'a\tb', 'a\tb'],
  ['event of its own', 'x\u2028event: end', 'xevent: end'],
] as const) {
  test(`harmless: ${name}`, () => {
    assert.equal(toHarmlessText(line), shown);
  });
}

for (const piece of [
  '\u001b]',
  '\u001b[',
  '\u001b[;',
  '\u009d',
  '\u009b1',
  '\u001b]a;',
  '\u001b(',
  '\u001b',
  '\u001b[1;',
]) {
  // Steps that grow with the square of the length would take this one hours.
  test(`a megabyte of ${JSON.stringify(piece)} is harmless in time`, { timeout: 60_000 }, () => {
    const shown = toHarmlessText(piece.repeat(1_000_000 / piece.length));
    for (const control of ['\u001b', '\u009b', '\u009d']) assert.ok(!shown.includes(control));
  });
}

test('truncates an endless line and reads the next one whole', async () => {
  const [long, next] = await lines(...new Array<string>(100).fill('x'.repeat(10_000)), '\nnext\n');
  assert.equal(long?.length, 4_000 + ' … (truncated)'.length);
  assert.equal(next, 'next');
});

test('reads any bytes in any chunks as the same bounded lines without controls', async () => {
  const bytes = fc.uint8Array({ maxLength: 300 });
  await fc.assert(
    fc.asyncProperty(bytes, fc.array(fc.nat(300), { maxLength: 5 }), async (content, cuts) => {
      const marks = [0, ...cuts.map((cut) => Math.min(cut, content.length)).sort((a, b) => a - b), content.length];
      const parts = marks.slice(1).map((mark, index) => content.subarray(marks[index], mark));
      const read = await lines(...parts);
      assert.deepEqual(read, await lines(content));
      // oxlint-disable-next-line no-control-regex -- controls are what this is about
      for (const line of read) assert.doesNotMatch(line, /[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/);
    }),
  );
});
