// Plans Rust apps: one program of the package or workspace, with the files that it reads at run time.
import { debianImage, languages } from '../../../../crds/languages.ts';
import type { Tree } from '../../tree.ts';
import { formatReport } from '../build-warnings.ts';
import { findMissingImage } from '../common/frontend.ts';
import { findGitTool, renderToolRepository, warnAboutHistory } from '../common/history.ts';
import {
  renderLinkedCopy,
  renderArguments,
  defaultPort,
  markFixedPort,
  renderDockerfile,
  type Planner,
  type PlanInput,
  type Problem,
  type Recipe,
  renderShellCommand,
  quoteShellWord,
  renderStep,
  chooseProgramCertainty,
} from '../recipe.ts';
import { describeEdits, type Listening, renderEdits, renderVariables, warnAboutEdits } from '../common/listen.ts';
import {
  buildScriptTools,
  findBuildScriptTool,
  findProgram,
  findRustListening,
  listProgramFiles,
  type Program,
} from './program.ts';
import {
  detectBrowserProgram,
  detectDesktopApp,
  detectMissingParts,
  detectTerminalProgram,
  detectTwofoldProgram,
  detectWindowProgram,
} from './refusals.ts';
import { declareRustDatabase, detectUncheckedQueries, warnAboutRustMigrations } from './database.ts';
import { findDeclaredStart } from '../platforms/start.ts';

const ignore = ['.git', '**/target', '**/node_modules', '**/.DS_Store'];
const cache = '--mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/usr/local/cargo/git';
/** Crates that link C libraries of the system. */
const libraries: Readonly<Record<string, { readonly build: readonly string[]; readonly run: readonly string[] }>> = {
  'openssl-sys': { build: ['libssl-dev', 'pkg-config'], run: ['libssl3'] },
  'pq-sys': { build: ['libpq-dev'], run: ['libpq5'] },
  'mysqlclient-sys': { build: ['default-libmysqlclient-dev'], run: ['libmariadb3'] },
  'prost-build': { build: ['protobuf-compiler'], run: [] },
  bindgen: { build: ['libclang-dev', 'clang'], run: [] },
  cmake: { build: ['cmake'], run: [] },
};

export const rust: Planner = {
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined {
    if (!tree.has('Cargo.toml')) return undefined;
    const elsewhere = detectDesktopApp(tree) ?? detectBrowserProgram(tree);
    if (elsewhere !== undefined) return elsewhere;
    const program = findProgram(tree);
    if (program === undefined) return createNoProgramProblem();
    const files = listProgramFiles(tree, program);
    return (
      detectTwofoldProgram(tree, program) ??
      (isStartChosen(tree, input)
        ? undefined
        : (detectWindowProgram(tree, program, files) ?? detectTerminalProgram(tree, program, files))) ??
      detectMissingParts(tree, files) ??
      detectUncheckedQueries(tree, input, files) ??
      findMissingImage(input, [languages.rust.images[0].build], 'Rust', 'Cargo.toml') ??
      createRecipe(tree, input, program, findRustListening(tree, files))
    );
  },
  declareSettings: declareRustDatabase,
};

/** Returns whether the author states what is started, which may serve in a way that the sources do not show. */
function isStartChosen(tree: Tree, { hasCommand }: PlanInput): boolean {
  return hasCommand || findDeclaredStart(tree) !== undefined;
}

function createNoProgramProblem(): Problem {
  return {
    problem: {
      rule: 'plan/no-start',
      severity: 'error',
      file: 'Cargo.toml',
      message: 'This is a Rust project, but it has no program that could be started.',
      fix: 'Add src/main.rs or a [[bin]], or set source.path in moorage.yaml to the folder of its Cargo.toml.',
    },
  };
}

function createRecipe(tree: Tree, input: PlanInput, program: Program, listening: Listening): Recipe {
  const web = input.start?.command ?? findDeclaredStart(tree)?.command;
  const git = findGitTool(tree);
  const literal = web === undefined ? listening.port : undefined;
  const port = input.port ?? literal ?? defaultPort;
  const reason = explainPlan(program, listening, literal);
  const options = listening.options.map((each) => ` ${each}`).join('');
  return {
    plan: {
      strategy: 'rust',
      reason,
      port,
      certainty: chooseProgramCertainty(input, web, program),
    },
    ...markFixedPort(input, literal),
    dockerfile: renderDockerfile(reason, [
      ...renderBuildStage(tree, input, program, listening),
      '',
      ...renderRunStage(
        tree,
        port,
        listening,
        web?.replace(/^exec (?:\.\/)?(?:target\/release\/|bin\/)?[\w.-]{1,80}(?= |$)/, 'exec /usr/local/bin/server') ??
          `exec /usr/local/bin/server${options}`,
      ),
    ]),
    ignore,
    findings: [
      ...warnAboutEdits(listening.edits),
      ...warnAboutRustMigrations(tree),
      ...(git === undefined ? [] : warnAboutHistory(git)),
    ],
  };
}

function explainPlan({ name, others }: Program, listening: Listening, literal: number | undefined): string {
  return [
    `Cargo.toml makes this a Rust app. ${name} is its program.`,
    others.length === 0 ? undefined : `There are others, which are not started: ${others.slice(0, 4).join(', ')}.`,
    literal === undefined ? undefined : `Its code listens on port ${literal}.`,
    describeEdits(listening.edits),
  ]
    .filter((part) => part !== undefined)
    .join(' ');
}

function listDebianPackages(tree: Tree, stage: 'build' | 'run'): string[] {
  const lock = tree.readFile('Cargo.lock', 4 * 1024 * 1024) ?? tree.readFile('Cargo.toml') ?? '';
  const names = Object.entries(libraries).flatMap(([crate, needs]) =>
    new RegExp(String.raw`^(?:name = "${crate}"|${crate}\b)`, 'm').test(lock) ? needs[stage] : [],
  );
  if (names.length === 0) return [];
  return renderStep(
    'Cargo.lock',
    'installing the Debian packages that crates need',
    `RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends ${[...new Set(names)].join(' ')} && rm -rf /var/lib/apt/lists/*`,
  );
}

function renderBuildStage(tree: Tree, input: PlanInput, { name, features }: Program, { edits }: Listening): string[] {
  const locked = tree.has('Cargo.lock') ? ' --locked' : '';
  const buildScriptTool = findBuildScriptTool(tree);
  const clean = buildScriptTool === undefined ? '' : ' && rm -rf target node_modules .git';
  return [
    `FROM ${languages.rust.images[0].build} AS build`,
    ...listDebianPackages(tree, 'build'),
    'WORKDIR /app',
    // A file that pins a toolchain requires rustup, which the installed toolchain does not need.
    'ENV RUSTUP_TOOLCHAIN=stable SQLX_OFFLINE=true CARGO_NET_GIT_FETCH_WITH_CLI=true',
    ...renderArguments(input),
    'COPY . .',
    ...renderEdits(edits, 'build'),
    ...renderToolRepository(findGitTool(tree), tree.date),
    ...(buildScriptTool === undefined ? [] : buildScriptTools(tree, buildScriptTool)),
    ...renderStep(
      'Cargo.toml',
      'compiling the program',
      `RUN ${cache} ${formatCompileCommand(`${features} --bin ${quoteShellWord(name)}`, locked)} && install -D target/release/${quoteShellWord(name)} /out/server${clean}`,
    ),
  ];
}

/** Old lock files name a version of the crate `time` that newer compilers reject; its later releases are compatible. */
function formatCompileCommand(what: string, locked: string): string {
  const build = `cargo build --release${locked}${what}`;
  if (locked === '') return build;
  return `{ bash -o pipefail -c ${quoteShellWord(`${build} 2>&1 | tee /tmp/cargo.log`)} || { grep -q 'could not compile .time.' /tmp/cargo.log && ${formatReport('lockfile', 'Cargo.lock')} && cargo update --package time --recursive && cargo build --release${what}; }; }`;
}

function renderRunStage(tree: Tree, port: number, listening: Listening, command: string): string[] {
  return [
    `FROM ${debianImage}`,
    ...listDebianPackages(tree, 'run'),
    'RUN useradd --create-home --uid 1000 app && install -d -o 1000 -g 1000 /app',
    'WORKDIR /app',
    'COPY --link --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt',
    'COPY --link --from=build /out/server /usr/local/bin/server',
    // Pages, templates and migrations that it reads at run time, including output of a build script.
    findBuildScriptTool(tree) === undefined
      ? renderLinkedCopy(['.'], './', '--chown=1000:1000')
      : renderLinkedCopy(['/app/'], './', '--from=build', '--chown=1000:1000'),
    ...renderEdits(listening.edits, 'run'),
    `ENV PORT=${port} HOST=0.0.0.0 ROCKET_ADDRESS=0.0.0.0 ROCKET_PORT=${port} LEPTOS_SITE_ADDR=0.0.0.0:${port}${renderVariables(listening, port)}`,
    'USER 1000:1000',
    `EXPOSE ${port}`,
    renderShellCommand(command),
  ];
}
