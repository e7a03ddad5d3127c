// Renders the two stages of a Node image: one that installs and builds, and one that serves the app.
import { posix } from 'node:path';
import semver from 'semver';
import type { Tree } from '../../tree.ts';
import { formatReport } from '../build-warnings.ts';
import {
  renderCopy,
  renderLinkedCopy,
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
  buildPublishedInstall,
  getManagerPackage,
  getPruneCommand,
  renderMirrorRemoval,
  renderNodeEnvironment,
  renderReactEnvironment,
  runScript,
} from './manager.ts';
import { type Migration, prefixMigration } from '../common/migrations.ts';
import { type GitUse, listCommitVariables, renderGitInit, renderGitRepository } from '../common/history.ts';
import { listPlaceholderKeys, placeholder } from './placeholders.ts';
import { type BuildScripts, renderChangedScripts } from './scripts.ts';
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
  return [
    renderLinkedCopy([`${folder}/`], `${folder}/`, '--from=build'),
    `ENV NEXT_SHARP_PATH=${folder}/node_modules/sharp`,
  ];
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
  /** What asks git for the commit during the build. */
  readonly git?: GitUse | undefined;
  /** Addresses of databases for the build, in which none runs. */
  readonly addresses: Readonly<Record<string, string>>;
  /** The scripts of the app without what needs a database. */
  readonly scripts: BuildScripts;
  /** What brings the database up to date before each start. */
  readonly migration: Migration | undefined;
  /** The build gets an empty database of SQLite, which pages that are generated from it need. */
  readonly buildsDatabase: boolean;
}

/** Avoids fetching Node headers that the image already has when a package is compiled. */
const headers = '[ ! -e /usr/local/include/node/node.h ] || export npm_config_nodedir=/usr/local; ';
const cache = '--mount=type=cache,target=/root/.cache --mount=type=cache,target=/root/.npm';

const toolVariables = [
  'HUSKY=0',
  'ELECTRON_SKIP_BINARY_DOWNLOAD=1',
  'CYPRESS_INSTALL_BINARY=0',
  'NEXT_TELEMETRY_DISABLED=1',
  'ASTRO_TELEMETRY_DISABLED=1',
];

export function renderBuildStage(input: PlanInput, image: NodeImage): string[] {
  const { project, system } = image;
  return [
    `FROM ${image.image} AS build`,
    ...renderNodeEnvironment(project.manager, { tools: toolVariables, system: system.environment }),
    ...renderBuildTools(image),
    ...renderManagerInstall(project),
    'WORKDIR /app',
    ...(image.git === undefined ? [] : renderGitInit(image.git)),
    ...renderArguments(input),
    ...renderAddresses(input, image),
    ...renderInstall(image),
    ...renderReplacement(image),
    ...renderBuild(input, image),
    ...renderPrune(image),
    ...(shouldCopySharp(image) ? renderSharpInstall(cache) : []),
  ];
}

/** Before the installation, whose scripts may read the configuration of the database. */
function renderAddresses({ build }: PlanInput, { addresses }: NodeImage): string[] {
  const variables = new Set([...build.args, ...build.env].map(({ name }) => name));
  return Object.entries(addresses)
    .filter(([name]) => !variables.has(name))
    .map(([name, value]) => `ARG ${name}=${value}`);
}

function renderInstall(image: NodeImage): string[] {
  const { project, folder, scripts } = image;
  const { manager: name, file, locked, needsTree, compiles, mirrored } = project;
  const tree = ['COPY . .', ...renderChangedScripts(scripts, folder)];
  const manifests = ['package.json', ...(locked ? [file] : [])];
  const isPublished = image.tree.registry !== undefined;
  const install = isPublished ? buildPublishedInstall() : buildInstallCommand(name, locked ? file : undefined);
  return [
    ...(needsTree ? tree : [renderCopy(manifests, './'), 'COPY .npmr[c] .yarnrc.ym[l] bunfig.tom[l] ./']),
    ...(mirrored ? renderMirrorRemoval(file) : []),
    ...renderStep(file, 'installing the packages', `RUN ${cache} ${compiles ? headers : ''}${install}`),
    ...(needsTree || isInstalledOnly(image) ? [] : tree),
  ];
}

/** Returns true if the build stage installs packages and does nothing with the source. */
function isInstalledOnly({ project, folder, scripts, builds, app, git, buildsDatabase }: NodeImage): boolean {
  const isServer = app.kind === 'server' && app.replaced === undefined;
  const isUnchanged = renderChangedScripts(scripts, folder).length === 0;
  return isServer && isUnchanged && builds.length === 0 && !project.needsTree && git === undefined && !buildsDatabase;
}

/** Installs the package in a folder of its own, so that no manager changes the lock file, and redirects the other to it. */
function renderReplacement({ app, folder }: NodeImage): string[] {
  if (app.kind !== 'server' || app.replaced === undefined) return [];
  const { package: name, by, version: range } = app.replaced;
  const [target, home] = [quoteShellWord(posix.join(folder, 'node_modules', name)), '/opt/replaced'];
  const manifest = `{"name":"${name}","version":"0.0.0","type":"module","exports":"./index.js"}`;
  const code = `export { default } from "${home}/node_modules/${by}/index.js";`;
  return renderStep(
    'package.json',
    `taking ${by} for ${name}`,
    `RUN ${cache} npm install --prefix ${home} --no-save --legacy-peer-deps ${by}@${range} && rm -rf ${target} && mkdir -p ${target} && echo '${manifest}' > ${target}/package.json && echo '${code}' > ${target}/index.js`,
  );
}

function renderBuild(input: PlanInput, image: NodeImage): string[] {
  const steps = image.builds.flatMap((build) =>
    renderStep('package.json', 'running the build script', `RUN ${cache} ${build}`),
  );
  if (steps.length === 0) return [];
  const { git, tree } = image;
  const repository = git === undefined ? [] : renderGitRepository(git, input.commit ?? '0'.repeat(40), tree.date);
  return [
    ...renderPlaceholders(input, image),
    ...renderBuildDatabase(image),
    ...renderReactEnvironment(tree, image.appProject.dependencies, false),
    ...renderCommit(input, tree),
    ...repository,
    ...steps,
    ...(git === undefined ? [] : ['RUN rm -rf .git']),
  ];
}

/** As late as possible, since each commit changes what follows. */
function renderCommit({ commit, build }: PlanInput, tree: Tree): string[] {
  const variables = new Set([...build.args, ...build.env].map(({ name }) => name));
  if (commit === undefined) return [];
  return listCommitVariables(tree)
    .filter((name) => !variables.has(name))
    .map((name) => `ARG ${name}=${commit}`);
}

/** A failure shows again before the start, with its cause. */
function renderBuildDatabase({ migration, buildsDatabase, folder }: NodeImage): string[] {
  if (migration === undefined || !buildsDatabase) return [];
  const command = folder === '.' ? migration.command : buildCommandInFolder(folder, migration.command);
  return renderStep(migration.file, 'making an empty database for the build', `RUN ${command} || true`);
}

/** Prunes only projects with a single package: no manager prunes workspaces reliably. */
function renderPrune({ app, folder, project, tree }: NodeImage): string[] {
  if (tree.registry !== undefined) return [];
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
function renderBuildTools({ project, system, git: gitUse }: NodeImage): string[] {
  const compiler = project.compiles ? ['python3', 'make', 'g++'] : [];
  const git = project.fetchesByGit || gitUse !== undefined ? ['git', 'ca-certificates'] : [];
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
    `WORKDIR ${root}`,
    ...(app.kind === 'standalone' ? renderStandaloneCopy(image.tree) : renderAppCopy(image)),
    ...(shouldCopySharp(image) ? renderSharpCopy() : []),
    'USER 1000:1000',
    `EXPOSE ${port}`,
    ...(start === '' ? [] : [renderShellCommand(prefixMigration(image.migration, start))]),
  ];
}

function shouldCopySharp({ app, appProject, image }: NodeImage): boolean {
  return app.kind !== 'files' && app.framework === 'Next.js' && shouldAddSharp(appProject, image);
}

/** A start script that calls pnpm, yarn or bun needs it at run time. */
function renderRuntimeManager({ project, appProject, app, migration }: NodeImage): string[] {
  if (app.kind !== 'server') return [];
  const command = `${listStartCommands(app, appProject)}\n${migration?.command ?? ''}`;
  if (!/\b(?:pnpm|yarn|bunx?)\b/.test(command)) return [];
  // In production, pnpm would reinstall at start if it finds development packages.
  const asBuilt = project.manager === 'pnpm' ? ['ENV pnpm_config_verify_deps_before_run=false'] : [];
  return [...renderManagerInstall(project), ...asBuilt];
}

/** Returns the commands that a start runs, as far as the scripts show them. */
export function listStartCommands(app: NodeApp, project: NodeProject): string {
  if (app.kind !== 'server') return '';
  return /^exec (?:npm|yarn|pnpm|bun)(?: run)? start\b/.test(app.command) ? joinStartScripts(project) : app.command;
}

/** Returns the start script and the scripts that it may call. */
function joinStartScripts({ scripts }: NodeProject): string {
  const start = scripts['start'] ?? '';
  const calledScripts = Object.entries(scripts).filter(
    ([name]) => name.startsWith('start') || start.includes(` ${name}`),
  );
  return [start, ...calledScripts.map(([, script]) => script)].join('\n');
}

/** Where the build stage only installs packages, they are a layer that a change of the source does not touch. */
function renderAppCopy(image: NodeImage): string[] {
  const owner = '--chown=1000:1000';
  const built = renderLinkedCopy(['/app/'], '/app/', '--from=build', owner);
  return isInstalledOnly(image) ? [built, renderLinkedCopy(['.'], '/app/', owner)] : [built];
}

/** The standalone server of Next.js includes only the packages it needs; its static files must be copied next to it. */
function renderStandaloneCopy(tree: Tree): string[] {
  const from = ['--from=build', '--chown=1000:1000'];
  return [
    renderLinkedCopy(['/app/.next/standalone/'], '/app/', ...from),
    renderLinkedCopy(['/app/.next/static/'], '/app/.next/static/', ...from),
    ...(tree.getEntry('public')?.kind === 'directory'
      ? [renderLinkedCopy(['/app/public/'], '/app/public/', ...from)]
      : []),
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
