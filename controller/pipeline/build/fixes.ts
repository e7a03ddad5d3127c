// Suggests how an author can fix a failed build step, based on its output.
import { reportMark } from '../plan/build-warnings.ts';
import { buildCauses, type Cause, type Fix } from './causes.ts';
import {
  findErrorLine,
  findMissingProgram,
  findNetworkFault,
  guessService,
  isSolveError,
  isWarning,
  type MissingProgram,
  type NetworkFault,
  quoteLine,
} from './step-log.ts';

interface Suggestion extends Fix {
  /** The log line that decides. */
  readonly line?: string;
}

const fallback = 'Run the same step in a fresh clone (docker build .), fix what the log reports, and push.';
/** There is no Dockerfile to build. */
const plannedFallback =
  'Run the same command in a fresh clone, fix what the log reports, and push. If the build needs other steps, add a Dockerfile.';

/** Rules that take precedence over a network error: running out of disk or memory causes those too. */
const strongest = ['build/disk', 'build/memory'];

/**
 * Suggests a fix; never undefined. If a package could not be fetched, that explains all later output.
 * @param isPlanned whether Moorage planned the step, so that there is no Dockerfile
 */
export function suggestFix(log: string, isPlanned = false): Suggestion {
  const lines = log.split('\n').map((line) => line.slice(0, 2_000));
  // A step that reports a fallback got past its first error, so what failed it comes after the last report.
  const last = lines.findLastIndex((line) => line.startsWith(reportMark));
  return (
    (last < 0 ? undefined : findSuggestion(lines.slice(last + 1), isPlanned)) ??
    findSuggestion(lines, isPlanned) ??
    toFallback(log, isPlanned)
  );
}

function findSuggestion(lines: readonly string[], isPlanned: boolean): Suggestion | undefined {
  const match = findCause(lines);
  const suggestion = match === undefined ? undefined : toSuggestion(match, lines, isPlanned);
  if (suggestion !== undefined && strongest.includes(suggestion.rule)) return suggestion;
  const network = findNetworkFault(lines);
  if (network !== undefined && !isEarlier(match, network)) return toNetworkFix(network, lines, isPlanned);
  const missing = findMissingProgram(lines);
  return missing === undefined || isDispensable(missing, match, lines)
    ? suggestion
    : toMissingProgramFix(missing, isPlanned);
}

/** A script may try a program that it can do without, and fail later for another reason. */
function isDispensable(missing: MissingProgram, match: Match | undefined, lines: readonly string[]): boolean {
  const isLater = match?.cause.isCertain === true && match.index > missing.index;
  return isLater && !/\b127\b/.test(lines.at(-1) ?? '');
}

interface Match {
  readonly cause: Cause;
  readonly index: number;
}

function findCause(lines: readonly string[]): Match | undefined {
  for (const cause of buildCauses) {
    const index = lines.findIndex((line) => cause.pattern.test(line) && !isWarning(line));
    if (index >= 0) return { cause, index };
  }
  return undefined;
}

function toSuggestion({ cause, index }: Match, lines: readonly string[], isPlanned: boolean): Suggestion {
  const { rule, message, fix, planned, quote } = cause;
  const quoted = quote === undefined ? -1 : lines.findIndex((line) => quote.test(line) && !isWarning(line));
  const line = quoteLine(lines, quoted < 0 ? index : quoted);
  return {
    rule,
    ...(message === undefined ? {} : { message }),
    fix: `${isPlanned ? (planned ?? fix) : fix}${rule === 'build/failed' ? describeSkip(lines, index) : ''}`,
    line: isSolveError(line) ? (findErrorLine(lines.join('\n')) ?? line) : line,
  };
}

/** Install scripts name the variable that makes them skip a download near the line that reports it. */
function describeSkip(lines: readonly string[], index: number): string {
  const near = lines.slice(Math.max(0, index - 3), index + 4).join('\n');
  const name = /\bSet ["'`]?([A-Z][A-Z0-9_]{0,40}SKIP[A-Z0-9_]{0,40})\b/.exec(near)?.[1];
  return name === undefined
    ? ''
    : ` If the app can do without the file, or the image gets it in another way, set ${name} to true (ENV in the Dockerfile; without one build.env of moorage.yaml).`;
}

/** A certain error that precedes the network error is not caused by it. */
function isEarlier(match: Match | undefined, network: NetworkFault): boolean {
  return match?.cause.isCertain === true && match.index < network.index;
}

function toFallback(log: string, isPlanned: boolean): Suggestion {
  const line = findErrorLine(log);
  return {
    rule: 'build/failed',
    fix: isPlanned ? plannedFallback : fallback,
    ...(line === undefined ? {} : { line }),
  };
}

function toNetworkFix(fault: NetworkFault, lines: readonly string[], isPlanned: boolean): Suggestion {
  if (fault.isLocal) return toLocalFix(fault, lines, isPlanned);
  const torch = /pytorch\.org$/.test(fault.host ?? '')
    ? ' It is the index of CPU wheels of torch: set UV_TORCH_BACKEND to another backend in build.env of moorage.yaml, or pin wheels from an index that the build can reach.'
    : '';
  return {
    rule: 'build/network',
    line: fault.line,
    message: `The build could not reach ${fault.host ?? 'an address'}.`,
    fix: `Builds can reach only the public internet, by host name. Check the address, and submit the repository again if it was temporarily down.${torch}${describeSkip(lines, fault.index)}`,
  };
}

function toLocalFix({ line, index }: NetworkFault, lines: readonly string[], isPlanned: boolean): Suggestion {
  const type = guessService(lines.slice(Math.max(0, index - 3), index + 4).join('\n'));
  const when = isPlanned ? ', and run migrations with a line "release: COMMAND" in a Procfile' : '';
  const service =
    type === undefined
      ? ''
      : ` When the app runs, it reaches a ${type} service if moorage.yaml names one (services with name: db, type: ${type})${when}.`;
  return {
    rule: 'build/failed',
    line,
    fix: `The build connects to a server on its own machine or network, such as a database, and none runs while an image is built. Connect where the data is used, not when the file is loaded or the page is built.${service}`,
  };
}

/** What else a package that calls this program needs. */
const companions: Readonly<Record<string, string>> = {
  'pkg-config':
    ' The package looks for a library with it: install its -dev package as well (default-libmysqlclient-dev for mysqlclient).',
};

function toMissingProgramFix(missing: MissingProgram, isPlanned: boolean): Suggestion {
  const { program, package: brought, caller, line } = missing;
  const message = `${caller === undefined ? 'The step' : capitalize(caller)} calls ${program}, which is not installed.`;
  const install = isPlanned
    ? `Add a Dockerfile that installs ${program} (a Python app can list its Debian package in packages.txt instead), or do without it.`
    : `Install ${program} in an earlier step, or correct the path; names are case-sensitive.`;
  return {
    rule: 'build/failed',
    line,
    message,
    fix:
      brought === undefined
        ? `${install}${Object.hasOwn(companions, program) ? (companions[program] ?? '') : ''}`
        : `The package ${brought} brings ${program}: add it to package.json, run the package manager's install, and commit the lock file.`,
  };
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const registries =
  /pypi\.org|pythonhosted\.org|registry\.npmjs\.org|registry\.yarnpkg\.com|rubygems\.org|deb\.debian\.org|security\.debian\.org/i;
const hiccups =
  /\b50[0234]\b (?:Server Error|Bad Gateway|Service|Internal)|Temporary failure in name resolution|Temporary failure resolving|EAI_AGAIN|ECONNRESET|ETIMEDOUT|Connection timed out|Read timed out|Connection reset by peer|dns error|socket hang up/i;

/** Returns whether a public package registry failed. That is not the author's fault and may be temporary. */
export function isRegistryHiccup(log: string): boolean {
  return log
    .split('\n')
    .some(
      (line, index, lines) =>
        hiccups.test(line) && registries.test(lines.slice(Math.max(0, index - 3), index + 4).join('\n')),
    );
}
