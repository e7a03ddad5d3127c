// Widths of text as the font says, and lines of it.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { measureTextWidth, wrapText } from '../../../../../api/tools/svg/text-width.ts';

test('measures letters as wide as in Arial', () => {
  // Of Arial's metrics: i is 0.222 em, W 0.944, a digit 0.556.
  assert.ok(Math.abs(measureTextWidth('i', 1000) - 222) < 1);
  assert.ok(Math.abs(measureTextWidth('W', 1000) - 944) < 1);
  assert.ok(Math.abs(measureTextWidth('2026', 100) - 222.4) < 0.5);
  assert.ok(measureTextWidth('W', 10, true) >= measureTextWidth('W', 10));
});

test('gives combining marks no width, and wide scripts more than a Latin letter', () => {
  assert.equal(measureTextWidth('e\u0301', 10), measureTextWidth('e', 10));
  assert.ok(measureTextWidth('港', 10) > measureTextWidth('h', 10));
});

test('breaks lines at words, and inside words in scripts without spaces', () => {
  assert.equal(wrapText('short', 200, 12), 'short');
  assert.deepEqual(wrapText('one two three', 50, 12), ['one two', 'three']);
  const lines = wrapText('集装箱吞吐量统计', 40, 12);
  assert.ok(Array.isArray(lines) && lines.join('') === '集装箱吞吐量统计' && lines.length > 2);
});
