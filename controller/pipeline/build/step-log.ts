// Extracts the relevant parts of a failed step's log: the first error, an unreachable host, a missing program.
import type { ServiceType } from '../../../crds/backing-services.ts';
import { keepHead, keepTail } from '../text.ts';

/** Help texts, advertisements and progress output of package managers. */
const noise: readonly RegExp[] = [
  /^npm (?:ERR!|error|warn|WARN|notice|info|http) ?(?:$|Usage:|Options:|aliases?:|Run "npm help|npm (?:ci|install)$|\[-{1,2}[\w-]|A complete log|\/root\/\.npm\/_logs|deprecated |New (?:major|minor|patch) version|Changelog:|To update run)/i,
  /^npm (?:ERR!|error) {2,}\[?-{1,2}[\w-]/,
  /^(?:info Visit https:\/\/(?:classic\.)?yarnpkg|info Run `yarn|Usage: |\[\d\/\d\] )/,
  /^\s{0,9}(?:Downloaded|Compiling|Adding|Locking|Updating) [\w.-]{1,80} v\d/,
  /^debconf: (?:unable to initialize frontend|falling back to frontend|\()/,
  /^(?:Progress: resolved|Downloading |Collecting |Get:\d|Selecting previously|Preparing to unpack|Unpacking |Setting up |Reading database)/,
];
const errorWords =
  /^E: \S|(?:^|[\s[])(?:[\w.]{0,60}(?:error|exception)|err!|fatal|failed|failure|cannot|can't|could not|unable to|missing|not found|undefined reference|traceback|panic|✘|ELIFECYCLE|ERR_\w{1,60})(?=$|[\s:!,.([\]])/i;
const harmless = /\bwarn(?:ing)?\b|\b0 errors?\b|deprecat|no errors?\b/i;

/** Removes noise from a log. */
export function removeNoise(log: string): string {
  return log
    .split('\n')
    .filter((line) => !noise.some((each) => each.test(line.slice(0, 300))))
    .join('\n');
}

/** Returns the index of the first line that reports an error; -1 if there is none. */
function findFirstError(lines: readonly string[]): number {
  return lines.findIndex((line) => errorWords.test(line.slice(0, 500)) && !harmless.test(line.slice(0, 500)));
}

/** What follows from an error that another line names: exit codes, headings, help links. */
const consequences: readonly RegExp[] = [
  /^\s*(?:[❌✗✘x>] |\[[A-Z]{4,7}\] )?(?:error during build|failed to compile|build error occurred|FAILURE: Build failed with an exception|BUILD FAILURE|(?:.{0,20}\b)?migrations? failed|build failed(?: in .{1,20})?|traceback \(most recent call last\)|error|errors?:)[.:]?\s*$/i,
  /^npm (?:ERR!|error) (?:code|errno|path|command|syscall|Exit status|Failed at|This is probably|enoent undefined)\b/,
  /\bELIFECYCLE\b|\bcommand failed\b|exited with (?:code )?\d|returned (?:a non-zero code|with error code)|did not run successfully|non-zero exit status/i,
  /^.{0,40}Error occurred prerendering page|Export encountered/i,
  /could not compile `|^error: subprocess-exited-with-error|originates from a subprocess|A JNI error has occurred/,
  /^(?:Exit code|Command|Arguments|Directory|Output):/,
  // The class of an exception, whose message stands on another line.
  /^\s*[A-Z]\w{0,60}(?:Error|Exception)\s*$/,
];
/** Lines of source code that a program prints where it failed, and frames of a stack. */
const excerptLine =
  /^\s*(?:(?:\d{1,6} ?\||[│|>]) ?)?\s*(?:if \(|throw |raise |const |let |return |import )|^\s*(?:\^+|at .{1,300}|File ".{1,300}", line \d+.*|from .{1,300}:\d+:in .*|\.{3}.*)\s*$/;

/** Whether a line is source code or a frame of a stack, which reports nothing itself. */
export function isExcerpt(line: string): boolean {
  return excerptLine.test(line.slice(0, 500));
}

/** Whether a line reports an error itself, and not the consequence of one. */
export function isErrorLine(line: string): boolean {
  const start = line.slice(0, 500);
  return (
    errorWords.test(start) &&
    !harmless.test(start) &&
    !isExcerpt(start) &&
    !consequences.some((each) => each.test(start))
  );
}

/** Words of a program that continues without something that is missing. */
const waived = /\b(?:using (?:the |a )?default|defaulting to|fall(?:s|ing) back to|skipping|will be skipped)\b/i;

/** Whether a line is a warning, which explains no failure. */
export function isWarning(line: string): boolean {
  return (
    /^\s*(?:#\d+ )?(?:npm (?:warn|WARN)\b|\[?WARN(?:ING)?\b|warning\b|w: |\(node:\d+\) )/i.test(line) ||
    waived.test(line)
  );
}

/**
 * Returns the line that says most about the failure: the first error that is not the consequence of another one, or the
 * first consequence, or else the last line.
 */
export function findErrorLine(log: string): string | undefined {
  const lines = removeNoise(log).split('\n');
  // The last line is BuildKit's own error.
  const isCandidate = (line: string): boolean => line.trim() !== '' && !isExcerpt(line) && !solveError.test(line);
  const isConsequence = (line: string): boolean => consequences.some((each) => each.test(line.slice(0, 300)));
  const first = lines.findIndex((line) => isErrorLine(line) && !solveError.test(line));
  const index = first >= 0 ? first : lines.findIndex((line) => isConsequence(line) && isCandidate(line));
  return index >= 0 ? quoteLine(lines, index) : lines.findLast(isCandidate)?.trim();
}

const solveError = /^(?:error: )?failed to solve: |^process "/;

/** Whether a line is BuildKit's own error, which repeats the command and its exit code. */
export function isSolveError(line: string): boolean {
  return solveError.test(line);
}

/** Quotes a line. One that ends with a colon, a bracket or in a sentence says little without those that follow it. */
export function quoteLine(lines: readonly string[], index: number): string {
  const line = lines[index]?.trim() ?? '';
  if (!/(?:[:{[,]|\b(?:and|is|we|which))$/.test(line)) return line;
  const following = lines.slice(index + 1, index + 4).map((each) => each.trim());
  const end = following.findIndex((each) => each === '' || excerptLine.test(each) || solveError.test(each));
  return [line, ...following.slice(0, end < 0 ? undefined : end)].join(' ');
}

/** Shortens a log to at most `bytes`: all of it, or the first error with the lines after it, and the end. */
export function shortenLog(log: string, bytes: number): string {
  const text = removeNoise(log);
  if (Buffer.byteLength(text) <= bytes) return text;
  const lines = text.split('\n');
  const from = Math.max(0, findFirstError(lines) - 3);
  const excerpt = lines.slice(from).join('\n');
  const start = from === 0 ? '' : '…\n';
  if (Buffer.byteLength(excerpt) <= bytes - 4) return `${start}${excerpt}`;
  return `${start}${keepHead(excerpt, (bytes * 2) / 3 - 10)}\n${keepTail(excerpt, bytes / 3 - 10)}`;
}

const googleFonts = /Failed to fetch (?:font )?`[^`]{1,100}` from Google Fonts/;

/** Messages of package managers and programs when a name does not resolve or a host does not respond. */
const unreachableErrors: readonly RegExp[] = [
  /Could not resolve host|Temporary failure (?:in name resolution|resolving)|Name or service not known|nodename nor servname/i,
  /getaddrinfo|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|socket hang up/,
  /Network is unreachable|Connection (?:refused|timed out|reset by peer)|No route to host/i,
  /Failed to establish a new connection|error sending request|dns error|failed to lookup address|client error \(Connect\)/i,
  // Poetry; Cargo; Go; uv; curl and wget; Yarn; pnpm; Maven and Gradle.
  /All attempts to connect to \S{1,200} failed|failed to download from `|spurious network error|dial tcp\b|i\/o timeout|no such host/i,
  /Failed to fetch: `http|curl: \((?:6|7|28|35|56)\)|unable to resolve host address|There appears to be trouble with your network/i,
  // Next.js, which does not print the host.
  googleFonts,
  // Bundler and RubyGems, which wrap sentences at the terminal width.
  /Could not fetch specs from |Could not reach host |Bundler::HTTPError|Gem::RemoteFetcher::FetchError/,
  // NuGet; Mix and Hex, which print Erlang error terms.
  /Unable to load the service index for source|:failed_connect\b|:nxdomain\b|Could not install (?:Hex|Rebar) because Mix could not download|Failed to fetch record for/i,
  // unjs and Turbopack, which name the address in the same line.
  /https?:\/\/.{1,300}<no response>|issue establishing a connection while requesting https?:/,
  // Prisma.
  /Can't reach database server at /,
  /ERR_PNPM_META_FETCH_FAIL|UnknownHostException|Unknown host|TLS handshake timeout|SSL_ERROR_SYSCALL|operation timed out/i,
];
const addresses: readonly RegExp[] = [
  /:to_address, \{~?c?["']([A-Za-z0-9][A-Za-z0-9.-]{1,250}\.[A-Za-z]{2,30})/,
  /\bhttps?:\/\/(?:[^\s/@"'`]{1,100}@)?([A-Za-z0-9][A-Za-z0-9.-]{1,250}\.[A-Za-z]{2,30})/,
  /(?:host(?:name)?(?: address)?|lookup|ENOTFOUND|EAI_AGAIN|connect to|host=|resolving)[ :='"‘]{1,4}([A-Za-z0-9][A-Za-z0-9.-]{1,250}\.[A-Za-z]{2,30})/i,
];
/** Marks a line as a warning before a retry, not as the failure. */
const retryNotice = /\b(?:will retry|retrying|attempt \d+ of)\b/i;

/** MySQL's message of PDO names no address: that of a database in the build is its own. */
const localAddress = /\b(?:127\.0\.0\.1|localhost)\b|::1\b|SQLSTATE\[HY000\] \[2002\]/;
const refusal = /ECONNREFUSED|Connection refused/i;
/** A name without a dot, such as that of a service in a compose file. */
const shortName =
  /(?:ENOTFOUND|EAI_AGAIN|lookup|resolve host|host name|hostname|at)[ :='"‘`]{1,4}([a-z][a-z0-9_-]{1,40})(?=["'’`),:\s]|$)/;
const notFoundName =
  /ENOTFOUND|EAI_AGAIN|no such host|could not translate host name|Name or service not known|Can't reach database server/i;
/** Links to help, which name no unreachable host. */
const helpLink =
  /\b(?:visit|see|read more|more info(?:rmation)?|learn more|details|documentation|refer to|report|issues?|troubleshooting|background)\b[^\n]{0,60}https?:\/\/\S+|https?:\/\/(?:docs|errors|help|support|wiki)\.\S+|https?:\/\/(?:pris\.ly|git\.io|aka\.ms|sqlalche\.me|nextjs\.org\/docs|(?:classic\.)?yarnpkg\.com\/\S{0,20}docs)\S*/gi;

export interface NetworkFault {
  readonly line: string;
  /** The unreachable host; undefined if no line names it. */
  readonly host: string | undefined;
  /** Index of the line in the log. */
  readonly index: number;
  /** The address is on the build machine itself. */
  readonly isLocal: boolean;
}

/** Returns the first line that reports a network error, with the host from that line or a nearby one. */
export function findNetworkFault(lines: readonly string[]): NetworkFault | undefined {
  const matching = lines.flatMap((line, index) => (unreachableErrors.some((each) => each.test(line)) ? [index] : []));
  const index = matching.find((each) => !retryNotice.test(lines[each] ?? '')) ?? matching[0];
  if (index === undefined) return findSilentFault(lines);
  const line = lines[index] ?? '';
  const near = [line, ...lines.slice(Math.max(0, index - 3), index + 4)];
  const host = near.map(findHost).find((found) => found !== undefined);
  return { line: line.trim(), host, index, isLocal: isLocalFault(line, near, host) };
}

/** A server on the build's own machine, or with a name that only a compose file gives. */
function isLocalFault(line: string, near: readonly string[], host: string | undefined): boolean {
  if (localAddress.test(line)) return true;
  if (findHost(line) !== undefined) return false;
  const isShort = notFoundName.test(line) && shortName.test(line);
  return isShort || (host === undefined && refusal.test(line) && near.some((each) => localAddress.test(each)));
}

/** What distinguishes the types of backing services in a log. */
const serviceSigns: readonly (readonly [RegExp, ServiceType])[] = [
  [/\b5432\b|postgres|\bPG::|psycopg|asyncpg/i, 'postgres'],
  [/\b27017\b|mongo/i, 'mongo'],
  [/\b6379\b|redis/i, 'redis'],
  [/\b3306\b|mysql|mariadb|SQLSTATE\[HY000\] \[2002\]/i, 'mysql'],
  [/\b6333\b|qdrant/i, 'qdrant'],
  [/\b7700\b|meilisearch/i, 'meilisearch'],
  [/\bminio\b/i, 'minio'],
  [/\bchroma(?:db)?\b/i, 'chroma'],
];

/** Guesses which backing service a program could not reach; undefined if its log names none. */
export function guessService(text: string): ServiceType | undefined {
  return serviceSigns.find(([sign]) => sign.test(text))?.[1];
}

const endedStep = /process "(.{1,8000})" did not complete successfully: exit code: (\d{1,3})\b/;
/** Exit codes of curl and wget when a host is unreachable; with --silent they print nothing. */
const silentPrograms: readonly { readonly program: RegExp; readonly codes: readonly string[] }[] = [
  { program: /\bcurl\b/, codes: ['6', '7', '28', '35', '56'] },
  { program: /\bwget\b/, codes: ['4'] },
];

/** Detects a step that exited as curl or wget does without a network, and returns the first address in its command. */
function findSilentFault(lines: readonly string[]): NetworkFault | undefined {
  const index = lines.findIndex((line) => endedStep.test(line));
  const [, command = '', code = ''] = endedStep.exec(lines[index] ?? '') ?? [];
  if (!silentPrograms.some(({ program, codes }) => program.test(command) && codes.includes(code))) return undefined;
  return { line: lines[index] ?? '', host: findHost(command), index, isLocal: localAddress.test(command) };
}

function findHost(line: string): string | undefined {
  if (googleFonts.test(line)) return 'fonts.googleapis.com';
  const text = line.replace(helpLink, ' ');
  return addresses.map((each) => each.exec(text)?.[1]).find((host) => host !== undefined);
}

/** npm packages by program, if the names differ. */
const npmPackages: Readonly<Record<string, string>> = {
  tsc: 'typescript',
  nest: '@nestjs/cli',
  ng: '@angular/cli',
  'vue-cli-service': '@vue/cli-service',
  'run-s': 'npm-run-all',
  'run-p': 'npm-run-all',
  webpack: 'webpack-cli',
  nuxi: 'nuxt',
  'svelte-kit': '@sveltejs/kit',
  tailwindcss: '@tailwindcss/cli',
  sass: 'sass',
  remix: '@remix-run/dev',
  'react-router': '@react-router/dev',
  docusaurus: '@docusaurus/core',
  eleventy: '@11ty/eleventy',
  babel: '@babel/cli',
  swc: '@swc/cli',
  lingui: '@lingui/cli',
  'graphql-codegen': '@graphql-codegen/cli',
  changeset: '@changesets/cli',
};
/** Programs whose npm package has the same name. */
const sameName =
  /^(?:vite|next|astro|gatsby|tsx|ts-node|tsup|rimraf|cross-env|prisma|turbo|nx|husky|patch-package|concurrently|esbuild|rollup|react-scripts|nodemon|rspack|rsbuild|shx|dotenv|drizzle-kit|eslint|prettier|lerna|vitest|only-allow|parcel|serve|pm2|unbuild|wrangler|contentlayer|velite|simple-git-hooks|lefthook|electron-builder|craco|react-app-rewired|typedoc|panda|pnpm|yarn|bun)$/;
const notFoundLines: readonly RegExp[] = [
  /^(?:\/?\S{0,40}\/)?(?:sh|bash|dash|ash): (?:(?:line )?\d{1,5}: )?([\w.@/+-]{1,80}): (?:command )?not found$/,
  /\bcommand not found: ([\w.@/+-]{1,80})$/,
  /^(?:\/?\S{0,40}\/)?env: [‘'"]?([\w.@/+-]{1,80})[’'"]?: No such file or directory$/,
  // Node; npm; Go and Docker; pip; Composer.
  /\bspawn ([\w.@/+-]{1,80}) ENOENT\b/,
  /\bNo (git) binary found in \$PATH/,
  /\bexec: "([\w.@/+-]{1,80})": executable file not found in \$PATH/,
  /\bCannot find command '([\w.-]{1,40})'/,
  /\b(git) was not found in your PATH/,
  // Elixir, after the line that says :enoent.
  /\bSystem\.cmd\("([\w.-]{1,40})", /,
];
/** What npm prints of a program, some versions without a line that says more. */
const spawnLine = /^npm (?:ERR!|error) syscall spawn ([\w.-]{1,40})$/;

export interface MissingProgram {
  readonly line: string;
  /** Index of the line in the log. */
  readonly index: number;
  readonly program: string;
  /** The npm package that provides it; undefined if unknown. */
  readonly package: string | undefined;
  /** The calling script, such as: script "build" of the package web. */
  readonly caller: string | undefined;
}

/** Finds the program that was not found; undefined if the log names none. */
export function findMissingProgram(lines: readonly string[]): MissingProgram | undefined {
  return findNotFound(lines, notFoundLines) ?? findNotFound(lines, [spawnLine]);
}

function findNotFound(lines: readonly string[], patterns: readonly RegExp[]): MissingProgram | undefined {
  for (const [index, line] of lines.entries()) {
    const program = patterns.map((each) => each.exec(line.trim())?.[1]).find((found) => found !== undefined);
    if (program === undefined || (/System\.cmd/.test(line) && !/:enoent/.test(lines[index - 1] ?? ''))) continue;
    const brought = Object.hasOwn(npmPackages, program) ? npmPackages[program] : undefined;
    return {
      line: line.trim(),
      index,
      program,
      package: brought ?? (sameName.test(program) ? program : undefined),
      caller: findCaller(lines, index),
    };
  }
  return undefined;
}

/**
 * npm and pnpm print "> name@version script" before a script, and the folder of a package whose install script failed.
 */
function findCaller(lines: readonly string[], index: number): string | undefined {
  const folder = lines
    .slice(index - 12 < 0 ? 0 : index - 12, index + 12)
    .map(
      (line) =>
        /^npm (?:ERR!|error) path \S{0,300}\/node_modules\/((?:@[\w.-]{1,80}\/)?[\w.-]{1,80})$/.exec(line.trim())?.[1],
    )
    .find((found) => found !== undefined);
  if (folder !== undefined) return `the install script of the package ${folder}`;
  const script = lines.slice(0, index).findLast((line) => scriptHeader.test(line.trim()));
  const [, name, word] = scriptHeader.exec(script?.trim() ?? '') ?? [];
  return name === undefined || word === undefined ? undefined : `the script "${word}" of the package ${name}`;
}

const scriptHeader = /^> ((?:@[\w.-]{1,80}\/)?[\w.-]{1,80})@\S{0,60} ([\w:.-]{1,60})(?: \/\S{0,300})?$/;

/** The beginnings of lines in which programs report why they exit. */
const lastWords =
  /^(?:\[\w+\] )?(?:Uncaught |Caused by: )?(?:[A-Za-z_][\w.]{0,80}(?:Error|Exception|Exit|Configured|Fault)\b(?: \[\w+\])?|CRITICAL\b|FATAL?\b|fatal(?: error)?:|PHP Fatal error:|Kernel pid terminated\b|panic:|[Ee]rror:|thread '[^'\n]{0,80}' panicked)/;

/** Whether a program reports on this line why it exits. */
export function isLastWord(line: string): boolean {
  return lastWords.test(line.trimStart());
}
