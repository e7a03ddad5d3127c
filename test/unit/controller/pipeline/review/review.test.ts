// What the operator of an installation waives, and that a waiver of nothing is said.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { applyWaivers } from '../../../../../controller/pipeline/review/review.ts';
import { review, type Finding } from '../../../../../crds/hosted-app.ts';

const finding = (rule: string, file?: string): Finding => ({
  rule,
  severity: 'error',
  ...(file === undefined ? {} : { file }),
  message: 'It is wrong.',
  fix: 'Do it right.',
});

test('a waiver turns findings of its rule and file into warnings, and no others', () => {
  const found = applyWaivers(
    [finding('secrets/jwt', 'a.py'), finding('secrets/jwt', 'b.py'), finding('license/approval')],
    [
      { rule: 'secrets/jwt', file: 'a.py', reason: 'Expired long ago.' },
      { rule: 'license/approval', reason: 'Agreed with\nthe author.' },
    ],
  );
  assert.deepEqual(
    found.map(({ severity, message }) => `${severity} ${message}`),
    [
      'warning Waived: Expired long ago. (It is wrong.)',
      'error It is wrong.',
      'warning Waived: Agreed with the author. (It is wrong.)',
    ],
  );
});

test('reports a waiver that matches nothing', () => {
  const [, unused] = applyWaivers([finding('license/missing')], [{ rule: 'secrets/jwt', file: 'x', reason: 'r' }]);
  assert.deepEqual([unused?.rule, unused?.severity], ['waivers/unused', 'warning']);
  assert.match(unused?.message ?? '', /secrets\/jwt in x matches no finding/);
});

test('rejects a waiver of rules that protect the platform, or without a reason', () => {
  const accepts = (waiver: object): boolean => review.safeParse({ waivers: [waiver] }).success;
  for (const rule of ['license/missing', 'secrets/aws-access-token', 'git/submodule', 'lfs/pointer'])
    assert.ok(accepts({ rule, reason: 'r' }), rule);
  for (const rule of [
    'symlinks/escape',
    'git/unsafe-address',
    'names/unusable',
    'dockerfile/syntax',
    'limits/files',
    '*',
  ])
    assert.ok(!accepts({ rule, reason: 'r' }), rule);
  for (const reason of ['', '  ', 'a\nb'])
    assert.ok(!accepts({ rule: 'license/missing', reason }), JSON.stringify(reason));
});
