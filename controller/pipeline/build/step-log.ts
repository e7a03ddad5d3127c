// What of a failed step's log an author needs to see: the first error and what stands around it, not the usage at the end.
import { head, tail } from '../text.ts';

/** Help, advertisements and progress of package managers. */
const noise: readonly RegExp[] = [
  /^npm (?:ERR!|error|warn|WARN|notice|info|http) ?(?:$|Usage:|Options:|aliases?:|Run "npm help|npm (?:ci|install)$|\[-{1,2}[\w-]|A complete log|\/root\/\.npm\/_logs|deprecated |New (?:major|minor|patch) version|Changelog:|To update run)/i,
  /^npm (?:ERR!|error) {2,}\[?-{1,2}[\w-]/,
  /^(?:info Visit https:\/\/(?:classic\.)?yarnpkg|info Run `yarn|Usage: |\[\d\/\d\] )/,
  /^\s{0,9}(?:Downloaded|Compiling|Adding|Locking|Updating) [\w.-]{1,80} v\d/,
  /^debconf: (?:unable to initialize frontend|falling back to frontend|\()/,
  /^(?:Progress: resolved|Downloading |Collecting |Get:\d|Selecting previously|Preparing to unpack|Unpacking |Setting up |Reading database)/,
];
const errors =
  /^E: \S|(?:^|[\s[])(?:[\w.]{0,60}(?:error|exception)|err!|fatal|failed|failure|cannot|can't|could not|unable to|missing|not found|undefined reference|traceback|panic|✘|ELIFECYCLE|ERR_\w{1,60})(?=$|[\s:!,.([\]])/i;
const harmless = /\bwarn(?:ing)?\b|\b0 errors?\b|deprecat|no errors?\b/i;

/** The lines that say something. */
export function withoutNoise(log: string): string {
  return log
    .split('\n')
    .filter((line) => !noise.some((each) => each.test(line.slice(0, 300))))
    .join('\n');
}

/** Index of the first line that reports an error; -1 when none does. */
function firstError(lines: readonly string[]): number {
  return lines.findIndex((line) => errors.test(line.slice(0, 500)) && !harmless.test(line.slice(0, 500)));
}

/** The first line that reports an error. */
export function errorLine(log: string): string | undefined {
  const lines = withoutNoise(log).split('\n');
  return lines[firstError(lines)]?.trim();
}

/** A log of at most `bytes`: whole, or the first error with what follows it, and the end. */
export function excerptOf(log: string, bytes: number): string {
  const text = withoutNoise(log);
  if (Buffer.byteLength(text) <= bytes) return text;
  const lines = text.split('\n');
  const from = Math.max(0, firstError(lines) - 3);
  const rest = lines.slice(from).join('\n');
  const start = from === 0 ? '' : '…\n';
  if (Buffer.byteLength(rest) <= bytes - 4) return `${start}${rest}`;
  return `${start}${head(rest, (bytes * 2) / 3 - 10)}\n${tail(rest, bytes / 3 - 10)}`;
}
