// Package registries at closed addresses: which of them builds are let to.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { closedPackageCidrs } from '../../../../cli/install/package-hosts.ts';

test('a mirror inside is opened to builds, by its addresses alone; what is public or loopback needs no opening', async () => {
  const answers: Record<string, string[]> = {
    'pypi.org': ['203.0.113.80', 'fd00::80'],
    'registry.npmjs.org': ['203.0.113.80'],
    'github.com': ['140.82.121.4'],
    'deb.debian.org': ['127.0.0.1', '::1'],
  };
  assert.deepEqual(await closedPackageCidrs((host) => Promise.resolve(answers[host] ?? [])), [
    '203.0.113.80/32',
    'fd00::80/128',
  ]);
});
