// Slugs are DNS labels, whatever the repository is called.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { parseDuration } from '../../../lib/values.ts';
import { toDnsLabel } from '../../../crds/names.ts';

test('makes a readable label', () => {
  assert.equal(toDnsLabel('My_Cool.App'), 'my-cool-app');
  assert.equal(toDnsLabel('Über--chat'), 'u-ber-chat');
  assert.equal(toDnsLabel('!!!'), '');
});

test('every text gives a DNS label or nothing', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) =>
      /^([a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?)?$/.test(toDnsLabel(text)),
    ),
  );
});

test('reads durations', () => {
  assert.equal(parseDuration('1h30m'), 5_400_000);
  assert.equal(parseDuration('90s'), 90_000);
  for (const wrong of ['', '5', '5 m', '1s1m', '-1s']) assert.throws(() => parseDuration(wrong), RangeError);
});
