// Suggests what an author can do about a crash, from the last lines of the log.
import { authorLimits } from '../../../crds/app-manifest.ts';

const otherwise =
  'Run the image with the same variables and check the last lines of its log. Missing configuration and missing packages are the usual causes.';
const ended =
  'The start command ran to its end without starting a server. Make it start one that listens on $PORT and keeps running: the "start" script of package.json, the web line of the Procfile, CMD of the Dockerfile or run.command in moorage.yaml.';
const maximumRead = 4_096;

/** Guesses the fix. @param log the app's last lines */
export function suggestCrashFix(log: string, exitCode?: number): string {
  return findCause(splitLastLines(log))?.[1] ?? (exitCode === 0 ? ended : otherwise);
}

/** The beginnings of lines in which programs report why they exit. */
const lastWords =
  /^(?:\[\w+\] )?(?:Uncaught )?(?:[A-Za-z_][\w.]{0,80}(?:Error|Exception|Exit|Configured|Fault)\b|CRITICAL\b|FATAL\b|fatal(?: error)?:|panic:|[Ee]rror:|thread '[^'\n]{0,80}' panicked)/;
const longestLine = 200;

/** Finds the line that says why the app exited. @param log the app's last lines */
export function findCrashLine(log: string): string | undefined {
  const lines = splitLastLines(log);
  const pattern = findCause(lines)?.[0];
  const found =
    pattern === undefined
      ? lines.findLast((line) => lastWords.test(line.trimStart()))
      : lines.findLast((line) => pattern.test(line));
  const line = found?.trim().replace(/[.:\s]{1,20}$/, '') ?? '';
  if (line === '') return undefined;
  return line.length > longestLine ? `${line.slice(0, longestLine)}…` : line;
}

/** File and line in a stack trace, by language. */
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
/** Code of others, which the author cannot change. */
const foreign =
  /site-packages|dist-packages|node_modules|\/vendor\/|\/gems\/|^node:|^\/(?:usr\/(?!src\/app\/)|opt\/|lib\/|root\/(?!app\/)|home\/[^/]+\/\.)|^<|\/(?:rustc|go\/pkg|deps)\//;
const appRoot = /^\/(?:usr\/src\/app|app|workspace|code|src|srv|home\/[^/]+\/app|root\/app)\//;

/**
 * Finds the app's own file and line in which it crashed, relative to the app's folder. Python lists the innermost call
 * last, the others list it first. @param log the app's last lines
 */
export function findCrashPosition(log: string): { file: string; line: number } | undefined {
  const found = splitLastLines(log).flatMap((text) => {
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

function splitLastLines(log: string): string[] {
  return log.slice(-maximumRead).split('\n');
}

function findCause(lines: readonly string[]): (typeof crashCauses)[number] | undefined {
  return crashCauses.find(([pattern]) => lines.some((line) => pattern.test(line)));
}

/** Suggests a fix for a start command that was not found. @param log the app's last lines */
export function suggestNotFoundFix(log: string): string {
  const program = /\b(?:sh|bash|ash): (?:(?:line )?\d{1,5}: )?([\w.@/+-]{1,80}): (?:command )?not found/.exec(
    log.slice(-maximumRead),
  )?.[1];
  return program === undefined
    ? 'The start command was not found in the image: correct CMD in the Dockerfile, or run.command in moorage.yaml.'
    : `The start command calls ${program}, which is not in the image: add the package that brings it to your dependencies (not to the development dependencies), or correct the start script, CMD in the Dockerfile, or run.command in moorage.yaml.`;
}

// Causes: what programs print when they crash, and how to fix it.

/** The first match counts, so the more specific ones come first. */
export const crashCauses: readonly (readonly [RegExp, string])[] = [
  [
    /ModuleNotFoundError|ImportError: No module|Cannot find (?:module|package)|ERR_MODULE_NOT_FOUND/,
    'The code imports a package or file that is not in the image: add it to your dependencies, or commit the file. Packages needed at run time must not be development dependencies.',
  ],
  [
    /error while loading shared libraries: /,
    'A program needs a shared library that is not in the image: list the Debian package that brings it in packages.txt, use a package with prebuilt binaries, or install the library in a Dockerfile.',
  ],
  [
    /cannot load such file -- |Bundler::GemNotFound|Could not find \S{1,80} in (?:any of the sources|locally installed gems)/,
    'The code requires a gem or file that is not in the image: name the gem in the Gemfile outside of the groups development and test, and commit Gemfile.lock, or commit the file.',
  ],
  [
    /Missing encryption key to decrypt|EncryptedFile::MissingKeyError|MessageEncryptor::InvalidMessage/,
    'Rails cannot decrypt config/credentials.yml.enc, whose key (config/master.key) is not in the repository: only the operator of this installation can set RAILS_MASTER_KEY, as a secret. Let the app start without it: remove config.require_master_key, and read keys from variables.',
  ],
  [
    /Missing `?secret_key_base|secret_key_base for 'production' environment/,
    'Rails has no SECRET_KEY_BASE, and no Gemfile at the top names rails, so no key was generated: set it to ${{secret}} in run.env of moorage.yaml.',
  ],
  [
    /Could not find a JavaScript runtime|ExecJS::RuntimeUnavailable/,
    'A gem runs JavaScript, and the image has no Node: commit Gemfile.lock, so that the plan installs Node, or add the gem mini_racer, or install nodejs in the Dockerfile.',
  ],
  [
    /ActiveRecord::PendingMigrationError|PG::UndefinedTable|Mysql2::Error: Table '[^'\n]{1,200}' doesn't exist|SQLite3::SQLException: no such table/,
    'The database lacks a table: run the migrations before the app starts, such as with a line "release: bundle exec rails db:prepare" in the Procfile.',
  ],
  [
    /environment variable DATABASE_URL is missing|"DATABASE_URL" because it is not set/,
    'The app requires a database: give it one with services in moorage.yaml (name: db, type: postgres), which sets DATABASE_URL.',
  ],
  [
    /environment variable SECRET_KEY_BASE is missing|"SECRET_KEY_BASE" because it is not set|:secret_key_base (?:to be|is not) set/,
    'Phoenix requires SECRET_KEY_BASE: set it to ${{secret}} in run.env of moorage.yaml, which makes one that stays.',
  ],
  [
    /You must install or update \.NET to run this application|The framework '[\w.]{1,80}', version '[\w.-]{1,30}'[^\n]{0,60} was not found/,
    'The app was published for another version of .NET than the image runs: set TargetFramework to net8.0 or net10.0, or add a Dockerfile with the runtime that it needs.',
  ],
  [
    /establishing a connection to SQL Server|LocalDB is not supported on this platform|The ConnectionString property has not been initialized/,
    'The app cannot reach its database: this installation does not run SQL Server. Use PostgreSQL (services in moorage.yaml) or a file of SQLite on a volume (run.volumes), and set its connection string in run.env (ConnectionStrings__NAME).',
  ],
  [
    /['"=: ]\$\{?PORT\b/,
    'The start command passes on $PORT as it is written: CMD in exec form (["…"]) does not expand variables. Write it in shell form (CMD server --port=$PORT), or as ["sh", "-c", "exec server --port=$PORT"].',
  ],
  [
    /but settings are not configured|AppRegistryNotReady|Apps aren't loaded yet/,
    'asgi.py or wsgi.py imports modules of the app before Django is set up, which only "manage.py runserver" forgives: set DJANGO_SETTINGS_MODULE and call get_asgi_application() (or get_wsgi_application()) first, and import them below.',
  ],
  [
    /ENOSPC|EDQUOT|No space left on device|Disk quota exceeded/i,
    `The app filled its disk or a volume: write less (caches, logs, uploads), or increase run.resources.disk (maximum ${authorLimits.run.disk}) or the size of the volume (run.volumes) in moorage.yaml.`,
  ],
  [
    /EACCES|PermissionError|Permission denied|Read-only file system|EROFS/i,
    'The app runs as an unprivileged user who can write only to its own folder, its home directory and /tmp: write there, or to a volume (run.volumes in moorage.yaml).',
  ],
  [/EADDRINUSE|Address already in use/i, 'Two parts of the app listen on the same port: start one server, on $PORT.'],
  [
    /(?:ECONNREFUSED|Connection refused|could not (?:connect|translate)|ENOTFOUND|Name or service not known|getaddrinfo)/i,
    'The app cannot reach a server that it needs, such as a database: set the address of one on the public internet in run.env of moorage.yaml (only the operator of this installation can set a password or other secret), keep data in a file on a volume (run.volumes), or make the app start without it.',
  ],
  [
    /\bOPENAI_(?:API_KEY|BASE_URL|API_BASE)\b/,
    'The app asks for a key of models: where the operator of this installation lets it call models (spec.models.enabled of its HostedApp), it finds OPENAI_API_KEY and OPENAI_BASE_URL. Or make it start without them, and report what is missing where it is used.',
  ],
  [
    /[Ee]nvironment [Vv]ariables?\b.{0,40}(?:fail|invalid)|KeyError: '[A-Z][A-Z0-9_]+'|\bkey not found: "[A-Z][A-Z0-9_]+"|(?:environment variable|api[ _-]?key|credentials?)\b.{0,60}(?:missing|required|not set|not found|must be set|undefined)|(?:missing|must (?:set|provide)|please (?:set|provide)).{0,60}(?:environment variable|api[ _-]?key|[A-Z]{3,}_[A-Z_]+)/i,
    'The app requires an environment variable that is not set: set it in run.env of moorage.yaml. If it is a secret, only the operator of this installation can set it (never commit it): make the app start without it, and report what is missing where it is used.',
  ],
];
