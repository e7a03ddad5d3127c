// Finds the app among a workspace's packages (npm, pnpm, Yarn or Bun, with or without Turborepo).
import { posix } from 'node:path';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { parseYaml, parseJson, readTexts } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import type { Problem } from '../recipe.ts';
import type { NodeApp } from './app.ts';
import { readProject, type NodeProject } from './project.ts';
import { runScript } from './manager.ts';
import { buildCommandInFolder, listBuildCommands } from './stages.ts';
import { findApp, findsPrograms, findWatchedStart, isPageServer } from './start.ts';

interface Package {
  readonly folder: string;
  readonly tree: Tree;
  readonly project: NodeProject;
}

export interface WorkspaceApp extends Package {
  readonly app: NodeApp;
  readonly builds: readonly string[];
  /** Names the chosen package and the reason. */
  readonly because: string;
}

export type AppPackage = Package & { readonly app: NodeApp };

const maximumPackages = 100;
/** Packages that demonstrate, test or document the others. */
const aside =
  /(?:^|\/)(?:docs?|documentation|website|www-docs|storybook|e2e\w{0,10}|tests?|examples?|samples?|templates?|playgrounds?|demos?|mobile|native|expo|desktop|electron|extensions?|chrome\w{0,12}|vscode\w{0,12}|cli|landing|marketing|blog)(?:[-/]|$)/i;
/** Start scripts that watch, test or preview, and do not serve users. */
const watches = /(?:--watch|\s-w\b|\b(?:nodemon|tsup|microbundle|storybook|jest|vitest|expo|electron|tsc)\b)/;

/**
 * Finds the only app of a workspace, or that in the folder that is asked for, of which the app may be known; undefined if
 * its packages contain none.
 */
export function findWorkspaceApp(
  tree: Tree,
  top: NodeProject,
  wanted: WantedPackage = {},
): WorkspaceApp | Problem | undefined {
  if (!top.isWorkspace) return undefined;
  const packages = listPackages(tree);
  const apps = detectApps(packages);
  const own = chooseFolder(wanted, apps, packages);
  if (own !== undefined) return addBuilds(own, packages, top, describeRole(wanted));
  const servers = apps.filter(({ app }) => app.kind !== 'files');
  const only = servers.length === 1 && servers[0] !== undefined ? selectServerWithPages(servers[0], apps) : undefined;
  const chosen = only ?? (servers.length === 0 && apps.length === 1 ? apps[0] : undefined);
  if (chosen !== undefined) return addBuilds(chosen, packages, top);
  return apps.length === 0 ? undefined : { problem: createSeveralAppsFinding(apps) };
}

interface WantedPackage {
  readonly folder?: string | undefined;
  readonly app?: NodeApp | undefined;
}

function chooseFolder(
  { folder, app }: WantedPackage,
  apps: readonly AppPackage[],
  packages: readonly Package[],
): AppPackage | undefined {
  if (folder === undefined) return undefined;
  const own = packages.find((each) => each.folder === folder);
  return own === undefined || app === undefined ? apps.find((each) => each.folder === folder) : { ...own, app };
}

function describeRole({ app }: WantedPackage): string {
  return app === undefined ? 'is the component' : 'has the MCP server';
}

/** A server next to pages is the app only if the pages are separate packages. */
function selectServerWithPages(server: AppPackage, apps: readonly AppPackage[]): AppPackage | undefined {
  const otherApps = apps.filter((each) => each !== server);
  return otherApps.every(({ project: { name } }) => name !== undefined && server.project.dependencies.has(name))
    ? server
    : undefined;
}

/** Detects what a package is from its own files: a main file alone makes it a library. */
function detectApp({ tree, project }: Package): NodeApp | undefined {
  // Bundlers are often installed only at the root.
  const usesVite = ['ts', 'js', 'mts', 'mjs'].some((each) => tree.has(`vite.config.${each}`));
  const dependencies = usesVite ? new Set([...project.dependencies, 'vite']) : project.dependencies;
  const app = findApp(tree, { ...project, dependencies });
  if (app === undefined) return undefined;
  if (app.kind === 'files') return app.framework === 'Vite' && !tree.has('index.html') ? undefined : app;
  // The location of a standalone server depends on the root that Next.js infers; next start serves the same pages.
  if (app.kind === 'standalone' || app.command.includes('.bin/next ')) return createNextApp('Next.js', app.because);
  return isServer(app, project.scripts['start']) || findWatchedStart(tree, project) !== undefined ? app : undefined;
}

function createNextApp(framework: string, because: string): NodeApp {
  const command = `${findsPrograms}; exec next start --hostname 0.0.0.0 --port $PORT`;
  return { kind: 'server', framework, command, because, prune: false };
}

function isServer({ framework }: NodeApp, start: string | undefined): boolean {
  return start === undefined ? framework !== undefined && isPageServer(framework) : !watches.test(start);
}

function detectApps(packages: readonly Package[]): AppPackage[] {
  return packages.flatMap((each): AppPackage[] => {
    const app = aside.test(each.folder) ? undefined : detectApp(each);
    return app === undefined ? [] : [{ ...each, app }];
  });
}

/** Lists the apps among the packages of the workspace at the root of a tree. */
export function listWorkspaceApps(tree: Tree): readonly AppPackage[] {
  return readProject(tree)?.isWorkspace === true ? detectApps(listPackages(tree)) : [];
}

/**
 * Returns whether a folder is a package of the workspace at the root: it is then planned from there, with its folder as
 * the package, since the root has the lock file and the packages that it depends on.
 */
export function isWorkspacePackage(tree: Tree, folder: string): boolean {
  const hasOwn = ['Dockerfile', ...lockFiles].some((name) => tree.has(posix.join(folder, name)));
  return (
    !hasOwn && readProject(tree)?.isWorkspace === true && listPackages(tree).some((each) => each.folder === folder)
  );
}

const lockFiles = ['package-lock.json', 'pnpm-lock.yaml', 'yarn.lock', 'bun.lock', 'bun.lockb'];

function addBuilds(
  chosen: AppPackage,
  packages: readonly Package[],
  top: NodeProject,
  why = `is the only ${chosen.app.kind === 'files' ? 'web app' : 'server'} of this workspace`,
): WorkspaceApp {
  const name = chosen.project.name ?? chosen.folder;
  const appCommands = listBuildCommands({ ...chosen.project, manager: top.manager }, chosen.app.framework);
  const needed = listDependencies(chosen, packages).filter(({ project }) => project.scripts['build'] !== undefined);
  const builds =
    top.dependencies.has('turbo') && chosen.project.name !== undefined && appCommands.length > 0
      ? [
          `TURBO_TELEMETRY_DISABLED=1 TURBO_ENV_MODE=loose node_modules/.bin/turbo run build --filter=${chosen.project.name}`,
        ]
      : [
          ...needed.map(({ folder }) => buildCommandInFolder(folder, runScript(top.manager, 'build'))),
          ...appCommands.map((build) => buildCommandInFolder(chosen.folder, addProgramPath(build))),
        ];
  return {
    ...chosen,
    builds,
    because: `The package ${name} in ${chosen.folder} ${why}.`,
  };
}

/** `npm run` finds programs by itself; commands called without it do not. */
function addProgramPath(build: string): string {
  return build.startsWith('node_modules/.bin/')
    ? `${findsPrograms} && ${build.slice('node_modules/.bin/'.length)}`
    : build;
}

/** Lists the workspace packages that a package depends on, each after its own dependencies. */
function listDependencies(chosen: Package, packages: readonly Package[]): Package[] {
  const byName = new Map(packages.map((each) => [each.project.name, each]));
  const ordered: Package[] = [];
  const seen = new Set<Package>([chosen]);
  const visit = ({ project }: Package): void => {
    for (const name of project.dependencies) {
      const needed = byName.get(name);
      if (needed === undefined || seen.has(needed)) continue;
      seen.add(needed);
      visit(needed);
      ordered.push(needed);
    }
  };
  visit(chosen);
  return ordered;
}

function createSeveralAppsFinding(apps: readonly AppPackage[]): Finding {
  const appList = apps
    .slice(0, 6)
    .map(({ folder, app }) => `${folder} (${app.framework ?? (app.kind === 'files' ? 'a web app' : 'a server')})`);
  return {
    rule: 'plan/several-apps',
    severity: 'error',
    file: 'package.json',
    message: `The workspace has several apps, and nothing says which of them to host: ${appList.join(', ')}${apps.length > 6 ? ', …' : ''}.`,
    fix: 'Add a "start" script at the top level that starts the one to host (and a "build" script that builds it), or a Dockerfile at the top level.',
  };
}

/** Lists packages that may be apps, without those that demonstrate, test or document the others. */
export function listAppPackages(tree: Tree): Pick<Package, 'folder' | 'tree'>[] {
  return listPackages(tree).filter(({ folder }) => !aside.test(folder));
}

function listPackages(tree: Tree): Package[] {
  const patterns = readPatterns(tree);
  const included = patterns.filter((each) => !each.startsWith('!')).map(toFolderPattern);
  const excluded = patterns.filter((each) => each.startsWith('!')).map((each) => toFolderPattern(each.slice(1)));
  return tree.entries
    .filter((each) => each.kind === 'file' && posix.basename(each.path) === 'package.json' && each.path.includes('/'))
    .map((each) => posix.dirname(each.path))
    .filter((folder) => !/(?:^|\/)node_modules(?:\/|$)/.test(folder))
    .filter((folder) => included.some((each) => each.test(folder)) && !excluded.some((each) => each.test(folder)))
    .slice(0, maximumPackages)
    .flatMap((folder) => {
      const below = tree.getSubtree(folder);
      const project = readProject(below);
      return project === undefined ? [] : [{ folder, tree: below, project }];
    });
}

function readPatterns(tree: Tree): string[] {
  const manifest = parseJson(tree.readFile('package.json'));
  const npmPatterns = [...readTexts(manifest, 'workspaces'), ...readTexts(manifest, 'workspaces', 'packages')];
  const listed =
    npmPatterns.length > 0
      ? npmPatterns
      : readTexts(parseYaml(tree.readFile('pnpm-workspace.yaml', 64 * 1024)), 'packages');
  return listed.slice(0, 50).filter((each) => each.length <= 200);
}

/** Converts a folder pattern: * matches within a name, ** across folders. */
function toFolderPattern(pattern: string): RegExp {
  const parts = posix
    .normalize(pattern)
    .replace(/^\.\/|\/$/g, '')
    .split('/')
    .map((part) =>
      part === '**' ? '.*' : part.replace(/[.+?^${}()|[\]\\]/g, String.raw`\$&`).replace(/\*+/g, '[^/]*'),
    );
  return new RegExp(`^${parts.join('/')}$`);
}
