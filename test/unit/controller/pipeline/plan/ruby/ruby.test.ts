// What is planned for Ruby, and what is refused.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Rejected } from '../../../../../../controller/pipeline/contract.ts';
import { makePlan } from '../../../../../../controller/pipeline/plan/plan.ts';
import { findSecretNames } from '../../../../../../controller/pipeline/plan/ruby/rails.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';
import type { Changes, Files } from '../plan.cases.ts';

interface Case {
  readonly name: string;
  readonly files: Files;
  readonly framework?: string;
  readonly port?: number;
  readonly reason?: RegExp;
  readonly lines?: readonly RegExp[];
  readonly without?: readonly RegExp[];
  readonly warnings?: readonly string[];
}

const json = (value: unknown): string => JSON.stringify(value);
const lock = (gems: readonly string[], more = ''): string =>
  `GEM\n  remote: https://rubygems.org/\n  specs:\n${gems.map((gem) => `    ${gem}\n`).join('')}\n${more}`;
const application = 'module Shop\n  class Application < Rails::Application\n  end\nend\n';
const rails: Files = {
  Gemfile: 'gem "rails"\ngem "puma"\ngem "pg"\ngem "propshaft"\n',
  'config/application.rb': application,
  'config/environments/production.rb': '',
  'bin/rails': '',
  'config.ru': '',
  Rakefile: '',
};

const cases: readonly Case[] = [
  {
    name: 'Rails by its lock',
    files: {
      ...rails,
      'Gemfile.lock': lock(
        ['rails (8.0.1)', 'puma (6.4.0)', 'pg (1.5.4)', 'propshaft (1.0.0)', 'ruby-vips (2.2.0)'],
        'PLATFORMS\n  x86_64-linux\n\nBUNDLED WITH\n   2.6.9\n',
      ),
      'config/database.yml': 'production:\n  adapter: postgresql\n',
      'config/initializers/keys.rb': 'KEY = ENV.fetch("MAIL_KEY")\nB = ENV.fetch("B") { 1 }\nC = ENV.fetch("C", 2)\n',
    },
    framework: 'Rails',
    port: 8080,
    lines: [
      /^FROM ruby:3\.3-trixie AS build$/m,
      /libpq-dev/,
      /gem install --no-document bundler:2\.6\.9/,
      /BUNDLE_FROZEN=true bundle install \|\| \{ echo "moorage-warning: gems Gemfile\.lock"; bundle install; \}$/m,
      /MAIL_KEY=none SECRET_KEY_BASE_DUMMY=1 SECRET_KEY_BASE=none DATABASE_URL=postgresql:\/\/127\.0\.0\.1\/none .*rake assets:precompile$/m,
      /^FROM ruby:3\.3-slim-trixie$/m,
      /libpq5.*libvips42/,
      /RAILS_ENV=production RAILS_LOG_TO_STDOUT=true RAILS_SERVE_STATIC_FILES=true/,
      /^COPY --from=build --chown=1000:1000 \["\/app\/","\.\/"\]$/m,
      /\{ \( bundle exec rake db:prepare \|\| bundle exec rake db:migrate \) \|\| \{ \[ -z .*\} \|\| \{ echo .*; exit 1; \}; \}; exec bundle exec rails server -b 0\.0\.0\.0 -p \$PORT"\]$/m,
    ],
    without: [/libpq-dev[^\n]*\n[^]*FROM[^]*libpq-dev/, /build-essential/, / B=| C=/],
  },
  {
    name: 'Rails that only answers calls, whose Procfile migrates at a release',
    files: {
      ...rails,
      Gemfile: 'gem "rails", "~> 7.2"\ngem "puma"\ngem "sidekiq"\n',
      Procfile: 'web: bundle exec puma -C config/puma.rb\nrelease: bin/rails db:migrate\n',
      'db/schema.rb': '',
    },
    framework: 'Rails',
    reason: /Without a Gemfile\.lock the newest gems/,
    lines: [/\( bin\/rails db:migrate \) && exec bundle exec puma -C config\/puma\.rb/],
    without: [/assets:precompile/, /db:prepare/, /BUNDLE_FROZEN/],
  },
  {
    name: 'Rails with SQLite in a folder of the code, and jobs that nothing runs',
    files: {
      ...rails,
      Gemfile: 'gem "rails"\ngem "puma"\ngem "sqlite3"\ngem "sidekiq"\n',
      'config/database.yml.sample':
        'default: &default\n  adapter: sqlite3\nproduction:\n  <<: *default\n  database: db/production.sqlite3\n',
    },
    framework: 'Rails',
    lines: [
      /^RUN cp config\/database\.yml\.sample config\/database\.yml$/m,
      /DATABASE_URL=sqlite3:\/app\/storage\/production\.sqlite3/,
    ],
    warnings: ['plan/no-worker'],
  },
  {
    name: 'Rails with SQLite in storage, Solid Queue within Puma, and a server in its tests alone',
    files: {
      ...rails,
      Gemfile: 'gem "rails"\ngem "sqlite3"\ngem "solid_queue"\ngroup :test do\n  gem "puma"\nend\n',
      'config/database.yml':
        'production:\n  primary:\n    adapter: sqlite3\n    database: storage/production.sqlite3\n',
      'config/puma.rb': 'plugin :solid_queue if ENV["SOLID_QUEUE_IN_PUMA"]\n',
    },
    framework: 'Rails',
    reason: /no server among its gems, so puma is added/,
    lines: [/SOLID_QUEUE_IN_PUMA=true/, /^RUN echo 'gem "puma"' >> Gemfile$/m],
    without: [/DATABASE_URL=sqlite3/],
  },
  {
    name: 'Rails with Vite, of an age and a platform of its own',
    files: {
      ...rails,
      Gemfile: 'ruby "3.0.0"\ngem "rails"\ngem "puma"\ngem "vite_rails"\ngem "image_processing"\n',
      'Gemfile.lock': lock(
        ['rails (6.1.7)', 'puma (5.6.0)', 'vite_rails (3.0.0)', 'image_processing (1.12.0)'],
        'PLATFORMS\n  x86_64-darwin-20\n\nBUNDLED WITH\n   1.17.3\n',
      ),
      'package.json': json({ devDependencies: { vite: '5' }, scripts: { lint: 'eslint' } }),
      'yarn.lock': '',
    },
    framework: 'Rails',
    reason: /Its assets are made with the packages of yarn\.lock\..*the nearest there is/,
    lines: [
      /^FROM ruby:3\.1-bookworm AS build$/m,
      /^RUN sed -i -E .*ruby.* Gemfile && sed -i '\/\^RUBY VERSION\/,.* Gemfile\.lock$/m,
      /^RUN --mount=\S+ bundle install$/m,
      /^COPY --from=node:\S+ \/usr\/local\/bin\/ \/usr\/local\/bin\/$/m,
      /npm install --global --force yarn@1\.22\.22 && \{ yarn install --non-interactive --frozen-lockfile/,
      /rm -rf node_modules/,
      /imagemagick/,
    ],
    without: [/gem install .*bundler:1/, /BUNDLE_FROZEN/],
    warnings: ['plan/ruby-version', 'build/lockfile'],
  },
  {
    name: 'assets by ExecJS, which calls node when the app runs too',
    files: { ...rails, 'Gemfile.lock': lock(['rails (7.1.0)', 'puma (6.0.0)', 'execjs (2.9.0)', 'sprockets (4.2.0)']) },
    framework: 'Rails',
    lines: [/^COPY --from=node:24\S+ \["\/usr\/local\/bin\/node","\/usr\/local\/bin\/"\]$/m],
  },
  {
    name: 'Roda by config.ru, with the secret that its code reads',
    files: {
      Gemfile: "gem 'roda'\ngem 'puma'\n",
      'config.ru': 'run App.freeze.app',
      'app.rb': "secret = ENV.delete('APP_SESSION_SECRET')\n",
    },
    framework: 'Roda',
    lines: [/exec bundle exec puma -b tcp:\/\/0\.0\.0\.0:\$PORT config\.ru/],
  },
  {
    name: 'a Rack app without a Gemfile',
    files: { 'config.ru': 'run ->(env) { [200, {}, ["hello"]] }' },
    reason: /^config\.ru makes this a Ruby app/,
    lines: [/^RUN echo 'source "https:\/\/rubygems\.org"' > Gemfile$/m, /gem "puma"/],
  },
  {
    name: 'config.ru under a server that rackup starts',
    files: {
      Gemfile: "gem 'sinatra'\n",
      'Gemfile.lock': lock(['rack (3.1.0)', 'sinatra (4.0.0)', 'webrick (1.9.0)']),
      'config.ru': '',
    },
    framework: 'Sinatra',
    lines: [/rackup config\.ru -o 0\.0\.0\.0 -p \$PORT/, /gem "rackup"/],
  },
  {
    name: 'Sinatra in a file of its own, as it was made',
    files: {
      Gemfile: "gem 'sinatra', '~> 2.0'\ngem 'thin'\n",
      'hello.rb': "require 'sinatra'\nget('/') { 'hello' }\n",
      'lib/x.rb': '',
    },
    framework: 'Sinatra',
    lines: [/exec bundle exec ruby hello\.rb -o 0\.0\.0\.0 -p \$PORT/],
  },
  {
    name: 'WEBrick on a port of its own',
    files: { Gemfile: "gem 'webrick'\n", 'server.rb': "require 'webrick'\nWEBrick::HTTPServer.new(:Port => 9292)\n" },
    port: 9292,
    lines: [/exec bundle exec ruby server\.rb"/],
  },
  {
    name: 'a Rakefile with a task for assets, as Heroku runs it',
    files: {
      Gemfile: "gem 'sinatra'\ngem 'thin'\ngem 'rackup'\n",
      'config.ru': '',
      Rakefile: 'namespace :assets do\n  desc "x"\n  task :precompile do\n  end\nend\n',
      Procfile: 'web: bundle exec rackup config.ru -p $PORT\n',
    },
    framework: 'Sinatra',
    lines: [/^RUN bundle exec rake assets:precompile$/m],
  },
  {
    name: 'Jekyll beside a package.json, into a folder of its own',
    files: {
      Gemfile: 'gem "jekyll"\n',
      '_config.yml': 'destination: ./public/site/\n',
      'index.html': '---\n---\n',
      'package.json': json({ devDependencies: { prettier: '3' } }),
    },
    framework: 'Jekyll',
    lines: [
      /^RUN bundle exec jekyll build --destination public\/site --baseurl ""$/m,
      /^COPY --link --from=build \["\/app\/public\/site\/","\/srv\/site\/"\]$/m,
    ],
  },
  {
    name: 'Jekyll as GitHub Pages takes it, without a Gemfile',
    files: { '_config.yml': 'theme: minima\n', '_posts/2020-01-01-hello.md': '', 'index.html': '---\n---\n' },
    framework: 'Jekyll',
    reason: /no Gemfile, so it is built with the gems of GitHub Pages/,
    lines: [/github-pages.* > Gemfile$/m],
  },
];

for (const { name, files, framework, port, reason = /./, lines = [], without = [], warnings = [] } of cases) {
  test(`plans ${name}`, () => {
    const { plan, dockerfile = '', findings } = makePlan(createMemoryTree(files), sampleInput());
    assert.equal(plan.strategy, 'ruby');
    assert.equal(plan.framework, framework);
    assert.match(plan.reason, reason);
    if (port !== undefined) assert.equal(plan.port, port);
    for (const line of lines) assert.match(dockerfile, line);
    for (const line of without) assert.doesNotMatch(dockerfile, line);
    assert.deepEqual(
      findings.map(({ rule }) => rule),
      warnings,
    );
  });
}

const refusals: readonly { name: string; files: Files; changes?: Changes; rule: string; message: RegExp }[] = [
  {
    name: 'a gem',
    files: { Gemfile: 'gemspec\n', 'geo.gemspec': '', 'lib/geo.rb': 'require "socket"\n' },
    rule: 'plan/no-start',
    message: /This is a Ruby gem \(geo\.gemspec\), a library/,
  },
  {
    name: 'tools alone',
    files: { Gemfile: 'gem "fastlane"\n' },
    rule: 'plan/no-start',
    message: /nothing in it starts a server/,
  },
  {
    name: 'a Rails of before Ruby 3',
    files: { ...rails, Gemfile: "gem 'rails', '4.2.6'\n" },
    rule: 'plan/ruby-version',
    message: /Rails 4\.2\.6, which requires Ruby 2/,
  },
  {
    name: 'Ruby whose images are not on the installation',
    files: rails,
    changes: {
      missingImages: ['ruby:3.1-bookworm', 'ruby:3.1-slim-bookworm', 'ruby:3.3-trixie', 'ruby:3.3-slim-trixie'],
    },
    rule: 'plan/base-image',
    message: /This is a Ruby app, and the image ruby:3\.3-trixie/,
  },
];

for (const { name, files, changes, rule, message } of refusals) {
  test(`rejects ${name}`, () => {
    assert.throws(
      () => makePlan(createMemoryTree(files), sampleInput(changes)),
      (error) =>
        error instanceof Rejected && error.findings[0].rule === rule && message.test(error.findings[0].message),
    );
  });
}

test('plans a Node server next to a Gemfile for tools as Node', () => {
  const files = { Gemfile: 'gem "fastlane"\n', 'package.json': json({ scripts: { start: 'node a.js' } }), 'a.js': '' };
  assert.equal(makePlan(createMemoryTree(files), sampleInput()).plan.strategy, 'node');
  const web = { ...files, Procfile: 'web: node a.js\n' };
  assert.equal(makePlan(createMemoryTree(web), sampleInput()).plan.strategy, 'node');
});

test('finds session secrets that the code reads', () => {
  const tree = createMemoryTree({
    'app.rb': "set :session_secret, ENV.fetch('MY_SESSION_SECRET')",
    'lib/x.rb': '"SESSION_SECRET"',
  });
  assert.deepEqual(findSecretNames(tree), ['MY_SESSION_SECRET']);
});
