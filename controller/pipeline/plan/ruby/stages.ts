// Renders the two stages of a Ruby image: one that compiles gems and assets, and one that runs the app.
import type { Tree } from '../../tree.ts';
import { isMigrating, type Migration, prefixMigration } from '../common/migrations.ts';
import { renderCopy, renderArguments, type PlanInput, renderShellCommand, renderStep } from '../recipe.ts';
import { type Bundle, bundleEnvironment, installGems } from './bundle.ts';
import type { Database } from './database.ts';
import { renderPagesRuntime, renderPagesTools, type RubyPages } from './pages.ts';
import { buildRailsEnvironment, createRubyMigration, findRailsMigration, renderRailsAssets } from './rails.ts';
import type { RubyStart } from './start.ts';
import { renderSystemPackages } from './system-packages.ts';
import type { RubyImage } from './version.ts';

export interface RubyApp {
  readonly bundle: Bundle;
  readonly start: RubyStart;
  readonly image: RubyImage;
  readonly database: Database | undefined;
  readonly pages: RubyPages | undefined;
}

export function renderBuildStage(tree: Tree, input: PlanInput, app: RubyApp): string[] {
  const { bundle, start, image, pages } = app;
  return [
    `FROM ${image.build} AS build`,
    `ENV ${renderEnvironment(tree, app)}`,
    ...renderSystemPackages(tree, bundle, 'build'),
    'WORKDIR /app',
    ...renderArguments(input),
    'COPY . .',
    ...(bundle.gemfile === '' ? [`RUN echo 'source "https://rubygems.org"' > Gemfile`] : []),
    ...installGems(tree, bundle, start.adds),
    ...(pages === undefined ? [] : renderPagesTools(tree, pages)),
    ...renderAssets(tree, input, app),
    // Both images use the same Debian release, so that what is compiled here runs there.
    `RUN rm -rf ${pages?.project === undefined ? '' : 'node_modules '}tmp/cache && mkdir -p tmp/pids log storage`,
  ];
}

function renderAssets(tree: Tree, { build }: PlanInput, { bundle, start, database }: RubyApp): string[] {
  const variables = new Set([...build.args, ...build.env].map(({ name }) => name));
  if (start.isRails) return renderRailsAssets(tree, bundle, database, variables);
  if (start.framework === 'Hanami') {
    const command = (bundle.findVersion('hanami') ?? '').startsWith('1.') ? 'precompile' : 'compile';
    return bundle.has('hanami-assets')
      ? renderStep('Gemfile', 'compiling the assets', `RUN bundle exec hanami assets ${command}`)
      : [];
  }
  return hasAssetsTask(tree)
    ? renderStep('Rakefile', 'compiling the assets', 'RUN bundle exec rake assets:precompile')
    : [];
}

/** As on Heroku, a task with this name is part of the build. */
function hasAssetsTask(tree: Tree): boolean {
  return /\bassets:precompile\b|namespace\s?\(?:assets\b[\s\S]{0,400}\btask\s?\(?:precompile\b/.test(
    tree.readFile('Rakefile', 64 * 1024) ?? '',
  );
}

export function renderRunStage(tree: Tree, port: number, app: RubyApp): string[] {
  const { bundle, image, pages } = app;
  return [
    `FROM ${image.run}`,
    ...renderSystemPackages(tree, bundle, 'run'),
    ...renderPagesRuntime(pages),
    'RUN useradd --create-home --uid 1000 app && install -d -o 1000 -g 1000 /app',
    `ENV ${renderEnvironment(tree, app)} MALLOC_ARENA_MAX=2 PORT=${port}${bundle.has('thruster') ? ` HTTP_PORT=${port}` : ''}`,
    renderCopy(['/usr/local/bundle/'], '/usr/local/bundle/', '--from=build'),
    'WORKDIR /app',
    renderCopy(['/app/'], './', '--from=build', '--chown=1000:1000'),
    'USER 1000:1000',
    `EXPOSE ${port}`,
    renderShellCommand(formatCommand(tree, app)),
  ];
}

function renderEnvironment(tree: Tree, { bundle, start, database }: RubyApp): string {
  return [
    bundleEnvironment,
    'RACK_ENV=production APP_ENV=production',
    ...(start.isRails ? [buildRailsEnvironment(tree, bundle, database)] : []),
    ...(start.framework === 'Hanami' ? ['HANAMI_ENV=production HANAMI_SERVE_ASSETS=true'] : []),
  ].join(' ');
}

/**
 * Migrates the database, then starts the server. An author's release command is responsible for the database itself.
 */
function formatCommand(tree: Tree, app: RubyApp): string {
  return prefixMigration(findRubyMigration(tree, app), app.start.command);
}

export function findRubyMigration(tree: Tree, { bundle, start }: RubyApp): Migration | undefined {
  if (start.isReleased || isMigrating(start.command)) return undefined;
  if (start.isRails) return findRailsMigration(tree);
  if (start.framework === 'Hanami' && bundle.has('hanami-model', 'hanami-db'))
    return createRubyMigration('bundle exec hanami db prepare', 'Gemfile');
  return bundle.has('sinatra-activerecord') && tree.has('Rakefile')
    ? createRubyMigration('bundle exec rake db:migrate', 'Rakefile')
    : undefined;
}
