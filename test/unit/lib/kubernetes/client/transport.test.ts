// Lines of a stream: the same ones however the bytes are cut, and never a half one.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { splitLines } from '../../../../../lib/kubernetes/client/transport.ts';

async function* chunked(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  let at = 0;
  for (let index = 0; at < bytes.length; index += 1) {
    const size = sizes[index % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
    await Promise.resolve();
  }
}

async function collect(stream: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = [];
  for await (const line of stream) all.push(line);
  return all;
}

const lines = fc.array(
  fc.string({ unit: 'grapheme', minLength: 1 }).map((text) => `x${text.replaceAll(/[\r\n]/g, '')}x`),
  { maxLength: 8 },
);
const sizes = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 5 });

test('yields the same lines wherever the stream is cut', async () => {
  await fc.assert(
    fc.asyncProperty(lines, sizes, async (wanted, cuts) => {
      const bytes = Buffer.from(wanted.map((line) => `${line}\n`).join(''));
      assert.deepEqual(await collect(splitLines(chunked(bytes, cuts))), wanted);
    }),
  );
});

test('a line cut off by the end of the stream is an error, after the whole lines before it', async () => {
  await fc.assert(
    fc.asyncProperty(lines, sizes, async (wanted, cuts) => {
      const bytes = Buffer.from(`${wanted.map((line) => `${line}\n`).join('')}{"type":"AD`);
      const got: string[] = [];
      await assert.rejects(
        async () => {
          for await (const line of splitLines(chunked(bytes, cuts))) got.push(line);
        },
        { name: 'ApiError', reason: 'Truncated' },
      );
      assert.deepEqual(got, wanted);
    }),
  );
});

test('aborts a stream that never ends a line before it fills the memory', async () => {
  async function* endless(): AsyncGenerator<Buffer> {
    for (;;) {
      yield Buffer.alloc(1024 * 1024, 'x');
      await Promise.resolve();
    }
  }
  await assert.rejects(collect(splitLines(endless())), { reason: 'TooLong' });
});
