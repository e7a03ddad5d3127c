// The languages that Moorage plans without a Dockerfile, one entry each. The strategies of HostedApp, the planner's order and
// refusals, the base images and the table in the guide for authors derive from this list.

/** What is known about a language before its planner reads the files. */
export interface Language {
  /** As a sentence names it: `a static site`. */
  readonly title: string;
  /** The files that identify it, in Markdown. Refusals list them without the backticks. */
  readonly foundBy: string;
  /** Files that make their folder an app of this language, by name. Absent if no file name is enough. */
  readonly marker?: RegExp;
  /** The marker says nothing next to this file. */
  readonly markerUnless?: string;
  /**
   * Whether the marker alone proves a server, so that pages next to it are half of an app. Node and Python projects also
   * hold the tools of other apps.
   */
  readonly isServer: boolean;
  /**
   * If plans of several languages fit, the lowest rank wins; among equal ones, the first in this list. A plan that only
   * serves files has rank 4, or that of its language if it is higher.
   */
  readonly rank: number;
  /** Replaces `rank` if the plan found a framework. */
  readonly frameworkRank?: number;
  /** Programs that start its apps, as patterns. A Procfile that calls one does not start a Node app. */
  readonly programs?: readonly string[];
  /** What its Dockerfiles start from, the oldest first unless the entry says otherwise. */
  readonly images: readonly BaseImage[];
  /** Its row in docs/guides/author.md, in Markdown. */
  readonly guide: {
    /** Replaces `foundBy`, where a refusal has less room. */
    readonly foundBy?: string;
    readonly packages: string;
    readonly start: string;
    /** Absent: the versions of the images. */
    readonly version?: string;
  };
}

/** Names as written in FROM: of Docker Hub, or with a host. Builds and runs with `image`, or with one for each. */
export interface BaseImage {
  readonly version?: string | number;
  readonly image?: string;
  readonly build?: string;
  readonly run?: string;
}

/** Used if a project requests no version of Node, and by other languages whose pages are built with Node. */
export const defaultNode = 'node:24-bookworm-slim';

/** What compiled programs run on. */
export const debianImage = 'debian:bookworm-slim';

/** By the name that `build.strategy` has for each. */
export const languages = {
  python: {
    title: 'Python',
    foundBy: '`requirements.txt`, `pyproject.toml`, `uv.lock`, `setup.py`',
    marker: /^(?:requirements\.txt|pyproject\.toml|Pipfile|setup\.py|environment\.ya?ml)$/,
    isServer: false,
    // Its files are often tools of another app; a web framework is the strongest sign there is.
    rank: 3,
    frameworkRank: 0,
    programs: [
      ...['gunicorn', 'uvicorn', 'hypercorn', 'daphne', 'uwsgi', 'waitress-serve', 'python3?', 'streamlit', 'flask'],
    ],
    // The first is used if neither a file nor the day of the commit shows a version.
    images: [
      { version: '3.11', image: 'python:3.11-slim-bookworm' },
      { version: '3.13', image: 'python:3.13-slim-trixie' },
      { version: '3.12', image: 'python:3.12-slim' },
      { version: '3.10', image: 'python:3.10-slim' },
      { version: '3.14', image: 'python:3.14-slim' },
      { version: '3.9', image: 'python:3.9-slim' },
      { version: '3.8', image: 'python:3.8-slim' },
    ],
    guide: {
      foundBy:
        '`requirements.txt`, `pyproject.toml`, `uv.lock`, `poetry.lock`, `Pipfile`, `environment.yml`, `setup.py`',
      packages: 'the lock file, else the list',
      start: 'Procfile, a known framework, a main file, or a command of `[project.scripts]`',
      version: '[from its files](#python), else by the wheels of its packages and the day of the commit',
    },
  },
  node: {
    title: 'Node',
    foundBy: '`package.json`',
    marker: /^package\.json$/,
    isServer: false,
    // Next to another language, a package.json is often only for styles.
    rank: 2,
    images: [
      { version: 16, image: 'node:16-bookworm-slim' },
      { version: 18, image: 'node:18-bookworm-slim' },
      { version: 20, image: 'node:20-bookworm-slim' },
      { version: 22, image: 'node:22-bookworm-slim' },
      { version: 24, image: defaultNode },
    ],
    guide: {
      packages: 'npm, pnpm, Yarn or Bun, by the lock file',
      start: 'the start script',
      version: '16 to 24, by `.nvmrc`, `.node-version`, `.tool-versions`, `volta` or `engines`',
    },
  },
  go: {
    title: 'Go',
    foundBy: '`go.mod`',
    marker: /^go\.mod$/,
    isServer: true,
    rank: 1,
    images: [{ build: 'golang:1.26-bookworm', run: debianImage }],
    guide: {
      packages: 'modules; pages embedded with `//go:embed` and not committed are built first',
      start: 'the main package at the top, or in `cmd/`',
      version: 'any that `go.mod` names',
    },
  },
  deno: {
    title: 'Deno',
    foundBy: '`deno.json`',
    marker: /^deno\.jsonc?$/,
    // Node projects have the file too, for its formatter.
    markerUnless: 'package.json',
    isServer: true,
    rank: 1,
    images: [{ version: 2, image: 'denoland/deno:debian' }],
    guide: { packages: '`deno.json`, `package.json`', start: 'a task `start`, or `main.ts`' },
  },
  rust: {
    title: 'Rust',
    foundBy: '`Cargo.toml`',
    marker: /^Cargo\.toml$/,
    isServer: true,
    rank: 1,
    images: [{ version: 'stable', build: 'rust:1-bookworm', run: debianImage }],
    guide: {
      packages: '`Cargo.lock`',
      start: '`default-run`, or the program named like the package or like a server',
    },
  },
  java: {
    title: 'Java',
    foundBy: '`pom.xml`, or Gradle with its wrapper',
    marker: /^(?:pom\.xml|build\.gradle(?:\.kts)?|settings\.gradle(?:\.kts)?)$/,
    isServer: true,
    rank: 1,
    programs: ['java'],
    images: [
      { version: 17, build: 'maven:3-eclipse-temurin-17', run: 'eclipse-temurin:17-jre' },
      { version: 21, build: 'maven:3-eclipse-temurin-21', run: 'eclipse-temurin:21-jre' },
      { version: 25, build: 'maven:3-eclipse-temurin-25', run: 'eclipse-temurin:25-jre' },
    ],
    guide: {
      packages: "Maven or Gradle, at the wrapper's version",
      start: 'the jar that the build produces',
    },
  },
  php: {
    title: 'PHP',
    foundBy: '`index.php`, `composer.json`',
    marker: /^composer\.json$/,
    isServer: true,
    rank: 1,
    programs: [String.raw`heroku-php-\w+`, 'php', 'artisan'],
    images: [{ version: '8.2', image: 'php:8.2-cli' }],
    guide: {
      packages: 'Composer; the `build` script of a `package.json` next to it',
      start: "PHP's own server, from `public`; `artisan serve`",
    },
  },
  ruby: {
    title: 'Ruby',
    foundBy: '`Gemfile`, `config.ru`',
    marker: /^Gemfile$/,
    isServer: true,
    rank: 1,
    programs: ['bundle', 'rails', 'puma', 'rackup'],
    // The slim ones have no compiler.
    images: [
      { version: '3.1', build: 'ruby:3.1-bookworm', run: 'ruby:3.1-slim-bookworm' },
      { version: '3.3', build: 'ruby:3.3-trixie', run: 'ruby:3.3-slim-trixie' },
    ],
    guide: {
      packages: 'Bundler by `Gemfile.lock`, without development and test; `package.json` for the assets',
      start:
        'Procfile, Rails, `config.ru` (Puma unless there is another server), or a file at the top that serves (`app.rb`)',
    },
  },
  dotnet: {
    title: '.NET',
    foundBy: 'a solution or project',
    marker: /^[^/]{1,100}\.(?:csproj|fsproj|vbproj|sln|slnx)$/,
    isServer: true,
    rank: 1,
    programs: ['dotnet'],
    images: [
      { version: 8, build: 'mcr.microsoft.com/dotnet/sdk:8.0', run: 'mcr.microsoft.com/dotnet/aspnet:8.0' },
      { version: 10, build: 'mcr.microsoft.com/dotnet/sdk:10.0', run: 'mcr.microsoft.com/dotnet/aspnet:10.0' },
    ],
    guide: {
      foundBy: 'a solution, or a C#, F# or Visual Basic project',
      packages:
        'NuGet, by `packages.lock.json` if it exists; npm where the project builds pages with it (`SpaRoot`, `.esproj`)',
      start: "the solution's web project, by `dotnet publish`; Blazor WebAssembly alone as files",
    },
  },
  elixir: {
    title: 'Elixir',
    foundBy: '`mix.exs`',
    marker: /^mix\.exs$/,
    isServer: true,
    rank: 1,
    programs: ['mix'],
    images: [
      { version: '1.14', build: 'elixir:1.14', run: 'elixir:1.14-slim' },
      { version: '1.18', build: 'elixir:1.18', run: 'elixir:1.18-slim' },
    ],
    guide: {
      packages: 'Hex by `mix.lock`; `assets.setup` and `assets.deploy`; npm in `assets`',
      start:
        'a Procfile that calls `mix`; `mix phx.server`, after `mix ecto.migrate` if there are migrations; else `mix run --no-halt`',
    },
  },
  static: {
    title: 'a static site',
    foundBy: '`index.html` at the top or in `public`, `dist`, `site`, `docs`',
    isServer: false,
    rank: 5,
    images: [{ image: 'nginx:stable-bookworm' }],
    guide: { packages: '', start: '' },
  },
} as const satisfies Readonly<Record<string, Language>>;

export type LanguageName = keyof typeof languages;

export interface PlannedLanguage extends Language {
  readonly name: LanguageName;
}

/** The same entries with their names, in the order of the list. */
export const plannedLanguages: readonly PlannedLanguage[] = (Object.keys(languages) as LanguageName[]).map((name) => ({
  name,
  ...languages[name],
}));

/** How an image can be built: with the author's Dockerfile, or by a plan for a language. */
export const strategies: readonly ('dockerfile' | LanguageName)[] = [
  'dockerfile',
  ...plannedLanguages.map(({ name }) => name),
];

/** Languages without a planner, whose files a refusal names. To plan one, move it to `languages`. */
export const unplannedLanguages: readonly Required<Pick<Language, 'title' | 'marker'>>[] = [
  { title: 'Scala', marker: /^build\.sbt$/ },
  { title: 'Clojure', marker: /^(?:project\.clj|deps\.edn)$/ },
  { title: 'Haskell', marker: /^(?:stack\.yaml|[^/]{1,100}\.cabal)$/ },
  { title: 'Swift', marker: /^Package\.swift$/ },
  { title: 'Dart', marker: /^pubspec\.yaml$/ },
  { title: 'Crystal', marker: /^shard\.yml$/ },
  { title: 'Zig', marker: /^build\.zig$/ },
  { title: 'C++', marker: /^CMakeLists\.txt$/ },
  { title: 'R', marker: /^(?:app\.R|server\.R|DESCRIPTION)$/ },
];

/** Everything that plans start from. An installation without Docker Hub lists which of these it lacks. */
export const baseImages: readonly string[] = [
  ...new Set(
    plannedLanguages.flatMap(({ images }) =>
      images.flatMap(({ image, build, run }) => [image, build, run].filter((name) => name !== undefined)),
    ),
  ),
];
