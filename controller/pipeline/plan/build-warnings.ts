// Defines the warnings that a step of a planned build can report: it prints a marked line, which the build stage
// converts to a finding.
import type { Finding } from '../../../crds/hosted-app.ts';

/** Starts the line in which a step reports that it used a fallback. */
export const reportMark = 'moorage-warning:';

interface Report {
  readonly rule: string;
  readonly message: (file: string) => string;
  readonly fix: string;
  /** It names a package, not a file. */
  readonly isOfPackage?: true;
}

/** All reports. They never quote the log, so that no step can put its own text into a finding. */
const reports = {
  lockfile: {
    rule: 'build/lockfile',
    message: (file) =>
      `The packages could not be installed exactly as ${file} has them, so they were resolved again from package.json; versions may differ from those that were tested.`,
    fix: "Run the package manager's install (npm install, pnpm install, yarn, bun install) in a fresh clone, and commit the lock file.",
  },
  'peer-dependencies': {
    rule: 'build/peer-dependencies',
    message: () => 'Packages require different versions of a third; they were installed with --legacy-peer-deps.',
    fix: 'Align their versions in package.json, run npm install, and commit package-lock.json.',
  },
  'packages-of-the-day': {
    rule: 'build/unpinned',
    message: (file) =>
      `The newest versions of the packages in ${file} cannot be installed together, so the versions of the day of the commit were installed.`,
    fix: 'Pin the versions of the packages ("pip freeze" in an environment that works lists them), or commit a lock file.',
  },
  'undeclared-package': {
    rule: 'build/undeclared-package',
    message: (name) =>
      `The app needs ${name}, which no list of the packages that it runs with names, so its newest version was installed.`,
    fix: 'Add it to that list, such as requirements.txt or the dependencies of pyproject.toml (not those of development), with the version that the code was written for.',
    isOfPackage: true,
  },
  'maven-wrapper': {
    rule: 'build/maven-wrapper',
    message: (file) =>
      `The Maven that the wrapper (${file}) names could not be fetched, so the Maven of the image built the app.`,
    fix: 'Name a version that can be fetched (mvn wrapper:wrapper), and commit mvnw and the folder .mvn.',
  },
  'poetry-lock': {
    rule: 'build/lockfile',
    message: () =>
      'poetry.lock does not fit pyproject.toml, so it was replaced for this build; versions may differ from those that were tested.',
    fix: 'Run poetry lock, and commit poetry.lock.',
  },
  gems: {
    rule: 'build/lockfile',
    message: (file) =>
      `The gems could not be installed exactly as ${file} has them, so they were resolved again from the Gemfile; versions may differ from those that were tested.`,
    fix: 'Run bundle install in a fresh clone, and commit Gemfile.lock.',
  },
  platform: {
    rule: 'build/platform',
    message: (file) =>
      `Packages in ${file} require another version of PHP than the one that is available; they were installed anyway.`,
    fix: 'Run composer update with this version of PHP and commit composer.lock, or add a Dockerfile with the version that they ask for.',
  },
  'nuget-lock': {
    rule: 'build/lockfile',
    message: (file) =>
      `The packages could not be installed exactly as ${file} has them, so they were resolved again; versions may differ from those that were tested.`,
    fix: 'Run dotnet restore --force-evaluate, and commit packages.lock.json.',
  },
  'own-project': {
    rule: 'build/own-project',
    message: () => 'The project itself could not be installed as a package, so its files are used as they are.',
    fix: 'Correct its build-system in pyproject.toml; "pip install ." in a fresh clone shows what is wrong.',
  },
  pages: {
    rule: 'build/pages',
    message: () => 'The build script of package.json failed, so styles and scripts of the pages may be missing.',
    fix: 'Run npm ci and npm run build in a fresh clone, correct what fails, and commit the lock file.',
  },
  sharp: {
    rule: 'build/sharp',
    message: () =>
      'sharp could not be installed, so Next.js scales pictures in JavaScript: slowly, and with hundreds of megabytes of memory.',
    fix: 'Run npm install sharp, and commit package.json and the lock file.',
  },
  'static-files': {
    rule: 'build/static-files',
    message: () => 'manage.py collectstatic failed in the build, so static files of Django may be missing.',
    fix: 'Let the settings be read without the variables that only the running app has, or give them in build.env of moorage.yaml.',
  },
} as const satisfies Readonly<Record<string, Report>>;

export type BuildReport = keyof typeof reports;

/** Formats a shell command that prints a report. */
export function formatReport(what: BuildReport, file: string): string {
  return `echo "${reportMark} ${what} ${file}"`;
}

const line = /^#\d{1,6} [\d.]{1,20} moorage-warning: ([a-z-]{1,40}) ([\w.-]{1,60})$/;

/** Parses a line of the build log; undefined if it is not a report. */
export function parseReport(text: string): Finding | undefined {
  const [, what = '', file = ''] = line.exec(text) ?? [];
  const found: Report | undefined = Object.hasOwn(reports, what) ? reports[what as BuildReport] : undefined;
  return found === undefined
    ? undefined
    : {
        rule: found.rule,
        severity: 'warning',
        ...(found.isOfPackage === true ? {} : { file }),
        message: found.message(file),
        fix: found.fix,
      };
}
