// Rule: file names are plain: nothing that a terminal, a tool or another system reads as something else.
import type { Finding } from '../../../../crds/hosted-app.ts';
import { clean } from '../../text.ts';
import type { TreeEntry } from '../../tree.ts';
import type { Rule } from '../rule.ts';

const longest = 1024;

export const names: Rule = {
  name: 'names',
  check({ tree }) {
    return tree.entries
      .flatMap((entry): Finding[] => {
        const why = complaint(entry);
        return why === undefined
          ? []
          : [
              {
                rule: 'names/unusable',
                severity: 'error',
                file: clean(entry.path).replace(/\n/g, '?'),
                message: `The name of this file ${why}.`,
                fix: 'Rename it (git mv) using only letters, digits, spaces and the characters . _ -.',
              },
            ];
      })
      .slice(0, 10);
  },
};

function complaint(entry: TreeEntry): string | undefined {
  if (entry.unreadableName === true) return 'is not valid UTF-8';
  if (entry.kind === 'other') return 'belongs to neither a file, a folder nor a link';
  if (clean(entry.path) !== entry.path || /[\n\t]/.test(entry.path))
    return 'contains control characters or invisible direction marks';
  if (entry.path.split('/').includes('.git')) return 'is .git, which git keeps for itself';
  if (Buffer.byteLength(entry.path) > longest) return `is longer than ${longest} bytes with its folders`;
  return undefined;
}
