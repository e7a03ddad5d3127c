// Rule: source.path names a real folder of the repository.
import type { Rule } from '../rule.ts';

export const sourcePath: Rule = {
  name: 'source',
  check({ tree, input }) {
    const { path } = input;
    if (path === '.' || tree.entry(path)?.kind === 'directory') return [];
    const folders = tree.entries
      .filter((each) => each.kind === 'directory' && !each.path.includes('/') && !each.path.startsWith('.'))
      .map((each) => each.path);
    const known = folders.length === 0 ? 'there are none' : `there are ${folders.slice(0, 10).join(', ')}`;
    return [
      {
        rule: 'source/path',
        severity: 'error',
        message: `The repository has no folder "${path}".`,
        fix: `Set source.path in moorage.yaml to an existing folder, without a trailing slash (at the top level ${known}).`,
      },
    ];
  },
};
