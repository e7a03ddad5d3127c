// Rule: reports submodules that were not fetched, and rejects unsafe addresses and missing submodules that the build
// needs.
import { posix } from 'node:path';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { Fault } from '../../contract.ts';
import type { Submodule } from '../../handover.ts';
import { isAuthoredDockerfile } from '../../plan/dockerfile/text.ts';
import { keepHead, toOneLine } from '../../text.ts';
import type { Tree } from '../../tree.ts';
import type { ReviewContext, Rule } from '../rule.ts';

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
function findNeed(path: string, { tree, input }: ReviewContext): string | undefined {
  if (input.path === path || input.path.startsWith(`${path}/`)) return 'contains source.path';
  const app = tree.getSubtree(input.path);
  const dockerfile = isAuthoredDockerfile(app, input.build) ? input.build.dockerfile : undefined;
  return findUse(app, input.path, dockerfile, path);
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
 * Names the app's file that refers to the folder `path` (of the repository), as the end of a sentence: "is copied by
 * line 3 of Dockerfile". If there is a Dockerfile, only that decides.
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

/** Returns the number of the first line, apart from comments, that contains the folder or a path inside it. */
function findLineNaming(text: string, folder: string): number | undefined {
  const found = text
    .split('\n')
    .findIndex((line) => !/^\s*(?:#|\/\/)/.test(line) && isNamedIn(line.slice(0, 4_000), folder));
  return found < 0 ? undefined : found + 1;
}

function isNamedIn(line: string, folder: string): boolean {
  for (let at = line.indexOf(folder); at >= 0; at = line.indexOf(folder, at + 1)) {
    const before = line.slice(0, at);
    const after = line.charAt(at + folder.length);
    if (/(?:^|[\s"'=:,[(])(?:\.\/)?$/.test(before.slice(-3)) && /^(?:$|[\s"'/\\,\])*])/.test(after)) return true;
  }
  return false;
}
