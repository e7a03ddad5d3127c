// Plans a whole repository: its moorage.yaml, the folder of the app, how that is built, and the plan's files for the build stage.
import { mkdir, realpath, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { ReportedSettings } from '../../../crds/app-manifest.ts';
import type { Finding } from '../../../crds/hosted-app.ts';
import type { WorkspacePaths } from '../config.ts';
import { type PipelineInput, Rejected } from '../contract.ts';
import { writeNotes } from '../handover.ts';
import { mergeManifest } from '../manifest/merge.ts';
import { keepHead } from '../text.ts';
import { readDiskTree, type Tree } from '../tree.ts';
import { findDockerfile, type FoundDockerfile } from './dockerfile/find.ts';
import { findAppFolder } from './folder.ts';
import { makePlan } from './plan.ts';
import type { Recipe } from './recipe.ts';

interface LocatedApp {
  /** What the stages work with, with the folder and the Dockerfile that were found. */
  readonly input: PipelineInput;
  /** What moorage.yaml says, and beneath it what files for other platforms say. */
  readonly settings: ReportedSettings | undefined;
  /** About what files for other platforms say. */
  readonly platform: readonly Finding[];
  /** Says where the app is, when it is not where it was looked for first. */
  readonly note?: string;
  /** Why it cannot be planned, whatever the files of the folder say. */
  readonly problem?: Finding;
  readonly warnings: readonly Finding[];
}

/** Finds the app in the tree of a repository. */
export function locateApp(baseInput: PipelineInput, tree: Tree): LocatedApp {
  const { input, settings, findings: platform } = mergeManifest(baseInput, tree);
  const own = findAuthoredBuild(tree, input, 'certain');
  if (own !== undefined) return { ...own, settings, platform, warnings: [] };
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

/** @throws Rejected when nothing fits, or something is missing */
export function planApp(tree: Tree, { input, note, problem, warnings }: LocatedApp): Recipe {
  if (problem !== undefined) throw new Rejected([problem]);
  const recipe = makePlan(tree.below(input.path), input);
  const reason = note === undefined ? recipe.plan.reason : keepHead(`${note} ${recipe.plan.reason}`, 390);
  return { ...recipe, plan: { ...recipe.plan, reason }, findings: [...warnings, ...recipe.findings] };
}

type AuthoredBuild = Pick<LocatedApp, 'input' | 'note'>;

/** The author's Dockerfile where it does not stand at the top of source.path. */
function findAuthoredBuild(tree: Tree, input: PipelineInput, wanted: 'certain' | 'any'): AuthoredBuild | undefined {
  const { strategy, dockerfile } = input.build;
  const below = tree.below(input.path);
  if (dockerfile !== 'Dockerfile' || (strategy !== 'auto' && strategy !== 'dockerfile')) return undefined;
  const found = below.entry(dockerfile) === undefined ? findDockerfile(below) : undefined;
  return found === undefined || (wanted === 'certain' && !found.certain) ? undefined : toAuthoredBuild(input, found);
}

function toAuthoredBuild(input: PipelineInput, { path, others }: FoundDockerfile): AuthoredBuild {
  const note =
    others.length === 0 ? undefined : `Of ${[path, ...others].slice(0, 4).join(', ')} the first names the app best.`;
  return {
    input: { ...input, build: { ...input.build, dockerfile: path } },
    ...(note === undefined ? {} : { note }),
  };
}

/** A Dockerfile of an unusual name counts only where nothing else can be planned. */
function findUncertainBuild(tree: Tree, input: PipelineInput): AuthoredBuild | undefined {
  try {
    makePlan(tree.below(input.path), input);
    return undefined;
  } catch (error) {
    if (!(error instanceof Rejected)) throw error;
    return findAuthoredBuild(tree, input, 'any');
  }
}

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
