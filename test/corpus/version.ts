// The version of Moorage that a result belongs to: commit, and whether something was changed since.
import { execa } from 'execa';

export async function ownVersion(): Promise<string> {
  const git = async (...args: string[]): Promise<string> =>
    (await execa('git', args, { cwd: import.meta.dirname, reject: false, stdin: 'ignore' })).stdout.trim();
  const commit = (await git('rev-parse', '--short=12', 'HEAD')) || 'unknown';
  const changed = await git('status', '--porcelain', '--untracked-files=no');
  return changed === '' ? commit : `${commit}-changed`;
}
