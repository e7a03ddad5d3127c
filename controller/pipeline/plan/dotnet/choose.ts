// Chooses the project of a .NET repository that serves HTTP, or explains why there is none.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import type { Problem } from '../recipe.ts';
import type { DotnetProject, ProjectKind } from './project.ts';

export interface ChosenProject {
  readonly project: DotnetProject;
  /** Other programs that serve HTTP and are not started. */
  readonly others: readonly DotnetProject[];
  /** Whether it, or a project that it references, has pages. */
  readonly hasPages: boolean;
}

/** Folders of samples, tests and tools next to the app. */
const aside =
  /(?:^|\/)(?:samples?|examples?|demos?|docs?|tools?|build|scripts|templates?|playgrounds?|sandbox|sample-?sites?)\//i;
const page = /\.(?:cshtml|razor|vbhtml)$|(?:^|\/)wwwroot\/index\.html$/i;

export function chooseProject(tree: Tree, projects: readonly DotnetProject[]): ChosenProject | Problem {
  const webs = selectRoots(selectKind(projects, 'web'), projects);
  const candidates = webs.length > 0 ? webs : selectRoots(selectKind(projects, 'wasm'), projects);
  const [only, ...more] = candidates;
  if (only === undefined || isLibraryWithExamples(candidates, projects)) return createNoServerProblem(projects);
  if (more.length === 0) return toChosenProject(tree, only, [], projects);
  const orchestrated = findOrchestrator(projects, candidates);
  if (orchestrated !== undefined) return createSeveralAppsProblem(candidates, orchestrated);
  const withPages = candidates.filter((each) => hasPages(tree, each, projects));
  const best = withPages.length === 1 ? withPages[0] : findNamedProject(tree, candidates);
  return best === undefined
    ? createSeveralAppsProblem(candidates)
    : toChosenProject(
        tree,
        best,
        candidates.filter((each) => each !== best),
        projects,
      );
}

/** In a library's repository, web apps only demonstrate the library. */
function isLibraryWithExamples(candidates: readonly DotnetProject[], projects: readonly DotnetProject[]): boolean {
  return (
    candidates.every(({ path }) => aside.test(path)) &&
    projects.some(({ path, kind }) => kind === 'library' && !aside.test(path))
  );
}

function toChosenProject(
  tree: Tree,
  project: DotnetProject,
  others: readonly DotnetProject[],
  projects: readonly DotnetProject[],
): ChosenProject {
  return { project, others, hasPages: hasPages(tree, project, projects) };
}

/** Selects the projects of a kind. Samples and build tools count only if there is nothing else. */
function selectKind(projects: readonly DotnetProject[], kind: ProjectKind): readonly DotnetProject[] {
  const found = projects.filter((each) => each.kind === kind);
  const main = found.filter(({ path }) => !aside.test(path));
  return main.length > 0 ? main : found;
}

/** Excludes projects that another program references, because they are part of it. */
function selectRoots(candidates: readonly DotnetProject[], projects: readonly DotnetProject[]): DotnetProject[] {
  const programs = projects.filter(({ kind }) => kind === 'web' || kind === 'wasm');
  const free = candidates.filter(
    ({ path }) => !programs.some((each) => each.path !== path && each.references.includes(path)),
  );
  return free.length > 0 ? free : [...candidates];
}

function hasPages(tree: Tree, project: DotnetProject, projects: readonly DotnetProject[]): boolean {
  const parts = [project, ...projects.filter(({ path }) => project.references.includes(path))];
  return (
    /<SpaRoot>|\.esproj"/.test(project.text) ||
    parts.some(({ kind }) => kind === 'wasm') ||
    parts.some(({ folder }) =>
      tree.entries.some(({ path }) => (folder === '.' || path.startsWith(`${folder}/`)) && page.test(path)),
    )
  );
}

/** Finds the Aspire host that starts several of them together. */
function findOrchestrator(
  projects: readonly DotnetProject[],
  candidates: readonly DotnetProject[],
): DotnetProject | undefined {
  return projects.find(
    ({ kind, references }) => kind === 'host' && candidates.filter(({ path }) => references.includes(path)).length > 1,
  );
}

/** Finds the project that the README starts, or that is named like the solution. */
function findNamedProject(tree: Tree, candidates: readonly DotnetProject[]): DotnetProject | undefined {
  const readme =
    tree.readFile(
      ['README.md', 'readme.md', 'README.MD', 'Readme.md'].find((each) => tree.has(each)) ?? '',
      128 * 1024,
    ) ?? '';
  const started = [
    ...readme.matchAll(/\bdotnet\s{1,3}(?:run|watch)\b[^\n`]{0,80}?(?:--project|-p)[ =]["']?([\w./\\-]{1,200})/g),
  ].map(([, path = '']) => posix.normalize(path.replaceAll('\\', '/')).replace(/\/$/, ''));
  const startedProjects = candidates.filter(({ path, folder }) =>
    started.some((each) => each === path || each === folder),
  );
  if (startedProjects.length === 1) return startedProjects[0];
  const solutions = tree.entries
    .filter(({ path }) => /^[^/]+\.slnx?$/.test(path))
    .map(({ path }) => path.replace(/\.slnx?$/, ''));
  const alike = candidates.filter(({ name }) => solutions.some((each) => each.toLowerCase() === name.toLowerCase()));
  return alike.length === 1 ? alike[0] : undefined;
}

function createSeveralAppsProblem(candidates: readonly DotnetProject[], host?: DotnetProject): Problem {
  const paths = candidates.slice(0, 6).map(({ folder, path }) => (folder === '.' ? path : folder));
  const more = candidates.length > 6 ? `, and ${candidates.length - 6} more` : '';
  const reason = host === undefined ? 'and nothing says which of them to host' : `which ${host.path} starts together`;
  return {
    problem: {
      rule: 'plan/several-apps',
      severity: 'error',
      file: host?.path ?? candidates[0]?.path,
      message: `The repository has several .NET web apps, ${reason}: ${paths.join(', ')}${more}. One app here is one image with one process that is reached from outside.`,
      fix: `Host one of them: put source.path with its folder, such as ${paths[0] ?? '.'}, in moorage.yaml if it needs none of the other projects; or add a Dockerfile that builds one image that starts them all.`,
    },
  };
}

const whats: Readonly<Record<ProjectKind, string>> = {
  web: '',
  wasm: '',
  function: 'a function for another platform (Azure Functions, AWS Lambda)',
  desktop: 'a desktop or mobile app',
  framework: 'an app of the .NET Framework, which runs on Windows alone',
  console: 'a console program or worker',
  host: 'an Aspire host without a web project',
  library: 'a library',
  test: 'a project of tests',
};
const order: readonly ProjectKind[] = ['function', 'desktop', 'console', 'framework', 'host', 'library', 'test'];

function createNoServerProblem(projects: readonly DotnetProject[]): Problem {
  const kind = order.find((each) => selectKind(projects, each).length > 0) ?? 'library';
  const file = selectKind(projects, kind)[0]?.path;
  return {
    problem: {
      rule: kind === 'desktop' ? 'plan/desktop-app' : 'plan/no-server',
      severity: 'error',
      ...(file === undefined ? {} : { file }),
      message: `This is .NET, but none of its projects is a web app (Microsoft.NET.Sdk.Web): ${file ?? 'it'} is ${whats[kind]}.`,
      fix: 'Submit the project that answers HTTP, or add a Dockerfile that starts a server on 0.0.0.0 and $PORT.',
    },
  };
}
