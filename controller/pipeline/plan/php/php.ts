// Plans PHP apps: Composer packages and the pages' scripts, served by PHP's built-in server from the public folder.
import { languages } from '../../../../crds/languages.ts';
import { readKeys, parseJson } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { formatReport } from '../build-warnings.ts';
import { describeMigration } from '../common/migrations.ts';
import { findFrontend, type Frontend, renderFrontendStage, findMissingImage } from '../common/frontend.ts';
import {
  renderCopy,
  renderArguments,
  defaultPort,
  renderDockerfile,
  type Planner,
  type PlanInput,
  type Problem,
  type Recipe,
  renderShellCommand,
  quoteShellWord,
  renderStep,
} from '../recipe.ts';

import {
  declareLaravelDatabase,
  findLaravelMigration,
  formatLaravelCommand,
  getDatabaseExtension,
  isLaravel,
  shouldSkipScripts,
} from './laravel.ts';

const ignore = ['.git', '**/node_modules', '.env', '**/.DS_Store'];
const roots = ['public', 'web', 'htdocs', 'www', 'html', 'p', 'src/public'];
/** Requirements for extensions that the image may lack. */
const extensions = /^ext-(?:gd|intl|zip|bcmath|mysqli|pdo_mysql|pdo_pgsql|pgsql|sodium|exif)$/;

export const php: Planner = {
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined {
    const root = findDocumentRoot(tree);
    const composer = tree.has('composer.json');
    if (root === undefined) return composer && !tree.has('package.json') ? createNoStartProblem() : undefined;
    const file = composer ? 'composer.json' : root === '.' ? 'index.php' : `${root}/index.php`;
    return (
      findMissingImage(input, [languages.php.images[0].image], 'PHP', file) ?? createRecipe(tree, input, root, file)
    );
  },
  declareSettings: declareLaravelDatabase,
};

/** Finds the folder with index.php; prefers the public folder. */
function findDocumentRoot(tree: Tree): string | undefined {
  return roots.find((each) => tree.has(`${each}/index.php`)) ?? (tree.has('index.php') ? '.' : undefined);
}

function createNoStartProblem(): Problem {
  return {
    problem: {
      rule: 'plan/no-start',
      severity: 'error',
      file: 'composer.json',
      message: 'This is a PHP project, but it has no index.php at the top or in public.',
      fix: 'Add public/index.php, or set run.command in moorage.yaml.',
    },
  };
}

function createRecipe(tree: Tree, input: PlanInput, root: string, file: string): Recipe {
  const port = input.port ?? defaultPort;
  const laravel = isLaravel(tree);
  const migration = laravel ? findLaravelMigration(tree) : undefined;
  const pages = findPages(tree);
  const reason = `${file} makes this a PHP app, served from ${root === '.' ? 'its top' : root}.${pages === undefined ? '' : ` The script ${pages.script} builds its pages first.`}${migration === undefined ? '' : ` ${describeMigration(migration)}`}`;
  return {
    plan: { strategy: 'php', reason, port, ...(laravel ? { framework: 'Laravel' } : {}) },
    dockerfile: renderDockerfile(reason, [
      ...(pages === undefined
        ? []
        : [...renderFrontendStage(tree, pages, { target: pages.output, missingImages: input.missingImages }), '']),
      ...renderImage(tree, input, pages !== undefined),
      `ENV PORT=${port} PHP_CLI_SERVER_WORKERS=4${laravel ? ' LOG_CHANNEL=stderr SESSION_DRIVER=file CACHE_STORE=file' : ''}`,
      `EXPOSE ${port}`,
      renderShellCommand(formatCommand(tree, root)),
    ]),
    // Without Composer, no step of the build would make it again.
    ignore: tree.has('composer.json') ? [...ignore, 'vendor'] : ignore,
    findings: [],
  };
}

/** In a Composer project, Vite writes to public/build. */
function findPages(tree: Tree): Frontend | undefined {
  return tree.has('composer.json') && tree.has('package.json') ? findFrontend(tree, 'public/build') : undefined;
}

function renderImage(tree: Tree, input: PlanInput, built: boolean): string[] {
  return [
    `FROM ${languages.php.images[0].image}`,
    'RUN useradd --create-home --uid 1000 app && install -d -o 1000 -g 1000 /app',
    ...listMissingExtensions(tree),
    'WORKDIR /app',
    ...renderArguments(input),
    renderCopy(['.'], './', '--chown=1000:1000'),
    ...(built ? [renderCopy(['/app/public/'], './public/', '--from=frontend', '--chown=1000:1000')] : []),
    'USER 1000:1000',
    ...(tree.has('composer.json') ? install(tree) : []),
  ];
}

function formatCommand(tree: Tree, root: string): string {
  return isLaravel(tree) ? formatLaravelCommand(tree) : `exec php -S 0.0.0.0:$PORT -t ${quoteShellWord(root)}`;
}

const composerInstall =
  'COMPOSER_MEMORY_LIMIT=-1 composer install --no-dev --no-interaction --no-progress --optimize-autoloader';

function install(tree: Tree): string[] {
  const file = tree.has('composer.lock') ? 'composer.lock' : 'composer.json';
  // Laravel finds its packages again when it starts, which is all that the other scripts do.
  const command = `${composerInstall}${shouldSkipScripts(tree) ? ' --no-scripts' : ''}`;
  return renderStep(
    file,
    'installing the packages',
    `RUN ${command} || { ${formatReport('platform', file)}; ${command} --ignore-platform-req=php; }`,
  );
}

/** Installs Composer and extensions if the image does not include them; Docker Hub's does not. */
function listMissingExtensions(tree: Tree): string[] {
  const manifest = parseJson(tree.readFile('composer.json'));
  const required = readKeys(manifest, 'require')
    .filter((name) => extensions.test(name))
    .map((name) => name.slice(4));
  const modules = [...new Set([...required, ...(isLaravel(tree) ? [getDatabaseExtension(tree), 'zip'] : [])])];
  const composer = tree.has('composer.json')
    ? renderStep(
        'composer.json',
        'installing Composer',
        'RUN command -v composer || (apt-get update && apt-get install --yes --no-install-recommends composer unzip git && rm -rf /var/lib/apt/lists/*)',
      )
    : [];
  if (modules.length === 0) return composer;
  const loop = modules.map((name) => `php -m | grep -qi "^${name}$" || docker-php-ext-install ${name}`).join('; ');
  return [
    ...composer,
    ...renderStep(
      'composer.json',
      'adding the extensions that it requires',
      `RUN if command -v docker-php-ext-install; then apt-get update && apt-get install --yes --no-install-recommends libpng-dev libicu-dev libzip-dev libpq-dev libonig-dev; ${loop}; fi`,
    ),
  ];
}
