// The causes of failed build steps: what the system, settings and tools of several languages print, and how an author fixes
// it.
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
    pattern: /Unable to locate package|has no installation candidate/i,
    rule: 'build/failed',
    fix: 'apt cannot find a package with that name. Run apt-get update in the same RUN instruction, and check the name for this Debian release at packages.debian.org.',
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
    pattern: /Error loading shared library |error while loading shared libraries|cannot open shared object file/,
    quote: /shared library \S{1,100}:|loading shared libraries: \S|\S{1,100}: cannot open shared object/,
    isCertain: true,
    rule: 'build/failed',
    fix: sharedLibrary,
  },
];

const settings: readonly Cause[] = [
  {
    pattern:
      /^(?!.*ReferenceError).*\b(?:DATABASE|POSTGRES|PG|MYSQL|MONGO|MONGODB|REDIS)_?[A-Z_]*(?:URL|URI|HOST|DSN)\b['"`]? (?:is |environment variable )?(?:not (?:set|defined|found)|missing|required|undefined)|Environment variable not found: \w*(?:DATABASE|POSTGRES|MYSQL|MONGO)/,
    isCertain: true,
    ...database,
  },
  {
    pattern:
      /(?:environment variable|api key|credentials?|environment variables)\b.{0,40}(?:is|are) (?:missing|required|not (?:set|defined)|undefined)|missing (?:required )?(?:environment variable|api key|credentials)|invalid environment variables|environment variable not found/i,
    ...variable,
  },
  {
    pattern:
      /^(?!.*ReferenceError).*\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b['"`]? (?:(?:is|are) (?:missing|required|not (?:set|defined)|undefined)|env(?:ironment)? variable)/,
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
    pattern: /: not found$|command not found|exit code: 127/i,
    rule: 'build/failed',
    fix: 'The step calls a program that does not exist in the image. Install it in an earlier step, or correct the path; names are case-sensitive.',
  },
  {
    pattern: /No such file or directory|\bENOENT\b/,
    rule: 'build/failed',
    fix: 'The file or folder in that line does not exist when the step runs. Commit it, copy it before this step, or correct the path; names are case-sensitive.',
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
  ...languageCauses,
  ...system,
  ...settings,
  ...general,
];
