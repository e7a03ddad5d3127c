// Plans Node apps: install by the lock file, build, then a small image with what serves it.
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { Tree } from '../../tree.ts';
import { copy, declaredArguments, dockerfileText, shellCommand, step } from '../dockerfile-text.ts';
import type { NodeApp } from './app.ts';
import { foreignAdapter } from './framework.ts';
import { readProject, runsOn, type NodeProject } from './project.ts';
import { findApp } from './start.ts';
import { keysToStandInFor, placeholder } from './placeholders.ts';
import { defaultPort, images, type Language, type PlanInput, type Problem, type Recipe } from '../recipe.ts';
import { serveFiles } from '../static/server.ts';

const nodeMajor = 24;
const ignore = ['.git', '**/node_modules', '.next', '.nuxt', '.output', '**/.DS_Store'];
/** Headers of Node that the image holds need not be fetched to compile a package. */
const headers = '[ ! -e /usr/local/include/node/node.h ] || export npm_config_nodedir=/usr/local; ';
const cache = '--mount=type=cache,target=/root/.cache --mount=type=cache,target=/root/.npm';

export const node: Language = {
  name: 'node',
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined {
    const project = readProject(tree);
    if (project === undefined) return tree.has('package.json') ? malformed() : undefined;
    const misfit = input.hasCommand ? undefined : foreignAdapter(tree, project);
    if (misfit !== undefined) return { problem: misfit };
    const app = findApp(tree, project) ?? commanded(input);
    if (app === undefined) return tree.has('index.html') ? undefined : noStart();
    return recipe(tree, input, project, app);
  },
};

/** Where the author says how it starts, nothing has to be found. */
function commanded({ hasCommand }: PlanInput): NodeApp | undefined {
  return hasCommand
    ? { kind: 'server', command: '', because: 'run.command says how it starts.', prune: false }
    : undefined;
}

function recipe(tree: Tree, input: PlanInput, project: NodeProject, app: NodeApp): Recipe {
  const literal = app.kind === 'server' ? app.port : undefined;
  const port = input.port ?? literal ?? defaultPort;
  const reason = `${project.file} makes this a Node app. ${app.because}${literal === undefined ? '' : ` Its code listens on port ${literal}.`}`;
  return {
    plan: { strategy: 'node', reason, port, ...(app.framework === undefined ? {} : { framework: app.framework }) },
    dockerfile: dockerfileText(reason, [...buildStage(tree, input, project, app), '', ...runStage(tree, app, port)]),
    ignore,
    findings: engineWarning(project),
  };
}

function malformed(): Problem {
  return {
    problem: {
      rule: 'plan/manifest',
      severity: 'error',
      file: 'package.json',
      message: 'This file is not valid JSON.',
      fix: 'Correct the syntax; "npm pkg get name" shows where the error is.',
    },
  };
}

function noStart(): Problem {
  return {
    problem: {
      rule: 'plan/no-start',
      severity: 'error',
      file: 'package.json',
      message: 'This is a Node project, but nothing defines how to start it.',
      fix: 'Add a "start" script to package.json that listens on process.env.PORT, add a "build" script if it is a static site, or set run.command in moorage.yaml.',
    },
  };
}

function engineWarning({ engines }: NodeProject): Finding[] {
  if (runsOn(engines, nodeMajor)) return [];
  return [
    {
      rule: 'plan/node-version',
      severity: 'warning',
      file: 'package.json',
      message: `engines.node is "${engines ?? ''}"; Node ${nodeMajor} is used.`,
      fix: `Widen engines.node if the app runs on Node ${nodeMajor}; otherwise, add a Dockerfile with the version that it needs.`,
    },
  ];
}

function buildStage(tree: Tree, input: PlanInput, project: NodeProject, app: NodeApp): string[] {
  const manifests = ['package.json', ...(project.locked ? [project.file] : [])];
  const build = buildCommand(project, app);
  return [
    `FROM ${images.node} AS build`,
    'ENV CI=true HUSKY=0 ELECTRON_SKIP_BINARY_DOWNLOAD=1 CYPRESS_INSTALL_BINARY=0 NEXT_TELEMETRY_DISABLED=1 ASTRO_TELEMETRY_DISABLED=1 npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false',
    ...(project.compiles ? compiler(project) : []),
    ...manager(project),
    'WORKDIR /app',
    ...declaredArguments(input, app.kind === 'server' ? app.environment : {}),
    ...(project.needsTree ? ['COPY . .'] : [copy(manifests, './'), 'COPY .npmr[c] .yarnrc.ym[l] ./']),
    ...step(
      project.file,
      'installing the packages',
      `RUN ${cache} ${project.compiles ? headers : ''}${install(project)}`,
    ),
    ...(project.needsTree ? [] : ['COPY . .']),
    ...(build === undefined
      ? []
      : [
          ...standIns(tree, input, project),
          ...step('package.json', 'running the build script', `RUN ${cache} ${build}`),
        ]),
    ...(app.kind === 'server' && app.prune
      ? step('package.json', 'removing development packages', `RUN ${cache} ${prune(project)}`)
      : []),
  ];
}

/** Many apps make their clients of models where a build already runs the code, and stop for want of a key. */
function standIns(tree: Tree, input: PlanInput, { dependencies }: NodeProject): string[] {
  const given = new Set([...input.build.args, ...input.build.env].map((each) => each.name));
  return keysToStandInFor(tree, dependencies)
    .filter((name) => !given.has(name))
    .map((name) => `ARG ${name}=${placeholder}`);
}

function buildCommand({ scripts }: NodeProject, { framework }: NodeApp): string | undefined {
  if (scripts['build'] !== undefined) return 'npm run build';
  return framework === 'Next.js' ? 'node_modules/.bin/next build' : undefined;
}

function compiler({ file }: NodeProject): string[] {
  return step(
    file,
    'installing a compiler for native packages',
    'RUN apt-get update -qq && apt-get install -qq --yes --no-install-recommends python3 make g++ >/dev/null && rm -rf /var/lib/apt/lists/*',
  );
}

function manager({ manager: name, managerVersion }: NodeProject): string[] {
  if (name === 'npm') return [];
  const packaged = name === 'berry' ? `@yarnpkg/cli-dist@${managerVersion}` : `${name}@${managerVersion}`;
  return step('plan', `installing ${packaged}`, `RUN ${cache} npm install --global --force ${packaged}`);
}

function install({ manager: name, locked }: NodeProject): string {
  switch (name) {
    case 'npm':
      return locked ? 'npm ci' : 'npm install';
    case 'pnpm':
      return `pnpm install ${locked ? '--frozen-lockfile' : '--no-frozen-lockfile'}`;
    case 'yarn':
      return `yarn install --non-interactive ${locked ? '--frozen-lockfile' : ''}`.trimEnd();
    case 'berry':
      return `yarn install ${locked ? '--immutable' : '--no-immutable'}`;
  }
}

function prune({ manager: name }: NodeProject): string {
  switch (name) {
    case 'npm':
      return 'npm prune --omit=dev';
    // Not --ignore-scripts, which the pnpm of older lock files does not know for prune.
    case 'pnpm':
      return 'pnpm prune --prod --config.ignore-scripts=true';
    case 'yarn':
      return 'yarn install --non-interactive --production --ignore-scripts --prefer-offline';
    case 'berry':
      return '(yarn workspaces focus --production || true)';
  }
}

function runStage(tree: Tree, app: NodeApp, port: number): string[] {
  if (app.kind === 'files')
    return serveFiles({ port, from: `/app/${app.folder}`, stage: 'build', fallback: app.fallback, notFoundPage: true });
  const start = app.kind === 'standalone' ? 'export HOSTNAME=0.0.0.0; exec node server.js' : app.command;
  return [
    `FROM ${images.node}`,
    'RUN getent passwd 1000 || useradd --create-home --uid 1000 node; install -d -o 1000 -g 1000 /app',
    `ENV NODE_ENV=production NEXT_TELEMETRY_DISABLED=1 HOST=0.0.0.0 PORT=${port} npm_config_update_notifier=false`,
    'WORKDIR /app',
    ...(app.kind === 'standalone' ? standalone(tree) : [copy(['/app/'], './', '--from=build', '--chown=1000:1000')]),
    'USER 1000:1000',
    `EXPOSE ${port}`,
    ...(start === '' ? [] : [shellCommand(start)]),
  ];
}

/** Next.js leaves a server with only the packages that it needs; its static files have to be laid beside it. */
function standalone(tree: Tree): string[] {
  const from = ['--from=build', '--chown=1000:1000'];
  return [
    copy(['/app/.next/standalone/'], './', ...from),
    copy(['/app/.next/static/'], './.next/static/', ...from),
    ...(tree.entry('public')?.kind === 'directory' ? [copy(['/app/public/'], './public/', ...from)] : []),
  ];
}
