// Rule: files kept in Git LFS are not fetched, so say so before the app misses them.
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { Rule } from '../rule.ts';

const pointer = /^version https:\/\/git-lfs\.github\.com\/spec\/v1\noid sha256:/;

export const largeFiles: Rule = {
  name: 'lfs',
  check({ tree }) {
    const pointers = tree.entries.filter(
      (each) =>
        each.kind === 'file' && each.bytes >= 100 && each.bytes < 300 && pointer.test(tree.text(each.path, 300) ?? ''),
    );
    const [first] = pointers;
    if (first === undefined) return [];
    const finding: Finding = {
      rule: 'lfs/pointer',
      severity: 'warning',
      file: first.path,
      message: `${pointers.length === 1 ? 'This file is stored in Git LFS, and the repository contains only a pointer to it' : `${pointers.length} files are stored in Git LFS, and the repository contains only pointers to them`}; the content is not fetched.`,
      fix: 'Commit small files directly; download models and datasets when the app starts, or store them on a volume.',
    };
    return [finding];
  },
};
