// The causes of failed build steps: what the system, settings and tools of several languages print, and how an author fixes
// it.
import { compiledCauses } from './compiled-causes.ts';
import { codeFix, languageCauses, missingImport } from './language-causes.ts';

export interface Fix {
  readonly rule: string;
  readonly message?: string;
  readonly fix: string;
}

export interface Cause extends Fix {
  readonly pattern: RegExp;
  /** Finds a line that says more than the matching one. */
  readonly quote?: RegExp;
  /** The fix if Moorage planned the step, so that there is no Dockerfile to change. */
  readonly planned?: string;
  /** Identifies the cause with certainty if it precedes any network error. */
  readonly isCertain?: true;
}

const sharedLibrary =
  'A program needs a shared library that is not in the image: install the package of the base image that brings it (for libssl: openssl), or use a base image that has it.';
/** Added to the advice about a shared library. */
export const oldOpenssl =
  ' libssl.so.1.1 is OpenSSL 1.1, which newer base images no longer have: install the package openssl and update what needs it (such as Prisma), or use an older base image.';

/** A script whose first line ends as on Windows calls a program with a name that no image has. */
export const windowsLineEnds = {
  pattern: /\\r['’"]?: (?:No such file|command not found|not found)|\^M: (?:bad interpreter|No such file)/,
  fix: 'The script has line ends of Windows, so its first line names a program that does not exist. Save it with line ends of Unix: put "* text=auto eol=lf" into .gitattributes, run "git add --renormalize .", and commit.',
} as const;

/** What compilers and scripts report in every language. It explains what a package manager says after it. */
const toolchain: readonly Cause[] = [
  { ...windowsLineEnds, isCertain: true, rule: 'build/failed' },
  {
    pattern: /fatal error: \S{1,200}\.h(?:pp)?: No such file or directory/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'A package is compiled with the header of a library that is not in the image. Install the -dev package that brings it before this step (such as libsqlite3-dev, libpq-dev or python3-dev; on Alpine sqlite-dev, postgresql-dev or python3-dev), or use a version of the package with prebuilt binaries.',
    planned:
      'A package is compiled with the header of a library that is not in the image. Use a version of it with prebuilt binaries, list the -dev package of Debian that brings the header in packages.txt (a Python app), or add a Dockerfile that installs it.',
  },
  {
    pattern: /\bld: cannot find -l/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The program is linked with a library that is not in the image (its name stands after -l). Install its -dev package before this step (such as libhwloc-dev for -lhwloc; on Alpine hwloc-dev), or use a feature or version of the package that brings its own.',
  },
  {
    pattern: /Package requirements \(.{1,200}\) were not met|^\s*No package '[^'\n]{1,80}' found/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The step compiles with a library that is not in the image. Install its -dev package before this step (on Debian libonig-dev for oniguruma, zlib1g-dev for zlib, libzip-dev, libpng-dev, libpq-dev; on Alpine oniguruma-dev, zlib-dev). For a PHP extension, install-php-extensions installs both.',
    planned:
      'A package is compiled with a library that is not in the image. Use a version of it with prebuilt binaries, list the -dev package of Debian that brings the library in packages.txt (a Python app), or add a Dockerfile that installs it.',
  },
];
/** A Dockerfile does not see build.env. */
const inDockerfile =
  'set a placeholder with ENV in the Dockerfile before this step (build.env of moorage.yaml does not reach a Dockerfile)';
const inPlan = 'set a placeholder in build.env of moorage.yaml';

function describeVariable(how: string): string {
  return `The build runs code that requires a variable which is set only when the app runs. Read it where it is used, not when the file is loaded, or ${how}.`;
}

const variable = {
  rule: 'build/failed',
  fix: describeVariable(inDockerfile),
  planned: describeVariable(`${inPlan} (variables listed in .env.example get one automatically)`),
} as const;

function describeDatabase(start: string, how: string): string {
  return `The build asks for a database, and none runs while an image is built. Take what needs it (such as a migration) out of the build, and run it when the app starts (${start}); services in moorage.yaml give the app a database. If the address is only read, ${how}.`;
}

const database = {
  rule: 'build/failed',
  fix: describeDatabase('in CMD', inDockerfile),
  planned: describeDatabase('with a line "release: COMMAND" in a Procfile', inPlan),
} as const;
const noGit = 'A build has the files of the commit, and no .git folder.';
/** For Dockerfiles that need a commit or a tag. */
export const withoutGit = `${noGit} Declare ARG SOURCE_COMMIT in the Dockerfile, which is set to the hash of the commit, and read that; for a version from tags, set one (ENV SETUPTOOLS_SCM_PRETEND_VERSION=1.0.0 for setuptools-scm and hatch-vcs).`;

const system: readonly Cause[] = [
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
    pattern: /Unable to locate package/i,
    rule: 'build/failed',
    fix: 'apt cannot find a package with that name. Run apt-get update in the same RUN instruction. If it is there already, the release of the base image has no package of this name: look it up at packages.debian.org (or packages.ubuntu.com), or use a base image that brings the program (such as python:3.12-slim).',
  },
  {
    pattern: /packages have unmet dependencies|you have held broken packages/,
    quote: / : (?:Depends|PreDepends|Conflicts|Breaks): /,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The packages do not fit each other: a source of packages belongs to another release than the base image, or its lists are old. Remove sources of other releases, run apt-get update in the same RUN instruction, and leave out versions that are pinned.',
  },
  {
    pattern: /has no installation candidate/i,
    rule: 'build/failed',
    fix: 'The Debian or Ubuntu release of the base image does not have this package. Look up its name in this release at packages.debian.org (or packages.ubuntu.com), or use the base image of a release that has it.',
  },
  {
    pattern: /^(?:sed|cat|cp|mv|grep): .{0,40}['‘ ]?\/(?:etc|usr|opt)\/\S{1,200}: No such file or directory/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The base image does not have this file of the system; another release or variant of it may. Use the base image that the step was written for, or make the step do without the file. (Debian 12 has /etc/apt/sources.list.d/debian.sources, older ones have /etc/apt/sources.list.)',
  },
  {
    pattern: /^mkdir: cannot create directory .{1,200}: File exists/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The base image or an earlier step has made this folder (or a file of this name). Use mkdir -p, or remove the step.',
  },
  {
    pattern: /not in gzip format|does not look like a tar archive|End-of-central-directory signature not found/,
    rule: 'build/failed',
    fix: 'What the step downloaded is not the archive that it expects, such as a page with an error. Open the address of the download, correct it, and have the download fail on errors (curl --fail).',
  },
  {
    pattern: /externally-managed-environment/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'pip may not change the Python of this Debian. Install into a virtual environment (python3 -m venv /opt/venv), or use a python image in FROM.',
  },
  {
    pattern: /base name \(.{0,200}\) should not be blank/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'FROM takes its image from an ARG that has no value. Give it a default in the Dockerfile (ARG NAME=image, before FROM), or set it in build.args of moorage.yaml.',
  },
  {
    pattern: /lib(?:ssl|crypto)\.so\.1\.1: (?:No such file|cannot open)/,
    isCertain: true,
    rule: 'build/failed',
    fix: `A program needs a shared library that is not in the image.${oldOpenssl}`,
  },
  {
    pattern: /Error loading shared library |error while loading shared libraries|cannot open shared object file/,
    quote: /shared library \S{1,100}:|loading shared libraries: \S|\S{1,100}: cannot open shared object/,
    isCertain: true,
    rule: 'build/failed',
    fix: sharedLibrary,
  },
];

/** The frameworks compile variables with these beginnings into the pages. */
const publicVariable =
  'Variables with this beginning are compiled into the pages, so the build needs their real values: a placeholder would reach the browser.';
const publicName = String.raw`\b(?:NEXT_PUBLIC|VITE|REACT_APP|NUXT_PUBLIC|GATSBY|EXPO_PUBLIC|PUBLIC)_[A-Z0-9_]{1,80}`;

const settings: readonly Cause[] = [
  {
    pattern: new RegExp(
      `${publicName}['"]?: \\[ ?['"](?:Required|Invalid)|(?:required?s?|missing|provided?|must|need(?:s|ed)?)\\b.{0,120}${publicName}|${publicName}['"\`]? (?:(?:is|are) )?(?:missing|required|not (?:set|defined|provided)|undefined)`,
    ),
    quote: new RegExp(`invalid environment variables: ?\\{|${publicName}`, 'i'),
    rule: 'build/failed',
    fix: `${publicVariable} Set them with ENV in the Dockerfile before this step, or read the value on the server from a variable without this beginning.`,
    planned: `${publicVariable} Set them in build.env of moorage.yaml, or read the value on the server from a variable without this beginning.`,
  },
  {
    pattern:
      /^(?!.*ReferenceError).*\b(?:DATABASE|POSTGRES|PG|MYSQL|MONGO|MONGODB|REDIS)_?[A-Z_]*(?:URL|URI|HOST|DSN)\b['"`]? (?:is |environment variable )?(?:not (?:set|defined|found)|missing|required|undefined)|Environment variable not found: \w*(?:DATABASE|POSTGRES|MYSQL|MONGO)/,
    isCertain: true,
    ...database,
  },
  {
    pattern:
      /The table `[^`\n]{1,100}` does not exist in the current database|relation "[^"\n]{1,100}" does not exist|no such table: |Base table or view not found/,
    ...database,
  },
  {
    pattern:
      /(?:environment variable|api key|credentials?|environment variables)\b.{0,40}(?:is|are) (?:missing|required|not (?:set|defined)|undefined)|missing (?:required )?(?:environment variable|api key|credentials)|invalid environment variables|environment variable not found/i,
    ...variable,
  },
  {
    pattern:
      /^(?!.*ReferenceError).*\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b['"`]? (?:is|are) (?:missing|required|not (?:set|defined)|undefined)|\b(?:requires?d?|missing|must|needs?|not (?:set|found)|provided?)\b.{0,200}\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b['"`]? env(?:ironment)? variable/,
    ...variable,
  },
  {
    pattern: /ImproperlyConfigured|^KeyError: '[A-Z][A-Z0-9_]+'|\bkey not found: "[A-Z][A-Z0-9_]+"/,
    rule: 'build/failed',
    fix: `The settings of the app require a variable or module that is missing during the build. Provide a default for the build, or ${inDockerfile}.`,
    planned: `The settings of the app require a variable or module that is missing during the build. Provide a default for the build, or ${inPlan}.`,
  },
  {
    pattern: /TypeError: fetch failed|FetchError|AxiosError/,
    rule: 'build/failed',
    fix: 'The build fetches something that did not answer. The app and its services do not run while an image is built, and builds can reach only the public internet: fetch it when the page is requested (in Next.js with export const dynamic = "force-dynamic").',
  },
];

/** What several tools print. It says too little for a certain cause, so the advice repeats what the line says. */
const general: readonly Cause[] = [
  {
    pattern: /Failed to compile|Could not resolve "|SyntaxError/i,
    quote: /SyntaxError|Could not resolve "|^\s+Line \d+:\d+:|\b[A-Z]\w{0,40}Error: /,
    rule: 'build/failed',
    fix: codeFix,
  },
  {
    pattern: /Cannot find (?:module|package)|ERR_MODULE_NOT_FOUND|ModuleNotFoundError/,
    rule: 'build/failed',
    fix: missingImport,
  },
  {
    pattern: /Permission denied \(publickey|Host key verification failed|could not read Username for 'https:/,
    rule: 'build/failed',
    fix: 'A dependency comes from a git repository that is private or is fetched over SSH, and builds have no key. Use its https address if it is public, or publish it in a package registry.',
  },
  {
    pattern: /Permission denied|EACCES/i,
    rule: 'build/failed',
    fix: 'A file cannot be read or executed. Commit it with the right mode (git update-index --chmod=+x FILE), or run this step before USER.',
  },
  {
    pattern: /Error occurred prerendering page|^> Export encountered/,
    quote: /^\s*(?:\S{1,60}: )?[A-Z]\w{0,40}Error: /,
    rule: 'build/failed',
    fix: 'Next.js renders this page while it builds, without a browser, services or the variables of the running app. Make the code of the page do without what the line names, or render it when it is requested (export const dynamic = "force-dynamic").',
  },
  {
    pattern: /: not found$|command not found|exit code: 127/i,
    rule: 'build/failed',
    fix: 'The step calls a program that does not exist in the image. Install it in an earlier step, or correct the path; names are case-sensitive.',
  },
  {
    pattern: /No such file or directory|\bENOENT\b/,
    rule: 'build/failed',
    fix: 'The file or folder in that line does not exist when the step runs. Commit it, copy it before this step, or correct the path; names are case-sensitive.',
  },
  {
    pattern:
      /fatal: not a git repository|setuptools-scm was unable to detect version|Unable to determine (?:the )?version from (?:git|VCS)|\.git directory (?:is|could) not (?:be )?found/i,
    rule: 'build/failed',
    fix: withoutGit,
    planned: `${noGit} Read the commit from a variable such as SOURCE_COMMIT where git has none, or keep the version in a file of the repository.`,
  },
];

/** The first match wins, so more specific causes come first. */
export const buildCauses: readonly Cause[] = [
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
  {
    pattern: /\(signal: 9, SIGKILL\b|killed by signal 9\b|terminated by signal SIGKILL/,
    quote: /\(signal: 9, SIGKILL\b|killed by signal 9\b|terminated by signal SIGKILL/,
    rule: 'build/memory',
    message: 'A process of the build was killed, most likely for lack of memory.',
    fix: 'Increase build.resources.memory, or reduce what the step does at once (fewer jobs; for Rust: no LTO, codegen-units=16).',
  },
  ...toolchain,
  ...languageCauses,
  ...compiledCauses,
  ...system,
  ...settings,
  ...general,
];
