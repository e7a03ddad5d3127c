// Plans Node apps: install from the lock file, build, then a small image with only what serves the app.
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { Tree } from '../../tree.ts';
import { defaultPort, renderDockerfile, type Planner, type PlanInput, type Problem, type Recipe } from '../recipe.ts';
import { type NodeApp, describeUnstartedServer } from './app.ts';
import { detectForeignAdapter } from './framework.ts';
import { readProject, type NodeProject } from './project.ts';
import { renderBuildStage, type NodeImage, listBuildCommands, renderRunStage } from './stages.ts';
import { findApp } from './start.ts';
import { selectSystemPackages } from './system-packages.ts';
import { chooseNode, type NodeChoice } from './version.ts';
import { findWorkspaceApp } from './workspace.ts';
import { hasAllAssets } from '../static/static.ts';

const ignore = ['.git', '**/node_modules', '.next', '.nuxt', '.output', '**/.DS_Store'];

export const node: Planner = {
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined {
    const project = readProject(tree);
    if (project === undefined) return tree.has('package.json') ? createMalformedProblem() : undefined;
    const misfit = input.hasCommand ? undefined : detectForeignAdapter(tree, project);
    if (misfit !== undefined) return { problem: misfit };
    const app = findApp(tree, project) ?? toCommandedApp(input);
    if (app !== undefined) return planSinglePackage(tree, input, project, app);
    const found = findWorkspaceApp(tree, project);
    if (found === undefined) return explainMissingStart(tree, project);
    if ('problem' in found) return found;
    const image = { project, folder: found.folder, tree: found.tree, appProject: found.project, app: found.app };
    return createRecipe(tree, input, { ...image, builds: found.builds }, found.because);
  },
};

/** If the author specifies the start command, no detection is needed. */
function toCommandedApp({ hasCommand }: PlanInput): NodeApp | undefined {
  return hasCommand
    ? { kind: 'server', command: '', because: 'run.command says how it starts.', prune: false }
    : undefined;
}

function planSinglePackage(tree: Tree, input: PlanInput, project: NodeProject, app: NodeApp): Recipe {
  const builds = listBuildCommands(project, app.framework);
  return createRecipe(tree, input, { project, folder: '.', tree, appProject: project, app, builds });
}

function createRecipe(
  tree: Tree,
  input: PlanInput,
  found: Omit<NodeImage, 'image' | 'system'>,
  where?: string,
): Recipe {
  const { project, appProject, app } = found;
  const choice = chooseNodeVersion(tree, input, found);
  const image = {
    ...found,
    image: choice.image,
    system: selectSystemPackages(collectDependencyNames(project, appProject)),
  };
  const literal = app.kind === 'server' ? app.port : undefined;
  const port = input.port ?? literal ?? defaultPort;
  const reason = [
    `${project.file} makes this a Node app.`,
    where,
    app.because,
    literal === undefined ? undefined : `Its code listens on port ${literal}.`,
    choice.because,
  ]
    .filter((each) => each !== undefined)
    .join(' ');
  return {
    plan: { strategy: 'node', reason, port, ...(app.framework === undefined ? {} : { framework: app.framework }) },
    dockerfile: renderDockerfile(reason, [...renderBuildStage(input, image), '', ...renderRunStage(image, port)]),
    ignore,
    ...(app.kind === 'files' ? { filesOnly: true } : {}),
    findings: choice.findings,
  };
}

/** Prefers the version that the root requests over that of the package. */
function chooseNodeVersion(
  tree: Tree,
  { missingImages }: PlanInput,
  { project, appProject, tree: ownTree, folder }: Omit<NodeImage, 'image' | 'system'>,
): NodeChoice {
  const choice = chooseNode(tree, project.ranges, missingImages);
  const says = choice.because !== undefined || choice.findings.length > 0;
  return says || folder === '.' ? choice : chooseNode(ownTree, appProject.ranges, missingImages);
}

function collectDependencyNames(project: NodeProject, appProject: NodeProject): ReadonlySet<string> {
  return appProject === project ? project.dependencies : new Set([...project.dependencies, ...appProject.dependencies]);
}

/** A package.json next to finished pages is only for tools; pages that must be built are not finished. */
function explainMissingStart(tree: Tree, project: NodeProject): Problem | undefined {
  const { scripts } = project;
  const server = describeUnstartedServer(tree, project);
  if (server !== undefined) return createUnstartedProblem(server);
  if (!tree.has('index.html')) return createNoStartProblem(scripts);
  return scripts['build'] === undefined || hasAllAssets(tree)
    ? undefined
    : createUnknownOutputProblem(scripts['build']);
}

function createProblem(finding: Omit<Finding, 'severity'>): Problem {
  return { problem: { severity: 'error', ...finding } };
}

function createMalformedProblem(): Problem {
  return createProblem({
    rule: 'plan/manifest',
    file: 'package.json',
    message: 'This file is not valid JSON.',
    fix: 'Correct the syntax; "npm pkg get name" shows where the error is.',
  });
}

function createNoStartProblem(scripts: Readonly<Record<string, string>>): Problem {
  const isDesktop = /\belectron\b|\btauri\b|electron-forge/.test(scripts['start'] ?? '');
  return createProblem({
    rule: 'plan/no-start',
    file: 'package.json',
    message: isDesktop
      ? 'This is a desktop app: its start script opens a window and serves nothing.'
      : 'This is a Node project, but nothing defines how to start it.',
    fix: 'Add a "start" script to package.json that listens on process.env.PORT, add a "build" script if it is a static site, or set run.command in moorage.yaml.',
  });
}

function createUnstartedProblem(because: string): Problem {
  return createProblem({
    rule: 'plan/half-app',
    file: 'package.json',
    message: `This is a Node app with a server (${because}), but no start script starts it.`,
    fix: 'Add a "start" script to package.json that starts it on process.env.PORT and serves the built pages, or set run.command in moorage.yaml.',
  });
}

function createUnknownOutputProblem(script: string): Problem {
  return createProblem({
    rule: 'plan/no-start',
    file: 'package.json',
    message: `The build script (${script.slice(0, 100)}) makes pages of these files, but nothing says where it leaves them.`,
    fix: 'Add a "start" script to package.json that serves them on process.env.PORT, add a Dockerfile, or set build.strategy: static in moorage.yaml if the files are to be served as they are.',
  });
}
