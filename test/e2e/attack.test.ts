// `npm run attack` on the cluster: every attack is tried, and none gets through.
import assert from 'node:assert/strict';
import { execa } from 'execa';
import { test } from 'vitest';
import { attacks } from '../attack/attacks/all.ts';

test('every known attack is attempted, and none succeeds', async () => {
  const { exitCode, all } = await execa('sh', ['cli/bootstrap.sh', 'attack'], {
    all: true,
    reject: false,
    timeout: 900_000,
  });
  assert.equal(exitCode, 0, all);
  assert.match(all, new RegExp(`\\n${attacks.length} held, 0 open, 0 not tried$`), all);
});
