// Leaves the plan, and the Dockerfile where Moorage wrote one, for the build stage.
import { mkdir, realpath, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { PipelineInput } from '../contract.ts';
import { writeNotes } from '../handover.ts';
import type { WorkspacePaths } from '../config.ts';
import { readDiskTree } from '../tree.ts';
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
  const authored = readDiskTree(context).text('.dockerignore') ?? '';
  await writeFile(`${dockerfile}.dockerignore`, ignoreText(recipe, authored));
  await writeNotes(paths.notes, 'plan', { plan: recipe.plan, authored: false, context, dockerfile });
}

/** What plans install by, and the README, which packages of Python and npm name in their manifests. */
const manifests = [
  ...['package.json', 'package-lock.json', 'npm-shrinkwrap.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml', 'yarn.lock'],
  ...['bun.lock', 'bun.lockb', 'deno.json', 'deno.jsonc', 'deno.lock', 'composer.json', 'composer.lock'],
  ...[
    'requirements*.txt',
    'pyproject.toml',
    'uv.lock',
    'poetry.lock',
    'Pipfile',
    'Pipfile.lock',
    'setup.py',
    'setup.cfg',
  ],
  ...[
    'go.mod',
    'go.sum',
    'Cargo.toml',
    'Cargo.lock',
    'pom.xml',
    'mvnw',
    'gradlew',
    'build.gradle*',
    'settings.gradle*',
  ],
  ...['Gemfile', 'Gemfile.lock', '.ruby-version', '*.gemspec', 'Rakefile', 'config.ru'],
  'README*',
];

/** The author's patterns were written for another Dockerfile: what this one builds and installs by stays in the context. */
function ignoreText({ ignore = [], builds = [] }: Recipe, authored: string): string {
  if (authored === '') return [...ignore, ''].join('\n');
  const folders = builds.filter((folder) => folder !== '.');
  const kept = [...folders, ...manifests].map((path) => `!${path}`);
  // The last pattern that matches counts: what is never wanted of a folder that is kept comes after it.
  return [...ignore, authored, ...kept, ...(folders.length === 0 ? [] : ignore), ''].join('\n');
}
