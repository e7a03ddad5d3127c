// Brings one commit of a repository into a temporary folder: from a folder of git directories, or from the network.
import { existsSync } from 'node:fs';
import { copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { execa, ExecaError } from 'execa';
import type { Entry } from './corpus.ts';

export interface Checkout {
  readonly folder: string;
  /** Files of the commit that the mirror does not have: it may leave out the largest. */
  readonly missing: readonly string[];
  remove(): Promise<void>;
}

/** A repository that could not be brought in, with the words of git. */
export class NotBroughtIn extends Error {
  override readonly name = 'NotBroughtIn';
}

/** @throws NotBroughtIn */
export async function checkOut({ repo, commit }: Pick<Entry, 'repo' | 'commit'>, mirror?: string): Promise<Checkout> {
  const folder = await mkdtemp(join(tmpdir(), 'moorage-corpus-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true, maxRetries: 3 });
  try {
    const stored = mirror === undefined ? undefined : storedAt(mirror, repo);
    const missing = await fill(folder, commit, stored, repo);
    return { folder, missing, remove };
  } catch (error) {
    await remove();
    if (error instanceof ExecaError) throw new NotBroughtIn(error.message.slice(0, 400));
    throw error;
  }
}

/** The git directory of a repository in the mirror: OWNER+NAME, with the directory itself or a clone in it. */
function storedAt(mirror: string, repo: string): string | undefined {
  const top = join(mirror, repo.replace('/', '+'));
  return [join(top, 'repo', '.git'), join(top, 'repo'), join(top, '.git'), top].find((path) =>
    existsSync(join(path, 'HEAD')),
  );
}

/** Resolves with the files that are not there. */
async function fill(folder: string, commit: string, stored: string | undefined, repo: string): Promise<string[]> {
  const git = (args: readonly string[], reject = true): Promise<{ stdout: string }> =>
    execa('git', args, { cwd: folder, env: environment, stdin: 'ignore', reject });
  await git(['init', '--quiet', '--initial-branch', 'main']);
  // Nothing of the repository runs here.
  await git(['config', 'core.hooksPath', '/dev/null']);
  if (stored === undefined)
    await git(['fetch', '--quiet', '--depth', '1', '--', `https://github.com/${repo}.git`, commit]);
  else await borrow(stored, join(folder, '.git'), commit);
  await git(['update-ref', 'refs/heads/main', commit]);
  await git(['read-tree', 'HEAD']);
  // Goes on after a file that the mirror does not have, and fails at the end.
  await git(['checkout-index', '--all', '--force', '--quiet'], false);
  const { stdout } = await git(['ls-files', '--deleted', '-z']);
  return stdout.split('\0').filter((path) => path !== '');
}

/** Uses the objects of another repository where they are, cut off at the commit: it may lack what came before. */
async function borrow(stored: string, into: string, commit: string): Promise<void> {
  await writeFile(join(into, 'objects', 'info', 'alternates'), `${join(stored, 'objects')}\n`);
  await writeFile(join(into, 'shallow'), `${commit}\n`);
}

const environment = { GIT_TERMINAL_PROMPT: '0', GIT_LFS_SKIP_SMUDGE: '1', GIT_CONFIG_NOSYSTEM: '1' };

/** What names a Dockerfile. */
const dockerfile = /^(?:dockerfile|containerfile)(?:\.[\w.-]{1,80})?$|^[\w.-]{1,80}\.(?:dockerfile|containerfile)$/i;
const compose = /^(?:docker-)?compose(?:[.-][\w.-]{1,80})?\.ya?ml$/i;

/** Removes Dockerfiles, and the compose files that build from them stay: they say what belongs together. */
export async function hideDockerfiles(folder: string): Promise<string[]> {
  const hidden: string[] = [];
  for (const { name, parentPath } of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (parentPath.startsWith(join(folder, '.git')) || !isDockerfile(name)) continue;
    await rm(join(parentPath, name), { recursive: true, force: true });
    hidden.push(name);
  }
  return hidden;
}

export function isDockerfile(path: string): boolean {
  const name = basename(path);
  return dockerfile.test(name) && !compose.test(name) && !/\.(?:[jt]sx?|md|ex|py|go|ya?ml)$/i.test(name);
}

/**
 * Adds a licence file if the top level has none, as an author would after that refusal, so that a run measures what
 * comes after it. The text is this project's own, and the copy is only submitted to the installation under test.
 * Resolves with whether it was added.
 */
export async function addLicense(folder: string): Promise<boolean> {
  const names = await readdir(folder);
  if (names.some((name) => /^(?:licen[cs]e|copying|unlicense)(?:[.-]|$)/i.test(name))) return false;
  await copyFile(join(import.meta.dirname, '..', '..', 'LICENSE'), join(folder, 'LICENSE'));
  return true;
}
