// Reads one small file at the tip of a repository, without cloning it: git fetches the folder at the top and that file, from a
// server that can filter, and otherwise one commit within bounds.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Repository } from '../repository.ts';
import { createGit, type GitAccess, type GitResult, resolveRemote } from './git.ts';

const timeoutMs = 20_000;
const memoryBytes = 192 * 1024 * 1024;
/** A server that cannot filter sends the whole commit. */
const maximumPackBytes = 48 * 1024 * 1024;

export interface FileQuery {
  readonly repository: Repository;
  readonly commit: string;
  /** At the top of the repository. */
  readonly name: string;
  readonly maximumBytes: number;
  readonly access?: GitAccess | undefined;
}

/**
 * Reads the first bytes of a file at the top of a commit; undefined if it has no such file.
 *
 * @throws Error with the message of git
 */
export async function readRemoteFile(query: FileQuery): Promise<string | undefined> {
  const { repository, commit, name, maximumBytes, access = {} } = query;
  const folder = await mkdtemp(join(tmpdir(), 'moorage-file-'));
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const { url, ...bounds } = resolveRemote(repository, access, new Date(Date.now() + 2 * timeoutMs));
    const git = createGit({
      ...{ folder, gitFolder: folder, memoryBytes, fileBytes: maximumPackBytes, ...bounds },
      slowTransfer: { bytesPerSecond: 1, seconds: 10 },
    });
    const run = async (args: readonly string[]): Promise<GitResult> => {
      const result = await git(args, { signal });
      if (result.code === 0) return result;
      throw new Error(result.stderr.trim() === '' ? `git ended with exit code ${result.code}` : result.stderr);
    };
    const fetch = (object: string, filter: readonly string[]): Promise<GitResult> =>
      run([
        ...['fetch', '--quiet', '--no-tags', '--no-recurse-submodules', '--depth=1'],
        ...[...filter, '--', url, object],
      ]);
    await run([
      ...['init', '--quiet', '--bare', '--template='],
      `--object-format=${commit.length === 64 ? 'sha256' : 'sha1'}`,
    ]);
    await fetch(commit, ['--filter=tree:1']);
    const { stdout } = await run(['ls-tree', commit, '--', name]);
    const [mode, , blob] = stdout.split(/\s+/);
    if (blob === undefined || mode?.startsWith('100') !== true) return undefined;
    const isHere = (await git(['cat-file', '-e', blob], { signal })).code === 0;
    if (!isHere) await fetch(blob, []);
    const content = await git(['cat-file', 'blob', blob], { signal, keepBytes: 1024 * 1024 });
    if (content.code !== 0) throw new Error(`${name} could not be read: ${content.stderr.trim()}`);
    return content.stdout.slice(0, maximumBytes);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
