// The causes of crashes: what programs print when they exit, and how an author fixes it.
import { authorLimits } from '../../../crds/app-manifest.ts';
import type { ServiceType } from '../../../crds/backing-services.ts';
import { oldOpenssl, windowsLineEnds } from '../../pipeline/build/causes.ts';
import { goWithoutCgo } from '../../pipeline/build/compiled-causes.ts';
import { foreignModules, missingClass, missingVendor, newerNode } from '../../pipeline/build/language-causes.ts';
import { guessService, isErrorLine, isLastWord } from '../../pipeline/build/step-log.ts';
import { notStarted } from '../../pipeline/plan/common/migrations.ts';
import { type CrashCause, describeSecret, keyCauses, variableCauses } from './missing-variables.ts';

/** For a start command without the right to run. */
export const notExecutable =
  'The start command is not executable: make it executable (git update-index --chmod=+x FILE), or start it with its interpreter.';

/** Where the app finds the address of a service. */
const addressVariables: Readonly<Record<ServiceType, string>> = {
  postgres: 'DATABASE_URL',
  mysql: 'DATABASE_URL',
  mongo: 'MONGODB_URI',
  redis: 'REDIS_URL',
  qdrant: 'QDRANT_URL',
  chroma: 'CHROMA_URL',
  minio: 'S3_ENDPOINT',
  meilisearch: 'MEILI_URL',
};
const unreachable =
  /ECONNREFUSED|Connection refused|Can't reach database server|could not (?:connect|translate)|ENOTFOUND|Name or service not known|getaddrinfo|no such host/i;
const unreachableElsewhere = `The app cannot reach a server that it needs, such as a database: set the address of one on the public internet in run.env of moorage.yaml (${describeSecret()} for one with a password), keep data in a file on a volume (run.volumes), or make the app start without it.`;

/** The lines about the server that was not reached name it, its port or the driver. */
function suggestReachableServer(lines: readonly string[]): string {
  const index = lines.findLastIndex((line) => unreachable.test(line));
  const near = lines.slice(Math.max(0, index - 3), index + 4).join('\n');
  const isPublic = /[a-z0-9-]+\.(?:com|net|org|io|dev|app|cloud|co)\b/i.test(lines[index] ?? '');
  const type = isPublic ? undefined : guessService(near);
  const isOwn = /\b(?:127\.0\.0\.1|localhost)\b|::1\b/.test(near);
  if (type === undefined)
    return isOwn
      ? `The app connects to a server in its own container (localhost), where only the app itself runs. ${unreachableElsewhere}`
      : unreachableElsewhere;
  const where = isOwn ? 'in its own container (localhost), where none runs' : 'at an address that does not answer here';
  return `The app looks for its database or store (${type}) ${where}. Ask for one with services in moorage.yaml (name: db, type: ${type}), and read its address from ${addressVariables[type]}, or set the variables that the app reads in run.env (\${{services.db.url}}, or host, port, user, password and database of it).`;
}

const missingLibraries: readonly (readonly [RegExp, string])[] = [
  [/libGL\.so|libgthread/, ' For OpenCV use the package opencv-python-headless, or install libgl1 and libglib2.0-0.'],
  [/libssl\.so\.1\.1|libcrypto\.so\.1\.1/, oldOpenssl],
  [
    /libgdiplus/,
    ' System.Drawing needs libgdiplus (apt-get install libgdiplus); ImageSharp and SkiaSharp do without it.',
  ],
];

function suggestLibrary(lines: readonly string[]): string {
  const text = lines.join('\n');
  const known = missingLibraries.find(([pattern]) => pattern.test(text))?.[1] ?? '';
  return `A program needs a shared library that is not in the image: list the Debian package that brings it in packages.txt (Python without a Dockerfile), install it in the Dockerfile, or use a package with prebuilt binaries.${known}`;
}

const pythonFrame = /^\s*File "([^"\n]{1,300})", line \d/;
const installedPackage = /(?:site|dist)-packages\/(\w{1,60})/;

/** Whether the call that failed is one of packages among themselves. */
function isCallOfPackage(lines: readonly string[]): boolean {
  return installedPackage.test(lines.findLast((line) => pythonFrame.test(line)) ?? '');
}

/** Servers call the app, so what they report is about the app and not about their own version. */
function isConflictOfPackages(lines: readonly string[]): boolean {
  return isCallOfPackage(lines) && !/^(?:gunicorn|uvicorn|hypercorn|waitress)\b/.test(listPackages(lines));
}

/** The packages of Python in the stack trace, the innermost call first. */
function listPackages(lines: readonly string[]): string {
  const names = lines.flatMap((line) => installedPackage.exec(pythonFrame.exec(line)?.[1] ?? '')?.[1] ?? []);
  return [...new Set(names.toReversed())].slice(0, 3).join(', ');
}

/** Python prints the code of the innermost call before the error, which often names less than the code does. */
function quoteCode(lines: readonly string[]): string {
  const error = lines.findLastIndex((line) => /^(?:TypeError|AttributeError|ImportError): /.test(line));
  const frame = lines.findLastIndex((line, index) => index < error && pythonFrame.test(line));
  const code = (frame < 0 ? undefined : lines.slice(frame + 1, error).find((line) => /\w/.test(line)))
    ?.trim()
    .replace(/:$/, '');
  return code === undefined ? (lines[error] ?? '') : `${code}: ${lines[error] ?? ''}`;
}

/** Node prints the line that it cannot parse before the error. */
function quoteSyntax(lines: readonly string[]): string {
  const error = lines.findLastIndex((line) => line.startsWith('SyntaxError: '));
  const mark = lines.findLastIndex((line, index) => index < error && /^\s*\^+\s*$/.test(line));
  return mark < 1 ? (lines[error] ?? '') : `${lines[mark - 1]?.trim() ?? ''} ${lines[error] ?? ''}`;
}

const missingModule = /ModuleNotFoundError: No module named '(\w{1,80})'/;

/** Whether the package that Python does not find is the folder of a file in the stack trace. */
function isOwnPackage(lines: readonly string[]): boolean {
  const name = lines.map((line) => missingModule.exec(line)?.[1]).findLast((each) => each !== undefined);
  return lines.some((line) => {
    const path = pythonFrame.exec(line)?.[1] ?? '';
    return name !== undefined && path.includes(`/${name}/`) && !installedPackage.test(path);
  });
}

const missingProgram =
  /\b(?:sh|bash|ash): (?:(?:line )?\d{1,5}: )?([\w.@/+-]{1,80}): (?:command )?not found|exec: "([\w.@/+-]{1,80})": (?:executable file not found|stat )/;

/** Names the program that a start command did not find. @param text lines of the log */
export function suggestMissingProgram(text: string): string {
  const [, called, executed] = missingProgram.exec(text) ?? [];
  const program = called ?? executed;
  return program === undefined
    ? 'The start command was not found in the image: correct CMD in the Dockerfile, or run.command in moorage.yaml.'
    : `The start command calls ${program}, which is not in the image: add the package that brings it to your dependencies (not to the development dependencies), or correct the start script, CMD in the Dockerfile, or run.command in moorage.yaml.`;
}

function suggestValue(lines: readonly string[]): string {
  const language = /\w*(?:LANG|LOCALE|locale)\w*\b/.test(quoteCode(lines))
    ? ' If it is the language of the system, set LANG to C.UTF-8 in run.env of moorage.yaml.'
    : '';
  return `The code uses a value that is None here. Find where it comes from (a variable, a file of settings, a record, an answer), and give it a value or have the code do without it.${language}`;
}

const writable =
  'The app runs as an unprivileged user who can write only to its own folder, its home directory and /tmp: write there, or to a volume (run.volumes in moorage.yaml).';

/** Why a container did not start its command. */
export const startCauses = [
  windowsLineEnds,
  {
    pattern: /\b(?:sh|bash|ash): (?:(?:line )?\d{1,5}: )?[\w./-]{1,80} (?:(?!: ).){1,300}: (?:command )?not found/,
    fix: 'The shell takes the whole start command for the name of one program, since it is quoted as one word. Write it without these quotes, or as ["sh", "-c", "FIRST && exec SECOND"] in CMD of the Dockerfile or run.command in moorage.yaml.',
  },
  { pattern: /exec: "[^"\n]{1,300}": permission denied|^exec \S{1,300}: permission denied/, fix: notExecutable },
  {
    pattern: /^exec \S{1,300}: no such file or directory|exec: "[^"\n]{1,300}": .{0,100}no such file or directory/,
    fix: 'The file that starts the app is not in the image, or its first line names a program that is not there. The first line may also end as on Windows: save the file with line ends of Unix (git add --renormalize with "*.sh text eol=lf" in .gitattributes), or correct the path in CMD or ENTRYPOINT.',
  },
  {
    pattern:
      /failed to create shim task: context (?:canceled|deadline exceeded)|context deadline exceeded|runc did not terminate/,
    fix: 'The node did not manage to start the container, which the app did not cause. It is tried again; if it lasts, report it to the operator of this installation.',
  },
  {
    pattern: /exec format error/,
    fix: 'The program was built for another processor than this one, or it is a script without a first line such as #!/bin/sh. Build it for linux/amd64, or add that line.',
  },
] as const;

/** What a migration printed of its error, before the start command's own last line. Prisma prints a code first. */
function quoteMigration(lines: readonly string[]): string {
  const end = lines.findLastIndex((line) => line.includes(notStarted));
  const printed = lines.slice(0, end).filter((line) => line.trim() !== '');
  const code = printed.findLastIndex((line) => /^Error: P\d{4}$/.test(line.trim()));
  const ofDatabase = printed.findLast((line) => /^ERROR: |\bSQLSTATE\[/.test(line.trim()));
  if (code >= 0) return [printed[code], ofDatabase ?? printed[code + 1] ?? ''].join(' ');
  return ofDatabase ?? printed.findLast((line) => isLastWord(line) || isErrorLine(line)) ?? printed.at(-1) ?? '';
}

/** The first match counts, so the more specific ones come first. */
export const crashCauses: readonly CrashCause[] = [
  ...startCauses,
  ...keyCauses,
  {
    pattern: /No module named 'encodings'|Failed to import encodings module/,
    fix: 'Python does not find its own standard library: PYTHONHOME or PYTHONPATH is wrong, or a program with a Python inside, such as uWSGI, was built for another one. Remove these variables, or start the app with gunicorn.',
  },
  {
    pattern: /No module named '(?:pkg_resources|distutils)'/,
    fix: 'A package uses a part of setuptools that newer versions no longer have: pin setuptools below 81 in your dependencies, or use a newer version of the package.',
  },
  {
    pattern: /ImportError: cannot import name '[^']{1,100}' from '[^']{1,100}' \([^)]{0,300}(?:site|dist)-packages/,
    fix: (lines) =>
      `The installed version of that package does not have what is imported from it, so it is newer or older than the code was written for. Pin it in your dependencies to a version that has it${lines.some((line) => line.includes("from 'werkzeug")) ? ' (for Flask 2: werkzeug<3)' : ''}.`,
  },
  {
    pattern: /^ImportError: cannot import name /,
    quote: quoteCode,
    fix: 'The module in this line does not have the name that is imported from it. If it is a module of a package, the installed version is not one that the code was written for: pin the package in your dependencies. If it is one of your own, correct the name, or the import of two modules by each other.',
  },
  {
    pattern: /^(?:AttributeError|TypeError): .{0,200}NoneType/,
    quote: quoteCode,
    fix: suggestValue,
  },
  {
    pattern: /TypeError: .{1,100} got an unexpected keyword argument/,
    isProven: isCallOfPackage,
    fix: (lines) =>
      `One package calls another with an argument that the installed version does not have. Pin them to versions that fit${lines.some((line) => line.includes("'proxies'")) ? ' (an older openai or anthropic needs httpx<0.28)' : ''}, or update both.`,
  },
  {
    pattern: /^(?:AttributeError|TypeError): /,
    isProven: isConflictOfPackages,
    quote: quoteCode,
    fix: (lines) =>
      `The call fails in an installed package (${listPackages(lines)}). Most often the versions of these packages do not fit each other or the app, since a newer one was installed. Pin them in your dependencies to versions that were released together, or update all of them.`,
  },
  {
    pattern:
      /error while loading shared libraries: |Error loading shared library |cannot open shared object file|Unable to load shared library '/,
    fix: suggestLibrary,
  },
  {
    pattern: /@prisma\/client did not initialize yet|could not locate the Query Engine/,
    fix: 'The client of Prisma was not generated when the image was built: add "postinstall": "prisma generate" to the scripts of package.json, or RUN npx prisma generate to the Dockerfile after the schema is copied.',
  },
  {
    pattern: /NODE_MODULE_VERSION \d|invalid ELF header/,
    fix: 'A package with native code was installed for another Node or another system: install the packages in the image with the Node that runs the app, and keep node_modules out of the repository and the image (.gitignore, .dockerignore).',
  },
  {
    pattern: /compiled using NumPy 1\.x|numpy\.core\.multiarray failed to import|numpy\.dtype size changed/,
    fix: 'A package was compiled for another NumPy than the installed one: pin numpy<2 in your dependencies, or update the package.',
  },
  {
    pattern: /\[E050\] Can't find model '|nltk\.download\(/,
    fix: 'The app loads data of a language model that is not in the image (of spaCy or NLTK): add the package of the spaCy model to your dependencies by its address, or have the app download the data into its own folder before it uses them.',
  },
  {
    pattern: /Found no NVIDIA driver|Torch not compiled with CUDA enabled|libcuda\.so|No CUDA GPUs are available/,
    fix: 'The app asks for a GPU and there is none: choose the CPU where torch.cuda.is_available() is false, with CPU wheels of torch.',
  },
  {
    pattern: /couldn't connect to 'https:\/\/huggingface\.co'|GatedRepoError|is a gated (?:repo|model)/,
    fix: 'The app loads a model from huggingface.co and did not get it: the model is gated, its name is wrong, or the address cannot be reached from here. Use a public model, or put the files into the image.',
  },
  {
    pattern: /Could not find a production build in the '\.next' directory/,
    fix: 'The app was started without its build: have "build" of package.json run next build, or RUN npm run build in the Dockerfile and copy .next into the last stage.',
  },
  {
    pattern: /Missing script: "?start\b|ERR_PNPM_NO_SCRIPT|Command "start" not found/,
    fix: 'The start command runs a script that package.json does not have: add it under "scripts", or correct CMD in the Dockerfile or run.command in moorage.yaml.',
  },
  {
    pattern: /Error loading \.env file|open \.env: no such file/i,
    fix: 'The app ends if there is no file .env, which is not in the repository: have it go on without the file and read the variables, which run.env of moorage.yaml sets.',
  },
  {
    pattern: /Failed to find attribute '|Failed to parse '.{1,100}' as an attribute name|Error loading ASGI app\. /,
    fix: 'The start command names a module, or an object in it, that is not there: correct MODULE:OBJECT in the start command (the web line of the Procfile, CMD of the Dockerfile, run.command in moorage.yaml), as seen from the folder in which it runs.',
  },
  {
    pattern: /\[ERR_REQUIRE_ESM\]/,
    fix: 'A package that is only an ES module is loaded with require(). Load it with import(), pin it to its last version for CommonJS, or ask for a Node that can load it (22.12 or newer) in .nvmrc or "engines" of package.json.',
  },
  {
    pattern: /(?:require|module|exports|__dirname) is not defined in ES module scope/,
    fix: 'Node runs this file as an ES module: package.json has "type": "module", its name ends in .mjs, or it uses import or export. Replace require() by import (or make it with createRequire of node:module), or give a file without import the ending .cjs (.cts in TypeScript).',
  },
  newerNode,
  {
    pattern: /^SyntaxError: /,
    // The names of its own files have no "node:" in them before version 16.
    isProven: (lines) => lines.some((line) => /\((?:vm|module|internal\/[\w/]{1,80})\.js:\d/.test(line)),
    quote: quoteSyntax,
    fix: 'The Node of the image is an old one, and most likely does not know the syntax of this line. Ask for a newer Node in .nvmrc or "engines" of package.json (in a Dockerfile: in FROM). If the line is wrong for every Node, correct it.',
  },
  {
    pattern: /Cannot find (?:module|package) '[^'\n]{1,300}\/node_modules\//,
    fix: 'A file of an installed package is not in the image, most often since only a part of node_modules was copied. The output of Next.js (standalone) and Nuxt (.output) has the files that they traced: update the framework, add the file to the trace (outputFileTracingIncludes in next.config, nitro.externals in nuxt.config), or copy the whole node_modules into the last stage.',
  },
  {
    pattern: /Cannot find module '/,
    isProven: (lines) => lines.some((line) => /requireStack: \[\]/.test(line)),
    fix: 'The start command names a file that is not in the image. Correct the path (the "start" script of package.json, CMD of the Dockerfile or run.command in moorage.yaml; names are case-sensitive), commit the file, or have the build make it before the app starts.',
  },
  foreignModules,
  missingVendor,
  missingClass,
  goWithoutCgo,
  {
    pattern: /version `(?:GLIBC|GLIBCXX|CXXABI)_[\d.]{1,10}' not found/,
    fix: 'The program was compiled with a newer C library than the image has: the stage that builds it has a newer Debian or Ubuntu than the last one. Use the same release in both (such as rust:1-bookworm and debian:bookworm-slim), or compile it without a shared C library (the target musl).',
  },
  {
    pattern:
      /No build files found in |ENOENT\b.{0,60}, \w{1,20} '[^'\n]{1,200}\/(?:build|dist|\.next|\.nuxt|\.output|\.svelte-kit)\//,
    fix: 'The app was started without its build: have "build" of package.json make it, or RUN npm run build in the Dockerfile and copy its output (such as build, dist or .output) into the last stage; .dockerignore keeps out what was built elsewhere.',
  },
  {
    pattern: /required gems weren't found/,
    fix: 'Sinatra needs the gem rackup and a server such as puma: run "bundle add rackup puma", and commit Gemfile and Gemfile.lock.',
  },
  {
    pattern: /Could not resolve placeholder '/,
    fix: 'The property in this line has no value: set it in run.env of moorage.yaml as a variable (my.property is MY_PROPERTY), give it a default in the code (${name:default}), or commit it in application.properties if it is no secret.',
  },
  {
    pattern: /unsupported version of sqlite3/,
    fix: 'The SQLite of the image is older than Chroma supports. Use a newer base image (Debian 12 has 3.40), or add pysqlite3-binary to your dependencies and put it in the place of sqlite3 before chromadb is imported.',
  },
  {
    pattern: /valid ICU package/,
    fix: 'The image has no ICU, which .NET needs for languages: install it in the Dockerfile (icu-libs on Alpine, libicu on Debian), or set DOTNET_SYSTEM_GLOBALIZATION_INVARIANT to 1 in run.env of moorage.yaml, if the app can do without.',
  },
  {
    pattern: /:gen_tcp\.connect\/\d/,
    isProven: (lines) => lines.some((line) => /\((?:ArgumentError|FunctionClauseError)\)/.test(line)),
    fix: 'The host or port of a server, such as a database, is no valid value: most likely the variable that it is read from is not set, or its name stands there itself. Ask for a database with services in moorage.yaml (name: db, type: postgres), and set the variables that the app reads in run.env.',
  },
  {
    pattern: missingModule,
    isProven: isOwnPackage,
    fix: 'The app does not find its own package, whose folder is in the image: the folder above it is not in the path of Python. Set PYTHONPATH to that folder (run.env of moorage.yaml, or ENV in the Dockerfile), or start the app from there (such as python -m PACKAGE.MODULE).',
  },
  {
    pattern: /sqlalchemy\.exc\.NoSuchTableError: /,
    fix: 'The code reads this table from the database when it is loaded, and the database has none of this name. A new database is empty: have the app make its tables when it starts (metadata.create_all, or migrations of Alembic), or describe the table in the code.',
  },
  {
    pattern: /ModuleNotFoundError|ImportError: No module|Cannot find (?:module|package)|ERR_MODULE_NOT_FOUND/,
    fix: 'The code imports a package or file that is not in the image: add it to your dependencies, or commit the file. Packages needed at run time must not be development dependencies.',
  },
  {
    pattern: /Bundler::GemNotFound|Could not find \S{1,80} in (?:any of the sources|locally installed gems)/,
    fix: 'Gemfile.lock names a gem that was not installed in the image: run bundle install in the build with this Gemfile.lock, keep the gem outside of the groups development and test, and have the platform of the image in the lock (bundle lock --add-platform x86_64-linux).',
  },
  {
    pattern: /TZInfo::DataSourceNotFound/,
    fix: 'The image has no time zones: add the gem tzinfo-data to the Gemfile (without "platforms", which limits it to Windows), or install tzdata in the Dockerfile.',
  },
  {
    pattern: /cannot load such file -- /,
    fix: 'The code requires a gem or file that is not in the image: name the gem in the Gemfile outside of the groups development and test, and commit Gemfile.lock, or commit the file.',
  },
  {
    pattern: /Missing `?secret_key_base|secret_key_base`? for '?production'? environment/,
    fix: 'Rails has no SECRET_KEY_BASE, which is generated only if a Gemfile at the top names rails: set it to ${{secret}} in run.env of moorage.yaml.',
  },
  {
    pattern: /Could not find a JavaScript runtime|ExecJS::RuntimeUnavailable/,
    fix: 'A gem runs JavaScript, and the image has no Node: commit Gemfile.lock, so that the plan installs Node, or add the gem mini_racer, or install nodejs in the Dockerfile.',
  },
  {
    pattern:
      /ActiveRecord::PendingMigrationError|PG::UndefinedTable|Mysql2::Error: Table '[^'\n]{1,200}' doesn't exist|SQLite3::SQLException: no such table/,
    fix: 'The database lacks a table: run the migrations before the app starts, such as with a line "release: bundle exec rails db:prepare" in the Procfile.',
  },
  {
    pattern: /environment variable DATABASE_URL is missing|"DATABASE_URL" because it is not set/,
    fix: 'The app requires a database: give it one with services in moorage.yaml (name: db, type: postgres), which sets DATABASE_URL.',
  },
  {
    pattern:
      /environment variable SECRET_KEY_BASE is missing|"SECRET_KEY_BASE" because it is not set|:secret_key_base (?:to be|is not) set/,
    fix: 'Phoenix requires SECRET_KEY_BASE: set it to ${{secret}} in run.env of moorage.yaml, which makes one that stays.',
  },
  {
    pattern:
      /You must install or update \.NET to run this application|The framework '[\w.]{1,80}', version '[\w.-]{1,30}'[^\n]{0,60} was not found/,
    fix: 'The app was published for another version of .NET than the image runs: set TargetFramework to net8.0 or net10.0, or add a Dockerfile with the runtime that it needs.',
  },
  {
    pattern:
      /establishing a connection to SQL Server|LocalDB is not supported on this platform|The ConnectionString property has not been initialized/,
    fix: 'The app cannot reach its database: this installation does not run SQL Server. Use PostgreSQL (services in moorage.yaml) or a file of SQLite on a volume (run.volumes), and set its connection string in run.env (ConnectionStrings__NAME).',
  },
  {
    pattern:
      /The application '[^'\n]{1,200}' does not exist|Did you mean to run dotnet SDK commands|No \.NET SDKs were found/,
    fix: 'The start command names a DLL that is not in the image, so dotnet takes its name for a command. Correct the name in ENTRYPOINT or CMD (names are case-sensitive), and COPY the output of dotnet publish into the folder from which the app starts.',
  },
  {
    pattern: /Elixir\.Mix\.ProjectStack|module Mix is not available|function Mix\.[\w.]{1,60}\/\d is undefined/,
    fix: 'The code calls Mix, which a release does not have. Read what it needs from the configuration (Application.get_env, or config_env() in config files), set code_reloader: false for prod, and update the package if the call is in one.',
  },
  {
    pattern: /UnsupportedClassVersionError/,
    fix: 'The app was compiled for a newer Java than the image runs (class file version 61 is Java 17, 65 is 21). Use the same Java to compile and to run: change FROM of the last stage, or the version in pom.xml or build.gradle.',
  },
  {
    pattern: /no main manifest attribute, in |Could not find or load main class /,
    fix: 'The JAR does not name a main class, or not one that it contains. Start the one that the build makes to be run (of Spring Boot the one without "plain", made by the plugin spring-boot), or name the class: java -cp FILE CLASS.',
  },
  {
    pattern: /Failed to configure a DataSource/,
    fix: 'The app has a data source without an address: ask for a database with services in moorage.yaml (name: db, type: postgres or mysql), and set SPRING_DATASOURCE_URL in run.env (jdbc:postgresql://${{services.db.host}}:5432/${{services.db.database}}), with its user and password. If a profile of the app has the address, set SPRING_PROFILES_ACTIVE.',
  },
  {
    pattern: /['"=: ]\$\{?PORT\b/,
    fix: 'The start command passes on $PORT as it is written: CMD in exec form (["…"]) does not expand variables. Write it in shell form (CMD server --port=$PORT), or as ["sh", "-c", "exec server --port=$PORT"].',
  },
  {
    pattern: /but settings are not configured|AppRegistryNotReady|Apps aren't loaded yet/,
    fix: 'asgi.py or wsgi.py imports modules of the app before Django is set up, which only "manage.py runserver" forgives: set DJANGO_SETTINGS_MODULE and call get_asgi_application() (or get_wsgi_application()) first, and import them below.',
  },
  {
    pattern: /ENOSPC|EDQUOT|No space left on device|Disk quota exceeded/i,
    fix: `The app filled its disk or a volume: write less (caches, logs, uploads), or increase run.resources.disk (maximum ${authorLimits.run.disk}) or the size of the volume (run.volumes) in moorage.yaml.`,
  },
  {
    pattern: /attempt to write a readonly database|SQLITE_READONLY/,
    fix: `The app may not write to the file of its database, or to the folder of it. ${writable}`,
  },
  {
    pattern: /unable to open (?:the )?database file|SQLITE_CANTOPEN/,
    fix: `The file of the database cannot be opened: its folder does not exist, or the app may not write there. Have the app make the folder when it starts. ${writable}`,
  },
  {
    pattern: /listen EACCES|bind\(\) to \S{1,60} failed \(13|bind: permission denied/i,
    fix: 'The app may not listen on a port below 1024: have it listen on $PORT, or set run.port in moorage.yaml to the port above 1024 that it listens on.',
  },
  {
    pattern: /EACCES|PermissionError|Permission denied|Read-only file system|EROFS/i,
    fix: writable,
  },
  {
    pattern: /EADDRINUSE|Address already in use/i,
    fix: 'Two parts of the app listen on the same port: start one server, on $PORT.',
  },
  { pattern: unreachable, fix: suggestReachableServer },
  ...variableCauses,
  {
    pattern: missingProgram,
    fix: (lines) => suggestMissingProgram(lines.join('\n')),
  },
  {
    pattern:
      /No such file or directory|\bopen \S{1,300}: no such file or directory|\bENOENT\b|FileNotFoundError|NoSuchFileException|[Cc]onfig(?:uration)? [Ff]ile .{0,100}[Nn]ot [Ff]ound/,
    fix: 'The app reads a file or folder that is not in the image: commit it if it holds no secret, correct its path (relative to the folder in which the app starts), have the app make it, or read the values from variables (run.env of moorage.yaml).',
  },
  {
    pattern: /asyncio extension requires an async driver/,
    fix: 'SQLAlchemy takes the driver from the scheme of the address, and that of the service names none: set the variable that the app reads in run.env of moorage.yaml with the driver, such as postgresql+asyncpg://${{services.db.user}}:${{services.db.password}}@${{services.db.host}}:5432/${{services.db.database}}.',
  },
  {
    pattern: new RegExp(notStarted),
    quote: quoteMigration,
    fix: 'The command that brings the database up to date before each start did not succeed. It has to work on an empty database, and leave one that is up to date as it is. Correct the migrations; if the tables come from another version of them, start with a new database: give the service another name in moorage.yaml (services).',
  },
];
