// What an author can do about a failed build step, guessed from what the step said.

export interface Fix {
  readonly rule: string;
  readonly message?: string;
  readonly fix: string;
  /** The line that told. */
  readonly line?: string;
}

interface Pattern extends Fix {
  readonly pattern: RegExp;
}

const noVersion =
  'A version that is asked for does not exist, or not for this Python. Fix the name or version in the list of packages; "pip index versions NAME" shows what there is.';

/** The first that matches counts, so the more telling ones come first. */
const patterns: readonly Pattern[] = [
  {
    pattern: /no space left on device|ENOSPC/i,
    rule: 'build/disk',
    message: 'The build ran out of disk.',
    fix: 'Raise build.resources.disk, or make the image smaller: fewer packages, CPU wheels of torch, models loaded at run time.',
  },
  {
    pattern: /exit code: 137|signal: killed|Cannot allocate memory|JavaScript heap out of memory|ENOMEM|\bKilled\b/,
    rule: 'build/memory',
    message: 'The build ran out of memory.',
    fix: 'Raise build.resources.memory, or make the step do less at once (fewer workers, NODE_OPTIONS=--max-old-space-size).',
  },
  {
    pattern: /download\.pytorch\.org/,
    rule: 'build/network',
    fix: 'The index of CPU wheels of torch could not be reached from the build. Set UV_TORCH_BACKEND to another one of uv in build.env of moorage.yaml, or pin wheels that an index in reach has.',
  },
  {
    pattern:
      /requires-python|requires a different Python|does not satisfy Python|Requires-Python|is incompatible with the project's Python requirement/i,
    rule: 'build/failed',
    fix: 'A package needs another Python. Set requires-python in pyproject.toml or .python-version (3.11 and 3.13 are there), or pin versions that fit.',
  },
  {
    pattern:
      /No matching distribution found|was not found in the package registry|there (?:is|are) no versions? of|Could not find a version that satisfies/i,
    rule: 'build/failed',
    fix: noVersion,
  },
  {
    pattern:
      /No solution found when resolving|because .{1,300} depends on .{1,300} incompatible|conflicting dependencies/i,
    rule: 'build/failed',
    fix: 'The versions that are asked for do not fit each other or this Python. Loosen the pins that the log names, and try "uv pip compile" on the list of packages.',
  },
  {
    pattern:
      /command '?"?(?:gcc|cc|g\+\+|x86_64-linux-gnu-gcc|clang)|(?:gcc|cc|cmake|rustc|cargo|make|g\+\+)(?: compiler)?:? (?:command )?not found|Failed to build|Failed building wheel|pg_config executable not found|error: Microsoft|Could not find.{0,40}compiler/i,
    rule: 'build/failed',
    fix: 'A package has no ready wheel for this Python and wants a compiler, which the image lacks. Pin a version that has wheels, or list what it needs (such as build-essential) in packages.txt, or bring a Dockerfile.',
  },
  {
    pattern: /ERESOLVE|peer dep|Conflicting peer dependency/i,
    rule: 'build/failed',
    fix: 'Two packages ask for different versions of a third. Align their versions in package.json, run npm install, and commit package-lock.json; or put legacy-peer-deps=true into .npmrc.',
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
    fix: 'package.json lacks the script that is run. Add it under "scripts", or put another build.strategy in moorage.yaml.',
  },
  {
    pattern: /node-gyp|gyp ERR!|prebuild-install/i,
    rule: 'build/failed',
    fix: 'A package wants to compile native code, and the image has no compiler. Use a version with prebuilt binaries, or bring a Dockerfile that installs python3, make and g++.',
  },
  {
    pattern: /npm (?:ERR!|error) (?:code )?E404|ERR_PNPM_FETCH_404|404 Not Found - GET/i,
    rule: 'build/failed',
    fix: 'A package or version in package.json does not exist in the registry (or is private). Fix its name or version and commit the lock file.',
  },
  {
    pattern:
      /error TS\d+|Type error:|Failed to compile|Module not found|Cannot find module|Could not resolve "?[^\n]{1,200}" from|Rollup failed to resolve|SyntaxError/i,
    rule: 'build/failed',
    fix: 'The code does not compile. Run the same command in a fresh clone, fix what the log names (a missing dependency, a file not committed, a type), and push.',
  },
  {
    pattern: /Unable to locate package|has no installation candidate/i,
    rule: 'build/failed',
    fix: 'apt knows no package of that name. Run apt-get update in the same RUN, and check the name for this Debian release at packages.debian.org.',
  },
  {
    pattern:
      /Could not resolve host|Temporary failure in name resolution|getaddrinfo|ENOTFOUND|EAI_AGAIN|Network is unreachable|Connection refused|ETIMEDOUT|Connection timed out|Failed to establish a new connection|error sending request/i,
    rule: 'build/network',
    fix: 'The step could not reach an address. Builds reach the public internet only, by name; check the address, and submit the repository again if it was down.',
  },
  {
    pattern:
      /(?:environment variable|api key|credentials?)\b.{0,40}(?:is|are) (?:missing|required|not set|undefined)|missing (?:required )?(?:environment variable|api key|credentials)|invalid environment variables/i,
    rule: 'build/failed',
    fix: 'The build runs code that wants a variable which is there only when the app runs. Read it where it is used, not where the file is loaded, or set a stand-in for the build in build.env of moorage.yaml (keys that .env.example lists get one by themselves).',
  },
  {
    pattern: /ImproperlyConfigured|^KeyError: '[A-Z][A-Z0-9_]+'/,
    rule: 'build/failed',
    fix: 'The settings cannot be read without a variable or module. Give what is read there a default for the build, or set it in build.env of moorage.yaml.',
  },
  {
    pattern: /Permission denied|EACCES/i,
    rule: 'build/failed',
    fix: 'A file cannot be read or run. Commit it with its mode (git update-index --chmod=+x FILE), or do this step before USER.',
  },
  {
    pattern: /: not found|command not found|No such file or directory|exit code: 127/i,
    rule: 'build/failed',
    fix: 'The step calls a program or file that the image does not have. Install it in an earlier step, or fix the path; names are case-sensitive.',
  },
];

const fallback: Fix = {
  rule: 'build/failed',
  fix: 'Run the same step in a fresh clone (docker build .), fix what the log shows, and push.',
};

/** A guess at the fix; never undefined. */
export function suggestFix(log: string): Fix {
  const lines = log.split('\n').map((line) => line.slice(0, 2_000));
  for (const { pattern, ...fix } of patterns) {
    const line = lines.find((each) => pattern.test(each));
    if (line !== undefined) return { ...fix, line: line.trim() };
  }
  return fallback;
}

const registries =
  /pypi\.org|pythonhosted\.org|registry\.npmjs\.org|registry\.yarnpkg\.com|deb\.debian\.org|security\.debian\.org/i;
const hiccups =
  /\b50[0234]\b (?:Server Error|Bad Gateway|Service|Internal)|Temporary failure in name resolution|Temporary failure resolving|EAI_AGAIN|ECONNRESET|ETIMEDOUT|Connection timed out|Read timed out|Connection reset by peer|dns error|socket hang up/i;

/** Did a public package registry fail, which is nobody's fault here and may pass? */
export function registryHiccup(log: string): boolean {
  return log
    .split('\n')
    .some(
      (line, index, lines) =>
        hiccups.test(line) && registries.test(lines.slice(Math.max(0, index - 3), index + 4).join('\n')),
    );
}
