// Which Ruby is taken for what a project asks for.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readBundle } from '../../../../../../controller/pipeline/plan/ruby/bundle.ts';
import { isBefore, chooseRuby } from '../../../../../../controller/pipeline/plan/ruby/version.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import type { Files } from '../plan.cases.ts';

const lock = (...lines: readonly string[]): string => ['GEM', '  specs:', ...lines, ''].join('\n');
const writtenBy = (version: string): string => `${lock('    rack (3.0.8)')}\nRUBY VERSION\n   ruby ${version}p55\n`;

const cases: readonly (readonly [name: string, Files, version: string, warned?: string])[] = [
  ['nothing', { Gemfile: '' }, '3.3'],
  ['an older Rails', { Gemfile: 'gem "rails"', 'Gemfile.lock': lock('    rails (6.1.7)') }, '3.1'],
  ['a gem that newer Ruby has left behind', { 'Gemfile.lock': lock('    liquid (4.0.3)') }, '3.1'],
  ['.ruby-version', { '.ruby-version': 'ruby-3.1.2\n' }, '3.1'],
  ['.ruby-version that there is not', { '.ruby-version': '3.2.0' }, '3.3', '.ruby-version asks for Ruby 3.2.0'],
  ['.tool-versions', { '.tool-versions': 'nodejs 20\nruby 3.1.4\n' }, '3.1'],
  ['a patch level, which does not matter', { Gemfile: 'ruby "3.3.1"\n' }, '3.3'],
  ['an old version', { Gemfile: "ruby '2.2.1'\n" }, '3.1', 'Gemfile asks for Ruby 2.2.1'],
  ['a newer version', { Gemfile: 'ruby "~> 4.0"\n' }, '3.3', 'Gemfile asks for Ruby ~> 4.0'],
  ['a range', { Gemfile: "ruby '>= 3.0', '< 3.3'\n" }, '3.1'],
  [
    'a range, and the version that wrote the lock',
    { Gemfile: "ruby '>= 3.0'\n", 'Gemfile.lock': writtenBy('3.1.2') },
    '3.1',
  ],
  [
    'a range, and a lock by a newer one',
    { Gemfile: "ruby '>= 3.2', '< 4.0'\n", 'Gemfile.lock': writtenBy('3.4.9') },
    '3.3',
  ],
  [
    'a file',
    { Gemfile: 'ruby file: ".ruby-version"\n', '.ruby-version': '3.4.4' },
    '3.3',
    '.ruby-version asks for Ruby 3.4.4',
  ],
  ['a lock alone', { Gemfile: 'ruby ENV["RUBY"]\n', 'Gemfile.lock': writtenBy('3.1.2') }, '3.1'],
  ['another kind of Ruby', { '.ruby-version': 'jruby-9.4.5.0' }, '3.3'],
];

for (const [name, files, version, warned] of cases) {
  test(`chooses Ruby by ${name}`, () => {
    const tree = createMemoryTree(files);
    const { image, findings } = chooseRuby(tree, readBundle(tree), {});
    assert.equal(image.version, version);
    assert.deepEqual(
      findings.map(({ rule, severity, message }) => [rule, severity, message.split(',')[0]]),
      warned === undefined ? [] : [['plan/ruby-version', 'warning', warned]],
    );
  });
}

test('avoids an image that the installation lacks if there is another one', () => {
  const tree = createMemoryTree({ '.ruby-version': '3.3.4' });
  const { image } = chooseRuby(tree, readBundle(tree), { missingImages: ['ruby:3.3-slim-trixie'] });
  assert.equal(image.version, '3.1');
});

test('compares locked versions as numbers, and never ranks a missing one before another', () => {
  assert.ok(isBefore('6.1.10', [7, 0]) && isBefore('4.0.3', [4, 0, 4]) && isBefore('5.2', [6, 0]));
  assert.ok(!isBefore('7.0.0', [7, 0]) && !isBefore('4.0.4', [4, 0, 4]) && !isBefore('10.0', [6, 0]));
  assert.ok(!isBefore('', [7, 0]) && !isBefore(undefined, [7, 0]));
});
