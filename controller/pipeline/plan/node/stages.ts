// Renders the two stages of a Node image: one that installs and builds, and one that serves the app.
import semver from 'semver';
import type { Tree } from '../../tree.ts';
import { formatReport } from '../build-warnings.ts';
import {
  renderCopy,
  renderArguments,
  type PlanInput,
  renderShellCommand,
  quoteShellWord,
  renderStep,
} from '../recipe.ts';
import { serveFiles } from '../static/server.ts';
import type { NodeApp } from './app.ts';
import {
  buildInstallCommand,
  getManagerEnvironment,
  getManagerPackage,
  getPruneCommand,
  runScript,
  renderMirrorRemoval,
} from './manager.ts';
import { listPlaceholderKeys, placeholder } from './placeholders.ts';
import type { NodeProject } from './project.ts';
import type { SystemPackages } from './system-packages.ts';

const version = '0.33.5';
const folder = '/opt/sharp';
/** Next.js scales images since version 10, and includes sharp since 15. */
const needed = { from: 10, until: 15 };

/**
 * Returns true for a Next.js server without sharp, if sharp supports its Node version. Without sharp, Next.js scales
 * images in JavaScript: one photo takes a minute and half a gigabyte, and the memory limit kills the app without a
 * message.
 */
function shouldAddSharp({ ranges, dependencies }: NodeProject, image: string): boolean {
  const range = ranges['next'] ?? '';
  if (dependencies.has('sharp') || image.startsWith('node:16') || semver.validRange(range) === null) return false;
  const major = semver.minVersion(range)?.major ?? 0;
  return major >= needed.from && major < needed.until;
}

/** The app runs without sharp too, so a failed install is a warning. The next stage copies the folder in any case. */
function renderSharpInstall(cache: string): string[] {
  const install = `npm install --prefix ${folder} sharp@${version}`;
  return renderStep(
    'package.json',
    'installing sharp, which Next.js scales pictures with',
    `RUN ${cache} ${install} || { rm -rf ${folder} && mkdir ${folder} && ${formatReport('sharp', 'package.json')}; }`,
  );
}

function renderSharpCopy(): string[] {
  return [renderCopy([`${folder}/`], `${folder}/`, '--from=build'), `ENV NEXT_SHARP_PATH=${folder}/node_modules/sharp`];
}

export interface NodeImage {
  /** Base image of both stages. */
  readonly image: string;
  /** The build context's tree and packages. */
  readonly project: NodeProject;
  /** The app's folder in it. */
  readonly folder: string;
  /** The app's own tree and manifest: those of the context, unless it is a package of a workspace. */
  readonly tree: Tree;
  readonly appProject: NodeProject;
  readonly app: NodeApp;
  /** Build commands, run in the context's folder. */
  readonly builds: readonly string[];
  readonly system: SystemPackages;
}

/** Avoids fetching Node headers that the image already has when a package is compiled. */
const headers = '[ ! -e /usr/local/include/node/node.h ] || export npm_config_nodedir=/usr/local; ';
const cache = '--mount=type=cache,target=/root/.cache --mount=type=cache,target=/root/.npm';

export function renderBuildStage(input: PlanInput, image: NodeImage): string[] {
  const { project, app, system } = image;
  const environment = [...getManagerEnvironment(project.manager), ...system.environment];
  return [
    `FROM ${image.image} AS build`,
    'ENV CI=true HUSKY=0 ELECTRON_SKIP_BINARY_DOWNLOAD=1 CYPRESS_INSTALL_BINARY=0 NEXT_TELEMETRY_DISABLED=1 ASTRO_TELEMETRY_DISABLED=1 npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false',
    ...(environment.length === 0 ? [] : [`ENV ${environment.join(' ')}`]),
    ...renderBuildTools(image),
    ...renderManagerInstall(project),
    'WORKDIR /app',
    ...renderArguments(input, app.kind === 'server' ? app.environment : {}),
    ...renderInstall(project),
    ...renderBuild(input, image),
    ...renderPrune(image),
    ...(shouldCopySharp(image) ? renderSharpInstall(cache) : []),
  ];
}

function renderInstall({ manager: name, file, locked, needsTree, compiles, mirrored }: NodeProject): string[] {
  const manifests = ['package.json', ...(locked ? [file] : [])];
  const install = buildInstallCommand(name, locked ? file : undefined);
  return [
    ...(needsTree ? ['COPY . .'] : [renderCopy(manifests, './'), 'COPY .npmr[c] .yarnrc.ym[l] bunfig.tom[l] ./']),
    ...(mirrored ? renderMirrorRemoval(file) : []),
    ...renderStep(file, 'installing the packages', `RUN ${cache} ${compiles ? headers : ''}${install}`),
    ...(needsTree ? [] : ['COPY . .']),
  ];
}

function renderBuild(input: PlanInput, image: NodeImage): string[] {
  const steps = image.builds.flatMap((build) =>
    renderStep('package.json', 'running the build script', `RUN ${cache} ${build}`),
  );
  return steps.length === 0 ? [] : [...renderPlaceholders(input, image), ...steps];
}

/** Prunes only projects with a single package: no manager prunes workspaces reliably. */
function renderPrune({ app, folder, project }: NodeImage): string[] {
  const prune = app.kind === 'server' && app.prune && folder === '.' ? getPruneCommand(project.manager) : undefined;
  return prune === undefined
    ? []
    : renderStep('package.json', 'removing development packages', `RUN ${cache} ${prune}`);
}

/** Many apps create their API clients when the build runs the code, and fail without a key. */
function renderPlaceholders(input: PlanInput, { tree, appProject }: NodeImage): string[] {
  const variables = new Set([...input.build.args, ...input.build.env].map((each) => each.name));
  return listPlaceholderKeys(tree, appProject.dependencies)
    .filter((name) => !variables.has(name))
    .map((name) => `ARG ${name}=${placeholder}`);
}

/** Installs Debian packages that the installation needs: a compiler, git, libraries. */
function renderBuildTools({ project, system }: NodeImage): string[] {
  const compiler = project.compiles ? ['python3', 'make', 'g++'] : [];
  const git = project.fetchesByGit ? ['git', 'ca-certificates'] : [];
  const names = [...new Set([...compiler, ...git, ...system.build])];
  if (names.length === 0) return [];
  const what = project.compiles
    ? 'installing a compiler for native packages'
    : 'installing what packages need to be built';
  return [
    ...renderStep(project.file, what, renderAptInstall(names)),
    // Packages on GitHub are usually public, and the build has no ssh key.
    ...(project.fetchesByGit
      ? [
          'RUN git config --global url."https://github.com/".insteadOf ssh://git@github.com/ && git config --global --add url."https://github.com/".insteadOf git@github.com:',
        ]
      : []),
  ];
}

function renderAptInstall(names: readonly string[]): string {
  return `RUN apt-get update -qq && apt-get install -qq --yes --no-install-recommends ${names.join(' ')} >/dev/null && rm -rf /var/lib/apt/lists/*`;
}

function renderManagerInstall(project: NodeProject): string[] {
  const packaged = getManagerPackage(project);
  return packaged === undefined
    ? []
    : renderStep('plan', `installing ${packaged}`, `RUN ${cache} npm install --global --force ${packaged}`);
}

export function renderRunStage(image: NodeImage, port: number): string[] {
  const { app, folder, system } = image;
  const root = folder === '.' ? '/app' : `/app/${folder}`;
  if (app.kind === 'files')
    return serveFiles({
      port,
      from: `${root}/${app.folder}`,
      stage: 'build',
      fallback: app.fallback,
      notFoundPage: true,
    });
  const start = app.kind === 'standalone' ? 'export HOSTNAME=0.0.0.0; exec node server.js' : app.command;
  return [
    `FROM ${image.image}`,
    ...(system.run.length === 0
      ? []
      : renderStep('package.json', `installing what ${system.because.join(', ')} needs`, renderAptInstall(system.run))),
    ...renderRuntimeManager(image),
    'RUN getent passwd 1000 || useradd --create-home --uid 1000 node; install -d -o 1000 -g 1000 /app',
    `ENV ${['NODE_ENV=production NEXT_TELEMETRY_DISABLED=1 HOST=0.0.0.0', `PORT=${port}`, 'npm_config_update_notifier=false', ...system.environment].join(' ')}`,
    'WORKDIR /app',
    ...(app.kind === 'standalone'
      ? renderStandaloneCopy(image.tree)
      : [renderCopy(['/app/'], './', '--from=build', '--chown=1000:1000')]),
    ...(folder === '.' ? [] : [`WORKDIR ${root}`]),
    ...(shouldCopySharp(image) ? renderSharpCopy() : []),
    'USER 1000:1000',
    `EXPOSE ${port}`,
    ...(start === '' ? [] : [renderShellCommand(start)]),
  ];
}

function shouldCopySharp({ app, appProject, image }: NodeImage): boolean {
  return app.kind !== 'files' && app.framework === 'Next.js' && shouldAddSharp(appProject, image);
}

/** A start script that calls pnpm, yarn or bun needs it at run time. */
function renderRuntimeManager({ project, appProject, app }: NodeImage): string[] {
  if (app.kind !== 'server') return [];
  const command = app.command === 'exec npm start' ? joinStartScripts(appProject) : app.command;
  if (!/\b(?:pnpm|yarn|bunx?)\b/.test(command)) return [];
  // In production, pnpm would reinstall at start if it finds development packages.
  const asBuilt = project.manager === 'pnpm' ? ['ENV pnpm_config_verify_deps_before_run=false'] : [];
  return [...renderManagerInstall(project), ...asBuilt];
}

/** Returns the start script and the scripts that it may call. */
function joinStartScripts({ scripts }: NodeProject): string {
  const start = scripts['start'] ?? '';
  const calledScripts = Object.entries(scripts).filter(
    ([name]) => name.startsWith('start') || start.includes(` ${name}`),
  );
  return [start, ...calledScripts.map(([, script]) => script)].join('\n');
}

/** The standalone server of Next.js includes only the packages it needs; its static files must be copied next to it. */
function renderStandaloneCopy(tree: Tree): string[] {
  const from = ['--from=build', '--chown=1000:1000'];
  return [
    renderCopy(['/app/.next/standalone/'], './', ...from),
    renderCopy(['/app/.next/static/'], './.next/static/', ...from),
    ...(tree.getEntry('public')?.kind === 'directory' ? [renderCopy(['/app/public/'], './public/', ...from)] : []),
  ];
}

/** Lists the commands that build the project in the context's folder; none if there is nothing to build. */
export function listBuildCommands({ manager: name, scripts }: NodeProject, framework: string | undefined): string[] {
  const script = buildScript(scripts);
  const parts = script === undefined ? listBuildParts(scripts) : [script];
  if (parts.length > 0) return parts.map((each) => runScript(name, each));
  return framework === 'Next.js' ? ['node_modules/.bin/next build'] : [];
}

/** Script names that build a server's pages if there is no `build` script. */
const pageScripts = ['frontend', 'client', 'web', 'webapp', 'ui', 'pages', 'assets', 'production', 'prod'].flatMap(
  (part) => [`build:${part}`, `build-${part}`],
);

function buildScript(scripts: NodeProject['scripts']): string | undefined {
  return ['build', ...pageScripts].find((name) => scripts[name] !== undefined);
}

/** Lists build:server, build:styles and similar scripts, if the start file is one of their outputs. */
function listBuildParts(scripts: NodeProject['scripts']): string[] {
  const startsBuilt = /\b(?:build|dist|out)\/[\w./-]{1,100}/.test(scripts['start'] ?? '');
  return startsBuilt ? Object.keys(scripts).filter((name) => /^build:[\w-]{1,40}$/.test(name)) : [];
}

/** Builds a workspace package in its own folder. */
export function buildCommandInFolder(folder: string, build: string): string {
  return `cd ${quoteShellWord(folder)} && ${build}`;
}
