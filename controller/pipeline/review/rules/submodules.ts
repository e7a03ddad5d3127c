// Rule: submodules that were not fetched are said, and refused only where the build needs them; addresses that are an old
// way to make git run or read something else are refused.
import type { Finding } from '../../../../crds/hosted-app.ts';
import { Fault } from '../../outcome.ts';
import type { Submodule } from '../../notes.ts';
import { authoredDockerfile } from '../../plan/authored.ts';
import { head, oneLine } from '../../text.ts';
import type { ReviewContext, Rule } from '../rule.ts';
import { usesOf } from './submodule-uses.ts';

const fixMissing =
  'If the app needs it, use an https address of a public repository on a git host that this installation allows, copy what you need into the repository (git subtree), or install it as a package during the build. Otherwise, no change is needed.';
const fixNeeded =
  'Use an https address of a public repository on a git host that this installation allows, copy what you need into the repository (git subtree), or install it as a package during the build.';
const maximumFindings = 10;

/** Keys by which git was made to run commands, take options or read local paths. */
const odd: readonly RegExp[] = [
  /^\s*url\s*=\s*["']?\s*(?:[a-z][a-z0-9+.-]{0,30}::|file:|-|!|\/)/i,
  /^\s*path\s*=\s*["']?\s*(?:-|!|\/|(?:[^"'\s]{0,200}\/)?\.\.(?:\/|["'\s]|$))/i,
  /^\s*(?:update|command)\s*=\s*["']?\s*(?:!|-|\/|\.{1,2}\/)/i,
  /^\s*(?:update|command)\s*=\s*["']?\s*(?:[a-z][a-z0-9+.-]{0,30}::|file:)/i,
];

export const submodules: Rule = {
  name: 'git',
  check(context) {
    const missing = context.submodules.filter(({ problem }) => problem !== undefined).slice(0, maximumFindings);
    const findings = missing.map((each) => judge(each, context));
    for (const file of ['.gitmodules', '.gitconfig']) findings.push(...oddLines(file, context.tree.text(file)));
    return findings;
  },
};

function judge({ path, problem = '', passing }: Submodule, context: ReviewContext): Finding {
  const use = neededBy(path, context);
  const why = problem.replace(/[.\s]+$/, '');
  if (use !== undefined && passing === true)
    throw new Fault(`the submodule ${path}, which ${use}, could not be fetched: ${why}`);
  return {
    rule: 'git/submodule',
    severity: use === undefined ? 'warning' : 'error',
    file: path,
    message: `This submodule was not fetched, so its folder is empty: ${why}.${use === undefined ? '' : ` The build needs it: it ${use}.`}`,
    fix: use === undefined ? fixMissing : fixNeeded,
  };
}

/** What needs the folder, as the end of a sentence. */
function neededBy(path: string, { tree, input }: ReviewContext): string | undefined {
  if (input.path === path || input.path.startsWith(`${path}/`)) return 'contains source.path';
  const app = tree.below(input.path);
  const dockerfile = authoredDockerfile(app, input.build) ? input.build.dockerfile : undefined;
  return usesOf(app, input.path, dockerfile, path);
}

/** Lines that point git at a local path, a command or an option instead of a server. */
function oddLines(file: string, text: string | undefined): Finding[] {
  const lines = (text ?? '').split('\n');
  return lines
    .flatMap((line, index): Finding[] =>
      odd.some((pattern) => pattern.test(line.slice(0, 500)))
        ? [
            {
              rule: 'git/unsafe-address',
              severity: 'error',
              file,
              line: index + 1,
              message: `This makes git run a command, take an option or read a local path: ${head(oneLine(line), 120)}`,
              fix: `Remove the line, or the whole file ${file}.`,
            },
          ]
        : [],
    )
    .slice(0, maximumFindings);
}
