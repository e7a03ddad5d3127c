// Rules about a repository's files: size limits, names, symbolic links, Git LFS pointers, and source.path.
import { posix } from 'node:path';
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { PipelineInput } from '../../contract.ts';
import { clean, formatBytes, keepHead, toOneLine } from '../../text.ts';
import type { Tree, TreeEntry } from '../../tree.ts';
import type { Rule } from '../rule.ts';

type Limits = PipelineInput['limits'];

const sizeFix =
  'Keep models, datasets and media out of the repository; download them when the app starts, or store them on a volume.';

/** Counts files one at a time, so that a hostile listing is abandoned at the first limit that it exceeds. */
export class LimitCounter {
  readonly #limits: Limits;
  files = 0;
  bytes = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Returns a counter that continues from here independently. */
  copy(): LimitCounter {
    const copy = new LimitCounter(this.#limits);
    copy.take(this);
    return copy;
  }

  /** Adopts the count of a copy. */
  take({ files, bytes }: LimitCounter): void {
    this.files = files;
    this.bytes = bytes;
  }

  /** Counts a file. Returns the finding for the limit that it exceeds, if any. */
  add(path: string, bytes: number): Finding | undefined {
    this.files += 1;
    this.bytes += bytes;
    if (bytes > this.#limits.fileBytes) {
      return {
        rule: 'limits/file-bytes',
        severity: 'error',
        file: path,
        message: `This file is ${formatBytes(bytes)}; the maximum is ${formatBytes(this.#limits.fileBytes)}.`,
        fix: sizeFix,
      };
    }
    if (this.files > this.#limits.files) {
      return {
        rule: 'limits/files',
        severity: 'error',
        message: `The repository has more than ${this.#limits.files} files.`,
        fix: 'Keep dependencies (node_modules, .venv) and generated files out of the repository, using .gitignore and "git rm -r --cached".',
      };
    }
    if (this.bytes <= this.#limits.repositoryBytes) return undefined;
    return {
      rule: 'limits/repository-bytes',
      severity: 'error',
      message: `The files of the repository exceed ${formatBytes(this.#limits.repositoryBytes)} in total.`,
      fix: sizeFix,
    };
  }
}

export const limits: Rule = {
  name: 'limits',
  check({ tree, input }) {
    const counter = new LimitCounter(input.limits);
    for (const entry of tree.entries) {
      if (entry.kind === 'directory') continue;
      const passed = counter.add(entry.path, entry.bytes);
      if (passed !== undefined) return [passed];
    }
    return [];
  },
};

const maximumPathBytes = 1024;

export const names: Rule = {
  name: 'names',
  check({ tree }) {
    return tree.entries
      .flatMap((entry): Finding[] => {
        const problem = findNameProblem(entry);
        return problem === undefined
          ? []
          : [
              {
                rule: 'names/unusable',
                severity: 'error',
                file: clean(entry.path).replace(/\n/g, '?'),
                message: `The name of this file ${problem}.`,
                fix: 'Rename it (git mv) using only letters, digits, spaces and the characters . _ -.',
              },
            ];
      })
      .slice(0, 10);
  },
};

function findNameProblem(entry: TreeEntry): string | undefined {
  if (entry.unreadableName === true) return 'is not valid UTF-8';
  if (entry.kind === 'other') return 'belongs to neither a file, a folder nor a link';
  if (clean(entry.path) !== entry.path || /[\n\t]/.test(entry.path))
    return 'contains control characters or invisible direction marks';
  if (entry.path.split('/').includes('.git')) return 'is .git, which git keeps for itself';
  if (Buffer.byteLength(entry.path) > maximumPathBytes)
    return `is longer than ${maximumPathBytes} bytes with its folders`;
  return undefined;
}

const linkFix = 'Replace the link with the file itself, or with a relative link to a file inside the repository.';

const leftoverLinkFix =
  'Keep the virtual environment out of the repository, using .gitignore and "git rm -r --cached".';

export const symlinks: Rule = {
  name: 'symlinks',
  check({ tree }) {
    return tree.entries
      .filter((each) => each.kind === 'symlink')
      .flatMap((each) => judgeLink(each, tree))
      .slice(0, 20);
  },
};

/** Rejects absolute links regardless of their target, and relative links that leave the repository. */
function judgeLink(entry: TreeEntry, tree: Tree): Finding[] {
  const target = entry.target ?? '';
  const shown = keepHead(toOneLine(target), 120);
  if (posix.isAbsolute(target)) {
    const isLeftOver = isInVirtualEnvironment(entry.path, tree);
    return [
      {
        rule: 'symlinks/absolute',
        severity: isLeftOver ? 'warning' : 'error',
        file: entry.path,
        message: `This is a link to the absolute path ${shown}.`,
        fix: isLeftOver ? leftoverLinkFix : linkFix,
      },
    ];
  }
  if (!isOutsideByText(entry.path, target) && !isOutsideThroughLinks(entry.path, target, tree)) return [];
  return [
    {
      rule: 'symlinks/escape',
      severity: 'error',
      file: entry.path,
      message: `This link points outside the repository: ${shown}.`,
      fix: linkFix,
    },
  ];
}

/**
 * Every Python environment links to the interpreter of the machine that created it. These links are dead, here as in an
 * image.
 */
function isInVirtualEnvironment(path: string, tree: Tree): boolean {
  const match = /^(.{1,500})\/(?:bin|lib|lib64)\/python[\d.]{0,8}$|^(.{1,500})\/(?:bin\/[\w.-]{1,80}|lib64)$/.exec(
    path,
  );
  const folder = match?.[1] ?? match?.[2];
  return folder !== undefined && (tree.has(`${folder}/pyvenv.cfg`) || tree.has(`${folder}/bin/activate`));
}

/** Resolves the path as text, like tools that do not read the file system. */
function isOutsideByText(path: string, target: string): boolean {
  const reached = posix.join(posix.dirname(path), target);
  return reached === '..' || reached.startsWith('../');
}

/** The kernel's limit, after which the link is dead. */
const maximumLinks = 40;

/** Resolves the path as the kernel does: step by step, through every link. If a is a link, "a/.." is not ".". */
function isOutsideThroughLinks(path: string, target: string, tree: Tree): boolean {
  const reached = splitPath(posix.dirname(path));
  const ahead = splitPath(target);
  for (let links = 0; links < maximumLinks;) {
    const step = ahead.shift();
    if (step === undefined) return false;
    if (step === '..' && reached.pop() === undefined) return true;
    if (step === '..') continue;
    const found = tree.getEntry([...reached, step].join('/'));
    if (found?.kind !== 'symlink') {
      reached.push(step);
      continue;
    }
    links += 1;
    const next = found.target ?? '';
    // Reported as a separate finding.
    if (posix.isAbsolute(next)) return false;
    ahead.unshift(...splitPath(next));
  }
  return false;
}

function splitPath(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.');
}

const lfsPointer = /^version https:\/\/git-lfs\.github\.com\/spec\/v1\noid sha256:/;

export const largeFiles: Rule = {
  name: 'lfs',
  check({ tree }) {
    const pointers = tree.entries.filter(
      (each) =>
        each.kind === 'file' &&
        each.bytes >= 100 &&
        each.bytes < 300 &&
        lfsPointer.test(tree.readFile(each.path, 300) ?? ''),
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

export const sourcePath: Rule = {
  name: 'source',
  check({ tree, input }) {
    const { path } = input;
    if (path === '.' || tree.getEntry(path)?.kind === 'directory') return [];
    const folders = tree.entries
      .filter((each) => each.kind === 'directory' && !each.path.includes('/') && !each.path.startsWith('.'))
      .map((each) => each.path);
    const candidateList = folders.length === 0 ? 'there are none' : `there are ${folders.slice(0, 10).join(', ')}`;
    return [
      {
        rule: 'source/path',
        severity: 'error',
        message: `The repository has no folder "${path}".`,
        fix: `Set source.path in moorage.yaml to an existing folder, without a trailing slash (at the top level ${candidateList}).`,
      },
    ];
  },
};
