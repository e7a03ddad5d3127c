// Plans a repository: reads moorage.yaml, finds the app's folder, plans its build, and writes the files for the build
// stage.
import { mkdir, realpath, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { ReportedSettings } from '../../../crds/app-manifest.ts';
import type { Finding } from '../../../crds/hosted-app.ts';
import { type WorkspacePaths, type PipelineInput, Rejected } from '../contract.ts';
import { writeNotes } from '../handover.ts';
import { mergeManifest } from '../app-manifest.ts';
import { keepHead } from '../text.ts';
import type { Tree } from '../tree.ts';
import { findDockerfile, type FoundDockerfile } from './dockerfile/find.ts';
import { findAppFolder } from './folder.ts';
import { makePlan } from './plan.ts';
import type { Recipe } from './recipe.ts';

interface LocatedApp {
  /** The stages' input, with the folder and the Dockerfile that were found. */
  readonly input: PipelineInput;
  /** Settings from moorage.yaml and, below them, from files for other platforms. */
  readonly settings: ReportedSettings | undefined;
  /** Findings about files for other platforms. */
  readonly platform: readonly Finding[];
  /** Names the app's folder if it is not the expected one. */
  readonly note?: string;
  /** Reason why it cannot be planned, regardless of the folder's files. */
  readonly problem?: Finding;
  readonly warnings: readonly Finding[];
}

/** Finds the app in a repository's tree. */
export function locateApp(baseInput: PipelineInput, tree: Tree): LocatedApp {
  const { input, settings, findings: platform } = mergeManifest(baseInput, tree);
  const authoredBuild = findAuthoredBuild(tree, input, 'certain');
  if (authoredBuild !== undefined) return { ...authoredBuild, settings, platform, warnings: [] };
  const { path, problem, warnings } = findAppFolder(tree, input);
  const last = problem === undefined && path === input.path ? findUncertainBuild(tree, input) : undefined;
  if (last !== undefined) return { ...last, settings, platform, warnings };
  return {
    input: { ...input, path },
    settings,
    platform,
    warnings,
    ...(problem === undefined ? {} : { problem }),
    ...(path === input.path ? {} : { note: `The app is in the folder ${path}, the only one that contains an app.` }),
  };
}

/** @throws Rejected if no plan matches, or something is missing */
export function planApp(tree: Tree, { input, note, problem, warnings }: LocatedApp): Recipe {
  if (problem !== undefined) throw new Rejected([problem]);
  const recipe = makePlan(tree.getSubtree(input.path), input);
  const reason = note === undefined ? recipe.plan.reason : keepHead(`${note} ${recipe.plan.reason}`, 390);
  return { ...recipe, plan: { ...recipe.plan, reason }, findings: [...warnings, ...recipe.findings] };
}

type AuthoredBuild = Pick<LocatedApp, 'input' | 'note'>;

/** Finds an author's Dockerfile that is not at the root of source.path. */
function findAuthoredBuild(tree: Tree, input: PipelineInput, certainty: 'certain' | 'any'): AuthoredBuild | undefined {
  const { strategy, dockerfile } = input.build;
  const below = tree.getSubtree(input.path);
  if (dockerfile !== 'Dockerfile' || (strategy !== 'auto' && strategy !== 'dockerfile')) return undefined;
  const found = below.getEntry(dockerfile) === undefined ? findDockerfile(below) : undefined;
  return found === undefined || (certainty === 'certain' && !found.certain) ? undefined : toAuthoredBuild(input, found);
}

function toAuthoredBuild(input: PipelineInput, { path, others }: FoundDockerfile): AuthoredBuild {
  const note =
    others.length === 0 ? undefined : `Of ${[path, ...others].slice(0, 4).join(', ')} the first names the app best.`;
  return {
    input: { ...input, build: { ...input.build, dockerfile: path } },
    ...(note === undefined ? {} : { note }),
  };
}

/** A Dockerfile with an unusual name counts only if nothing else can be planned. */
function findUncertainBuild(tree: Tree, input: PipelineInput): AuthoredBuild | undefined {
  try {
    makePlan(tree.getSubtree(input.path), input);
    return undefined;
  } catch (error) {
    if (!(error instanceof Rejected)) throw error;
    return findAuthoredBuild(tree, input, 'any');
  }
}

/** Writes plan.json and, for planned images, Dockerfile and Dockerfile.dockerignore to the notes folder. */
export async function writePlan(
  recipe: Recipe,
  input: Pick<PipelineInput, 'path' | 'build'>,
  paths: WorkspacePaths,
): Promise<void> {
  const context = join(paths.source, input.path);
  if (recipe.dockerfile === undefined) {
    await writeNotes(paths.notes, 'plan', {
      plan: recipe.plan,
      authored: true,
      context,
      // May be a link to a file in the repository, which the review has checked.
      dockerfile: await realpath(join(paths.source, posix.join(input.path, input.build.dockerfile))),
    });
    return;
  }
  const dockerfile = join(paths.notes, 'Dockerfile');
  await mkdir(paths.notes, { recursive: true });
  await writeFile(dockerfile, recipe.dockerfile);
  await writeFile(`${dockerfile}.dockerignore`, renderIgnoreFile(recipe));
  await writeNotes(paths.notes, 'plan', { plan: recipe.plan, authored: false, context, dockerfile });
}

/**
 * An author's .dockerignore belongs to a Dockerfile, often one that only copies what was built before, and may exclude
 * sources, manifests and pages that the plan builds. So a plan excludes only its own patterns. NOTE: the file is never
 * empty, because BuildKit would then read the author's.
 */
function renderIgnoreFile({ ignore = [] }: Recipe): string {
  return ['# Planned by Moorage.', ...ignore, ''].join('\n');
}
