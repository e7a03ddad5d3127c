// Rule: symbolic links stay inside the repository.
import { posix } from 'node:path';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { head, oneLine } from '../../text.ts';
import type { TreeEntry } from '../../tree.ts';
import type { Rule } from '../rule.ts';

const fix = 'Replace the link with the file itself, or with a relative link to a file inside the repository.';

export const symlinks: Rule = {
  name: 'symlinks',
  check({ tree }) {
    return tree.entries
      .filter((each) => each.kind === 'symlink')
      .flatMap(judge)
      .slice(0, 20);
  },
};

/** A link is judged by its own text; whether what it names exists, or is a link again, cannot make it leave. */
function judge(entry: TreeEntry): Finding[] {
  const target = entry.target ?? '';
  const shown = head(oneLine(target), 120);
  if (posix.isAbsolute(target)) {
    return [
      {
        rule: 'symlinks/absolute',
        severity: 'error',
        file: entry.path,
        message: `This is a link to the absolute path ${shown}.`,
        fix,
      },
    ];
  }
  const reached = posix.join(posix.dirname(entry.path), target);
  if (reached !== '..' && !reached.startsWith('../')) return [];
  return [
    {
      rule: 'symlinks/escape',
      severity: 'error',
      file: entry.path,
      message: `This link points outside the repository: ${shown}.`,
      fix,
    },
  ];
}
