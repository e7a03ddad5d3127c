// Plans Elixir apps (Phoenix, Plug and others): Mix compiles them for production and starts them.
import type { Finding } from '../../../../crds/hosted-app.ts';
import { languages } from '../../../../crds/languages.ts';
import type { Tree } from '../../tree.ts';
import { findMissingImage } from '../common/frontend.ts';
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
  renderStep,
} from '../recipe.ts';
import { findDeclaredStart } from '../platforms/start.ts';
import { renderAssetLines } from './assets.ts';
import { declareElixirSettings, renderConfigLines, findAppPort, buildStartCommand } from './start.ts';
import { readElixir, type ElixirApp, type ElixirProject } from './project.ts';
import { chooseElixir, type RequestedElixir, type ElixirChoice } from './version.ts';

const ignore = ['.git', '**/_build', '**/deps', '**/node_modules', '**/.elixir_ls', '**/.DS_Store'];
/** Mix stores Hex and rebar3 here and needs them again when it starts the app. */
const environment = 'MIX_ENV=prod MIX_HOME=/opt/mix HEX_HOME=/opt/hex LANG=C.UTF-8 ELIXIR_ERL_OPTIONS=+fnu';
/** Configuration files read these variables even when nothing is started. */
const placeholders =
  'SECRET_KEY_BASE=none-of-the-app-only-for-the-build-of-the-image-0123456789-0123456789 DATABASE_URL=ecto://build:build@127.0.0.1/build DATABASE_PATH=/tmp/build.db PHX_HOST=localhost';

export const elixir: Planner = {
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined {
    const project = readElixir(tree);
    if (project === undefined) return tree.has('mix.exs') ? createMalformedProblem() : undefined;
    const server = selectServer(tree, project);
    if ('problem' in server) return server;
    const choice = chooseElixir(tree, input, project.mix);
    if ('requestedVersion' in choice) return createVersionProblem(choice);
    return (
      findMissingImage(input, [choice.image.build, choice.image.run], 'Elixir', 'mix.exs') ??
      createRecipe(tree, input, { project, server, choice })
    );
  },
  declareSettings: declareElixirSettings,
};

/** Selects the app that serves HTTP; in an umbrella with several, the one that the Procfile starts. */
function selectServer(tree: Tree, { apps, isUmbrella, mix }: ElixirProject): ElixirApp | Problem {
  const servers = apps.filter((app) => app.isServer);
  const [only, ...more] = servers;
  if (only === undefined) return createNoServerProblem(apps, mix);
  if (!isUmbrella || more.length === 0) return only;
  const command = findDeclaredStart(tree)?.command ?? '';
  const namedServer = servers.find(({ folder }) => command.includes(folder));
  return namedServer ?? createSeveralServersProblem(servers);
}

function createProblem(rule: string, message: string, fix: string): Problem {
  return { problem: { rule, severity: 'error', file: 'mix.exs', message, fix } };
}

function createMalformedProblem(): Problem {
  return createProblem(
    'plan/manifest',
    'This file is not a project of Mix.',
    'Correct it; "mix compile" shows where the error is.',
  );
}

function createNoServerProblem(apps: readonly ElixirApp[], mix: string): Problem {
  const escript = /\bescript:\s/.test(mix) && apps.every(({ isStarted }) => !isStarted);
  const reason = escript
    ? 'a program of the command line (escript)'
    : apps.some(({ isStarted }) => isStarted)
      ? 'an Elixir app that starts no server of HTTP'
      : 'an Elixir library';
  return createProblem(
    'plan/no-server',
    `This is ${reason}, so there is nothing that people could visit.`,
    'Start a server (Phoenix, Bandit, Plug.Cowboy) on 0.0.0.0 and $PORT in the supervision tree of the app, or add a Dockerfile.',
  );
}

function createSeveralServersProblem(servers: readonly ElixirApp[]): Problem {
  return createProblem(
    'plan/several-apps',
    `The umbrella has several apps that answer HTTP, and nothing says which of them to reach: ${servers
      .slice(0, 6)
      .map(({ folder }) => folder)
      .join(', ')}.`,
    'Name the folder of the one that listens on $PORT in a Procfile (web: cd apps/NAME && mix phx.server), or add a Dockerfile.',
  );
}

function createVersionProblem({ file, requestedVersion }: RequestedElixir): Problem {
  return {
    problem: {
      rule: 'plan/elixir-version',
      severity: 'error',
      file,
      message: `The app requires Elixir ${requestedVersion}, which is not available.`,
      fix: `Widen it to include one of ${languages.elixir.images.map((each) => each.version).join(', ')}, or add a Dockerfile.`,
    },
  };
}

function listVersionWarnings({ image, instead }: ElixirChoice): Finding[] {
  if (instead === undefined) return [];
  return [
    {
      rule: 'plan/elixir-version',
      severity: 'warning',
      file: instead.file,
      message: `The app asks for Elixir ${instead.requestedVersion}; Elixir ${image.version} is used.`,
      fix: `Ask for ${image.version} if the app runs on it; otherwise, add a Dockerfile with the version that it needs.`,
    },
  ];
}

interface Parts {
  readonly project: ElixirProject;
  readonly server: ElixirApp;
  readonly choice: ElixirChoice;
}

function createRecipe(tree: Tree, input: PlanInput, parts: Parts): Recipe {
  const { project, server, choice } = parts;
  const literal = findAppPort(tree, server);
  const port = input.port ?? literal ?? defaultPort;
  const isPhoenix = project.packages.has('phoenix') && server.endpoints.length > 0;
  const reason = explainPlan(parts, literal, findDeclaredStart(tree)?.because);
  return {
    plan: { strategy: 'elixir', reason, port, ...(isPhoenix ? { framework: 'Phoenix' } : {}) },
    ...markFixedPort(input, literal),
    dockerfile: renderDockerfile(reason, [
      ...renderBuildStage(tree, input, parts),
      '',
      `FROM ${choice.image.run}`,
      ...renderGit(tree, project),
      'RUN useradd --create-home --uid 1000 app && install -d -o 1000 -g 1000 /app',
      'WORKDIR /app',
      'COPY --link --from=build --chown=1000:1000 /opt/ /opt/',
      renderLinkedCopy(['/app/'], './', '--from=build', '--chown=1000:1000'),
      `ENV ${environment} PORT=${port} PHX_SERVER=true LIVEBOOK_IP=0.0.0.0 HOME=/home/app`,
      'USER 1000:1000',
      `EXPOSE ${port}`,
      renderShellCommand(buildStartCommand(tree, project, server)),
    ]),
    ignore,
    builds: [...project.apps.map(({ folder }) => folder), 'assets'],
    findings: listVersionWarnings(choice),
  };
}

function explainPlan(
  { project, server, choice }: Parts,
  literal: number | undefined,
  because: string | undefined,
): string {
  const { isUmbrella, packages } = project;
  const database = [
    ['postgrex', 'PostgreSQL'],
    ['myxql', 'MySQL'],
    ['tds', 'SQL Server'],
    ['ecto_sqlite3', 'a file of SQLite'],
  ].find(([name = '']) => packages.has(name))?.[1];
  return [
    `mix.exs makes this an Elixir app, on Elixir ${choice.image.version}.`,
    isUmbrella ? `Of its umbrella, ${server.folder} answers.` : undefined,
    because,
    database === undefined ? undefined : `It keeps its data in ${database}.`,
    literal === undefined ? undefined : `It listens on port ${literal}.`,
  ]
    .filter((part) => part !== undefined)
    .join(' ');
}

/** Before it starts an app, Mix compares the packages that come from git with the lock file, by calling git. */
function renderGit(tree: Tree, { mix }: ElixirProject): string[] {
  const file = tree.has('mix.lock') ? 'mix.lock' : 'mix.exs';
  const isUsed =
    /\{:git,\s/.test(tree.readFile('mix.lock', 1024 * 1024) ?? '') || /\b(?:github|git):\s{0,9}"/.test(mix);
  return isUsed
    ? renderStep(
        file,
        'installing git, which Mix calls for packages from git',
        'RUN apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*',
      )
    : [];
}

function renderBuildStage(tree: Tree, input: PlanInput, { project, choice }: Parts): string[] {
  const file = tree.has('mix.lock') ? 'mix.lock' : 'mix.exs';
  return [
    `FROM ${choice.image.build} AS build`,
    `ENV ${environment} ${placeholders}`,
    'WORKDIR /app',
    'RUN mkdir -p /opt/mix /opt/hex',
    ...renderArguments(input),
    // Hex and rebar3 are downloaded, which a project without packages does not need.
    ...(project.isFetching
      ? renderStep('mix.exs', 'installing Hex and rebar3', 'RUN mix local.hex --force && mix local.rebar --force')
      : []),
    'COPY . .',
    ...renderConfigLines(tree, project),
    ...(project.packages.size > 0
      ? renderStep(file, 'fetching and compiling the packages', 'RUN mix deps.get --only prod && mix deps.compile')
      : []),
    ...renderAssetLines(tree, project),
  ];
}
