// Writes the two stages of a Ruby image: one that compiles gems and assets, and one with what runs the app.
import type { Tree } from '../../tree.ts';
import { copy, declaredArguments, type PlanInput, shellCommand, step } from '../recipe.ts';
import { type Bundle, bundleEnvironment, installGems } from './bundle.ts';
import type { Database } from './database.ts';
import { pagesRuntime, pagesTools, type RubyPages } from './pages.ts';
import { migrate, prepareDatabase, railsAssets, railsEnvironment } from './rails.ts';
import type { RubyStart } from './start.ts';
import { systemPackages } from './system-packages.ts';
import type { RubyImage } from './version.ts';

export interface RubyApp {
  readonly bundle: Bundle;
  readonly start: RubyStart;
  readonly image: RubyImage;
  readonly database: Database | undefined;
  readonly pages: RubyPages | undefined;
}

export function buildStage(tree: Tree, input: PlanInput, app: RubyApp): string[] {
  const { bundle, start, image, pages } = app;
  return [
    `FROM ${image.build} AS build`,
    `ENV ${environment(tree, app)}`,
    ...systemPackages(tree, bundle, 'build'),
    'WORKDIR /app',
    ...declaredArguments(input),
    'COPY . .',
    ...(bundle.gemfile === '' ? [`RUN echo 'source "https://rubygems.org"' > Gemfile`] : []),
    ...installGems(tree, bundle, start.adds),
    ...(pages === undefined ? [] : pagesTools(pages)),
    ...assets(tree, input, app),
    // Both images are of the same release of Debian, so that what is compiled here runs there.
    `RUN rm -rf ${pages?.project === undefined ? '' : 'node_modules '}tmp/cache && mkdir -p tmp/pids log storage`,
  ];
}

function assets(tree: Tree, { build }: PlanInput, { bundle, start, database }: RubyApp): string[] {
  const given = new Set([...build.args, ...build.env].map(({ name }) => name));
  if (start.isRails) return railsAssets(tree, bundle, database, given);
  if (start.framework === 'Hanami') {
    const command = (bundle.version('hanami') ?? '').startsWith('1.') ? 'precompile' : 'compile';
    return bundle.has('hanami-assets')
      ? step('Gemfile', 'compiling the assets', `RUN bundle exec hanami assets ${command}`)
      : [];
  }
  return definesAssets(tree) ? step('Rakefile', 'compiling the assets', 'RUN bundle exec rake assets:precompile') : [];
}

/** As Heroku has it, a task of that name is part of the build. */
function definesAssets(tree: Tree): boolean {
  return /\bassets:precompile\b|namespace\s?\(?:assets\b[\s\S]{0,400}\btask\s?\(?:precompile\b/.test(
    tree.text('Rakefile', 64 * 1024) ?? '',
  );
}

export function runStage(tree: Tree, port: number, app: RubyApp): string[] {
  const { bundle, image, pages } = app;
  return [
    `FROM ${image.run}`,
    ...systemPackages(tree, bundle, 'run'),
    ...pagesRuntime(pages),
    'RUN useradd --create-home --uid 1000 app && install -d -o 1000 -g 1000 /app',
    `ENV ${environment(tree, app)} MALLOC_ARENA_MAX=2 PORT=${port}${bundle.has('thruster') ? ` HTTP_PORT=${port}` : ''}`,
    copy(['/usr/local/bundle/'], '/usr/local/bundle/', '--from=build'),
    'WORKDIR /app',
    copy(['/app/'], './', '--from=build', '--chown=1000:1000'),
    'USER 1000:1000',
    `EXPOSE ${port}`,
    shellCommand(command(tree, app)),
  ];
}

function environment(tree: Tree, { bundle, start, database }: RubyApp): string {
  return [
    bundleEnvironment,
    'RACK_ENV=production APP_ENV=production',
    ...(start.isRails ? [railsEnvironment(tree, bundle, database)] : []),
    ...(start.framework === 'Hanami' ? ['HANAMI_ENV=production HANAMI_SERVE_ASSETS=true'] : []),
  ].join(' ');
}

/** The database, then the server. A release command of the author's takes care of the database itself. */
function command(tree: Tree, app: RubyApp): string {
  const { start } = app;
  return `${start.isReleased ? '' : prepared(tree, app)}${start.command}`;
}

function prepared(tree: Tree, { bundle, start }: RubyApp): string {
  if (start.isRails) return prepareDatabase(tree);
  if (start.framework === 'Hanami' && bundle.has('hanami-model', 'hanami-db'))
    return '{ bundle exec hanami db prepare || echo "The database could not be brought up to date." >&2; }; ';
  return bundle.has('sinatra-activerecord') && tree.has('Rakefile') ? migrate('db:migrate') : '';
}
