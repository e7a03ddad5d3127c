// Writes the files of a fetched commit into a folder.
import type { Git } from '../../../lib/git/index.ts';
import { gitFailure } from './fetch.ts';

interface CheckOut {
  readonly target: string;
  readonly commit: string;
  /** Maximum size of a file of the repository. */
  readonly fileBytes: number;
}

/** @throws Rejected or Fault */
export async function checkOut(git: Git, { target, commit, fileBytes }: CheckOut, signal?: AbortSignal): Promise<void> {
  const checkedOut = await git(
    [`--work-tree=${target}`, 'checkout', '--quiet', '--force', '--detach', '--no-recurse-submodules', commit],
    { fileBytes: 2 * fileBytes + 64 * 1024 * 1024, signal },
  );
  if (checkedOut.code !== 0) throw gitFailure('git could not check out the commit', checkedOut);
}
