// Plans .NET apps: the solution's web project, published and run on the ASP.NET Core runtime, or Blazor's static files.
import { posix } from 'node:path';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { languages } from '../../../../crds/languages.ts';
import type { Tree } from '../../tree.ts';
import { findMissingImage } from '../common/frontend.ts';
import { warnAboutCompiledMigrations } from '../common/migrations.ts';
import {
  defaultPort,
  markFixedPort,
  renderDockerfile,
  type Planner,
  type PlanInput,
  type Problem,
  type Recipe,
  renderShellCommand,
  quoteShellWord,
} from '../recipe.ts';
import { serveFiles } from '../static/server.ts';
import { chooseProject, type ChosenProject } from './choose.ts';
import { declareDotnetDatabase, findDatabaseName } from './database.ts';
import { detectOtherHalf, renderPublishStage } from './publish.ts';
import { isDotnet, isMarked, readProjects, type DotnetProject } from './project.ts';
import { chooseDotnet, type DotnetChoice } from './version.ts';

const ignore = ['.git', '**/bin', '**/obj', '**/.vs', '**/node_modules', '**/.DS_Store'];

const migrations = {
  files: /(?:^|\/)Migrations\/(?:[\w.-]{1,60}\/)?\w{1,100}ModelSnapshot\.cs$/,
  sources: /^(?!.*(?:^|\/)(?:[\w.]{0,60}Tests?|Migrations)\/).*\.(?:cs|fs)$/,
  applies: /\.Migrate(?:Async)?\(|\.EnsureCreated(?:Async)?\(/,
  fix: 'Apply the migrations of Entity Framework when the app starts: context.Database.Migrate() before app.Run().',
} as const;

export const dotnet: Planner = {
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined {
    const projects = isDotnet(tree) ? readProjects(tree) : [];
    if (projects.length === 0) return detectEmptySolution(tree);
    const chosen = chooseProject(tree, projects);
    // Projects below the root may be tools of an app in another language.
    if ('problem' in chosen) return isMarked(tree) || hasWeb(projects) ? chosen : undefined;
    const choice = chooseDotnet(tree, chosen.project, input);
    if ('asked' in choice) return createVersionProblem(chosen.project, choice.asked);
    const parts = { tree, input, projects, chosen, choice };
    return chosen.project.kind === 'wasm' ? planSite(parts) : planServer(parts);
  },
  declareSettings: declareDotnetDatabase,
};

function hasWeb(projects: readonly DotnetProject[]): boolean {
  return projects.some(({ kind }) => kind === 'web' || kind === 'wasm');
}

/** Detects a solution whose projects are not in the repository. */
function detectEmptySolution(tree: Tree): Problem | undefined {
  const file = tree.entries.find(({ path }) => /^[^/]{1,100}\.slnx?$/.test(path))?.path;
  if (file === undefined) return undefined;
  return {
    problem: {
      rule: 'plan/no-start',
      severity: 'error',
      file,
      message: 'This is a solution of .NET, but the repository has none of its projects.',
      fix: 'Commit the folder of its web project, or add a Dockerfile.',
    },
  };
}

function createVersionProblem({ path }: DotnetProject, targets: string): Problem {
  return {
    problem: {
      rule: 'plan/dotnet-version',
      severity: 'error',
      file: path,
      message: `The app targets ${targets}, which no .NET that is available can run.`,
      fix: `Target ${languages.dotnet.images.map(({ version }) => `net${version}.0`).join(' or ')} (netcoreapp3.1 and later are taken too), or add a Dockerfile.`,
    },
  };
}

interface Parts {
  readonly tree: Tree;
  readonly input: PlanInput;
  readonly projects: readonly DotnetProject[];
  readonly chosen: ChosenProject;
  readonly choice: DotnetChoice;
}

function planSite({ tree, input, projects, chosen, choice }: Parts): Recipe | Problem {
  const missing = findMissingImage(input, [choice.sdk.build], '.NET', chosen.project.path);
  if (missing !== undefined) return missing;
  const port = input.port ?? defaultPort;
  const reason = `${chosen.project.path} makes this an app of Blazor WebAssembly, whose files are published by .NET ${choice.sdk.version} and served.`;
  return {
    plan: { strategy: 'dotnet', framework: 'Blazor WebAssembly', reason, port },
    dockerfile: renderDockerfile(reason, [
      ...renderPublishStage(tree, input, chosen.project, choice),
      '',
      ...serveFiles({ port, from: '/out/wwwroot', stage: 'build', fallback: true }),
    ]),
    ignore,
    filesOnly: true,
    builds: listFolders(projects),
    findings: [],
  };
}

function planServer({ tree, input, projects, chosen, choice }: Parts): Recipe | Problem {
  const { project, hasPages } = chosen;
  const half = hasPages ? undefined : detectOtherHalf(tree, project);
  const lack = half ?? findMissingImage(input, [choice.sdk.build, choice.image.run], '.NET', project.path);
  if (lack !== undefined) return lack;
  const literal = findPort(tree, project);
  const port = input.port ?? literal ?? defaultPort;
  const database = findDatabaseName(project, projects);
  const reason = explainPlan({ chosen, choice, literal, database });
  return {
    plan: { strategy: 'dotnet', framework: 'ASP.NET Core', reason, port },
    ...markFixedPort(input, literal),
    dockerfile: renderDockerfile(reason, [
      ...renderPublishStage(tree, input, project, choice),
      '',
      `FROM ${choice.image.run}`,
      'RUN useradd --create-home --uid 1001 web && install -d -o 1001 -g 1001 /app',
      'WORKDIR /app',
      'COPY --link --from=build --chown=1001:1001 /out/ ./',
      `ENV PORT=${port} ASPNETCORE_FORWARDEDHEADERS_ENABLED=true DOTNET_CLI_TELEMETRY_OPTOUT=1${choice.isRolledForward ? ' DOTNET_ROLL_FORWARD=Major' : ''}`,
      'USER 1001:1001',
      `EXPOSE ${port}`,
      renderShellCommand(`export ASPNETCORE_URLS=http://0.0.0.0:$PORT; exec dotnet ${formatAssemblyWord(project)}`),
    ]),
    ignore,
    ...(hasPages ? {} : { callsOnly: true }),
    builds: listFolders(projects),
    findings: [...listFindings(project, choice, database), ...warnAboutCompiledMigrations(tree, migrations)],
  };
}

/** The file that names the runtime is next to the assembly that is started. */
function formatAssemblyWord({ assembly }: DotnetProject): string {
  return assembly === undefined
    ? '"$(ls *.runtimeconfig.json | head -n 1 | sed "s/[.]runtimeconfig[.]json$/.dll/")"'
    : quoteShellWord(`${assembly}.dll`);
}

function listFolders(projects: readonly DotnetProject[]): string[] {
  return projects.map(({ folder }) => folder);
}

interface Reasons extends Pick<Parts, 'chosen' | 'choice'> {
  readonly literal: number | undefined;
  readonly database: string | undefined;
}

function explainPlan({ chosen: { project, others }, choice, literal, database }: Reasons): string {
  return [
    `${project.path} is the web app of this .NET repository, on .NET ${choice.image.version}.`,
    others.length === 0
      ? undefined
      : `There are others, which are not started: ${others
          .slice(0, 4)
          .map(({ folder }) => folder)
          .join(', ')}.`,
    database === undefined ? undefined : `It keeps its data in ${database}.`,
    literal === undefined ? undefined : `Its code listens on port ${literal}.`,
  ]
    .filter((part) => part !== undefined)
    .join(' ');
}

/** Finds a port in code or settings that overrides ASPNETCORE_URLS. */
function findPort(tree: Tree, { folder }: DotnetProject): number | undefined {
  const settings = tree.readFile(posix.join(folder, 'appsettings.json'), 64 * 1024) ?? '';
  const endpoint = /"Kestrel"\s{0,9}:[\s\S]{0,400}?"Url"\s{0,9}:\s{0,9}"http:\/\/[^":]{1,100}:(\d{4,5})\b/.exec(
    settings,
  )?.[1];
  if (endpoint !== undefined) return Number(endpoint);
  const sources = ['Program.cs', 'Startup.cs', 'Program.fs', 'Program.vb'].map((name) =>
    (tree.readFile(posix.join(folder, name), 128 * 1024) ?? '').replace(/^[ \t]*\/\/.*$/gm, ''),
  );
  if (sources.some((text) => /GetEnvironmentVariable\(\s{0,9}"PORT"/.test(text))) return undefined;
  const listened = sources
    .map((text) =>
      /(?:UseUrls|Urls\.Add|\.Run|RunAsync)\(\s{0,9}\$?"http:\/\/(?:\*|\+|0\.0\.0\.0|\[::\]):(\d{4,5})|ListenAnyIP\(\s{0,9}(\d{4,5})\b/.exec(
        text,
      ),
    )
    .find((match) => match !== null);
  return listened === undefined ? undefined : Number(listened[1] ?? listened[2]);
}

function listFindings(project: DotnetProject, choice: DotnetChoice, database: string | undefined): Finding[] {
  const rolled: Finding = {
    rule: 'plan/dotnet-version',
    severity: 'warning',
    file: project.path,
    message: `The app targets ${project.targets.join(', ')}; it runs on .NET ${choice.image.version}.`,
    fix: `Target net${choice.image.version}.0 once the app is tested on it; otherwise, add a Dockerfile with the version that it needs.`,
  };
  return [
    ...(choice.isRolledForward ? [rolled] : []),
    ...(database === 'SQL Server' ? [createSqlServerFinding(project)] : []),
  ];
}

function createSqlServerFinding({ path }: DotnetProject): Finding {
  return {
    rule: 'plan/database',
    severity: 'warning',
    file: path,
    message: 'The app keeps its data in SQL Server, which this installation does not run.',
    fix: 'Let it use PostgreSQL (services in moorage.yaml) or a file of SQLite on a volume, or set the connection string of a server on the internet in run.env.',
  };
}
