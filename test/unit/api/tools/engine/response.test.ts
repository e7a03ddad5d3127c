// Where there is no envelope, what a tool left out stands in a header: a JSON list in ASCII, of a length that proxies take.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { formatWarningsHeader, readWarnings } from '../../../../../api/tools/engine/response.ts';

const listIn = (headers: Record<string, string>): unknown => JSON.parse(headers['x-warnings'] ?? 'null');

test('sends no header without warnings', () => {
  for (const result of [undefined, {}, { warnings: [] }, { warnings: 'x' }, { warnings: [1] }])
    assert.deepEqual(formatWarningsHeader(readWarnings(result)), {});
});

test('formats a list that every client can parse, whatever the text', () => {
  const warnings = ['What a click on 甲 does is left out', 'line\nbreak "quoted" 🚀'];
  const headers = formatWarningsHeader(warnings);
  assert.match(headers['x-warnings'] ?? '', /^[ -~]+$/);
  assert.deepEqual(listIn(headers), warnings);
});

test('counts the warnings that do not fit', () => {
  const headers = formatWarningsHeader(Array.from({ length: 50 }, (_, n) => `${n} ${'x'.repeat(200)}`));
  assert.ok((headers['x-warnings'] ?? '').length < 3_200);
  const list = listIn(headers) as string[];
  assert.match(list.at(-1) ?? '', new RegExp(`^${50 - (list.length - 1)} more`));
});
