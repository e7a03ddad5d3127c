// Parses the findings of BuildKit's Dockerfile checks from buildctl's text output.
import type { Finding } from '../../../crds/hosted-app.ts';
import { toOneLine } from '../text.ts';

const maximumFindings = 15;
const manual = 'https://docs.docker.com/reference/build-checks/';

/** Fixes for the most frequent checks. Other findings link to the manual. */
const lintFixes: Readonly<Record<string, string>> = {
  SecretsUsedInArgOrEnv:
    'Remove it from ARG and ENV, which anyone who has the image can read; provide it to the app at run time with run.secrets.',
  JSONArgsRecommended:
    'Write the command as a JSON array, like CMD ["node", "server.js"], so that the app receives the stop signal.',
  UndefinedVar: 'Declare the variable with ARG or ENV before using it, or correct its spelling.',
  UndefinedArgInFrom: 'Declare it with ARG above the first FROM, and give it a default.',
  InvalidDefaultArgInFrom: 'Give the ARG a default that makes FROM a valid image name.',
  WorkdirRelativePath: 'Use an absolute path for WORKDIR.',
  CopyIgnoredFile: 'Remove the file from .dockerignore, or do not copy it.',
  DuplicateStageName: 'Give each stage a unique name.',
  MultipleInstructionsDisallowed: 'Keep only the last one; the others have no effect.',
  FromPlatformFlagConstDisallowed: 'Remove --platform from FROM.',
};

/** Parses the output of a `frontend.lint` request; `file` is the Dockerfile's path in the repository. */
export function readLint(text: string, file: string): Finding[] {
  const [warnings = '', ...rest] = splitErrors(text);
  const lines = warnings
    .split(/^WARNING: /m)
    .slice(1, maximumFindings + 1)
    .map((block) => toWarning(block, file));
  return [...rest.flatMap((error) => toInvalidFindings(error, file)), ...lines];
}

/** Splits off the error. An error follows all warnings. */
function splitErrors(text: string): string[] {
  const blocks = text.split(/^-{20}\n(?=(?!\s*\d+ \||WARNING: |\n)\S)/m);
  return [blocks[0] ?? '', ...blocks.slice(1).filter((block) => block.trim() !== '')];
}

function toWarning(block: string, file: string): Finding {
  const [title = '', ...lines] = block.split('\n');
  const rule = /^\w+/.exec(title)?.[0] ?? 'check';
  const at = findExcerpt(block);
  const before = lines.findIndex((line) => /:\d+$/.test(line));
  const message = toOneLine((before < 0 ? lines : lines.slice(0, before)).join(' '));
  const slug = rule.replace(/([a-z0-9])([A-Z])|([A-Z]+)([A-Z][a-z])/g, '$1$3-$2$4').toLowerCase();
  return {
    rule: `dockerfile/${rule}`,
    severity: 'warning',
    file,
    ...(at === undefined ? {} : { line: at.line }),
    message: message === '' ? toOneLine(title) : message,
    fix: lintFixes[rule] ?? `See ${manual}${slug}/.`,
  };
}

function toInvalidFindings(block: string, file: string): Finding[] {
  const message = toOneLine(block.split('\n')[0] ?? '');
  const at = findExcerpt(block);
  return message === ''
    ? []
    : [
        {
          rule: 'dockerfile/invalid',
          severity: 'error',
          file,
          ...(at === undefined ? {} : { line: at.line }),
          message,
          fix: 'Fix this line; see https://docs.docker.com/reference/dockerfile/ for all instructions.',
        },
      ];
}

export interface Excerpt {
  readonly file: string;
  readonly line: number;
  /** The marked lines of the Dockerfile, verbatim. */
  readonly text: string;
}

/** Returns the last excerpt in a text; undefined if there is none. */
export function findExcerpt(text: string): Excerpt | undefined {
  const matches = [...text.matchAll(/^([^\n:]{1,300}):(\d{1,7})\n-{20}\n((?: +\d{1,7} \|[^\n]*\n?)+)/gm)];
  const last = matches.at(-1);
  if (last === undefined) return undefined;
  const meant = [...(last[3] ?? '').matchAll(/^ +(\d+) \| >>> ?(.*)$/gm)];
  return {
    file: last[1] ?? '',
    line: Number(meant[0]?.[1] ?? last[2]),
    text: meant.map((match) => match[2] ?? '').join('\n'),
  };
}
