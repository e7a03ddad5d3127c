// Logs that once got an answer with an untrue cause, or with advice that did not fit.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { suggestFix } from '../../../../../controller/pipeline/build/fixes.ts';

interface Cause {
  readonly name: string;
  readonly log: string;
  readonly rule: string;
  /** In the message, the line or the fix. */
  readonly says: RegExp;
  /** In none of them: it was the answer once, and was not true. */
  readonly not: RegExp;
}

const untrue: readonly Cause[] = [
  {
    name: 'a download that fails after a warning about peers',
    log: 'npm warn ERESOLVE overriding peer dependency\nnpm warn While resolving: chat@1.0.0\nnpm warn Could not resolve dependency:\nnpm warn peer react@"^18" from widgets@2.0.0\nnpm error code 1\nnpm error path /app/node_modules/puppeteer\nnpm error command failed\nnpm error command sh -c node install.mjs\nnpm error Error: getaddrinfo ENOTFOUND storage.googleapis.com',
    rule: 'build/network',
    says: /could not reach storage\.googleapis\.com.*getaddrinfo ENOTFOUND storage\.googleapis\.com/,
    not: /different versions of a third/,
  },
  {
    name: 'a missing git after a warning about peers',
    log: 'npm warn ERESOLVE overriding peer dependency\nnpm warn peer react@"^18" from widgets@2.0.0\nnpm error code ENOENT\nnpm error syscall spawn git\nnpm error path git\nnpm error errno -2\nnpm error enoent An unknown git error occurred\nnpm error enoent spawn git ENOENT',
    rule: 'build/failed',
    says: /calls git, which is not installed.*Install git in an earlier step.*spawn git ENOENT/,
    not: /different versions of a third|network/,
  },
  {
    name: 'a missing git that npm 11 names only as a system call',
    log: 'npm error code ENOENT\nnpm error syscall spawn git\nnpm error path git\nnpm error errno -2\nnpm error enoent An unknown git error occurred\nnpm error enoent This is related to npm not being able to find a file.',
    rule: 'build/failed',
    says: /calls git, which is not installed.*Install git in an earlier step.*syscall spawn git/,
    not: /The file or folder in that line does not exist/,
  },
  {
    name: 'a version of PHP that was passed over before the network failed',
    log: '  Problem 1\n    - nette/schema v1.2.2 requires php >=7.1 <8.2 -> your php version (8.2.36) does not satisfy that requirement.\nmoorage-warning: platform composer.lock\n    Failed to download doctrine/inflector from dist: curl error 6 while downloading https://api.github.com/repos/doctrine/inflector/zipball/8b7f: Could not resolve host: api.github.com',
    rule: 'build/network',
    says: /could not reach api\.github\.com/,
    not: /another version of PHP/,
  },
  {
    name: 'a Lombok that is older than the JDK',
    log: '[INFO] BUILD FAILURE\n[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.8.1:compile (default-compile) on project shop: Fatal error compiling: java.lang.IllegalAccessError: class lombok.javac.apt.LombokProcessor (in unnamed module @0x2b5f8e61) cannot access class com.sun.tools.javac.processing.JavacProcessingEnvironment (in module jdk.compiler)',
    rule: 'build/failed',
    says: /Set its version to 1\.18\.30 or newer.*Fatal error compiling/,
    not: /^\[INFO\] BUILD FAILURE/,
  },
  {
    name: 'a build of Maven that ends with its heading',
    log: '[INFO] BUILD FAILURE\n[INFO] Total time:  43.653 s\n[ERROR] Failed to execute goal org.example:plugin:1.0:run (default) on project shop: The folder is locked',
    rule: 'build/failed',
    says: /The folder is locked/,
    not: /BUILD FAILURE/,
  },
  {
    name: 'a help link next to a name that is not resolved',
    log: 'Error: getaddrinfo EAI_AGAIN\nFor more information see https://docs.example.org/errors/network\ninfo Visit https://yarnpkg.com/en/docs/cli/install for documentation about this command.',
    rule: 'build/network',
    says: /could not reach an address/,
    not: /example\.org\.|yarnpkg/,
  },
  {
    name: 'a variable of a database behind a migration that failed',
    log: '❌ Migration failed\nError: POSTGRES_URL is not defined\n    at runMigrate (/app/lib/db/migrate.ts:12:11)',
    rule: 'build/failed',
    says: /asks for a database, and none runs while an image is built.*services.*Error: POSTGRES_URL is not defined$/,
    not: /Migration failed/,
  },
  {
    name: 'PostgreSQL on localhost',
    log: 'Error occurred prerendering page "/".\nError: connect ECONNREFUSED 127.0.0.1:5432',
    rule: 'build/failed',
    says: /none runs while an image is built.*name: db, type: postgres/,
    not: /could not reach/,
  },
  {
    name: 'a database with a name of Docker Compose',
    log: 'Error: getaddrinfo ENOTFOUND mongo\nmongodb://mongo:27017/app',
    rule: 'build/failed',
    says: /none runs while an image is built.*type: mongo/,
    not: /public internet/,
  },
  {
    name: 'a file that is not there is no program',
    log: "sed: can't read config/app.conf: No such file or directory",
    rule: 'build/failed',
    says: /file or folder in that line does not exist/,
    not: /calls a program/,
  },
  {
    name: 'a package of the app itself that does not build',
    log: 'error: Failed to build `chat @ file:///app`',
    rule: 'build/failed',
    says: /package that the repository itself is/,
    not: /compiler/,
  },
  {
    name: 'a program that a script can do without, before code that does not compile',
    log: "sh: 1: git: not found\nsrc/a.ts(3,1): error TS2304: Cannot find name 'x'.\nerror: failed to solve: process x did not complete successfully: exit code: 2",
    rule: 'build/failed',
    says: /does not compile.*TS2304/,
    not: /calls git/,
  },
  {
    name: 'a key of SSH is no mode of a file',
    log: 'npm error code 128\nnpm error git@github.com: Permission denied (publickey).\nnpm error fatal: Could not read from remote repository.',
    rule: 'build/failed',
    says: /private or is fetched over SSH/,
    not: /chmod/,
  },
  {
    name: 'a file of the system is none of the repository',
    log: "sed: can't read /etc/apt/sources.list.d/debian.sources: No such file or directory",
    rule: 'build/failed',
    says: /base image does not have this file.*sources\.list/,
    not: /Commit/,
  },
  {
    name: 'a package that a release does not have, after apt-get update',
    log: "Reading package lists...\nE: Package 'libjpeg62-turbo' has no installation candidate",
    rule: 'build/failed',
    says: /release of the base image does not have this package/,
    not: /apt-get update/,
  },
  {
    name: 'a help text that names a variable asks for none',
    log: "checking for oniguruma... no\nconfigure: error: Package requirements (oniguruma) were not met:\n\nNo package 'oniguruma' found\n\nConsider adjusting the PKG_CONFIG_PATH environment variable if you\ninstalled software in a non-standard prefix.",
    rule: 'build/failed',
    says: /compiles with a library that is not in the image.*libonig-dev.*Package requirements \(oniguruma\)/,
    not: /PKG_CONFIG_PATH|placeholder/,
  },
  {
    name: 'advice that names a variable asks for none',
    log: 'Alternatively, adjust the LIBRARY_PATH environment variable.\nFatal: the moon is down',
    rule: 'build/failed',
    says: /the moon is down/,
    not: /placeholder/,
  },
  {
    name: 'a script with line ends of Windows misses no program',
    log: '/usr/bin/env: ‘ruby\\r’: No such file or directory\nerror: failed to solve: process "/bin/sh -c ./bin/rails x" did not complete successfully: exit code: 127',
    rule: 'build/failed',
    says: /line ends of Windows.*gitattributes.*ruby\\r/,
    not: /Install/,
  },
  {
    name: 'the line before the exit code 127, and not the command',
    log: 'starting\nFatal: cannot run the tool\nprocess "/bin/sh -c ./x" did not complete successfully: exit code: 127',
    rule: 'build/failed',
    says: /Fatal: cannot run the tool/,
    not: /process "/,
  },
  {
    name: 'a header that is missing is no file of the repository',
    log: 'In file included from lib.go:4:\n./a.h:4:10: fatal error: sqlite3ext.h: No such file or directory\ncompilation terminated.',
    rule: 'build/failed',
    says: /header of a library.*libsqlite3-dev.*fatal error: sqlite3ext\.h/,
    not: /Commit it/,
  },
  {
    name: 'a package of Python with a missing header does not miss the compiler',
    log: "psycopg/psycopg.h:36:10: fatal error: libpq-fe.h: No such file or directory\nerror: command '/usr/bin/gcc' failed with exit code 1",
    rule: 'build/failed',
    says: /header of a library.*libpq-fe\.h/,
    not: /needs a compiler/,
  },
  {
    name: 'code that the compiler does not accept does not miss the compiler',
    log: "      longintrepr.c:196:15: error: too few arguments to function\n      error: command '/usr/bin/gcc' failed with exit code 1",
    rule: 'build/failed',
    says: /does not compile with this Python or compiler.*too few arguments/,
    not: /needs a compiler/,
  },
  {
    name: 'a variable that is compiled into the pages takes no placeholder',
    log: "❌ Invalid environment variables: {\n  NEXT_PUBLIC_APP_URL: [ 'Required' ]\n}\nError: Invalid environment variables",
    rule: 'build/failed',
    says: /compiled into the pages.*real values.*NEXT_PUBLIC_APP_URL/,
    not: /set a placeholder/,
  },
  {
    name: 'a public variable in a sentence',
    log: "Error: getUser requires a server URL, as an option or in the 'NEXT_PUBLIC_SERVER_URL' environment variable",
    rule: 'build/failed',
    says: /compiled into the pages/,
    not: /set a placeholder/,
  },
  {
    name: 'OpenSSL 1.1, which the package openssl of new images does not have',
    log: 'Error loading shared library libssl.so.1.1: No such file or directory (needed by /app/libquery_engine.so.node)',
    rule: 'build/failed',
    says: /OpenSSL 1\.1.*update what needs it.*libssl\.so\.1\.1/,
    not: /for libssl: openssl/,
  },
  {
    name: 'a Gradle that is older than the JDK, and not the other way round',
    log: "BUG! exception in phase 'semantic analysis' Unsupported class file major version 68",
    rule: 'build/failed',
    says: /JDK of the image is newer.*Gradle wrapper/,
    not: /targets a newer Java/,
  },
  {
    name: 'a JDK that is older than the target, and not the other way round',
    log: 'Fatal error compiling: invalid target release: 11',
    rule: 'build/failed',
    says: /targets a newer Java than the JDK/,
    not: /Gradle wrapper/,
  },
  {
    name: 'the crate time with a newer Rust is no error of the app',
    log: 'error[E0282]: type annotations needed for `Box<_>`',
    rule: 'build/failed',
    says: /cargo update -p time/,
    not: /fresh clone/,
  },
  {
    name: 'the reason why a dependency of Elixir does not compile, and not its heading',
    log: '== Compilation error in file lib/tracer.ex ==\n** (RuntimeError) You must configure a :tracer for :spandex\n    lib/tracer.ex:21: (module)\ncould not compile dependency :spandex, "mix compile" failed.',
    rule: 'build/failed',
    says: /COPY the folder config.*\*\* \(RuntimeError\) You must configure/,
    not: /== Compilation/,
  },
  {
    name: 'what the build script of a crate says, and not only that it failed',
    log: "error: failed to run custom build command for `prost-build v0.12`\n\n  --- stderr\n  thread 'main' panicked at build.rs:8:9:\n  Could not find `protoc`\n",
    rule: 'build/failed',
    says: /build script of a crate.*Could not find `protoc`/,
    not: /docker build/,
  },
  {
    name: 'a folder of OpenSSL that is not there',
    log: 'error: failed to run custom build command for `openssl-sys v0.9.99`\n  OpenSSL library directory does not exist: ["/usr/lib/x86_64-linux-gnu"]',
    rule: 'build/failed',
    says: /Remove these variables.*OpenSSL library directory/,
    not: /docker build/,
  },
  {
    name: 'a pip that is too old, and not what it says of Cython',
    log: '    Exception: Please upgrade to Cython 0.29 or newer\nCommand "python setup.py egg_info" failed with error code 1\nYou are using pip version 9.0.1, however version 21.1 is available.',
    rule: 'build/failed',
    says: /pip of the image is too old.*install --upgrade pip/,
    not: /docker build/,
  },
  {
    name: 'a gem of development that a Rakefile loads',
    log: 'rake aborted!\nLoadError: cannot load such file -- rubocop/rake_task',
    rule: 'build/failed',
    says: /rescue LoadError.*rubocop/,
    not: /docker build/,
  },
  {
    name: 'an optional package of another system is no import of the code',
    log: 'error during build:\nError: Cannot find module @rollup/rollup-linux-x64-musl. npm has a bug related to optional dependencies (https://github.com/npm/cli/issues/4828).',
    rule: 'build/failed',
    says: /program for each system.*delete node_modules and package-lock\.json/,
    not: /name the package in your dependencies/,
  },
  {
    name: 'a program of another system in node_modules',
    log: '/app/node_modules/esbuild/bin/esbuild: 1: /app/node_modules/esbuild/bin/esbuild: Syntax error: word unexpected (expecting ")")\nError: write EPIPE',
    rule: 'build/failed',
    says: /List node_modules in \.dockerignore/,
    not: /does not compile/,
  },
  {
    name: 'the error of a script, and not that Composer called it',
    log: 'Executing script cache:clear [KO]\nScript cache:clear returned with error code 255\n!!  PHP Fatal error:  Uncaught Error: Class "Symfony\\Bundle\\TwigBundle\\TwigBundle" not found in /app/Kernel.php:131',
    rule: 'build/failed',
    says: /require-dev.*Class "Symfony/,
    not: /returned with error code/,
  },
  {
    name: 'a script that fails for an unknown reason',
    log: 'Script cache:clear returned with error code 1\n!!  The parameter "a" must be defined: fatal error',
    rule: 'build/failed',
    says: /must be defined/,
    not: /returned with error code/,
  },
  {
    name: 'the message of an exception, and not its class',
    log: '  RuntimeError\n\n  Poetry could not find a pyproject.toml file in / or its parents\n',
    rule: 'build/failed',
    says: /COPY pyproject\.toml.*Poetry could not find/,
    not: /docker build/,
  },
  {
    name: 'an app that Poetry installs before it is copied',
    log: 'Installing the current project: shop (1.4.1)\n\n/app/shop does not contain any element',
    rule: 'build/failed',
    says: /--no-root.*does not contain any element/,
    not: /docker build/,
  },
  {
    name: 'the package that apt misses, and not that packages are broken',
    log: 'The following packages have unmet dependencies:\n git : Depends: liberror-perl but it is not going to be installed\nE: Unable to correct problems, you have held broken packages.',
    rule: 'build/failed',
    says: /do not fit each other.*Depends: liberror-perl/,
    not: /docker build/,
  },
  {
    name: 'the library that the linker misses, and not that it failed',
    log: 'error: linking with `cc` failed: exit code: 1\n  = note: /usr/bin/ld: cannot find -lhwloc\nerror: Could not compile `shop`.',
    rule: 'build/failed',
    says: /-dev package.*cannot find -lhwloc/,
    not: /docker build/,
  },
  {
    name: 'the import that Go does not find, and not the command for it',
    log: 'main.go:12:2: no required module provides package example.org/shop/api; to add it:\n\tgo get example.org/shop/api',
    rule: 'build/failed',
    says: /go mod tidy.*no required module provides/,
    not: /docker build/,
  },
  {
    name: 'a public variable that has a default',
    log: 'NEXT_PUBLIC_THEME is not set, using the default\nFatal: the moon is down',
    rule: 'build/failed',
    says: /the moon is down/,
    not: /compiled into the pages/,
  },
  {
    name: 'a warning of Kotlin is no error of the code',
    log: 'w: file:///app/src/main/kotlin/A.kt:10:5 parameter is never used\nFatal: the moon is down',
    rule: 'build/failed',
    says: /the moon is down/,
    not: /does not compile/,
  },
  {
    name: 'a gem that does not compile without the headers of Ruby',
    log: 'Gem::Ext::BuildError: ERROR: Failed to build gem native extension.\ncannot load such file -- mkmf (LoadError)',
    rule: 'build/failed',
    says: /A gem did not compile/,
    not: /rescue LoadError/,
  },
  {
    name: 'a global of browsers is no variable',
    log: 'ReferenceError: APP_WINDOW is not defined\n    at /app/src/page.tsx:3:1',
    rule: 'build/failed',
    says: /ReferenceError: APP_WINDOW is not defined/,
    not: /requires a variable/,
  },
];

test.each(untrue)('names the true cause: $name', ({ log, rule, says, not }) => {
  const { message = '', fix, line = '', rule: found } = suggestFix(log);
  assert.equal(found, rule);
  assert.match(`${message} ${fix} ${line}`, says);
  assert.doesNotMatch(`${message} ${fix} ${line}`, not);
});
