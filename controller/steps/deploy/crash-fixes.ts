// What an author can do about an app that crashes, guessed from its last lines.

import { crashCauses } from './crash-causes.ts';

const otherwise =
  'Run the image with the same variables and check the last lines of its log. Missing configuration and missing packages are the usual causes.';
const ended =
  'The start command ran to its end without starting a server. Make it start one that listens on $PORT and keeps running: the "start" script of package.json, the web line of the Procfile, CMD of the Dockerfile or run.command in moorage.yaml.';
const maximumRead = 4_096;

/** A guess at the fix. @param log last lines that the app wrote */
export function suggestCrashFix(log: string, exitCode?: number): string {
  return fixOf(lastLines(log))?.[1] ?? (exitCode === 0 ? ended : otherwise);
}

/** How programs begin the line that says what ended them. */
const lastWords =
  /^(?:\[\w+\] )?(?:Uncaught )?(?:[A-Za-z_][\w.]{0,80}(?:Error|Exception|Exit|Configured|Fault)\b|CRITICAL\b|FATAL\b|fatal(?: error)?:|panic:|[Ee]rror:|thread '[^'\n]{0,80}' panicked)/;
const longestLine = 200;

/** The line that says why the app ended; undefined when none does. @param log last lines that the app wrote */
export function crashLine(log: string): string | undefined {
  const lines = lastLines(log);
  const pattern = fixOf(lines)?.[0];
  const found =
    pattern === undefined
      ? lines.findLast((line) => lastWords.test(line.trimStart()))
      : lines.findLast((line) => pattern.test(line));
  const line = found?.trim().replace(/[.:\s]{1,20}$/, '') ?? '';
  if (line === '') return undefined;
  return line.length > longestLine ? `${line.slice(0, longestLine)}…` : line;
}

/** Where a traceback names a file and a line, by language. */
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
/** Code of others, which an author cannot change. */
const foreign =
  /site-packages|dist-packages|node_modules|\/vendor\/|\/gems\/|^node:|^\/(?:usr\/(?!src\/app\/)|opt\/|lib\/|root\/(?!app\/)|home\/[^/]+\/\.)|^<|\/(?:rustc|go\/pkg|deps)\//;
const appRoot = /^\/(?:usr\/src\/app|app|workspace|code|src|srv|home\/[^/]+\/app|root\/app)\//;

/**
 * The file and the line of the app in which it crashed, relative to the folder of the app. Python names the innermost
 * call last, the others name it first. @param log last lines that the app wrote
 */
export function findCrashPosition(log: string): { file: string; line: number } | undefined {
  const found = lastLines(log).flatMap((text) => {
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

function lastLines(log: string): string[] {
  return log.slice(-maximumRead).split('\n');
}

function fixOf(lines: readonly string[]): (typeof crashCauses)[number] | undefined {
  return crashCauses.find(([pattern]) => lines.some((line) => pattern.test(line)));
}

/** The fix of a start command that was not found. @param log last lines that the app wrote */
export function notFoundFix(log: string): string {
  const program = /\b(?:sh|bash|ash): (?:(?:line )?\d{1,5}: )?([\w.@/+-]{1,80}): (?:command )?not found/.exec(
    log.slice(-maximumRead),
  )?.[1];
  return program === undefined
    ? 'The start command was not found in the image: correct CMD in the Dockerfile, or run.command in moorage.yaml.'
    : `The start command calls ${program}, which is not in the image: add the package that brings it to your dependencies (not to the development dependencies), or correct the start script, CMD in the Dockerfile, or run.command in moorage.yaml.`;
}
