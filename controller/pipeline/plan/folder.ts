// Finds the folder of the app in a repository that keeps it below its top.
import { field, parseJson } from '../manifest.ts';
import { Rejected } from '../outcome.ts';
import type { Tree } from '../tree.ts';
import { appFolders } from './below.ts';
import { makePlan } from './plan.ts';
import type { PlanInput, Recipe } from './recipe.ts';

const maximumTried = 20;

/**
 * Folder to plan: source.path where it is set, or its top has an app; else the only folder below in which an app is
 * found.
 * Where there are none or several it is the top, and its plan says so.
 */
export function appFolder(tree: Tree, input: PlanInput): string {
  if (
    input.path !== '.' ||
    input.build.dockerfile !== 'Dockerfile' ||
    attempt(tree, input) !== undefined ||
    isWorkspace(tree)
  )
    return input.path;
  const folders = appFolders(tree)
    .slice(0, maximumTried)
    .filter((folder) => {
      const strategy = attempt(tree.below(folder), { ...input, path: folder })?.plan.strategy;
      return strategy !== undefined && strategy !== 'static';
    });
  return folders.length === 1 ? (folders[0] ?? '.') : '.';
}

function attempt(tree: Tree, input: PlanInput): Recipe | undefined {
  try {
    return makePlan(tree, input);
  } catch (error) {
    if (error instanceof Rejected) return undefined;
    throw error;
  }
}

/** Packages of a workspace are installed from its top, so none of them is an app by itself. */
function isWorkspace(tree: Tree): boolean {
  return tree.has('pnpm-workspace.yaml') || field(parseJson(tree.text('package.json')), 'workspaces') !== undefined;
}
