// The causes of failed build steps in Go, Rust, Java, .NET and Elixir: what their compilers print, and how an author fixes it.
import { languages } from '../../../crds/languages.ts';
import type { Cause } from './causes.ts';
import { codeFix, listVersions } from './language-causes.ts';

const javaVersions = listVersions(languages.java.images);
/** Target frameworks of the planned .NET, which its projects and refusals name. */
const frameworks = languages.dotnet.images.map(({ version }) => `net${version}.0`).join(' or ');

/** Packages of Go that are written in C. */
export const goWithoutCgo = {
  pattern:
    /go-sqlite3 requires cgo|undefined: SQLiteConn\b|undefined: sqlite3\.\w|build constraints exclude all Go files in/,
  fix: 'The program uses a package with C code (such as go-sqlite3), and cgo was off when it was compiled. Compile it with CGO_ENABLED=1, with gcc and libc6-dev in the image (on Alpine build-base) and a last stage with the same C library, or use a package in Go alone (such as modernc.org/sqlite).',
} as const;

/** The first match wins, so more specific causes come first. */
export const compiledCauses: readonly Cause[] = [
  {
    pattern: /: pattern \S{1,200}: no matching files found/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The Go code embeds files that are not in the repository, since another step makes them (such as npm run build or go generate). Commit them, or add a Dockerfile that makes them before it compiles the program.',
  },
  {
    pattern: /cannot find main module|go\.mod file not found/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'There is no go.mod in the folder in which the step runs, or above it. COPY go.mod and go.sum before this step; if the repository has none, run "go mod init" and "go mod tidy", and commit both.',
  },
  {
    pattern: /no required module provides package |cannot find package "|package \S{1,200} is not in (?:std|GOROOT)/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The code imports a package that is not there. If it is of another module, run "go mod tidy", and commit go.mod and go.sum. If it is one of the app, COPY its folder before this step, and import it by the module path that go.mod names.',
  },
  {
    pattern: /missing go\.sum entry|updates to go\.(?:mod|sum) needed|inconsistent vendoring/,
    isCertain: true,
    rule: 'build/lockfile',
    fix: 'go.sum does not have everything that the code imports. Run "go mod tidy" (and "go mod vendor" if there is a folder vendor), and commit go.mod and go.sum.',
  },
  {
    pattern: /requires go >= [\d.]{1,20} \(running go |invalid go version '|note: module requires Go /,
    isCertain: true,
    rule: 'build/failed',
    fix: 'go.mod requires a newer Go than the image has. Use a newer golang image in FROM, or set an older version in the line "go" of go.mod.',
    planned:
      'go.mod requires a newer Go than this installation has. Set an older version in the line "go" of go.mod, or add a Dockerfile with a newer golang image.',
  },
  {
    pattern: /cgo: C compiler "\S{1,40}" not found|linker [`']cc[`'] not found/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The program is linked with C code, and the image has no C compiler. Install gcc and libc6-dev before this step (on Alpine build-base), or build a Go program with CGO_ENABLED=0.',
  },
  { ...goWithoutCgo, isCertain: true, rule: 'build/failed' },
  {
    pattern:
      /feature `edition\d{4}` is required|requires rustc [\d.]{1,20} or newer|cannot be built because it requires rustc/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'A crate requires a newer Rust than the image has. Use a newer rust image in FROM, or pin an older version of the crate in Cargo.lock.',
  },
  {
    pattern: /Could not find directory of OpenSSL installation|The system library `\S{1,60}` required by crate/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'A crate needs a library of the system. Install its -dev package and pkg-config before this step (for OpenSSL libssl-dev), or use a feature of the crate that brings its own, such as rustls or vendored.',
  },
  {
    pattern: /OpenSSL (?:library|include) directory does not exist/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'OPENSSL_DIR, OPENSSL_LIB_DIR or OPENSSL_INCLUDE_DIR names a folder that the image does not have (the folder differs by processor). Remove these variables, and install libssl-dev and pkg-config before this step, or use a feature of the crate such as rustls or vendored.',
  },
  {
    pattern: /set `DATABASE_URL` to use query macros online/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'SQLx checks its queries against a database, and none runs while an image is built. Run "cargo sqlx prepare", and commit the folder .sqlx.',
  },
  {
    pattern: /invalid (?:target|source) release: \d|release version \d{1,2} not supported/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The project targets a newer Java than the JDK of the image. Use a base image with that JDK in FROM, or set an older target in pom.xml or build.gradle.',
    planned: `The project targets a newer Java than was chosen. Name the version in pom.xml (java.version) or the toolchain of build.gradle; ${javaVersions} are available.`,
  },
  {
    pattern:
      /lombok\.javac\.\S{1,80} .{0,80}cannot access class com\.sun\.tools\.javac|class com\.sun\.tools\.javac\.tree\.JCTree\$JCImport does not have member field/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'This Lombok is older than the JDK, whose compiler it changes from within. Set its version to 1.18.30 or newer (lombok.version in the properties of pom.xml, where Spring Boot gives the version), or use an older JDK.',
  },
  {
    pattern: /Unsupported class file major version \d/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The JDK of the image is newer than this Gradle or Maven plugin knows (the Java version is the number less 44: 65 is Java 21). Update the Gradle wrapper (./gradlew wrapper --gradle-version VERSION) or the plugin, or use an older JDK in FROM.',
    planned: `The JDK is newer than this Gradle or Maven plugin knows (the Java version is the number less 44: 65 is Java 21). Update the Gradle wrapper or the plugin, or name an older version in pom.xml (java.version) or the toolchain of build.gradle; ${javaVersions} are available.`,
  },
  {
    pattern: /Could not find or load main class org\.gradle\.wrapper\.GradleWrapperMain/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'gradle/wrapper/gradle-wrapper.jar is not there. Commit it (git add -f, since .gitignore often lists *.jar), and copy the folder gradle before this step.',
  },
  {
    pattern: /\/src\/test\/\S{1,300}\.(?:java|kt):(?:\[\d|\d)/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'A class of the tests does not compile. The image needs no tests: -Dmaven.test.skip=true leaves them out (-DskipTests compiles them), and Gradle with -x test. Otherwise add the dependency that the class imports.',
  },
  {
    pattern: /\.(?:java|kt):(?:\[\d+,\d+\]|\d+: error:|\d+:\d+ )/,
    isCertain: true,
    rule: 'build/failed',
    fix: codeFix,
  },
  {
    pattern: /error MSB(?:1011|1050)\b/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'The folder has several projects or solutions, and the command does not say which to build. Name it: dotnet publish PATH/NAME.csproj.',
  },
  {
    pattern: /error MSB(?:3202|1009)\b/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'A project file that the solution or the command names is not there when the step runs. COPY it before this step, restore the one project that is published instead of the solution, or commit the file.',
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
    pattern: /Could not resolve "phoenix-colocated\//,
    isCertain: true,
    rule: 'build/failed',
    fix: 'mix compile makes the hooks in phoenix-colocated. Run it before mix assets.deploy.',
  },
  {
    pattern: /^error\[E0282\]: type annotations needed for `Box<_>`/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'Versions of the crate time before 0.3.35 do not compile with Rust 1.80 or newer, and fail with this error. If Cargo.lock has such a version, run "cargo update -p time" and commit it; otherwise name the type in your code.',
  },
  {
    pattern: /failed to run custom build command for `/,
    quote: /panicked at |is not installed|not found in PATH/,
    rule: 'build/failed',
    fix: 'The build script of a crate failed; most often it misses a program or library of the system. Install what the log names before this step (such as pkg-config, cmake, clang, protobuf-compiler or a -dev package), or update the crate.',
    planned:
      'The build script of a crate failed; most often it misses a program or library of the system. Use a feature of the crate that brings its own, update the crate, or add a Dockerfile that installs what the log names.',
  },
  {
    pattern: /^could not compile dependency :\w/,
    quote: /^\*\* \(/,
    isCertain: true,
    rule: 'build/failed',
    fix: 'A dependency does not compile. If it asks for its configuration, which it reads when it is compiled, COPY the folder config before this step. Otherwise update the dependency, or use the Elixir that it supports.',
    planned:
      'A dependency does not compile. If it asks for its configuration, set it in config/config.exs or config/prod.exs, since it is read when the dependency is compiled. Otherwise update the dependency.',
  },
  {
    pattern: /^== Compilation error in file /,
    quote: /^\*\* \(/,
    isCertain: true,
    rule: 'build/failed',
    fix: codeFix,
  },
  {
    pattern: /: error (?:CS|FS|BC|RZ)\d{3,5}:|^error\[E\d{4}\]:|error TS\d+|Type error:/,
    isCertain: true,
    rule: 'build/failed',
    fix: codeFix,
  },
];
