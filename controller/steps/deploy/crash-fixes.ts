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
