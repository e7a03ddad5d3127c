// Leaves the plan, and the Dockerfile where Moorage wrote one, for the build stage.
import { mkdir, realpath, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { PipelineInput } from '../contract.ts';
import { writeNotes } from '../notes.ts';
import type { WorkspacePaths } from '../config.ts';
import { diskTree } from '../tree.ts';
import type { Recipe } from './recipe.ts';

/** Writes plan.json and, for planned images, Dockerfile and Dockerfile.dockerignore into the notes. */
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
      // It may be a link to a file of the repository, as the review has seen.
      dockerfile: await realpath(join(paths.source, posix.join(input.path, input.build.dockerfile))),
    });
    return;
  }
  const dockerfile = join(paths.notes, 'Dockerfile');
  await mkdir(paths.notes, { recursive: true });
  await writeFile(dockerfile, recipe.dockerfile);
  const authored = diskTree(context).text('.dockerignore') ?? '';
  await writeFile(`${dockerfile}.dockerignore`, `${(recipe.ignore ?? []).join('\n')}\n${authored}\n`);
  await writeNotes(paths.notes, 'plan', { plan: recipe.plan, authored: false, context, dockerfile });
}
