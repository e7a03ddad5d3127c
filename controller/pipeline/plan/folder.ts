// Finds the app's folder in a repository that keeps it below the root, and rejects a folder that is only half of an
// app.
import type { Finding } from '../../../crds/hosted-app.ts';
import { languages } from '../../../crds/languages.ts';
import { Rejected } from '../contract.ts';
import { parseJson, readField } from '../manifest.ts';
import { keepHead } from '../text.ts';
import type { Tree } from '../tree.ts';
import { findWholeDockerfile } from './dockerfile/find.ts';
import { findMarkers, listAppFolders, makePlan } from './plan.ts';
import { readCompose } from './platforms/compose/read.ts';
import { toFolder } from './platforms/compose/services.ts';
import type { PlanInput, Recipe } from './recipe.ts';

const maximumTried = 20;
const maximumNamed = 6;

interface AppFolder {
  readonly path: string;
  /** Reason why no folder was chosen. */
  readonly problem?: Finding;
  /** Warnings for the author about the choice. */
  readonly warnings: readonly Finding[];
}

/** A folder that may hold an app. */
export interface Candidate {
  readonly folder: string;
  /** Absent: Moorage cannot plan it. */
  readonly recipe?: Recipe;
  /** Description, such as "Python, FastAPI". */
  readonly what: string;
  readonly kind: 'server' | 'files' | 'unplanned';
  readonly strategy?: string;
  /** Moorage can plan its language, but something is missing. */
  readonly isPlanned?: boolean;
}

/**
 * Finds the folder to plan: source.path if the author chose one, also the root itself; the root if it contains an app, or else the only folder below it with
 * an app. If there are several, or only half an app, the author has to choose.
 */
export function findAppFolder(tree: Tree, input: PlanInput, isPathChosen = false): AppFolder {
  const { strategy, dockerfile } = input.build;
  const top = { path: input.path, warnings: [] };
  if (isPathChosen || input.path !== '.' || dockerfile !== 'Dockerfile' || strategy === 'dockerfile') return top;
  const recipe = tryPlan(tree, input);
  if (typeof recipe !== 'string') return strategy === 'auto' ? searchBesideTop(tree, input, recipe) : top;
  return canBeBelow(tree, input, recipe) ? searchBelowTop(tree, input) : top;
}

/** A problem at the root must be fixed there. The app can be below only if the root has no app. */
function canBeBelow(tree: Tree, { build }: PlanInput, rule: string): boolean {
  const isForeign = build.strategy === 'auto' && findMarkers(tree).length > 0;
  return ['plan/unknown', 'plan/no-start'].includes(rule) && !isForeign && !isWorkspace(tree);
}

function searchBelowTop(tree: Tree, input: PlanInput): AppFolder {
  const top = { path: '.', warnings: [] };
  const candidates = listCandidates(tree, input);
  const [only, ...more] = candidates;
  if (only === undefined) return top;
  if (more.length > 0) return { ...top, problem: createSeveralAppsFinding(tree, candidates) };
  // A planned language explains itself what is missing.
  return only.kind === 'unplanned' && only.isPlanned !== true
    ? { ...top, problem: createUnplannedFinding(only) }
    : { ...top, path: only.folder };
}

/** Finds what the root's plan omits: a server next to pages, or pages next to a server. */
function searchBesideTop(tree: Tree, input: PlanInput, recipe: Recipe): AppFolder {
  const top = { path: '.', warnings: [] };
  if (recipe.plan.strategy === 'dockerfile') return top;
  // Packages of a workspace belong to the plan of its root.
  const isPart = ({ strategy }: Candidate): boolean => strategy === 'node' && isWorkspace(tree);
  const isBuilt = ({ folder }: Candidate): boolean => recipe.builds?.includes(folder) === true;
  const candidates = listCandidates(tree, input).filter((each) => !isPart(each) && !isBuilt(each));
  // Pages in a folder such as docs are the app only if there is nothing else.
  if (recipe.plan.strategy === 'static' && !tree.has('index.html') && candidates.length > 0)
    return searchBelowTop(tree, input);
  if (recipe.filesOnly !== true) {
    const pages = candidates.filter((each) => each.kind === 'files');
    return recipe.callsOnly === true && pages.length > 0
      ? {
          ...top,
          problem: createSeveralAppsFinding(tree, [{ folder: '.', what: describe(recipe), kind: 'server' }, ...pages]),
        }
      : { ...top, warnings: pages.map(createUnbuiltFinding) };
  }
  const servers = candidates.filter((each) => each.kind !== 'files');
  if (servers.length === 0) return top;
  return {
    ...top,
    problem: createSeveralAppsFinding(tree, [{ folder: '.', what: describe(recipe), kind: 'files' }, ...servers]),
  };
}

/** Lists the folders below the root that may hold an app. */
export function listCandidates(tree: Tree, input: PlanInput): Candidate[] {
  return listAppFolders(tree)
    .slice(0, maximumTried)
    .flatMap((folder): Candidate[] => {
      const below = tree.getSubtree(folder);
      const recipe = tryPlan(below, { ...input, path: folder });
      if (typeof recipe !== 'string') {
        const kind = recipe.filesOnly === true ? 'files' : 'server';
        return recipe.plan.strategy === 'static'
          ? []
          : [{ folder, recipe, what: describe(recipe), kind, strategy: recipe.plan.strategy }];
      }
      const marker = input.build.strategy === 'auto' ? findMarkers(below)[0] : undefined;
      return marker === undefined
        ? []
        : [
            {
              folder,
              what: `${marker.title}, by ${marker.file}`,
              kind: 'unplanned',
              isPlanned: marker.name !== undefined,
            },
          ];
    });
}

function describe({ plan: { strategy, framework } }: Recipe): string {
  const what = strategy === 'dockerfile' ? 'a Dockerfile' : languages[strategy].title;
  return framework === undefined ? what : `${what}, ${framework}`;
}

function createSeveralAppsFinding(tree: Tree, candidates: readonly Candidate[]): Finding {
  const candidateList = candidates
    .slice(0, maximumNamed)
    .map(({ folder, what }) => `${folder === '.' ? 'the top' : folder} (${what})`);
  const more = candidates.length > candidateList.length ? `, and ${candidates.length - candidateList.length} more` : '';
  const folders = candidates.map((each) => each.folder);
  const folder = folders.find((each) => each !== '.') ?? '.';
  const isTop = folders.includes('.');
  const host = `host one of them: put source.path with its folder, such as ${folder}${isTop ? ', or source.path: . for the top alone' : ''}, in moorage.yaml.`;
  return {
    rule: 'plan/several-apps',
    severity: 'error',
    message: `The repository has several apps, and nothing says which of them to host: ${candidateList.join(', ')}${more}.`,
    fix: keepHead(`${suggestWhole(tree, folders)}, or ${host}`, 590),
  };
}

/** Suggests the file of the repository that starts all parts together, or one that the author can write. */
function suggestWhole(tree: Tree, folders: readonly string[]): string {
  const dockerfile = findWholeDockerfile(tree, folders);
  if (dockerfile !== undefined)
    return `${dockerfile} builds them into one image: set build.dockerfile: ${dockerfile} in moorage.yaml`;
  const write =
    'Add a Dockerfile at the top level that builds them into one image (the server also serving the built pages)';
  const compose = findWholeCompose(tree, folders);
  return compose === undefined
    ? write
    : `${compose} starts them in a container each; an app here is one container. ${write}`;
}

/** Finds the compose file if it builds at least two of the folders. */
function findWholeCompose(tree: Tree, folders: readonly string[]): string | undefined {
  const compose = readCompose(tree);
  const contexts = new Set(
    compose?.services.flatMap(({ build }) => (build === undefined ? [] : [toFolder(build.context)])),
  );
  return folders.filter((folder) => contexts.has(folder)).length > 1 ? compose?.file : undefined;
}

function createUnplannedFinding({ folder, what }: Candidate): Finding {
  return {
    rule: 'plan/unknown',
    severity: 'error',
    message: `The app in the folder ${folder} (${what}) is of a language that Moorage cannot plan yet.`,
    fix: `Add a Dockerfile at the top level, or one in ${folder}.`,
  };
}

function createUnbuiltFinding({ folder, what }: Candidate): Finding {
  return {
    rule: 'plan/unbuilt',
    severity: 'warning',
    file: folder,
    message: `This folder (${what}) is not built: the plan is for the server at the top level alone.`,
    fix: `If the server serves what ${folder} builds to, commit that, let the build of the server make it, or add a Dockerfile that does both.`,
  };
}

/** Returns the plan, or the rule that prevented it. */
export function tryPlan(tree: Tree, input: PlanInput): Recipe | string {
  try {
    return makePlan(tree, input);
  } catch (error) {
    if (error instanceof Rejected) return error.findings[0].rule;
    throw error;
  }
}

/** Packages of a workspace are installed from its root, so none of them is an app by itself. */
export function isWorkspace(tree: Tree): boolean {
  return (
    tree.has('pnpm-workspace.yaml') || readField(parseJson(tree.readFile('package.json')), 'workspaces') !== undefined
  );
}
