// Rules about which files a repository has: size limits, names, symbolic links, Git LFS pointers, source.path, submodules and the
// Dockerfile.
import { posix } from 'node:path';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { listImages, nameComponent, rewriteFields } from '../../components.ts';
import { type PipelineInput, Fault } from '../../contract.ts';
import { clean, formatBytes, keepHead, toOneLine } from '../../text.ts';
import type { Tree, TreeEntry } from '../../tree.ts';
import type { Rule, ReviewContext } from '../review.ts';
import type { Submodule } from '../../handover.ts';
import { isAuthoredDockerfile } from '../../plan/dockerfile/text.ts';

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
  check({ tree, input: appInput }) {
    return listImages(appInput).flatMap(({ component, input: { path } }) => checkFolder(tree, path, component?.name));
  },
};

function checkFolder(tree: Tree, path: string, component: string | undefined): Finding[] {
  if (path === '.' || tree.getEntry(path)?.kind === 'directory') return [];
  const folders = tree.entries
    .filter((each) => each.kind === 'directory' && !each.path.includes('/') && !each.path.startsWith('.'))
    .map((each) => each.path);
  const candidateList = folders.length === 0 ? 'there are none' : `there are ${folders.slice(0, 10).join(', ')}`;
  const finding: Finding = {
    rule: 'source/path',
    severity: 'error',
    message: `The repository has no folder "${path}".`,
    fix: `Set source.path in moorage.yaml to an existing folder, without a trailing slash (at the top level ${candidateList}).`,
  };
  return [nameComponent(finding, component)];
}

// Submodules: reports those that were not fetched, and rejects unsafe addresses and missing submodules that the build needs.

const fixMissing =
  'If the app needs it, use an https address of a public repository on a git host that this installation allows, copy what you need into the repository (git subtree), or install it as a package during the build. Otherwise, no change is needed.';
const fixNeeded =
  'Use an https address of a public repository on a git host that this installation allows, copy what you need into the repository (git subtree), or install it as a package during the build.';
const maximumFindings = 10;

/** Keys that can make git run commands, accept options or read local paths. */
const oddKeys: readonly RegExp[] = [
  /^\s*url\s*=\s*["']?\s*(?:[a-z][a-z0-9+.-]{0,30}::|file:|-|!|\/)/i,
  /^\s*path\s*=\s*["']?\s*(?:-|!|\/|(?:[^"'\s]{0,200}\/)?\.\.(?:\/|["'\s]|$))/i,
  /^\s*(?:update|command)\s*=\s*["']?\s*(?:!|-|\/|\.{1,2}\/)/i,
  /^\s*(?:update|command)\s*=\s*["']?\s*(?:[a-z][a-z0-9+.-]{0,30}::|file:)/i,
];

export const submodules: Rule = {
  name: 'git',
  check(context) {
    const missing = context.submodules.filter(({ problem }) => problem !== undefined).slice(0, maximumFindings);
    const findings = missing.map((each) => judgeSubmodule(each, context));
    for (const file of ['.gitmodules', '.gitconfig']) findings.push(...findOddLines(file, context.tree.readFile(file)));
    return findings;
  },
};

function judgeSubmodule({ path, problem = '', passing }: Submodule, context: ReviewContext): Finding {
  const use = findNeed(path, context);
  const reason = problem.replace(/[.\s]+$/, '');
  if (use !== undefined && passing === true)
    throw new Fault(`the submodule ${path}, which ${use}, could not be fetched: ${reason}`);
  return {
    rule: 'git/submodule',
    severity: use === undefined ? 'warning' : 'error',
    file: path,
    message: `This submodule was not fetched, so its folder is empty: ${reason}.${use === undefined ? '' : ` The build needs it: it ${use}.`}`,
    fix: use === undefined ? fixMissing : fixNeeded,
  };
}

/** Describes what needs the folder, as the end of a sentence. */
function findNeed(path: string, { tree, input: appInput }: ReviewContext): string | undefined {
  for (const { component, input } of listImages(appInput)) {
    const field = rewriteFields('source.path', component?.name);
    if (input.path === path || input.path.startsWith(`${path}/`)) return `contains ${field}`;
    const app = tree.getSubtree(input.path);
    const dockerfile = isAuthoredDockerfile(app, input.build) ? input.build.dockerfile : undefined;
    const use = findUse(app, input.path, dockerfile, path);
    if (use !== undefined) return use;
  }
  return undefined;
}

/** Finds lines that point git at a local path, a command or an option instead of a server. */
function findOddLines(file: string, text: string | undefined): Finding[] {
  const lines = (text ?? '').split('\n');
  return lines
    .flatMap((line, index): Finding[] =>
      oddKeys.some((pattern) => pattern.test(line.slice(0, 500)))
        ? [
            {
              rule: 'git/unsafe-address',
              severity: 'error',
              file,
              line: index + 1,
              message: `This makes git run a command, take an option or read a local path: ${keepHead(toOneLine(line), 120)}`,
              fix: `Remove the line, or the whole file ${file}.`,
            },
          ]
        : [],
    )
    .slice(0, maximumFindings);
}

/** Manifests that can refer to a package in a folder. */
const manifests =
  /^(?:requirements[\w.-]{0,40}\.(?:txt|in)|pyproject\.toml|setup\.(?:py|cfg)|Pipfile|package\.json|pnpm-workspace\.yaml|Cargo\.toml|go\.(?:mod|work)|CMakeLists\.txt|[\w.-]{1,80}\.csproj)$/;

/**
 * Describes where the app refers to the folder `path` (of the repository), as the end of a sentence: "is named in line 3 of
 * Dockerfile". If there is a Dockerfile, only that decides.
 */
function findUse(app: Tree, appPath: string, dockerfile: string | undefined, path: string): string | undefined {
  const folder = posix.relative(appPath, path);
  if (folder.startsWith('..')) return undefined;
  const files =
    dockerfile === undefined
      ? app.entries.map((each) => each.path).filter((each) => manifests.test(each))
      : [dockerfile];
  for (const file of files) {
    const line = findLineNaming(app.readFile(file) ?? '', folder);
    if (line !== undefined) return `is named in line ${line} of ${file}`;
  }
  return undefined;
}

/** Returns the number of the first line, apart from comments, that names the folder or a path inside it. */
function findLineNaming(text: string, folder: string): number | undefined {
  const index = text
    .split('\n')
    .findIndex((line) => !/^\s*(?:#|\/\/)/.test(line) && isNamedIn(line.slice(0, 4_000), folder));
  return index < 0 ? undefined : index + 1;
}

function isNamedIn(line: string, folder: string): boolean {
  for (let at = line.indexOf(folder); at >= 0; at = line.indexOf(folder, at + 1)) {
    const before = line.slice(0, at);
    const after = line.charAt(at + folder.length);
    if (/(?:^|[\s"'=:,[(])(?:\.\/)?$/.test(before.slice(-3)) && /^(?:$|[\s"'/\\,\])*])/.test(after)) return true;
  }
  return false;
}

// The Dockerfile is a regular file that requests no other builder.

const maximumBytes = 512 * 1024;

export const dockerfile: Rule = {
  name: 'dockerfile',
  check({ tree, input: appInput }) {
    return listImages(appInput).flatMap(({ component, input }) =>
      checkDockerfile(tree, input).map((each) => nameComponent(each, component?.name)),
    );
  },
};

function checkDockerfile(tree: Tree, input: PipelineInput): Finding[] {
  const { strategy, dockerfile: name } = input.build;
  const file = posix.join(input.path, name);
  const entry = resolveEntry(tree, file);
  if (strategy === 'dockerfile' && entry === undefined) {
    return [
      {
        rule: 'dockerfile/missing',
        severity: 'error',
        file,
        message: 'build.strategy is dockerfile, but this file does not exist.',
        fix: 'Add it, or set build.dockerfile (its path relative to source.path) or build.strategy: auto in moorage.yaml.',
      },
    ];
  }
  if (!isAuthoredDockerfile(tree.getSubtree(input.path), input.build) && strategy !== 'dockerfile') return [];
  if (entry?.kind !== 'file' || entry.bytes > maximumBytes) {
    return [
      {
        rule: 'dockerfile/not-a-file',
        severity: 'error',
        file,
        message: 'This is not a regular file of at most 512 KiB.',
        fix: 'Commit the Dockerfile itself at this path, not a link or a folder.',
      },
    ];
  }
  return checkSyntax(file, tree.readFile(entry.path) ?? '');
}

/** Returns the file itself, or the repository file that it links to. */
function resolveEntry(tree: Tree, file: string): TreeEntry | undefined {
  const entry = tree.getEntry(file);
  if (entry?.kind !== 'symlink') return entry;
  const target = posix.join(posix.dirname(file), entry.target ?? '');
  const found = posix.isAbsolute(entry.target ?? '') ? undefined : tree.getEntry(target);
  return found?.kind === 'file' ? found : entry;
}

/** The first comment lines may name a frontend that parses the rest; only Docker's own is built in. */
function checkSyntax(file: string, text: string): Finding[] {
  for (const [index, line] of text
    .replace(/^\ufeff/, '')
    .split('\n', 50)
    .entries()) {
    const directive = /^\s*(?:#|\/\/)\s*([A-Za-z][A-Za-z0-9]*)\s*=\s*(.*)$/.exec(line.slice(0, 500));
    if (directive === null && !line.startsWith('#!')) return [];
    if (directive?.[1]?.toLowerCase() !== 'syntax') continue;
    const [image = ''] = (directive[2] ?? '').trim().split(/\s+/);
    if (/^(?:docker\.io\/)?docker\/dockerfile(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$/.test(image)) return [];
    return [
      {
        rule: 'dockerfile/syntax',
        severity: 'error',
        file,
        line: index + 1,
        message: `The Dockerfile requests the frontend ${keepHead(toOneLine(image), 120)}; only docker/dockerfile is available.`,
        fix: 'Use "# syntax=docker/dockerfile:1", or remove the line, and use only standard Dockerfile instructions.',
      },
    ];
  }
  return [];
}
