// What Bundler is asked for by a Gemfile and its lock.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readBundle } from '../../../../../../controller/pipeline/plan/ruby/bundle.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';

const gemfile = `source "https://rubygems.org"
git_source(:github) { |repo| "https://github.com/#{repo}.git" }
gem "rails", "~> 7.1.2" # the framework
gem 'pg', '>= 0.18', group: :production
gem("rack")
if ENV["CI"]
  gem "skylight", groups: [ :production ]
end
group :development, :test do
  gem "debug"
  platforms :mri do
    gem "byebug"
  end
end
group :development, :production do
  gem "listen"
end
gem "rspec", group: %i[development test]
gem "capybara", :group => :test
gem "sqlite3", group: :development
# gem "mysql2"
`;

test('excludes development and test gems, however the groups are written', () => {
  const bundle = readBundle(createMemoryTree({ Gemfile: gemfile }));
  assert.deepEqual([...bundle.declared], ['rails', 'pg', 'rack', 'skylight', 'listen']);
  assert.equal(bundle.findVersion('rails'), '7.1.2');
  assert.equal(bundle.findVersion('pg'), '');
  assert.equal(bundle.findVersion('sqlite3'), undefined);
  assert.ok(bundle.has('mysql2', 'pg') && !bundle.has('mysql2', 'debug'));
  assert.ok(!bundle.isLocked && bundle.isForLinux && bundle.bundler === undefined);
});

const lock = (platforms: string): string => `GEM
  remote: https://rubygems.org/
  specs:
    debug (1.9.1)
    pg (1.5.4)
    rack (3.0.8)
      webrick (>= 1.0)
    rails (7.1.3)
    nokogiri (1.16.0-x86_64-linux)

PLATFORMS
${platforms}
DEPENDENCIES
  rails (~> 7.1.2)

BUNDLED WITH
   2.4.10
`;

test('reads versions, the Bundler version and the platforms from a lock', () => {
  const bundle = readBundle(
    createMemoryTree({ Gemfile: gemfile, 'Gemfile.lock': lock('  arm64-darwin-23\n').replaceAll('\n', '\r\n') }),
  );
  assert.ok(bundle.isLocked && !bundle.isForLinux);
  assert.equal(bundle.bundler, '2.4.10');
  assert.equal(bundle.findVersion('rails'), '7.1.3');
  assert.equal(bundle.findVersion('nokogiri'), '1.16.0-x86_64-linux');
  // The Gemfile has it for development alone.
  assert.equal(bundle.findVersion('debug'), undefined);
  assert.ok(bundle.names.has('debug') && !bundle.names.has('webrick'));
  for (const platform of [
    '  ruby\n',
    '  x86_64-linux\n',
    '  x86_64-linux-gnu\n',
    '  arm64-darwin-23\n  aarch64-linux\n',
  ])
    assert.ok(readBundle(createMemoryTree({ 'Gemfile.lock': lock(platform) })).isForLinux, platform);
});
