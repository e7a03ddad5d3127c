// Rule: no submodules; their addresses are an old way to make git run or read something else.
import type { Finding } from '../../../../crds/hosted-app.ts';
import { head, oneLine } from '../../text.ts';
import type { Rule } from '../rule.ts';

const fix =
  'Copy what you need into the repository (git subtree), or install it as a package during the build; then remove the submodule (git rm) and push.';
const odd = /^\s*(?:url|path|update|command)\s*=\s*["']?\s*(?:[a-z][a-z0-9+.-]*::|file:|-|!|\.{1,2}\/|\/)/i;

export const submodules: Rule = {
  name: 'git',
  check({ tree, gitlinks }) {
    const findings: Finding[] = gitlinks.slice(0, 10).map((path) => ({
      rule: 'git/submodule',
      severity: 'error',
      file: path,
      message: 'This is a submodule, which points to another repository; submodules are not fetched.',
      fix,
    }));
    for (const file of ['.gitmodules', '.gitconfig']) findings.push(...oddLines(file, tree.text(file)));
    if (findings.length === 0 && tree.entry('.gitmodules') !== undefined) {
      return [
        {
          rule: 'git/submodule',
          severity: 'error',
          file: '.gitmodules',
          message: 'The repository declares submodules; they are not fetched.',
          fix,
        },
      ];
    }
    return findings;
  },
};

/** Lines that point git at a local path, a command or an option instead of a server. */
function oddLines(file: string, text: string | undefined): Finding[] {
  const lines = (text ?? '').split('\n');
  return lines
    .flatMap((line, index): Finding[] =>
      odd.test(line.slice(0, 500))
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
    .slice(0, 10);
}
