// Lock files behind mirrors of the npm registry, rewritten by sed as a build does it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { hasMirrorUrl, buildRewriteCommand } from '../../../../../../controller/pipeline/plan/node/manager.ts';

function rewritten(lock: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-mirrors-'));
  try {
    writeFileSync(join(folder, 'yarn.lock'), lock);
    execFileSync('sh', ['-c', buildRewriteCommand('yarn.lock')], { cwd: folder });
    return readFileSync(join(folder, 'yarn.lock'), 'utf8');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const registry = 'https://registry.npmjs.org';
for (const [from, to] of [
  [
    'https://registry.npmmirror.com/raf-schd/-/raf-schd-4.0.3.tgz#5d6c',
    `${registry}/raf-schd/-/raf-schd-4.0.3.tgz#5d6c`,
  ],
  ['http://registry.npm.taobao.org/@babel/core/-/core-7.0.0.tgz', `${registry}/@babel/core/-/core-7.0.0.tgz`],
  ['https://mirrors.huaweicloud.com/repository/npm/a.b/-/a.b-1.0.0.tgz', `${registry}/a.b/-/a.b-1.0.0.tgz`],
  ['https://mirrors.cloud.tencent.com/npm/x/-/x-1.0.0.tgz', `${registry}/x/-/x-1.0.0.tgz`],
] as const)
  test(`replaces ${from} with the registry`, () => {
    const [lock, expected] = [from, to].map((url) => `one:\n  resolved "${url}"\n  integrity sha512-x==\n`);
    assert.ok(lock !== undefined && hasMirrorUrl(lock));
    assert.equal(rewritten(lock), expected);
  });

test('keeps other addresses, including those that only resemble a mirror', () => {
  for (const url of [
    'https://registry.yarnpkg.com/a/-/a-1.0.0.tgz',
    'https://registry-npmmirror.com/a/-/a-1.0.0.tgz',
    'https://registry.npmmirror.com/a/download/a-1.0.0.tgz',
    'https://codeload.github.com/a/b/tar.gz/c',
  ]) {
    assert.equal(hasMirrorUrl(url), false, url);
    assert.equal(rewritten(url), url);
  }
});
