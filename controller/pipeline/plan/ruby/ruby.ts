// Plans Ruby apps: Rails, config.ru apps, files that serve by themselves, and static sites built by a gem.
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { Tree } from '../../tree.ts';
import { describeMigration } from '../common/migrations.ts';
import { findMissingImage } from '../common/frontend.ts';
import {
  defaultPort,
  markFixedPort,
  renderDockerfile,
  type Planner,
  type PlanInput,
  type Problem,
  type Recipe,
} from '../recipe.ts';
import { type Bundle, readBundle } from './bundle.ts';
import { findDatabase } from './database.ts';
import { findPages } from './pages.ts';
import { findSite, createSiteRecipe } from './sites.ts';
import { findRubyMigration, renderBuildStage, renderRunStage, type RubyApp } from './stages.ts';
import { findStart, type RubyStart } from './start.ts';
import { isBefore, chooseRuby, type RubyChoice } from './version.ts';

const ignore = ['.git', '**/node_modules', 'vendor/bundle', 'log/*', 'tmp/*', '**/.DS_Store'];
/** Gems whose jobs run in a separate process next to the web server, with its command. */
const workers: readonly (readonly [gem: string, command: string])[] = [
  ['sidekiq', 'sidekiq'],
  ['resque', 'rake resque:work QUEUE=*'],
  ['delayed_job', 'rake jobs:work'],
  ['solid_queue', 'rake solid_queue:start'],
];

export const ruby: Planner = {
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined {
    const bundle = readBundle(tree);
    const site = findSite(tree, bundle);
    if (site === undefined && !['Gemfile', 'config.ru'].some((file) => tree.has(file))) return undefined;
    const choice = chooseRuby(tree, bundle, input);
    const file = site?.file ?? (tree.has('Gemfile') ? 'Gemfile' : 'config.ru');
    const lacking = findMissingImage(input, [choice.image.build, choice.image.run], 'Ruby', file);
    return site === undefined
      ? planServer(tree, input, { bundle, choice, lacking })
      : (lacking ?? createSiteRecipe(tree, input, bundle, site, choice));
  },
};

interface Parts {
  readonly bundle: Bundle;
  readonly choice: RubyChoice;
  readonly lacking: Problem | undefined;
}

function planServer(tree: Tree, input: PlanInput, parts: Parts): Recipe | Problem {
  const start = findStart(tree, parts.bundle);
  if (start === undefined) return createNoStartProblem(tree);
  return detectOldRails(parts.bundle) ?? parts.lacking ?? createRecipe(tree, input, parts, start);
}

function createNoStartProblem(tree: Tree): Problem {
  const gemspec = tree.entries.find((each) => each.kind === 'file' && /^[\w.-]{1,80}\.gemspec$/.test(each.path))?.path;
  const message =
    gemspec === undefined
      ? 'This is a Ruby project, but nothing in it starts a server: no Rails app, no config.ru, no Procfile, no app.rb that serves.'
      : `This is a Ruby gem (${gemspec}), a library that other programs use, and has no app of its own.`;
  return {
    problem: {
      rule: 'plan/no-start',
      severity: 'error',
      file: gemspec ?? 'Gemfile',
      message,
      fix: 'Add a config.ru, a Procfile with a web line, or a Dockerfile.',
    },
  };
}

/** Rails before 6 does not run on any available Ruby. */
function detectOldRails(bundle: Bundle): Problem | undefined {
  const version = bundle.findVersion('rails') ?? '';
  if (!isBefore(version, [6, 0])) return undefined;
  return {
    problem: {
      rule: 'plan/ruby-version',
      severity: 'error',
      file: bundle.isLocked ? 'Gemfile.lock' : 'Gemfile',
      message: `The app is made with Rails ${version}, which requires Ruby 2, and that is not available.`,
      fix: 'Upgrade it to Rails 6.1 or later, or add a Dockerfile with the version of Ruby that it needs.',
    },
  };
}

function createRecipe(tree: Tree, input: PlanInput, { bundle, choice }: Parts, start: RubyStart): Recipe {
  const port = input.port ?? start.port ?? defaultPort;
  const app: RubyApp = {
    bundle,
    start,
    image: choice.image,
    database: findDatabase(tree, bundle),
    pages: findPages(tree, bundle, input),
  };
  const migration = findRubyMigration(tree, app);
  const reason = [explainPlan(app, choice), migration === undefined ? '' : describeMigration(migration)]
    .join(' ')
    .trim();
  return {
    plan: { strategy: 'ruby', reason, port, ...(start.framework === undefined ? {} : { framework: start.framework }) },
    ...markFixedPort(input, start.port),
    dockerfile: renderDockerfile(reason, [
      ...renderBuildStage(tree, input, app),
      '',
      ...renderRunStage(tree, port, app),
    ]),
    ignore,
    ...(app.pages?.project === undefined ? {} : { builds: ['.'] }),
    findings: [...choice.findings, ...checkLockPlatforms(bundle), ...listWorkerFindings(tree, bundle)],
  };
}

function explainPlan({ bundle, start, pages }: RubyApp, { because }: RubyChoice): string {
  return [
    `${bundle.gemfile === '' ? 'config.ru' : 'Gemfile'} makes this a Ruby app. ${start.because}`,
    bundle.isLocked ? '' : 'Without a Gemfile.lock the newest gems are installed.',
    start.adds.length === 0 ? '' : `It has no server among its gems, so ${start.adds.join(' and ')} is added.`,
    pages?.project === undefined ? '' : `Its assets are made with the packages of ${pages.project.file}.`,
    because ?? '',
  ]
    .filter((each) => each !== '')
    .join(' ');
}

function checkLockPlatforms({ isForLinux }: Bundle): Finding[] {
  if (isForLinux) return [];
  return [
    {
      rule: 'build/lockfile',
      severity: 'warning',
      file: 'Gemfile.lock',
      message:
        'Gemfile.lock has no gems for Linux, so they are resolved again when the image is built; versions may differ from those that were tested.',
      fix: 'Run "bundle lock --add-platform x86_64-linux", and commit Gemfile.lock.',
    },
  ];
}

/** Without a Procfile, nothing declares that jobs need a separate process. */
function listWorkerFindings(tree: Tree, bundle: Bundle): Finding[] {
  const [worker, command] = workers.find(([gem]) => bundle.has(gem)) ?? [];
  const isInside = worker === 'solid_queue' && (tree.readFile('config/puma.rb') ?? '').includes('SOLID_QUEUE_IN_PUMA');
  if (worker === undefined || command === undefined || isInside || tree.has('Procfile')) return [];
  return [
    {
      rule: 'plan/no-worker',
      severity: 'warning',
      file: 'Gemfile',
      message: `Only the server is started: jobs that the app leaves to ${worker} wait, since nothing runs them.`,
      fix: `If the app needs them, add a Procfile that starts both, such as "web: bundle exec ${command} & exec bundle exec puma -p $PORT".`,
    },
  ];
}
