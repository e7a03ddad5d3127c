// Suggests how an author can fix a failed build step, based on its output.
import { languages } from '../../../crds/languages.ts';
import { findErrorLine, findMissingProgram, findNetworkFault, type NetworkFault } from './step-log.ts';

const rubyVersions = languages.ruby.images.map(({ version }) => version).join(' and ');
/** Target frameworks of the planned .NET, which its projects and refusals name. */
const frameworks = languages.dotnet.images.map(({ version }) => `net${version}.0`).join(' or ');

/** More specific patterns come first. */
const rubyPatterns: readonly Pattern[] = [
  {
    pattern:
      /Your Ruby version is \S{1,20}, but your Gemfile specified|requires ruby version .{1,80} incompatible with the current version|because current Ruby version is/i,
    isCertain: true,
    rule: 'build/failed',
    fix: `The Gemfile or a gem requires another version of Ruby; ${rubyVersions} are available. Ask for one of them in .ruby-version and the Gemfile, run bundle update for the gems that the log names, and commit Gemfile.lock; or add a Dockerfile.`,
  },
  {
    pattern:
      /Could not find gem '|Could not find \S{1,100} in (?:any of the sources|rubygems repository|locally installed gems)|Could not find compatible versions|Your bundle is locked to \S{1,100} .{1,80}, but that version/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'A gem or the version of it that is asked for is not in its source, or is private. Correct it in the Gemfile, run bundle install, and commit Gemfile.lock.',
  },
  {
    pattern: /Could not find a JavaScript runtime|ExecJS::RuntimeUnavailable/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'A gem runs JavaScript, and the image has no Node. Commit Gemfile.lock, so that the plan finds the gem and adds Node, or add the gem mini_racer.',
  },
  {
    pattern: /Missing encryption key to decrypt|EncryptedFile::MissingKeyError|MessageEncryptor::InvalidMessage/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'Rails decrypts config/credentials.yml.enc, and its key (config/master.key) is not in the repository. Remove config.require_master_key, and read what the app needs from variables with a default for the build.',
  },
  {
    pattern:
      /Failed to build gem native extension|mkmf\.rb can't find header files|^An error occurred while installing \S{1,100} \(/,
    rule: 'build/failed',
    fix: 'A gem did not compile: the log names the library or header that it misses. Libraries of well-known gems are installed; for another one use a version of the gem with binaries for x86_64-linux, or add a Dockerfile that installs its Debian package (such as libpq-dev).',
  },
];

interface Fix {
  readonly rule: string;
  readonly message?: string;
  readonly fix: string;
  /** The matching log line. */
  readonly line?: string;
}

interface Pattern extends Fix {
  readonly pattern: RegExp;
  /** Identifies the cause with certainty if it precedes any network error. */
  readonly isCertain?: true;
}

const conflict =
  'The requested versions conflict with each other or with this Python version. Relax the pins named in the log, and try "uv pip compile" on your requirements.';
const noVersion =
  'A requested package or version does not exist, or does not support this Python version. Correct it in the list of packages; "pip index versions NAME" lists the available versions.';

const codeFix =
  'The code does not compile. Run the same command in a fresh clone, fix what the log reports (a missing dependency, an uncommitted file, a type error), and push.';

/** The first match wins, so more specific patterns come first. */
const patterns: readonly Pattern[] = [
  {
    pattern: /no space left on device|ENOSPC/i,
    rule: 'build/disk',
    message: 'The build ran out of disk space.',
    fix: 'Increase build.resources.disk, or make the image smaller: fewer packages, CPU wheels of torch, models downloaded at run time.',
  },
  {
    pattern: /exit code: 137|signal: killed|Cannot allocate memory|JavaScript heap out of memory|ENOMEM|\bKilled\b/,
    rule: 'build/memory',
    message: 'The build ran out of memory.',
    fix: 'Increase build.resources.memory, or reduce what the step does at once (fewer workers, NODE_OPTIONS=--max-old-space-size).',
  },
  ...rubyPatterns,
  {
    pattern:
      /requires-python|requires a different Python|does not satisfy Python|Requires-Python|is incompatible with the project's Python requirement/i,
    rule: 'build/failed',
    fix: 'A package requires another Python version. Set requires-python in pyproject.toml, or .python-version (3.11 and 3.13 are available), or pin compatible versions.',
  },
  {
    pattern:
      /No matching distribution found|was not found in the package registry|there (?:is|are) no versions? of|Because only \S{1,100} is available|Could not find a version that satisfies/i,
    isCertain: true,
    rule: 'build/failed',
    fix: noVersion,
  },
  // uv prints the reason on the line after this one.
  { pattern: /\bBecause .{1,400}, we can conclude that /, rule: 'build/failed', fix: conflict },
  {
    pattern:
      /No solution found when resolving|because .{1,300} depends on .{1,300} incompatible|conflicting dependencies/i,
    rule: 'build/failed',
    fix: conflict,
  },
  {
    pattern:
      /command '?"?(?:gcc|cc|g\+\+|x86_64-linux-gnu-gcc|clang)|(?:gcc|cc|cmake|rustc|cargo|make|g\+\+)(?: compiler)?:? (?:command )?not found|Failed to build|Failed building wheel|pg_config executable not found|error: Microsoft|Could not find.{0,40}compiler/i,
    rule: 'build/failed',
    fix: 'A package has no prebuilt wheel for this Python version and needs a compiler, which the image does not have. Pin a version that has wheels, list what it needs (such as build-essential) in packages.txt, or add a Dockerfile.',
  },
  {
    pattern: /ERESOLVE|peer dep|Conflicting peer dependency/i,
    isCertain: true,
    rule: 'build/failed',
    fix: 'Two packages require different versions of a third. Align their versions in package.json, run npm install, and commit package-lock.json; or set legacy-peer-deps=true in .npmrc.',
  },
  {
    pattern:
      /`npm ci` can only install|package\.json and package-lock\.json.*(?:not )?in sync|ERR_PNPM_OUTDATED_LOCKFILE|lockfile needs to be updated|lockfile would have been modified|The lockfile at `uv\.lock` needs|poetry\.lock was last generated|pyproject\.toml changed significantly/i,
    rule: 'build/lockfile',
    fix: "The lock file does not match the manifest. Run the package manager's install (npm install, pnpm install, yarn, uv lock, poetry lock) and commit the lock file.",
  },
  {
    pattern: /Missing script: "?([\w:-]+)|Command "build" not found/i,
    rule: 'build/failed',
    fix: 'package.json does not define the script that is run. Add it under "scripts", or set another build.strategy in moorage.yaml.',
  },
  {
    pattern: /node-gyp|gyp ERR!|prebuild-install/i,
    rule: 'build/failed',
    fix: 'A package compiles native code, and the image has no compiler. Use a version with prebuilt binaries, or add a Dockerfile that installs python3, make and g++.',
  },
  {
    pattern: /npm (?:ERR!|error) (?:code )?E404|ERR_PNPM_FETCH_404|404 Not Found - GET/i,
    isCertain: true,
    rule: 'build/failed',
    fix: 'A package or version in package.json does not exist in the registry, or is private. Correct its name or version, and commit the lock file.',
  },
  {
    pattern: /: pattern \S{1,200}: no matching files found/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The Go code embeds files that are not in the repository, since another step makes them (such as npm run build or go generate). Commit them, or add a Dockerfile that makes them before it compiles the program.',
  },
  {
    pattern: /error NETSDK1045\b|You're trying to run :\S{1,80} on Elixir v|error NETSDK1147\b/,
    isCertain: true,
    rule: 'build/failed',
    fix: `The project asks for another version of .NET or Elixir, or for a workload, than the image has. Target a version that is planned here (TargetFramework ${frameworks}; elixir in mix.exs), or add a Dockerfile.`,
  },
  {
    pattern: /error NU110[0-3]\b|error NU1605\b|\*\* \(Mix\) (?:No package with name|Hex dependency resolution failed)/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'A package or version that the project refers to does not exist in the registry, is private, or conflicts with another. Correct its version (dotnet restore, mix deps.get), and commit the lock file.',
  },
  {
    pattern: /Could not find Hex, which is needed|Could not find an SCM for dependency /,
    rule: 'build/failed',
    fix: 'A dependency comes from Hex, which the step does not have. Run "mix local.hex --force && mix local.rebar --force" before it.',
  },
  {
    pattern: /could not read file "[^"\n]{1,300}\/config\/[\w.-]{1,60}\.secret\.exs"/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'config/prod.exs imports a file of secrets that is not in the repository. Read them from the environment in config/runtime.exs (DATABASE_URL, SECRET_KEY_BASE), and remove import_config of that file.',
  },
  {
    pattern: /: error (?:CS|FS|BC|RZ)\d{3,5}:|== Compilation error in file /,
    isCertain: true,
    rule: 'build/failed',
    fix: codeFix,
  },
  {
    pattern: /error TS\d+|Type error:/,
    isCertain: true,
    rule: 'build/failed',
    fix: codeFix,
  },
  {
    pattern:
      /Failed to compile|Module not found|Cannot find module|Could not resolve "?[^\n]{1,200}" from|Rollup failed to resolve|SyntaxError/i,
    rule: 'build/failed',
    fix: codeFix,
  },
  {
    pattern: /^E: Release file for \S{1,300} is (?:expired|not valid yet)/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The package lists of this Debian or Ubuntu release are out of date at its mirror. Use the base image of a stable release, such as debian:bookworm-slim, or submit the repository again once the mirror is updated.',
  },
  {
    pattern: /^E: The repository '[^'\n]{1,300}' (?:does not have|no longer has) a Release file/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'This Debian or Ubuntu release has reached its end of life, and its packages were removed from the mirror. Use the base image of a supported release in FROM, such as debian:bookworm-slim.',
  },
  {
    pattern: /gpg: no valid OpenPGP data found/,
    rule: 'build/failed',
    fix: 'The signing key that the step downloads did not arrive: its address has moved, or builds cannot reach it. Check the address, or install the package from Debian instead.',
  },
  {
    pattern: /Unable to locate package|has no installation candidate/i,
    rule: 'build/failed',
    fix: 'apt cannot find a package with that name. Run apt-get update in the same RUN instruction, and check the name for this Debian release at packages.debian.org.',
  },
  {
    pattern:
      /(?:environment variable|api key|credentials?|environment variables)\b.{0,40}(?:is|are) (?:missing|required|not (?:set|defined)|undefined)|missing (?:required )?(?:environment variable|api key|credentials)|invalid environment variables/i,
    rule: 'build/failed',
    fix: 'The build runs code that requires a variable which is set only when the app runs. Read it where it is used, not when the file is loaded, or set a placeholder in build.env of moorage.yaml (variables listed in .env.example get one automatically).',
  },
  {
    pattern: /ImproperlyConfigured|^KeyError: '[A-Z][A-Z0-9_]+'|\bkey not found: "[A-Z][A-Z0-9_]+"/,
    rule: 'build/failed',
    fix: 'The settings of the app require a variable or module that is missing during the build. Provide a default for the build, or set the variable in build.env of moorage.yaml.',
  },
  {
    pattern: /Permission denied|EACCES/i,
    rule: 'build/failed',
    fix: 'A file cannot be read or executed. Commit it with the right mode (git update-index --chmod=+x FILE), or run this step before USER.',
  },
  {
    pattern: /: not found|command not found|No such file or directory|exit code: 127/i,
    rule: 'build/failed',
    fix: 'The step calls a program or file that does not exist in the image. Install it in an earlier step, or correct the path; names are case-sensitive.',
  },
];

const fallback: Fix = {
  rule: 'build/failed',
  fix: 'Run the same step in a fresh clone (docker build .), fix what the log reports, and push.',
};

/** Rules that take precedence over a network error: running out of disk or memory causes those too. */
const strongest = ['build/disk', 'build/memory'];

/** Suggests a fix; never undefined. If a package could not be fetched, that explains all later output. */
export function suggestFix(log: string): Fix {
  const lines = log.split('\n').map((line) => line.slice(0, 2_000));
  const match = findPattern(lines);
  if (match !== undefined && strongest.includes(match.rule)) return match;
  const network = findNetworkFault(lines);
  if (network !== undefined && !isEarlier(match, lines, network)) return toNetworkFix(network);
  return toMissingProgramFix(lines) ?? match ?? toFallback(findErrorLine(log));
}

/** A certain error that precedes the network error is not caused by it. */
function isEarlier(match: Match | undefined, lines: readonly string[], network: NetworkFault): boolean {
  return match?.isCertain === true && lines.indexOf(match.line) < network.index;
}

function toFallback(line: string | undefined): Fix {
  return line === undefined ? fallback : { ...fallback, line };
}

type Match = Fix & { readonly line: string; readonly isCertain?: boolean };

function findPattern(lines: readonly string[]): Match | undefined {
  for (const { pattern, ...fix } of patterns) {
    const line = lines.find((each) => pattern.test(each));
    if (line !== undefined) return { ...fix, line };
  }
  return undefined;
}

function toNetworkFix(fault: NetworkFault): Fix {
  if (fault.isLocal)
    return {
      rule: 'build/failed',
      line: fault.line,
      fix: 'The build connects to a server on its own machine, such as a database, and none runs while an image is built. Connect where the data is used, not when the file is loaded or the page is built.',
    };
  const torch = /pytorch\.org$/.test(fault.host ?? '')
    ? ' It is the index of CPU wheels of torch: set UV_TORCH_BACKEND to another backend in build.env of moorage.yaml, or pin wheels from an index that the build can reach.'
    : '';
  return {
    rule: 'build/network',
    line: fault.line,
    message: `The build could not reach ${fault.host ?? 'an address'}.`,
    fix: `Builds can reach only the public internet, by host name. Check the address, and submit the repository again if it was temporarily down.${torch}`,
  };
}

function toMissingProgramFix(lines: readonly string[]): Fix | undefined {
  const found = findMissingProgram(lines);
  if (found === undefined) return undefined;
  const { program, package: brought, caller, line } = found;
  const message = `${caller === undefined ? 'The step' : capitalize(caller)} calls ${program}, which is not installed.`;
  return {
    rule: 'build/failed',
    line,
    message,
    fix:
      brought === undefined
        ? `Install ${program} in an earlier step, or correct the path; names are case-sensitive.`
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
