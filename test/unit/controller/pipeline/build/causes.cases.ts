// What real tools print when a build fails, by what they lack.

export interface Cause {
  readonly name: string;
  readonly log: string;
  readonly rule: string;
  /** In the message, the line or the fix. */
  readonly says: RegExp;
}

const missing: readonly Cause[] = [
  {
    name: 'Prisma while pages are generated',
    log: 'Error occurred prerendering page "/posts".\nPrismaClientInitializationError: \nInvalid `prisma.post.findMany()` invocation:\n\n\nCan\'t reach database server at `127.0.0.1:5432`\n\nPlease make sure your database server is running at `127.0.0.1:5432`.',
    rule: 'build/failed',
    says: /none runs while an image is built.*postgres service.*Can't reach database server/s,
  },
  {
    name: 'Prisma with the name of a compose file',
    log: "Error: P1001: Can't reach database server at `db:5432`",
    rule: 'build/failed',
    says: /none runs while an image is built/,
  },
  {
    name: 'a script of Composer that reads a database',
    log: 'Illuminate\\Database\\QueryException : SQLSTATE[HY000] [2002] Connection refused (SQL: select * from `settings`)\nScript @php artisan package:discover --ansi handling the post-autoload-dump event returned with error code 1',
    rule: 'build/failed',
    says: /none runs while an image is built.*mysql service.*SQLSTATE/s,
  },
  {
    name: 'a build that reads a table',
    log: 'PrismaClientKnownRequestError: The table `main.Post` does not exist in the current database.',
    rule: 'build/failed',
    says: /The build asks for a database/,
  },
  {
    name: 'git without a repository',
    log: 'fatal: not a git repository (or any of the parent directories: .git)\nmake: *** [Makefile:3: build] Error 128',
    rule: 'build/failed',
    says: /no \.git folder\. Declare ARG SOURCE_COMMIT/,
  },
  {
    name: 'setuptools-scm without tags',
    log: 'LookupError: setuptools-scm was unable to detect version for /app.',
    rule: 'build/failed',
    says: /ENV SETUPTOOLS_SCM_PRETEND_VERSION=1\.0\.0/,
  },
];

const network: readonly Cause[] = [
  {
    name: 'npm',
    log: 'npm error code ENOTFOUND\nnpm error syscall getaddrinfo\nnpm error errno ENOTFOUND\nnpm error network request to https://registry.example.org/left-pad failed, reason: getaddrinfo ENOTFOUND registry.example.org\nnpm error network This is a problem related to network connectivity.',
    rule: 'build/network',
    says: /could not reach registry\.example\.org/,
  },
  {
    name: 'an install script of npm, which then wants to compile',
    log: 'npm error code 1\nnpm error path /app/node_modules/better-sqlite3\nnpm error command sh -c prebuild-install || node-gyp rebuild --release\nnpm error prebuild-install warn install getaddrinfo EAI_AGAIN github.com\nnpm error gyp ERR! stack FetchError: request to https://nodejs.org/download/release/v24.0.0/node-v24.0.0-headers.tar.gz failed, reason: getaddrinfo EAI_AGAIN nodejs.org\nnpm error gyp ERR! not ok',
    rule: 'build/network',
    says: /could not reach (?:github\.com|nodejs\.org)/,
  },
  {
    name: 'pnpm',
    log: ' WARN  GET https://registry.example.org/vite error (ENOTFOUND). Will retry in 10 seconds. 2 retries left.\n ERR_PNPM_META_FETCH_FAIL  GET https://registry.example.org/vite: request to https://registry.example.org/vite failed, reason: getaddrinfo ENOTFOUND registry.example.org',
    rule: 'build/network',
    says: /registry\.example\.org/,
  },
  {
    name: 'Yarn',
    log: 'info There appears to be trouble with your network connection. Retrying...\nerror Error: getaddrinfo ENOTFOUND registry.example.org\n    at GetAddrInfoReqWrap.onlookupall [as oncomplete] (node:dns:120:26)\ninfo Visit https://yarnpkg.com/en/docs/cli/install for documentation about this command.',
    rule: 'build/network',
    says: /could not reach registry\.example\.org/,
  },
  {
    name: 'pip',
    log: "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError(\"HTTPSConnection(host='index.example.org', port=443): Failed to establish a new connection: [Errno -3] Temporary failure in name resolution\")': /simple/flask/\nERROR: Could not find a version that satisfies the requirement flask (from versions: none)\nERROR: No matching distribution found for flask",
    rule: 'build/network',
    says: /could not reach index\.example\.org/,
  },
  {
    name: 'uv, which calls it a failed build',
    log: '  × Failed to build `tool @ git+https://git.example.org/a/tool`\n  ├─▶ Failed to resolve requirements from `build-system.requires`\n  ├─▶ Failed to fetch: `https://index.example.org/simple/setuptools/`\n  ├─▶ error sending request for url (https://index.example.org/simple/setuptools/)\n  ├─▶ client error (Connect)\n  ╰─▶ dns error: failed to lookup address information: Name or service not known',
    rule: 'build/network',
    says: /index\.example\.org/,
  },
  {
    name: 'Poetry',
    log: 'Creating virtualenv app in /app/.venv\nInstalling dependencies from lock file\n\nPackage operations: 81 installs, 0 updates, 0 removals\n\nAll attempts to connect to index.example.org failed.\n\nProbable Causes:\n - the server is not responding to requests at the moment',
    rule: 'build/network',
    says: /could not reach index\.example\.org/,
  },
  {
    name: 'Cargo',
    log: '    Updating crates.io index\nwarning: spurious network error (3 tries remaining): [6] Could not resolve hostname (Could not resolve host: index.example.org)\nerror: failed to get `axum` as a dependency of package `app v0.1.0 (/app)`\n\nCaused by:\n  download of config.json failed',
    rule: 'build/network',
    says: /could not reach index\.example\.org/,
  },
  {
    name: 'Go',
    log: 'go: github.com/gin-gonic/gin@v1.10.0: Get "https://proxy.example.org/github.com/gin-gonic/gin/@v/v1.10.0.mod": dial tcp: lookup proxy.example.org on 192.0.2.1:53: no such host',
    rule: 'build/network',
    says: /could not reach proxy\.example\.org/,
  },
  {
    name: 'a font of a page that Next.js builds',
    log: 'FetchError: request to https://fonts.example.org/css2?family=Inter failed, reason: getaddrinfo ENOTFOUND fonts.example.org\nFailed to compile.\n\nsrc/app/layout.tsx\n`next/font` error:\nFailed to fetch `Inter` from Google Fonts.',
    rule: 'build/network',
    says: /could not reach fonts\.example\.org/,
  },
  {
    name: 'a font that Next.js does not get, without its address',
    log: '[next]/internal/font/google/geist_6a0e6105.module.css\nnext/font: error:\nFailed to fetch `Geist` from Google Fonts.\n\nImport trace:\n./app/layout.tsx\n> Build failed because of webpack errors',
    rule: 'build/network',
    says: /could not reach fonts\.googleapis\.com/,
  },
  {
    name: 'curl',
    log: 'curl: (6) Could not resolve host: install.example.org\nsh: 1: poetry: not found',
    rule: 'build/network',
    says: /install\.example\.org/,
  },
  {
    name: 'NuGet',
    log: '  Determining projects to restore...\n/usr/lib/dotnet/sdk/8.0.134/NuGet.targets(156,5): error : Unable to load the service index for source https://api.example.org/v3/index.json. [/app/src/Shop/Shop.csproj]\n/usr/lib/dotnet/sdk/8.0.134/NuGet.targets(156,5): error :   Name or service not known (api.example.org:443) [/app/src/Shop/Shop.csproj]',
    rule: 'build/network',
    says: /could not reach api\.example\.org/,
  },
  {
    name: 'Mix without Hex',
    log: '** (Mix) httpc request failed with: {:failed_connect, [{:to_address, {~c"builds.example.org", 443}}, {:inet6, [:inet6], :nxdomain}]}\n\nCould not install Hex because Mix could not download metadata at https://builds.example.org/installs/hex-1.x.csv.',
    rule: 'build/network',
    says: /could not reach builds\.example\.org/,
  },
  {
    name: 'Hex',
    log: 'Failed to fetch record for jason from registry (using cache instead)\n{:failed_connect, [{:to_address, {~c"repo.example.org", 443}}, {:inet, [:inet], :nxdomain}]}\n** (Mix) Unknown package jason in lockfile',
    rule: 'build/network',
    says: /could not reach repo\.example\.org/,
  },
];

const ruby: readonly Cause[] = [
  {
    name: 'Bundler 2.3, which breaks its sentence',
    log: 'Could not reach host index.rubygems.org. Check your network connection and try\nagain.',
    rule: 'build/network',
    says: /could not reach index\.rubygems\.org/,
  },
  {
    name: 'Bundler with an underlying error, before a gem that it then misses',
    log: "Fetching source index from https://gems.example.org/\n\nRetrying fetcher due to error (2/4): Bundler::HTTPError Could not fetch specs from https://gems.example.org/ due to underlying error <Gem::RemoteFetcher::FetchError: too many connection resets>\nCould not fetch specs from https://gems.example.org/ due to underlying error\n<Gem::RemoteFetcher::FetchError: too many connection resets>\nCould not find gem 'rack' in any of the gem sources listed in your Gemfile.",
    rule: 'build/network',
    says: /could not reach gems\.example\.org/,
  },
  {
    name: 'another Ruby than the Gemfile names',
    log: 'Your Ruby version is 3.3.8, but your Gemfile specified 3.2.2',
    rule: 'build/failed',
    says: /requires another version of Ruby than the image has\. Use a ruby image with that version in FROM/,
  },
  {
    name: 'a gem that needs a newer Ruby',
    log: 'Could not find compatible versions\n\nBecause rails >= 8.0.0.beta1 depends on Ruby >= 3.2.0\n  and Gemfile depends on rails ~> 8.0,\n  Ruby >= 3.2.0 is required.\nSo, because current Ruby version is = 3.1.2,\n  version solving has failed.',
    rule: 'build/failed',
    says: /requires another version of Ruby/,
  },
  {
    name: 'a gem that is not there',
    log: "Fetching gem metadata from https://rubygems.org/.\nCould not find gem 'no-such-gem-of-ours' in rubygems repository https://rubygems.org/ or installed locally.",
    rule: 'build/failed',
    says: /not in its source, or is private.*bundle install/,
  },
  {
    name: 'a gem without the library that it is compiled with',
    log: 'Installing snappy 0.4.0 with native extensions\nGem::Ext::BuildError: ERROR: Failed to build gem native extension.\n\n    current directory: /usr/local/bundle/gems/rugged-1.7/ext/rugged\nERROR: CMake is required to build Rugged.\n*** extconf.rb failed ***\nAn error occurred while installing rugged (1.7.2), and Bundler cannot continue.',
    rule: 'build/failed',
    says: /A gem did not compile.*libpq-dev/,
  },
  {
    name: 'assets that want the key of the credentials',
    log: "rake aborted!\nActiveSupport::EncryptedFile::MissingKeyError: Missing encryption key to decrypt file with. Ask your team for your master key and write it to /app/config/master.key or put it in the ENV['RAILS_MASTER_KEY'].",
    rule: 'build/failed',
    says: /config\/master\.key.*require_master_key/,
  },
  {
    name: 'assets without Node',
    log: 'rake aborted!\nExecJS::RuntimeUnavailable: Could not find a JavaScript runtime. See https://github.com/rails/execjs for a list of available runtimes.',
    rule: 'build/failed',
    says: /image has no Node.*Gemfile\.lock/,
  },
  {
    name: 'a variable that Ruby fetches',
    log: 'rake aborted!\nKeyError: key not found: "STRIPE_SECRET"\n/app/config/initializers/stripe.rb:1:in `fetch\'',
    rule: 'build/failed',
    says: /require a variable/,
  },
];

const others: readonly Cause[] = [
  {
    name: 'variables that a script of the build asks for',
    log: '> node scripts/check-env.js\n\nThe following environment variables are not defined:\n -  DATABASE_URL\n ELIFECYCLE  Command failed with exit code 1.',
    rule: 'build/failed',
    says: /build\.env of moorage\.yaml/,
  },
  {
    name: 'a compiler that is missing is none of the network',
    log: "      error: command 'gcc' failed: No such file or directory\n  ERROR: Failed building wheel for psutil",
    rule: 'build/failed',
    says: /needs a compiler/,
  },
  {
    name: 'a type error before a warning of the network',
    log: "src/a.ts(3,1): error TS2304: Cannot find name 'x'.\nwarn: update check failed: getaddrinfo ENOTFOUND registry.example.org",
    rule: 'build/failed',
    says: /does not compile/,
  },
  {
    name: 'a database of its own machine',
    log: 'Error occurred prerendering page "/".\nError: connect ECONNREFUSED 127.0.0.1:5432',
    rule: 'build/failed',
    says: /none runs while an image is built/,
  },
  {
    name: 'memory, whatever else is said',
    log: 'getaddrinfo ENOTFOUND a.example.org\nFATAL ERROR: JavaScript heap out of memory',
    rule: 'build/memory',
    says: /out of memory/,
  },
  {
    name: 'a program that no package brings: npm',
    log: '\n> web@1.0.0 build\n> tsc -b && vite build\n\nsh: 1: tsc: not found\nnpm error Lifecycle script `build` failed with error:\nnpm error code 127',
    rule: 'build/failed',
    says: /The script "build" of the package web calls tsc.*The package typescript brings tsc/,
  },
  {
    name: 'a program that no package brings: pnpm',
    log: '> @shop/web@0.1.0 build /app/apps/web\n> next build\n\nsh: 1: next: not found\n ELIFECYCLE  Command failed.\n WARN   Local package.json exists, but node_modules missing',
    rule: 'build/failed',
    says: /The script "build" of the package @shop\/web calls next.*The package next/,
  },
  {
    name: 'a program that no package brings: Yarn',
    log: 'yarn run v1.22.22\n$ vue-cli-service build\n/bin/sh: 1: vue-cli-service: not found\nerror Command failed with exit code 127.\ninfo Visit https://yarnpkg.com/en/docs/cli/run for documentation about this command.',
    rule: 'build/failed',
    says: /The step calls vue-cli-service.*@vue\/cli-service/,
  },
  {
    name: 'a program that no package brings: Bun',
    log: '$ tsc && vite build\n/usr/bin/bash: line 1: tsc: command not found\nerror: script "build" exited with code 127',
    rule: 'build/failed',
    says: /typescript/,
  },
  {
    name: 'an install script of a package',
    log: 'npm error code 127\nnpm error path /app/node_modules/@scope/tool\nnpm error command failed\nnpm error command sh -c node-gyp-build-missing\nnpm error sh: 1: node-gyp-build-missing: not found\nsh: 1: node-gyp-build-missing: not found',
    rule: 'build/failed',
    says: /The install script of the package @scope\/tool calls node-gyp-build-missing/,
  },
  {
    name: 'a program of Debian',
    log: '/bin/sh: 1: ffmpeg: not found',
    rule: 'build/failed',
    says: /calls ffmpeg.*Install ffmpeg in an earlier step/,
  },
  {
    name: 'a release of Debian whose lists are out of date',
    log: 'Reading package lists...\nE: Release file for http://deb.debian.org/debian/dists/forky/InRelease is expired (invalid since 16d 9h). Updates for this repository will not be applied.',
    rule: 'build/failed',
    says: /base image of a stable release.*InRelease is expired/,
  },
  {
    name: 'a release of Debian that is gone',
    log: "Err:2 http://deb.debian.org/debian stretch Release\n  404  Not Found\nReading package lists...\nE: The repository 'http://deb.debian.org/debian stretch Release' does not have a Release file.",
    rule: 'build/failed',
    says: /end of life.*stretch Release/,
  },
  {
    name: 'a key that did not arrive, after words of debconf',
    log: 'debconf: unable to initialize frontend: Dialog\ndebconf: (TERM is not set, so the dialog frontend is not usable.)\ndebconf: falling back to frontend: Readline\ngpg: no valid OpenPGP data found.',
    rule: 'build/failed',
    says: /signing key.*no valid OpenPGP data/,
  },
  {
    name: 'an SDK that is older than the target',
    log: '/usr/lib/dotnet/sdk/8.0.134/Sdks/Microsoft.NET.Sdk/targets/Microsoft.NET.TargetFrameworkInference.targets(166,5): error NETSDK1045: The current .NET SDK does not support targeting .NET 10.0.  Either target .NET 8.0 or lower, or use a version of the .NET SDK that supports .NET 10.0. [/app/Shop.csproj]',
    rule: 'build/failed',
    says: /TargetFramework net8\.0 or net10\.0/,
  },
  {
    name: 'a package that NuGet does not have, with an address out of reach',
    log: '/app/Shop.csproj : error NU1101: Unable to find package No.Such.Package. No packages exist with this id in source(s): nuget.org\nwarn : Unable to load the service index for source https://other.example.org/index.json.',
    rule: 'build/failed',
    says: /does not exist in the registry/,
  },
  {
    name: 'code of C# that does not compile',
    log: "/app/src/Shop/Program.cs(2,17): error CS1660: Cannot convert lambda expression to type 'string' because it is not a delegate type [/app/src/Shop/Shop.csproj]",
    rule: 'build/failed',
    says: /does not compile/,
  },
  {
    name: 'code of Elixir that does not compile',
    log: 'Compiling 1 file (.ex)\n\n== Compilation error in file lib/a.ex ==\n** (ArgumentError) cannot invoke def/2 outside module\n    lib/a.ex:1: (file)',
    rule: 'build/failed',
    says: /does not compile/,
  },
  {
    name: 'an Elixir that is older than the project',
    log: "** (Mix) You're trying to run :shop on Elixir v1.18.3 but it has declared in its mix.exs file it supports only Elixir ~> 1.30",
    rule: 'build/failed',
    says: /asks for another version/,
  },
  {
    name: 'a dependency of Hex where there is no Hex',
    log: 'Mix requires the Hex package manager to fetch dependencies\nShall I install Hex? (if running non-interactively, use "mix local.hex --force") [Yn] ** (Mix) Could not find an SCM for dependency :jason from Shop.MixProject',
    rule: 'build/failed',
    says: /mix local\.hex --force/,
  },
  {
    name: 'secrets of Phoenix that are not in the repository',
    log: '** (File.Error) could not read file "/app/config/prod.secret.exs": no such file or directory\n    (elixir 1.18.3) lib/file.ex:385: File.read!/1',
    rule: 'build/failed',
    says: /config\/runtime\.exs/,
  },
  {
    name: 'warnings that react-scripts takes for errors',
    log: "Creating an optimized production build...\n\nTreating warnings as errors because process.env.CI = true.\n\nFailed to compile.\n\n[eslint]\nsrc/App.js\n  Line 3:10:  'useState' is defined but never used  no-unused-vars",
    rule: 'build/failed',
    says: /CI=false.*Line 3:10: {2}'useState' is defined/,
  },
  {
    name: 'a hash that Node no longer allows',
    log: "Error: error:0308010C:digital envelope routines::unsupported\n    at new Hash (node:internal/crypto/hash:71:19)\n  code: 'ERR_OSSL_EVP_UNSUPPORTED'",
    rule: 'build/failed',
    says: /Node 16.*error:0308010C/,
  },
  {
    name: 'an archive that is none',
    log: 'gzip: stdin: not in gzip format\ntar: Child returned status 1\ntar: Error is not recoverable: exiting now',
    rule: 'build/failed',
    says: /not the archive.*not in gzip format/,
  },
  {
    name: 'a crate without a linker',
    log: "error: linker 'cc' not found\n  = note: No such file or directory (os error 2)",
    rule: 'build/failed',
    says: /no C compiler.*linker 'cc' not found/,
  },
  {
    name: 'a download that an install script can skip',
    log: 'ERROR: Failed to download Chromium! Set "PUPPETEER_SKIP_CHROMIUM_DOWNLOAD" env variable to skip download.\n{ Error: getaddrinfo ENOTFOUND storage.example.org',
    rule: 'build/network',
    says: /could not reach storage\.example\.org.*set PUPPETEER_SKIP_CHROMIUM_DOWNLOAD to true/,
  },
  {
    name: 'a refused download that an install script can skip',
    log: 'npm ERR! ERROR: Failed to set up Chromium! Set "PUPPETEER_SKIP_DOWNLOAD" env variable to skip download.\nnpm ERR! Error: Download failed: server returned code 403. URL: https://storage.example.org/a.zip',
    rule: 'build/failed',
    says: /refused.*set PUPPETEER_SKIP_DOWNLOAD to true/,
  },
  {
    name: 'a package of apt without its lists',
    log: 'E: Unable to locate package python3.8',
    rule: 'build/failed',
    says: /Run apt-get update in the same RUN.*If it is there already/,
  },
  {
    name: 'a folder that is there already',
    log: 'mkdir: cannot create directory ‘/config’: File exists',
    rule: 'build/failed',
    says: /mkdir -p/,
  },
  {
    name: 'a page of Next.js that cannot be rendered in the build',
    log: 'Error occurred prerendering page "/shop". Read more: https://nextjs.org/docs\nTypeError: Cannot read properties of undefined (reading \'ENV\')',
    rule: 'build/failed',
    says: /renders this page while it builds.*TypeError: Cannot read/,
  },
  {
    name: 'a Node without a global that a package uses',
    log: 'performance.mark("next-start");\n^\n\nReferenceError: performance is not defined',
    rule: 'build/failed',
    says: /Node of the image is too old.*performance is not defined/,
  },
  {
    name: 'node-sass, which compiles itself',
    log: 'Building: node /app/node_modules/node-gyp/bin/node-gyp.js rebuild --verbose --libsass_ext= --libsass_cflags=',
    rule: 'build/failed',
    says: /Replace it with the package sass/,
  },
  {
    name: 'packages of PHP that are not installed',
    log: "PHP Fatal error:  Failed opening required '/app/vendor/autoload.php' (include_path='.')",
    rule: 'build/failed',
    says: /no folder vendor.*composer install/,
  },
  {
    name: 'Go without go.mod',
    log: 'go: cannot find main module, but found .git/config in /app\n\tto create a module there, run:\n\tgo mod init',
    rule: 'build/failed',
    says: /COPY go\.mod.*go mod init/,
  },
  {
    name: 'install scripts that pnpm leaves out',
    log: '[ERR_PNPM_IGNORED_BUILDS] Ignored build scripts: esbuild@0.27.2',
    rule: 'build/failed',
    says: /pnpm approve-builds/,
  },
  {
    name: 'a lock file of another pnpm',
    log: ' ERR_PNPM_LOCKFILE_BREAKING_CHANGE  Lockfile /app/pnpm-lock.yaml not compatible with current pnpm',
    rule: 'build/lockfile',
    says: /packageManager/,
  },
  {
    name: 'Composer without composer.json',
    log: 'Composer could not find a composer.json file in /srv/app',
    rule: 'build/failed',
    says: /COPY composer\.json and composer\.lock before this step/,
  },
  {
    name: 'time zones that are not installed',
    log: 'TZInfo::DataSourceNotFound: tzinfo-data is not present.',
    rule: 'build/failed',
    says: /gem tzinfo-data/,
  },
  {
    name: 'SQLite for Go without cgo',
    log: '# github.com/mattn/go-sqlite3\nsqlite3_opt.go:12:16: undefined: SQLiteConn',
    rule: 'build/failed',
    says: /CGO_ENABLED=1.*undefined: SQLiteConn/,
  },
  {
    name: 'a Gradle wrapper without its JAR',
    log: 'Error: Could not find or load main class org.gradle.wrapper.GradleWrapperMain',
    rule: 'build/failed',
    says: /gradle-wrapper\.jar is not there/,
  },
  {
    name: 'a class of the tests that does not compile',
    log: '[ERROR] COMPILATION ERROR :\n[ERROR] /app/src/test/java/a/B.java:[10,33] package c does not exist',
    rule: 'build/failed',
    says: /maven\.test\.skip.*B\.java:\[10,33\]/,
  },
  {
    name: 'a class that does not compile, by its line',
    log: '[ERROR] COMPILATION ERROR :\n[ERROR] /app/src/main/java/a/B.java:[10,33] cannot find symbol',
    rule: 'build/failed',
    says: /does not compile.*B\.java:\[10,33\] cannot find symbol/,
  },
  {
    name: 'a folder with several .NET projects',
    log: 'MSBUILD : error MSB1011: Specify which project or solution file to use because this folder contains more than one.',
    rule: 'build/failed',
    says: /several projects.*dotnet publish PATH/,
  },
  {
    name: 'anything else, by its first error',
    log: 'step one\nFatal: the moon is down\nUsage: tool [options]',
    rule: 'build/failed',
    says: /the moon is down/,
  },
];

export const causeCases: readonly Cause[] = [...missing, ...network, ...ruby, ...others];
