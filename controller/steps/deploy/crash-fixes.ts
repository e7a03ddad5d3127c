// Suggests what an author can do about a crash, from the last lines of the log.
import { maximumVariables } from '../../../crds/status.ts';
import { appVariableName } from '../../../crds/values.ts';
import { isErrorLine, isExcerpt, isLastWord, quoteLine } from '../../pipeline/build/step-log.ts';
import { crashCauses, startCauses, suggestMissingProgram } from './crash-causes.ts';
import type { CrashCause } from './missing-variables.ts';

const otherwise =
  'Run the app in a fresh clone as it runs here (the same start command, without a .env file), and fix what the last lines of its log report.';
const ended =
  'The start command ran to its end without starting a server. Make it start one that listens on $PORT and keeps running: the "start" script of package.json, the web line of the Procfile, CMD of the Dockerfile or run.command in moorage.yaml.';
const maximumRead = 4_096;

/** Guesses the fix. @param log the app's last lines */
export function suggestCrashFix(log: string, exitCode?: number): string {
  const lines = splitLastLines(log);
  const cause = findCause(lines);
  if (cause === undefined) return exitCode === 0 ? ended : otherwise;
  return typeof cause.fix === 'string' ? cause.fix : cause.fix(lines);
}

/** Finds the variables without a value that the app reports. @param log the app's last lines */
export function findMissingVariables(log: string): string[] {
  const lines = splitLastLines(log);
  const names = findCause(lines)?.variables?.(lines) ?? [];
  return [...new Set(names)].filter((name) => appVariableName.safeParse(name).success).slice(0, maximumVariables);
}

const longestLine = 200;

/** Finds the line that says why the app exited. @param log the app's last lines */
export function findCrashLine(log: string): string | undefined {
  const lines = splitLastLines(log);
  const cause = findCause(lines);
  if (cause?.quote !== undefined) return shortenAround(cause.quote(lines), cause.pattern);
  const pattern = cause?.pattern;
  const last = lines.findLastIndex((line) => (pattern === undefined ? isLastWord(line) : pattern.test(line)));
  const index = last < 0 ? lines.findLastIndex(isErrorLine) : last;
  if (index < 0) return undefined;
  // Rust prints what a panic says on the next line.
  const line = lines[index] ?? '';
  return shortenAround(/panicked at \S{1,200}:\d+:\d+:$/.test(line) ? quoteLine(lines, index) : line, pattern);
}

/** Returns the last line that is no frame of a stack trace, for a log that reports no error. @param log the app's last lines */
export function findLastLine(log: string): string | undefined {
  const line = splitLastLines(log).findLast((each) => /\w/.test(each) && !isExcerpt(each));
  return line === undefined ? undefined : shortenAround(line, undefined);
}

/** At most {@link longestLine} characters, with what matters among them. */
function shortenAround(text: string, pattern: RegExp | undefined): string | undefined {
  const line = text
    .replace(/ note: run with `RUST_BACKTRACE.*$/, '')
    .trim()
    .replace(/[.:\s]{1,20}$/, '');
  if (line === '') return undefined;
  if (line.length <= longestLine) return line;
  const at = pattern?.exec(line)?.index ?? 0;
  const start = at < longestLine / 2 ? 0 : at - 20;
  const end = start + longestLine;
  return `${start === 0 ? '' : '…'}${line.slice(start, end)}${end < line.length ? '…' : ''}`;
}

/** File and line in a stack trace, by language. */
const frames: readonly RegExp[] = [
  // Python
  /^\s*File "([^"\n]{1,300})", line (\d{1,7})/,
  // Node, Deno, Ruby, Go, Elixir and PHP: path:line, with what surrounds it
  /^(?:\s*(?:at |from |\[\d+\] )?.{0,200}?[\s(])?(?:file:\/\/)?((?:\.{0,2}\/)?[\w@+.~/-]{1,300}\.(?:[cm]?[jt]sx?|rb|ru|go|exs?|php|rs)):(\d{1,7})\b/,
  // PHP
  /\bin (\/[^\n]{1,300}\.php) on line (\d{1,7})/,
  // .NET
  /\bin (\/[^\n]{1,300}\.(?:cs|fs|vb)):line (\d{1,7})/,
];
/** Code of others, which the author cannot change. */
const foreign =
  /site-packages|dist-packages|node_modules|\/vendor\/|\/gems\/|^node:|^\/(?:usr\/(?!src\/app\/)|opt\/|lib\/|root\/(?!app\/)|home\/[^/]+\/\.)|^<|\/(?:rustc|go\/pkg|deps)\//;
const appRoot = /^\/(?:usr\/src\/app|app|workspace|code|src|srv|home\/[^/]+\/app|root\/app)\//;

/**
 * Finds the app's own file and line in which it crashed, relative to the app's folder. Python lists the innermost call
 * last, the others list it first. @param log the app's last lines
 */
export function findCrashPosition(log: string): { file: string; line: number } | undefined {
  const found = splitLastLines(log).flatMap((text) => {
    const match = frames
      .map((frame, index) => ({ index, groups: frame.exec(text) }))
      .find(({ groups }) => groups !== null);
    const [, path = '', line = ''] = match?.groups ?? [];
    return match === undefined || foreign.test(path) ? [] : [{ isPython: match.index === 0, path, line: Number(line) }];
  });
  const chosen = found.some(({ isPython }) => isPython) ? found.findLast(({ isPython }) => isPython) : found[0];
  if (chosen === undefined) return undefined;
  const file = chosen.path.replace(appRoot, '').replace(/^\.\//, '');
  return file.startsWith('/') || file.startsWith('..') ? undefined : { file, line: chosen.line };
}

function splitLastLines(log: string): string[] {
  return log.slice(-maximumRead).split('\n');
}

/** The last exception ended the app; earlier ones may have been handled. */
function findCause(lines: readonly string[]): CrashCause | undefined {
  const find = (among: readonly string[]): CrashCause | undefined =>
    crashCauses.find(
      ({ pattern, isProven }) => among.some((line) => pattern.test(line)) && isProven?.(lines) !== false,
    );
  const last = lines.findLastIndex(isLastWord);
  return (last < 0 ? undefined : find(lines.slice(last))) ?? find(lines);
}

/** Suggests a fix for a start command that was not found. @param log the app's last lines */
export function suggestNotFoundFix(log: string): string {
  const lines = splitLastLines(log);
  const start = startCauses.find(({ pattern }) => lines.some((line) => pattern.test(line)));
  if (start !== undefined) return start.fix;
  return suggestMissingProgram(log.slice(-maximumRead));
}
