// The causes of failed build steps in Ruby, PHP, Python and Node: what their package managers print, and how an author fixes
// it.
import { languages } from '../../../crds/languages.ts';
import type { Cause } from './causes.ts';

export const listVersions = (images: readonly { readonly version?: string | number }[]): string =>
  images
    .flatMap(({ version }) => version ?? [])
    .toSorted((one, other) => Number(String(one).split('.')[1] ?? one) - Number(String(other).split('.')[1] ?? other))
    .join(', ')
    .replace(/, ([^,]*)$/, ' and $1');

const rubyVersions = listVersions(languages.ruby.images);
const pythonVersions = listVersions(languages.python.images);

const conflict =
  'The requested versions conflict with each other or with this Python version. Relax the pins named in the log, and try "uv pip compile" on your requirements.';
const noVersion =
  'A requested package or version does not exist, or does not support this Python version. Correct it in the list of packages; "pip index versions NAME" lists the available versions.';
export const codeFix =
  'The code does not compile. Run the same command in a fresh clone, fix what the log reports (a missing dependency, an uncommitted file, a type error), and push.';
export const missingImport =
  'The code imports a package or file that is not there when the step runs: name the package in your dependencies, or commit the file; names are case-sensitive.';
const missingPackage =
  'A package or version does not exist in the registry, or is private. Correct its name or version, and commit the lock file.';
const compilerMissing =
  'A package has no prebuilt wheel for this Python version and needs a compiler, which the image does not have. Pin a version that has wheels, or';
const compiler = {
  fix: `${compilerMissing} install what it needs (such as build-essential) before this step; packages.txt counts only where there is no Dockerfile.`,
  planned: `${compilerMissing} list what it needs (such as build-essential) in packages.txt, or add a Dockerfile.`,
} as const;
const buildTools =
  'A package compiles native code with node-gyp, which needs python3, make and g++. Use a version of it with prebuilt binaries, or install them in the Dockerfile.';

/** Globals, modules and operators that only newer versions of Node have. */
export const newerNode = {
  pattern:
    /ReferenceError: (?:performance|fetch|Headers|Request|Response|FormData|File|Blob|ReadableStream|TransformStream|WebSocket|CustomEvent|structuredClone|AbortController|crypto|globalThis|WeakRef) is not defined|No such built-in module: node:|SyntaxError: Unexpected token '(?:\?\?=|\|\|=|&&=)'/,
  fix: 'The Node of the image is too old for this: it lacks a global, a module or syntax that the code or one of its packages uses. Ask for a newer Node in .nvmrc or "engines" of package.json (in a Dockerfile: in FROM).',
} as const;

/** The folder that Composer makes. */
export const missingVendor = {
  pattern: /vendor\/autoload(?:_runtime)?\.php\b.{0,60}(?:No such file|include_path)/i,
  fix: 'The packages of PHP are not installed: there is no folder vendor. Run "composer install --no-dev" in the Dockerfile after composer.json and composer.lock are copied, and list vendor in .dockerignore, so that COPY does not replace it. Without a Dockerfile, commit composer.json and composer.lock.',
} as const;

/** Packages with a program for each system: npm installs the one that the lock file names, or that node_modules has. */
export const foreignModules = {
  pattern:
    /Cannot find module ['"]?@(?:rollup|esbuild|swc|next|tailwindcss|img|parcel|biomejs)\/[\w.-]{0,40}(?:linux|darwin|win32)|bug related to optional dependencies|node_modules\/\S{1,300}: (?:Syntax error: |cannot execute binary file)|installed esbuild (?:on|for) another platform/,
  fix: 'A package brings a program for each system, and the one for this image is not there: node_modules was copied from another system, or package-lock.json was made on one. List node_modules in .dockerignore and install in the image. If that is done, delete node_modules and package-lock.json, run npm install, and commit the new lock file.',
} as const;

/** A class that PHP does not find although there is a folder vendor. */
export const missingClass = {
  pattern: /Class ["'][\w\\]{1,200}["'] not found/,
  fix: 'The class in this line is not in the image. If it belongs to a package under "require-dev", which --no-dev leaves out, move the package to "require", or register it for dev alone (such as in config/bundles.php). Otherwise require its package, and commit composer.json and composer.lock; names are case-sensitive.',
} as const;

const ruby: readonly Cause[] = [
  {
    pattern:
      /Your Ruby version is \S{1,20}, but your Gemfile specified|requires ruby version .{1,80}(?:incompatible with the current version|, which is$)|because current Ruby version is/i,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The Gemfile or a gem requires another version of Ruby than the image has. Use a ruby image with that version in FROM, or run bundle update for the gems that the log names, and commit Gemfile.lock.',
    planned: `The Gemfile or a gem requires another version of Ruby; ${rubyVersions} are available without a Dockerfile. Ask for one of them in .ruby-version and the Gemfile, run bundle update for the gems that the log names, and commit Gemfile.lock.`,
  },
  {
    pattern: /Your bundle only supports platforms|The following platform specific gems are getting installed/,
    isCertain: true,
    rule: 'build/lockfile',
    fix: 'Gemfile.lock does not list the platform of the image. Run "bundle lock --add-platform x86_64-linux" (on Alpine x86_64-linux-musl), and commit Gemfile.lock.',
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
    pattern: /TZInfo::DataSourceNotFound|tzinfo-data is not present/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The image has no time zones. Add the gem tzinfo-data to the Gemfile (without "platforms", which limits it to Windows), run bundle install and commit Gemfile.lock; or install tzdata in the Dockerfile.',
  },
  {
    pattern:
      /Failed to build gem native extension|mkmf\.rb can't find header files|^An error occurred while installing \S{1,100} \(/,
    rule: 'build/failed',
    fix: 'A gem did not compile: the log names the library or header that it misses. Libraries of well-known gems are installed; for another one use a version of the gem with binaries for x86_64-linux, or add a Dockerfile that installs its Debian package (such as libpq-dev).',
  },
  {
    pattern: /cannot load such file -- /,
    rule: 'build/failed',
    fix: 'The step loads a gem or file that is not in the image. If it is a gem of the groups development or test, load it only where it is installed (such as in the Rakefile in begin … rescue LoadError); otherwise name it in the Gemfile and commit Gemfile.lock, or commit the file.',
  },
];

const php: readonly Cause[] = [
  { ...missingVendor, isCertain: true, rule: 'build/failed' },
  { ...missingClass, isCertain: true, rule: 'build/failed' },
  {
    pattern: /Composer could not find a composer\.json file/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'There is no composer.json in the folder in which the step runs. COPY composer.json and composer.lock before this step, or set WORKDIR to their folder.',
  },
  {
    pattern:
      /(?:requires? (?:PHP extension )?ext-\S{1,40} .{1,60}missing from your system|requested PHP extension \S{1,40} .{1,40}missing)/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'A package requires a PHP extension that the image does not have. Install it in the Dockerfile before Composer runs (docker-php-ext-install NAME, or install-php-extensions NAME).',
    planned:
      'A package requires a PHP extension that the image does not have. gd, intl, zip, bcmath, mysqli, pdo_mysql, pdo_pgsql, sodium and exif are installed if composer.json names them under "require" (as "ext-NAME": "*"); for another one add a Dockerfile.',
  },
  {
    pattern: /your php version \([\d.]{1,20}\S{0,20}\) does not satisfy that requirement/i,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The packages require another version of PHP than the image has. Use a base image with that version in FROM, or run composer update with the version of the image, and commit composer.lock.',
    planned: `The packages require another version of PHP than the image has, which is ${languages.php.images[0].version}. Set config.platform.php in composer.json to it, run composer update, and commit composer.lock; or add a Dockerfile.`,
  },
  {
    pattern: /Your lock file does not contain a compatible set of packages/,
    rule: 'build/failed',
    fix: 'The packages in composer.lock do not fit the PHP of the image, in its version or its extensions. Run Composer without --quiet to see which, then change the base image or run composer update, and commit composer.lock.',
  },
];

const python: readonly Cause[] = [
  {
    pattern: /No module named '(?:pkg_resources|distutils|setuptools)'|has no attribute 'ImpImporter'/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'A package is built with a part of setuptools or Python that newer versions no longer have. Use a newer version of the package, or an older Python (.python-version), or pin setuptools below 81.',
  },
  {
    pattern:
      /requires-python|requires a different Python|does not satisfy Python|Requires-Python|is incompatible with the project's Python requirement|has no wheels with a matching Python/i,
    rule: 'build/failed',
    fix: `A package requires another Python version. Set requires-python in pyproject.toml, or .python-version (${pythonVersions} are available), or pin compatible versions.`,
  },
  {
    pattern:
      /No matching distribution found|was not found in the package registry|there (?:is|are) no versions? of|Because only \S{1,100} is available|Could not find a version that satisfies/i,
    isCertain: true,
    rule: 'build/failed',
    fix: noVersion,
  },
  {
    pattern: /could not find a pyproject\.toml file/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'There is no pyproject.toml in the folder in which the step runs. COPY pyproject.toml and the lock file before this step, or set WORKDIR to their folder.',
  },
  {
    pattern: /The current project could not be installed|does not contain any element/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'Poetry installs the app itself, and its code, or a file that pyproject.toml names (such as README.md), was not copied before this step. Use "poetry install --no-root", which installs only the dependencies, or COPY the code first.',
    planned:
      'Poetry installs the app itself, and a file or package that pyproject.toml names (such as README.md) is not in the repository. Commit it, correct "packages" and "readme", or set package-mode = false.',
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
    pattern: /^\s*You are using pip version (?:\d|1\d)\.\d/,
    quote: /^\s*(?:Exception|\w{1,40}Error): |^\s*error: /,
    rule: 'build/failed',
    fix: 'The pip of the image is too old for the wheels of today, so it builds packages from source, which failed. Use a python image in FROM, or run "pip install --upgrade pip" before this step.',
    planned: `The pip of the image is too old for the wheels of today, so it builds packages from source, which failed. Ask for a newer Python in .python-version (${pythonVersions} are available).`,
  },
  {
    pattern: /command '?"?\S{0,60}(?:gcc|cc|g\+\+|clang)'?"? failed with exit (?:code|status)/,
    quote: /^\s*\S{1,200}:\d{1,6}:\d{1,6}: (?:fatal )?error: /,
    rule: 'build/failed',
    fix: 'A package has no prebuilt wheel for this Python version, and its code does not compile with this Python or compiler. Pin a version that has a wheel, or use an older Python (in FROM, or .python-version without a Dockerfile).',
  },
  {
    pattern:
      /command '?"?(?:gcc|cc|g\+\+|x86_64-linux-gnu-gcc|clang)|(?:gcc|cc|cmake|rustc|cargo|make|g\+\+)(?: compiler)?:? (?:command )?not found|pg_config executable not found|error: Microsoft|Could not find.{0,40}compiler/i,
    rule: 'build/failed',
    ...compiler,
  },
  {
    pattern:
      /The fields? \[.{1,200}\] are required in package mode|Multiple top-level packages discovered|No module or package name found|Unable to determine which files to ship/i,
    isCertain: true,
    rule: 'build/failed',
    fix: 'pyproject.toml does not describe a package that can be built. For Poetry set package-mode = false; for others name the packages of the build backend, or remove [build-system], so that only the dependencies are installed.',
  },
  {
    pattern: /Failed to build\b.{0,80} @ (?:file|editable)|Failed to build editable/i,
    rule: 'build/failed',
    fix: 'The package that the repository itself is does not build. Run "pip install ." in a fresh clone, and fix what it reports in pyproject.toml; or remove [build-system], so that only the dependencies are installed.',
  },
  {
    pattern: /Failed to (?:download and )?build\b|Failed building wheel/i,
    quote: /Failed (?:to (?:download and )?build|building wheel for) .{0,100}[`=\w]/i,
    rule: 'build/failed',
    fix: 'No wheel of this package fits the Python version, so it is built from source, and that failed. Pin a version that has a wheel, or ask for a Python version that it supports (.python-version); if the log names a compiler or library, install that.',
  },
];

const node: readonly Cause[] = [
  {
    pattern:
      /^(?:npm (?:ERR!|error) )?(?:code )?ERESOLVE\b|^npm (?:ERR!|error) .{0,40}ERESOLVE|ERR_PNPM_PEER_DEP_ISSUES|^npm (?:ERR!|error) Conflicting peer dep/,
    quote: /^npm (?:ERR!|error)\s+peer \S.{0,200} from /,
    isCertain: true,
    rule: 'build/failed',
    fix: 'Two packages require different versions of a third. Align their versions in package.json, run npm install, and commit package-lock.json; or set legacy-peer-deps=true in .npmrc.',
  },
  {
    pattern:
      /`npm ci` can only install|package\.json and package-lock\.json.*(?:not )?in sync|ERR_PNPM_OUTDATED_LOCKFILE|lockfile needs to be updated|lockfile would have been modified|lockfile had changes, but lockfile is frozen|The lockfile at `uv\.lock` needs|poetry\.lock was last generated|pyproject\.toml changed significantly/i,
    rule: 'build/lockfile',
    fix: "The lock file does not match the manifest. Run the package manager's install (npm install, pnpm install, yarn, uv lock, poetry lock) and commit the lock file.",
  },
  {
    pattern: /ERR_PNPM_LOCKFILE_BREAKING_CHANGE|Ignoring not compatible lockfile/,
    isCertain: true,
    rule: 'build/lockfile',
    fix: 'pnpm-lock.yaml was made by another version of pnpm than the step uses. Name yours in package.json ("packageManager": "pnpm@9.15.0"), which Corepack then installs, or run pnpm install with the newer one, and commit the lock file.',
  },
  {
    pattern: /ERR_PNPM_IGNORED_BUILDS/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'This pnpm fails if it leaves out install scripts that nothing allows. Run "pnpm approve-builds" and commit pnpm-workspace.yaml (a Dockerfile has to COPY it before this step), or name an older pnpm in package.json ("packageManager": "pnpm@10.15.0").',
  },
  {
    pattern: /^(?!.*throw new).*Cannot find matching keyid/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The Corepack of this Node is older than the keys that npm signs packages with. Run "npm install -g corepack@latest" before it, or use a newer Node.',
  },
  {
    pattern: /Missing script: "?([\w:-]+)|Command "build" not found/i,
    rule: 'build/failed',
    fix: 'package.json does not define the script that is run. Add it under "scripts", or set another build.strategy in moorage.yaml.',
  },
  {
    pattern: /Treating warnings as errors because process\.env\.CI/,
    quote: /^\s+Line \d+:\d+:/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'react-scripts takes warnings for errors where CI is set. Fix the warnings in the log, or set CI=false in the build script of package.json ("build": "CI=false react-scripts build").',
  },
  {
    pattern: /ERR_OSSL_EVP_UNSUPPORTED|digital envelope routines::/,
    quote: /Error: error:\w+:digital envelope|ERR_OSSL_EVP_UNSUPPORTED/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'This webpack uses a hash that Node 17 and newer no longer allow. Update webpack (or react-scripts), or ask for Node 16 in .nvmrc (in a Dockerfile: in FROM).',
  },
  {
    pattern:
      /The engine "node" is incompatible with this module|ERR_PNPM_UNSUPPORTED_ENGINE|^npm (?:ERR!|error) (?:code )?EBADENGINE/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'A package requires another version of Node. Ask for one in .nvmrc or "engines" of package.json (in a Dockerfile: in FROM), or use a version of the package that supports this one.',
  },
  { ...newerNode, isCertain: true, rule: 'build/failed' },
  { ...foreignModules, isCertain: true, rule: 'build/failed' },
  {
    pattern: /--libsass_ext=|node_modules\/node-sass\b/,
    rule: 'build/failed',
    fix: 'The package node-sass has no prebuilt binaries for this Node, so it compiles itself, which failed; it is no longer maintained. Replace it with the package sass, or ask for a Node that it supports in .nvmrc (in a Dockerfile: in FROM).',
  },
  {
    pattern: /gyp ERR!|\bnode-gyp\b.{0,40}(?:rebuild|failed)/i,
    quote: /gyp ERR! (?:find Python .{0,40}not|stack Error|not found: make)|not found: make/,
    rule: 'build/failed',
    fix: buildTools,
    planned:
      'A package compiles native code with node-gyp, which needs python3, make and g++. Use a version of it with prebuilt binaries for this Node (.nvmrc asks for another one), or add a Dockerfile that installs them.',
  },
  {
    pattern:
      /npm (?:ERR!|error) (?:code )?E404|ERR_PNPM_FETCH_404|404 Not Found - GET|\bGET https?:\/\/\S+ - 404\b|https?:\/\/\S+: Request failed "404 Not Found"/i,
    quote: /404 Not Found - GET|Request failed "404|GET https?:\/\/\S{1,300}(?:: Not Found)? - 404/i,
    isCertain: true,
    rule: 'build/failed',
    fix: missingPackage,
  },
  {
    pattern:
      /server returned code [45]\d\d\. URL: http|(?:status code|responded with|HTTP error) [45]\d\d\b.{0,80}https?:/i,
    isCertain: true,
    rule: 'build/failed',
    fix: 'A server refused what the step downloads, or does not have it. Open the address from the log: if it is gone, use a newer version of the package, or have it skip the download by its variable (ENV in the Dockerfile; without one build.env of moorage.yaml).',
  },
  {
    pattern: /"[A-Za-z_]\w{0,80}" is not exported by "virtual:\$?env\/static\/(?:private|public)"/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The code imports a variable from $env/static, which is compiled in, and it is not set in the build. Import it from $env/dynamic/private (or public) instead, which reads it when the app runs, or set it for the build (ENV in the Dockerfile; without one build.env of moorage.yaml).',
  },
  {
    pattern:
      /Could not load .{1,300} \(imported by |Rollup failed to resolve|Could not resolve "?[^\n]{1,200}" from|ModuleNotFound resolving|Module not found/,
    isCertain: true,
    rule: 'build/failed',
    fix: missingImport,
  },
];

/** The first match wins, so more specific causes come first. */
export const languageCauses: readonly Cause[] = [...ruby, ...php, ...python, ...node];
