// Finds an author's Dockerfile that is not at the root: docker/Dockerfile, web.Dockerfile, Dockerfile.prod.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import { readStages, type Stage, hasStartCommand } from './text.ts';

export interface FoundDockerfile {
  /** Path from the root, which remains the build context. */
  readonly path: string;
  /** Other plausible Dockerfiles. */
  readonly others: readonly string[];
  /** Its name shows that it builds the app, so it takes precedence over a plan from the files. */
  readonly certain: boolean;
}

/** Folders that hold image recipes, apart from the code. */
const folders =
  /^(?:\.?docker|dockerfiles?|containers?|deploy(?:ment)?s?|build|scripts?|packaging|infra|ops|ci|cloud-deployments)$/i;
const name = /^(?:(?:docker|container)file|(?:docker|container)file[._-][\w.-]{1,60}|[\w.-]{1,60}\.dockerfile)$/i;
/** Words for something other than the app as its users see it. */
const other =
  /^(?:dev\w{0,9}|tests?|testing|ci|e2e|base|builder?|gpu|cuda\w{0,9}|nvidia|rocm|xpu|debug|lint|docs?|devcontainer|local|bench\w{0,9}|workers?|db|database|postgres|nginx|proxy|arm\w{0,9}|aarch64|windows|rpm|debian-pkg|oldest|newest|goreleaser|binary|sandbox|mcp|cli|j2|tmpl|template|in|bak|old|legacy)$/i;
/** Words for the app, or only for how it is built. */
const likely =
  /^(?:|docker|dockerfile|containerfile|container|deploy|deployment|build|scripts?|packaging|infra|ops|prod|production|app|application|server|web|main|release|standalone|default|cpu|slim|full|fullstack|all|aio|allinone|single|alpine|debian|ubuntu|distroless|hf|huggingface|spaces|railway|render|fly)$/i;
/** Of several likely candidates, the one with the earlier word wins. */
const preference = [
  ...['', 'prod', 'production', 'default', 'app', 'main', 'release', 'server', 'web', 'fullstack', 'full', 'cpu'],
  // The same app on other base images.
  ...['debian', 'ubuntu', 'slim', 'alpine', 'distroless'],
];
const gpuImage = /(?:^|\/)nvidia\/|cuda|rocm/i;
const maximumBytes = 512 * 1024;
const maximumLooked = 40;

/**
 * Finds the Dockerfile below the root that most likely builds the app; undefined if there is none or it is ambiguous.
 */
export function findDockerfile(tree: Tree): FoundDockerfile | undefined {
  const usable = listCandidates(tree).filter((path) => isApp(tree, path));
  const certain = usable.filter((path) => splitIntoWords(path).every((word) => likely.test(word)));
  const [best, next] = certain.toSorted((one, two) => computeWeight(one) - computeWeight(two) || (one < two ? -1 : 1));
  if (best !== undefined && (next === undefined || computeWeight(best) < computeWeight(next)))
    return { path: best, others: usable.filter((each) => each !== best), certain: true };
  const only = usable.length === 1 ? usable[0] : undefined;
  return only === undefined ? undefined : { path: only, others: [], certain: false };
}

function listCandidates(tree: Tree): string[] {
  return tree.entries
    .filter((each) => each.kind === 'file' && each.bytes <= maximumBytes && isCandidate(each.path))
    .slice(0, maximumLooked)
    .map((each) => each.path);
}

function isCandidate(path: string): boolean {
  const [first = '', ...rest] = path.split('/');
  const depth = rest.length;
  // Distributions' packaging folders may hold Dockerfiles that build packages, not images.
  if (first === 'packaging' && !/docker|container/i.test(posix.dirname(path))) return false;
  if (path === 'Dockerfile' || depth > 3 || (depth > 0 && !folders.test(first))) return false;
  return name.test(posix.basename(path)) && !splitIntoWords(path).some((word) => other.test(word));
}

/** Splits a path into the words that describe its purpose: "docker/web/Dockerfile.prod" contains web and prod. */
function splitIntoWords(path: string): string[] {
  const base = posix.basename(path).replace(/(?:docker|container)file/i, '');
  const between = path.split('/').slice(1, -1);
  return [...between, ...base.split(/[._-]+/)].map((word) => word.toLowerCase());
}

function computeWeight(path: string): number {
  const words = splitIntoWords(path).filter((word) => word !== '' && !folders.test(word));
  const ranks = (words.length === 0 ? [''] : words).map((word) => {
    const index = preference.indexOf(word);
    return index < 0 ? preference.length : index;
  });
  return Math.max(...ranks) * 10 + path.split('/').length;
}

/** Returns whether it builds from the root, starts a program, needs no GPU, and leaves no part of the app unbuilt. */
function isApp(tree: Tree, path: string): boolean {
  const text = tree.readFile(path, maximumBytes) ?? '';
  const stages = readStages(text);
  return (
    hasStartCommand(stages) &&
    !stages.some((stage) => gpuImage.test(stage.from) || /^localhost\//.test(stage.from)) &&
    stages.every((stage) => hasSources(tree, stage)) &&
    canBuildPages(tree, text)
  );
}

/** Returns whether everything that a stage copies from its context is there. */
export function hasSources(tree: Tree, { copies }: Stage): boolean {
  return copies.every((each) => {
    const plain = each.replace(/^(?:\.?\/)+/, '').replace(/\/+$/, '');
    const fixed = plain
      .split('/')
      .filter((part, index, all) => !all.slice(0, index + 1).some((one) => /[*?[]/.test(one)));
    return fixed.length === 0 || fixed[0] === '.' || tree.getEntry(posix.normalize(fixed.join('/'))) !== undefined;
  });
}

/** Returns false if a folder has pages to build and this Dockerfile calls no package manager: it expects them prebuilt. */
function canBuildPages(tree: Tree, text: string): boolean {
  if (/\b(?:npm|npx|pnpm|yarn|bun|bunx|node|deno)\b/.test(text.replace(/^[ \t]*#.*$/gm, ''))) return true;
  return !['web', 'frontend', 'client', 'ui', 'webui', 'app'].some((folder) =>
    /"build"\s{0,9}:/.test(tree.readFile(`${folder}/package.json`) ?? ''),
  );
}

// A Dockerfile that builds several apps of a repository into one image.

const maximumDockerfiles = 40;

/** Finds a Dockerfile, anywhere, that copies from every one of the folders and starts something. */
export function findWholeDockerfile(tree: Tree, folders: readonly string[]): string | undefined {
  const below = folders.filter((folder) => folder !== '.');
  return tree.entries
    .filter(
      (each) => each.kind === 'file' && /(?:^|[/.])(?:docker|container)file(?:[._-][^/]{1,60})?$/i.test(each.path),
    )
    .slice(0, maximumDockerfiles)
    .map((each) => each.path)
    .find((path) => {
      const stages = readStages(tree.readFile(path) ?? '');
      const copies = stages.flatMap((stage) => stage.copies).map((each) => posix.normalize(each).replace(/\/$/, ''));
      const hasAll = below.every((folder) =>
        copies.some((copy) => copy === folder || copy.startsWith(`${folder}/`) || folder.startsWith(`${copy}/`)),
      );
      return below.length > 0 && hasAll && hasStartCommand(stages);
    });
}
