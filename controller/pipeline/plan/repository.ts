// Plans a whole repository: what its moorage.yaml says, where in it the app is, and how that is built.
import type { AppManifest } from '../../../crds/app-manifest.ts';
import type { PipelineInput } from '../contract.ts';
import { mergeManifest } from '../manifest/merge.ts';
import { head } from '../text.ts';
import type { Tree } from '../tree.ts';
import { appFolder } from './folder.ts';
import { makePlan } from './plan.ts';
import type { Recipe } from './recipe.ts';

export interface LocatedApp {
  /** What the stages work with, with the folder that was found. */
  readonly input: PipelineInput;
  /** What moorage.yaml says. */
  readonly settings: AppManifest | undefined;
  /** Says where the app is, when it is not where it was looked for first. */
  readonly note?: string;
}

/** Finds the app in the tree of a repository. */
export function locateApp(asked: PipelineInput, tree: Tree): LocatedApp {
  const { input, settings } = mergeManifest(asked, tree);
  const path = appFolder(tree, input);
  if (path === input.path) return { input, settings };
  return {
    input: { ...input, path },
    settings,
    note: `The app is in the folder ${path}, the only one that contains an app.`,
  };
}

/** @throws Rejected when nothing fits, or something is missing */
export function planApp(tree: Tree, { input, note }: LocatedApp): Recipe {
  const recipe = makePlan(tree.below(input.path), input);
  if (note === undefined) return recipe;
  return { ...recipe, plan: { ...recipe.plan, reason: head(`${note} ${recipe.plan.reason}`, 390) } };
}
