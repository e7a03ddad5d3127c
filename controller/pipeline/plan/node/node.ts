// Plans Node apps: install from the lock file, build, then a small image with only what serves the app.
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { Tree } from '../../tree.ts';
import {
  defaultPort,
  markFixedPort,
  renderDockerfile,
  type Planner,
  type PlanInput,
  type Problem,
  type Recipe,
} from '../recipe.ts';
import { describeMigration, isMigrating, type Migration } from '../common/migrations.ts';
import { type PublishedPackage, readPublishedPackage } from '../common/published.ts';
import { type NodeApp, describeUnstartedServer, findPortOfStartedFile } from './app.ts';
import {
  declareNodeDatabase,
  findNodeDatabase,
  listAddressPlaceholders,
  toMigration,
  warnAboutNodeDatabase,
} from './database.ts';
import { detectForeignAdapter } from './framework.ts';
import { findGitUse, warnAboutHistory } from '../common/history.ts';
import { listSampleAddresses } from './placeholders.ts';
import { readProject, type NodeProject } from './project.ts';
import { extractDatabaseCommands, warnAboutSeeds } from './scripts.ts';
import { renderBuildStage, type NodeImage, listBuildCommands, listStartCommands, renderRunStage } from './stages.ts';
import { findApp } from './start.ts';
import { selectSystemPackages } from './system-packages.ts';
import { chooseNode, type NodeChoice } from './version.ts';
import { findWorkspaceApp, type WorkspaceApp } from './workspace.ts';
import { hasAllAssets } from '../static/static.ts';

const ignore = ['.git', '**/node_modules', '.next', '.nuxt', '.output', '**/.DS_Store'];

/** A published package brings its build, and the packages that it bundles. */
function listIgnored({ registry }: Tree): readonly string[] {
  return registry === undefined ? ignore : [];
}

export const node: Planner = {
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined {
    const project = readProject(tree);
    if (project === undefined) return tree.has('package.json') ? createMalformedProblem() : undefined;
    const published = readPublishedPackage(tree);
    if (published !== undefined) return planPublished(tree, input, project, published);
    const misfit = input.hasCommand ? undefined : detectForeignAdapter(tree, project);
    if (misfit !== undefined) return { problem: misfit };
    const known = toKnownApp(input);
    if (known !== undefined) return planKnownApp(tree, input, project, known);
    const app = input.package === undefined ? (findApp(tree, project) ?? toCommandedApp(input)) : undefined;
    if (app !== undefined) return planSinglePackage(tree, input, project, app);
    return planPackage(tree, input, project, findWorkspaceApp(tree, project, { folder: input.package }));
  },
  declareSettings: declareNodeDatabase,
};

/** Starts what npx would start. */
function planPublished(
  tree: Tree,
  input: PlanInput,
  project: NodeProject,
  { main }: PublishedPackage,
): Recipe | undefined {
  const app = toKnownApp(input) ?? toCommandedApp(input);
  if (app !== undefined) return planSinglePackage(tree, input, project, app);
  if (main === undefined) return undefined;
  return planSinglePackage(tree, input, project, {
    kind: 'server',
    command: main.command,
    because: `Its program ${main.name} is started, as npx does.`,
    prune: false,
    certainty: 'likely',
    port: findPortOfStartedFile(tree, main.entry),
  });
}

/** What is found before the image is chosen. */
type FoundApp = Pick<NodeImage, 'project' | 'folder' | 'tree' | 'appProject' | 'app' | 'builds'>;

/** If the author specifies the start command, no detection is needed. */
function toCommandedApp({ hasCommand }: PlanInput): NodeApp | undefined {
  return hasCommand
    ? { kind: 'server', command: '', because: 'run.command says how it starts.', prune: false }
    : undefined;
}

function planPackage(
  tree: Tree,
  input: PlanInput,
  project: NodeProject,
  found: WorkspaceApp | Problem | undefined,
): Recipe | Problem | undefined {
  if (found === undefined) return explainMissingStart(tree, project);
  if ('problem' in found) return found;
  const image = { project, folder: found.folder, tree: found.tree, appProject: found.project, app: found.app };
  return createRecipe(tree, input, { ...image, builds: found.builds }, found.because);
}

/** It may be a package of a workspace. */
function planKnownApp(tree: Tree, input: PlanInput, project: NodeProject, app: NodeApp): Recipe | Problem | undefined {
  const folder = input.start?.folder;
  return folder === undefined
    ? planSinglePackage(tree, input, project, app)
    : planPackage(tree, input, project, findWorkspaceApp(tree, project, { folder, app }));
}

/** Starts what was found before. */
function toKnownApp({ start }: PlanInput): NodeApp | undefined {
  if (start === undefined) return undefined;
  const { command, because, certainty, port } = start;
  return { kind: 'server', command, because, prune: !/npm run|node_modules|\bbun\b/.test(command), certainty, port };
}

function planSinglePackage(tree: Tree, input: PlanInput, project: NodeProject, app: NodeApp): Recipe {
  const builds = listBuildCommands(project, app.framework);
  return createRecipe(tree, input, { project, folder: '.', tree, appProject: project, app, builds });
}

function createRecipe(tree: Tree, input: PlanInput, found: FoundApp, where?: string): Recipe {
  const { project, appProject } = found;
  const published = readPublishedPackage(tree);
  const choice = chooseNodeVersion(tree, input, found);
  const { findings, ...data } = planDatabase(found);
  const image = {
    ...found,
    ...data,
    image: choice.image,
    system: selectSystemPackages(collectDependencyNames(project, appProject)),
    git: findGitUse(
      found.tree,
      { ...project.scripts, ...appProject.scripts },
      collectDependencyNames(project, appProject),
    ),
  };
  const { app, migration } = image;
  const literal = app.kind === 'server' ? app.port : undefined;
  const port = input.port ?? literal ?? defaultPort;
  const reason = [
    published === undefined ? `${project.file} makes this a Node app.` : `It is the ${published.title}, as published.`,
    where,
    app.because,
    literal === undefined ? undefined : `Its code listens on port ${literal}.`,
    migration === undefined ? undefined : describeMigration(migration),
    choice.because,
  ]
    .filter((each) => each !== undefined)
    .join(' ');
  return {
    plan: {
      strategy: 'node',
      reason,
      port,
      ...(app.framework === undefined ? {} : { framework: app.framework }),
      certainty: app.certainty ?? 'certain',
      ...(app.otherwise === undefined ? {} : { otherwise: app.otherwise }),
    },
    ...markFixedPort(input, literal),
    dockerfile: renderDockerfile(reason, [...renderBuildStage(input, image), '', ...renderRunStage(image, port)]),
    ignore: listIgnored(tree),
    ...(app.kind === 'files' ? { filesOnly: true } : {}),
    findings: [...choice.findings, ...findings, ...(image.git === undefined ? [] : warnAboutHistory(image.git))],
  };
}

/** Plans what the app's database needs: a migration before the start, and a build that works without one. */
function planDatabase({
  tree,
  app,
  appProject,
}: FoundApp): Pick<NodeImage, 'app' | 'addresses' | 'scripts' | 'migration' | 'buildsDatabase'> &
  Pick<Recipe, 'findings'> {
  const scripts = extractDatabaseCommands(appProject.scripts);
  const database = findNodeDatabase(tree, appProject);
  const isOwn = app.kind === 'files' || isMigrating(listStartCommands(app, appProject));
  const migration = isOwn ? undefined : toMigration(database, scripts.migration);
  const addresses = { ...listSampleAddresses(tree), ...listAddressPlaceholders(database) };
  return {
    app: migration === undefined ? app : keepTools(app),
    addresses,
    scripts,
    migration: migration === undefined ? undefined : addProgramPath(migration),
    buildsDatabase: database?.kind === 'sqlite' && isPrerendering(app),
    findings: [...warnAboutSeeds(scripts), ...(isOwn ? [] : warnAboutNodeDatabase(tree, database, migration))],
  };
}

/** A migration needs the tool, which is often a development package, and no standalone server has it. */
function keepTools(app: NodeApp): NodeApp {
  if (app.kind === 'server') return { ...app, prune: false };
  if (app.kind === 'files') return app;
  const command = 'exec node_modules/.bin/next start --hostname 0.0.0.0 --port $PORT';
  return { kind: 'server', framework: app.framework, command, because: app.because, prune: false };
}

function addProgramPath(migration: Migration): Migration {
  const path = 'export PATH=$PWD/node_modules/.bin:/app/node_modules/.bin:$PATH';
  return { ...migration, command: `${path}; ${migration.command}` };
}

/** Whether its build may generate pages from the database. */
function isPrerendering({ framework }: NodeApp): boolean {
  return ['Next.js', 'Nuxt', 'SvelteKit', 'Astro'].includes(framework ?? '');
}

/** Prefers the version that the root requests over that of the package. */
function chooseNodeVersion(
  tree: Tree,
  { missingImages }: PlanInput,
  { project, appProject, tree: ownTree, folder }: FoundApp,
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
