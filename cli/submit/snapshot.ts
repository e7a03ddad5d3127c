// Commits a folder as it is now, uncommitted changes included, without writing into the folder or its repository, and
// pushes the commit to the installation's git server.
import { appendFile, copyFile, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import { Fault, type Installation } from './installation.ts';

/** A commit in a temporary repository, to be pushed from there. */
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
 * A snapshot has no date or author of its own, so that the same content gives the same commit and is not built again. Its
 * date is that of the commit that it starts from, because a build may request the packages of that day.
 */
function buildIdentity(date: string): Record<string, string> {
  return {
    GIT_AUTHOR_NAME: 'Moorage',
    GIT_AUTHOR_EMAIL: 'moorage@localhost',
    GIT_COMMITTER_NAME: 'Moorage',
    GIT_COMMITTER_EMAIL: 'moorage@localhost',
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_DATE: date,
  };
}

/** The date for a folder without a commit. */
const noDate = '2000-01-01T00:00:00Z';

/** Commits the folder without files that .gitignore excludes. @throws Fault if nothing is left or git fails */
export async function takeSnapshot(folder: string): Promise<Snapshot> {
  const tree = await readWorkTree(await realpath(folder));
  const repository = await mkdtemp(join(tmpdir(), 'moorage-submit-'));
  const remove = (): Promise<void> => rm(repository, { recursive: true, force: true });
  try {
    const { commit, origin } = await createCommit(repository, tree);
    return { commit, repository, origin, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function createCommit(
  repository: string,
  tree: WorkTree,
): Promise<{ commit: string; origin: Snapshot['origin'] }> {
  await runGit(['init', '--quiet', '--bare', repository]);
  await borrowObjects(repository, tree);
  const runGitInTree = (args: string[], env: Record<string, string> = {}): Promise<string> =>
    runGit(['-c', 'core.bare=false', ...args], {
      cwd: tree.root,
      env: { GIT_DIR: repository, GIT_WORK_TREE: tree.root, ...env },
    });
  // Tracked files stay, even if .gitignore names them.
  if (tree.head !== undefined) await runGitInTree(['read-tree', tree.head]);
  await runGitInTree(['add', '--all', '--', tree.below === '' ? '.' : tree.below]);
  const treeId = await runGitInTree(['write-tree', ...(tree.below === '' ? [] : [`--prefix=${tree.below}/`])]).catch(
    () => '',
  );
  if (treeId === '' || (await runGitInTree(['ls-tree', treeId])) === '')
    throw new Fault('the folder has no file to commit: add one, or check .gitignore');
  if (tree.head === undefined || tree.isShallow || tree.below !== '')
    return {
      commit: await runGitInTree(['commit-tree', '-m', 'Snapshot of a folder', treeId], buildIdentity(tree.date)),
      origin: 'folder',
    };
  if ((await runGitInTree(['rev-parse', `${tree.head}^{tree}`])) === treeId)
    return { commit: tree.head, origin: 'commit' };
  return {
    commit: await runGitInTree(
      ['commit-tree', '-p', tree.head, '-m', 'Snapshot with uncommitted changes', treeId],
      buildIdentity(tree.date),
    ),
    origin: 'commit and changes',
  };
}

/** Lets the repository use the objects and the excludes of the folder's own repository. */
async function borrowObjects(repository: string, { objects, exclude }: WorkTree): Promise<void> {
  if (objects !== undefined) await appendFile(join(repository, 'objects', 'info', 'alternates'), `${objects}\n`);
  if (exclude === undefined) return;
  await mkdir(join(repository, 'info'), { recursive: true });
  await copyFile(exclude, join(repository, 'info', 'exclude')).catch(() => undefined);
}

async function readWorkTree(folder: string): Promise<WorkTree> {
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

async function runGit(
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

/** Owner of repositories that are pushed from this machine. */
export const localOwner = 'local';

/** Delays before retrying a push whose connection broke. */
const retryMs = [1_000, 3_000];
const brokenConnection =
  /RPC failed|hung up unexpectedly|unexpected disconnect|early EOF|Failed to connect|Connection (?:reset|refused)|returned error: 50[234]/;

/**
 * Pushes the snapshot to `main`, or to another reference. Returns the repository's address inside the cluster.
 *
 * @throws Fault
 */
export async function pushSnapshot(
  snapshot: Snapshot,
  name: string,
  installation: Installation,
  reference = 'refs/heads/main',
): Promise<string> {
  const { gitUrl, internalGitUrl, gitPassword } = installation;
  if (gitPassword === undefined)
    throw new Fault('this installation has no git server for local folders: submit OWNER/NAME or a URL instead');
  const push = async (): Promise<string | undefined> => {
    const pushed = await execa(
      'git',
      ['push', '--quiet', '--force', `${gitUrl}/${localOwner}/${name}.git`, `${snapshot.commit}:${reference}`],
      {
        cwd: snapshot.repository,
        env: buildGitEnvironment(installation, gitPassword),
        reject: false,
        stdin: 'ignore',
      },
    );
    return pushed.failed ? pushed.stderr.trim() || pushed.shortMessage : undefined;
  };
  let failure = await push();
  // A broken connection does not show whether the commit arrived; pushing the same commit again changes nothing.
  for (const waitMs of retryMs) {
    if (failure === undefined || !brokenConnection.test(failure)) break;
    await delay(waitMs);
    failure = await push();
  }
  if (failure !== undefined)
    throw new Fault(
      `the push to ${gitUrl} failed: check the cluster with \`npm run status\`. Output of git: ${failure}`,
    );
  return `${internalGitUrl}/${localOwner}/${name}`;
}

/** Configuration in the environment, so that the password is in no process list. */
function buildGitEnvironment({ gitUrl, authority }: Installation, password: string): Record<string, string> {
  const { hostname, port, protocol } = new URL(gitUrl);
  const settings: [string, string][] = [
    ['http.extraHeader', `Authorization: Basic ${Buffer.from(`moorage:${password}`).toString('base64')}`],
    ['credential.helper', ''],
    ['http.proxy', ''],
    // git of Debian 12 (libcurl-gnutls 7.88.1) sometimes sends 64 KiB of a push twice over HTTP/2; other clients, and
    // HTTP/1.1, do not.
    ['http.version', 'HTTP/1.1'],
  ];
  if (hostname.endsWith('.localhost'))
    settings.push(['http.curloptResolve', `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}:127.0.0.1`]);
  return {
    GIT_TERMINAL_PROMPT: '0',
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
    ...(authority === undefined ? {} : { GIT_SSL_CAINFO: authority.path }),
  };
}
