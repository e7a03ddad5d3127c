// Makes a commit of a folder as it is now, uncommitted changes included, without writing into the folder or its
// repository.
import { appendFile, copyFile, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { execa } from 'execa';
import { Fault } from './fault.ts';

/** A commit in a repository of its own, to be pushed from there. */
export interface Snapshot {
  readonly commit: string;
  /** Bare repository that has it. */
  readonly repository: string;
  /** What it was made from. */
  readonly origin: 'commit' | 'commit and changes' | 'folder';
  /** Removes the repository. */
  remove(): Promise<void>;
}

/** The work tree that a folder belongs to. */
interface WorkTree {
  readonly root: string;
  /** Folder below the root; empty for the root itself. */
  readonly below: string;
  /** Commit that is checked out; undefined where there is none. */
  readonly head: string | undefined;
  /** When it was committed. */
  readonly date: string;
  /** The history of the commit is incomplete, so neither it nor a child of it can be pushed. */
  readonly isShallow: boolean;
  readonly objects: string | undefined;
  readonly exclude: string | undefined;
}

/**
 * A snapshot has no date or author of its own, so that the same content is the same commit, and is not built again. Its
 * date is that of the commit that it starts from: a build may ask for the packages of that day.
 */
function identity(date: string): Record<string, string> {
  return {
    GIT_AUTHOR_NAME: 'Moorage',
    GIT_AUTHOR_EMAIL: 'moorage@localhost',
    GIT_COMMITTER_NAME: 'Moorage',
    GIT_COMMITTER_EMAIL: 'moorage@localhost',
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_DATE: date,
  };
}

/** Of a folder that has no commit. */
const noDate = '2000-01-01T00:00:00Z';

/** Commits the folder without what .gitignore files exclude. @throws Fault when nothing is left, or git fails */
export async function takeSnapshot(folder: string): Promise<Snapshot> {
  const tree = await workTreeOf(await realpath(folder));
  const repository = await mkdtemp(join(tmpdir(), 'moorage-submit-'));
  const remove = (): Promise<void> => rm(repository, { recursive: true, force: true });
  try {
    const { commit, origin } = await commitIn(repository, tree);
    return { commit, repository, origin, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function commitIn(repository: string, tree: WorkTree): Promise<{ commit: string; origin: Snapshot['origin'] }> {
  await git(['init', '--quiet', '--bare', repository]);
  await borrow(repository, tree);
  const within = (args: string[], env: Record<string, string> = {}): Promise<string> =>
    git(['-c', 'core.bare=false', ...args], {
      cwd: tree.root,
      env: { GIT_DIR: repository, GIT_WORK_TREE: tree.root, ...env },
    });
  // What is tracked stays, even where .gitignore names it.
  if (tree.head !== undefined) await within(['read-tree', tree.head]);
  await within(['add', '--all', '--', tree.below === '' ? '.' : tree.below]);
  const written = await within(['write-tree', ...(tree.below === '' ? [] : [`--prefix=${tree.below}/`])]).catch(
    () => '',
  );
  if (written === '' || (await within(['ls-tree', written])) === '')
    throw new Fault('the folder has no file to commit: add one, or check .gitignore');
  if (tree.head === undefined || tree.isShallow || tree.below !== '')
    return {
      commit: await within(['commit-tree', '-m', 'Snapshot of a folder', written], identity(tree.date)),
      origin: 'folder',
    };
  if ((await within(['rev-parse', `${tree.head}^{tree}`])) === written) return { commit: tree.head, origin: 'commit' };
  return {
    commit: await within(
      ['commit-tree', '-p', tree.head, '-m', 'Snapshot with uncommitted changes', written],
      identity(tree.date),
    ),
    origin: 'commit and changes',
  };
}

/** Lets the repository use the objects and the excludes of the folder's own repository. */
async function borrow(repository: string, { objects, exclude }: WorkTree): Promise<void> {
  if (objects !== undefined) await appendFile(join(repository, 'objects', 'info', 'alternates'), `${objects}\n`);
  if (exclude === undefined) return;
  await mkdir(join(repository, 'info'), { recursive: true });
  await copyFile(exclude, join(repository, 'info', 'exclude')).catch(() => undefined);
}

async function workTreeOf(folder: string): Promise<WorkTree> {
  const alone: WorkTree = {
    root: folder,
    below: '',
    head: undefined,
    date: noDate,
    isShallow: false,
    objects: undefined,
    exclude: undefined,
  };
  const ask = async (...args: string[]): Promise<string | undefined> => {
    const result = await execa('git', ['-c', 'safe.directory=*', ...args], {
      cwd: folder,
      reject: false,
      stdin: 'ignore',
    });
    return result.exitCode === 0 ? result.stdout : undefined;
  };
  const root = await ask('rev-parse', '--show-toplevel');
  if (root === undefined || root === '') return alone;
  const below = relative(root, folder);
  // A folder that its surrounding repository ignores is a folder by itself.
  if (below !== '' && (await ask('check-ignore', '--quiet', folder)) !== undefined) return alone;
  const [head, date, shallow, objects, exclude] = await Promise.all([
    ask('rev-parse', '--verify', '--quiet', 'HEAD^{commit}'),
    ask('log', '--max-count=1', '--no-show-signature', '--format=%cI'),
    ask('rev-parse', '--is-shallow-repository'),
    ask('rev-parse', '--path-format=absolute', '--git-path', 'objects'),
    ask('rev-parse', '--path-format=absolute', '--git-path', 'info/exclude'),
  ]);
  return { root, below, head, date: date ?? noDate, isShallow: shallow === 'true', objects, exclude };
}

async function git(
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string> } = {},
): Promise<string> {
  const result = await execa('git', [...args], {
    ...options,
    reject: false,
    stdin: 'ignore',
    maxBuffer: 64 * 1024 * 1024,
  });
  if (result.failed)
    throw new Fault(
      `git ${args.find((arg) => /^[a-z]+-?[a-z]+$/.test(arg)) ?? ''} failed: ${result.stderr.trim() || result.shortMessage}`,
    );
  return result.stdout.trim();
}
