// Which versions of helm, kubectl and kind are used.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { hasFittingVersion, tools, parseVersion } from '../../../../cli/install/programs.ts';

test('finds the version in the output of each tool', () => {
  assert.equal(parseVersion('v4.1.4+g1234567'), '4.1.4');
  assert.equal(parseVersion('Client Version: v1.35.4\nKustomize Version: v5.7.1'), '1.35.4');
  assert.equal(parseVersion('kind v0.32.0 go1.26.8 linux/amd64'), '0.32.0');
  assert.equal(parseVersion('command not found'), undefined);
});

for (const [tool, output, expected] of [
  [tools.helm, 'v4.1.4+g1234567', true],
  [tools.helm, 'v3.19.0+g1234567', false],
  [tools.helm, '', false],
  [tools.kubectl, 'Client Version: v1.35.4', true],
  [tools.kubectl, 'Client Version: v1.36.1', true],
  [tools.kubectl, 'Client Version: v1.28.0', false],
  [tools.kind, 'kind v0.32.0 go1.26.8 linux/amd64', true],
  [tools.kind, 'kind v0.33.0 go1.26.8 linux/amd64', true],
  [tools.kind, 'kind v0.20.0 go1.20.4 linux/amd64', false],
] as const) {
  test(`${tool.name} that prints "${output}" ${expected ? 'fits' : 'does not fit'}`, () => {
    assert.equal(hasFittingVersion(tool, output), expected);
  });
}
