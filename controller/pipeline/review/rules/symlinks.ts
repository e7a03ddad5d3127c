// Rule: symbolic links stay inside the repository.
import { posix } from 'node:path';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { head, oneLine } from '../../text.ts';
import type { Tree, TreeEntry } from '../../tree.ts';
import type { Rule } from '../rule.ts';

const fix = 'Replace the link with the file itself, or with a relative link to a file inside the repository.';

const fixLeftOver = 'Keep the virtual environment out of the repository, using .gitignore and "git rm -r --cached".';

export const symlinks: Rule = {
  name: 'symlinks',
  check({ tree }) {
    return tree.entries
      .filter((each) => each.kind === 'symlink')
      .flatMap((each) => judge(each, tree))
      .slice(0, 20);
  },
};

/** Absolute ones are refused wherever they lead; the others by the way that they take. */
function judge(entry: TreeEntry, tree: Tree): Finding[] {
  const target = entry.target ?? '';
  const shown = head(oneLine(target), 120);
  if (posix.isAbsolute(target)) {
    const isLeftOver = inVirtualEnvironment(entry.path, tree);
    return [
      {
        rule: 'symlinks/absolute',
        severity: isLeftOver ? 'warning' : 'error',
        file: entry.path,
        message: `This is a link to the absolute path ${shown}.`,
        fix: isLeftOver ? fixLeftOver : fix,
      },
    ];
  }
  if (!leavesByText(entry.path, target) && !leavesByLinks(entry.path, target, tree)) return [];
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

/** Every Python environment has links to the interpreter of the machine that made it. They lead nowhere, in an image as here. */
function inVirtualEnvironment(path: string, tree: Tree): boolean {
  const match = /^(.{1,500})\/(?:bin|lib|lib64)\/python[\d.]{0,8}$|^(.{1,500})\/(?:bin\/[\w.-]{1,80}|lib64)$/.exec(
    path,
  );
  const folder = match?.[1] ?? match?.[2];
  return folder !== undefined && (tree.has(`${folder}/pyvenv.cfg`) || tree.has(`${folder}/bin/activate`));
}

/** As tools read it that do not look at the files. */
function leavesByText(path: string, target: string): boolean {
  const reached = posix.join(posix.dirname(path), target);
  return reached === '..' || reached.startsWith('../');
}

/** As many as the kernel follows, after which the link leads nowhere. */
const maximumLinks = 40;

/** As the kernel reads it: step by step, through every link on the way. "a/.." is not "." where a is a link. */
function leavesByLinks(path: string, target: string, tree: Tree): boolean {
  const reached = parts(posix.dirname(path));
  const ahead = parts(target);
  for (let links = 0; links < maximumLinks;) {
    const step = ahead.shift();
    if (step === undefined) return false;
    if (step === '..' && reached.pop() === undefined) return true;
    if (step === '..') continue;
    const found = tree.entry([...reached, step].join('/'));
    if (found?.kind !== 'symlink') {
      reached.push(step);
      continue;
    }
    links += 1;
    const next = found.target ?? '';
    // Refused by itself.
    if (posix.isAbsolute(next)) return false;
    ahead.unshift(...parts(next));
  }
  return false;
}

function parts(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.');
}
