// Plans Python apps: uv installs packages into a virtual environment, and the final image contains no build tools.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import { formatReport } from '../build-warnings.ts';
import {
  createDesktopProblem,
  renderCopy,
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
} from '../recipe.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { languages } from '../../../../crds/languages.ts';
import { findPackages, type PythonPackages } from './packages/find.ts';
import {
  cache,
  renderExtras,
  renderInstaller,
  renderOwnVersion,
  renderUvInstall,
  uv,
  uvVersion,
} from './packages/install.ts';
import { findTorchSource } from './packages/names.ts';
import {
  listGroupedTool,
  listUndeclaredPackages,
  renderUndeclaredInstall,
  type UndeclaredPackage,
} from './packages/undeclared.ts';
import { readPublishedPackage } from '../common/published.ts';
import { describeMigration, type Migration, prefixMigration } from '../common/migrations.ts';
import {
  declarePythonDatabase,
  findPythonMigration,
  listSettingsPlaceholders,
  warnAboutPythonMigrations,
} from './database.ts';
import { findDjangoFolder, buildAllowedHosts, listSettingsFiles } from './start/django.ts';
import { findReachedServer, findStart, type PythonStart } from './start/find.ts';
import { compilePages, isReflex, renderNodeStage, findReflexProblem } from './reflex.ts';
import { listWithoutWheels } from './packages/wheels.ts';
import { renderSystemPackages } from './system-packages.ts';
import { type RequestedPython, choosePython, type PythonChoice } from './version.ts';
import { findFrontendForServer, type Frontend, renderFrontendStage } from '../common/frontend.ts';
import { findFramework } from '../node/framework.ts';
import { readProject } from '../node/project.ts';
import { findServerLibrary } from '../node/app.ts';
import { listPythonSources } from './start/sources.ts';

const ignore = [
  '.git',
  '**/__pycache__',
  '**/*.pyc',
  '.venv',
  'venv',
  '**/node_modules',
  '.pytest_cache',
  '.mypy_cache',
  '.ruff_cache',
];

export const python: Planner = {
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined {
    const packages = findPackages(tree);
    const start = toKnownStart(input) ?? findStart(tree, packages?.names ?? new Set());
    if (packages === undefined && (start === undefined || !isLikelyPython(tree))) return undefined;
    return (
      findMissingPart(tree, input, packages, start) ??
      findReflexProblem(tree, input, packages, start) ??
      planImage(tree, input, packages, start)
    );
  },
  declareSettings: declarePythonDatabase,
};

/** Starts what was found before. */
function toKnownStart({ start }: PlanInput): PythonStart | undefined {
  if (start === undefined) return undefined;
  const { command, because, certainty, port, ofProject, needs = [] } = start;
  return { command, because, needs, certainty, port, ...(ofProject === undefined ? {} : { ofProject }) };
}

function findMissingPart(
  tree: Tree,
  { hasCommand }: PlanInput,
  packages: PythonPackages | undefined,
  start: PythonStart | undefined,
): Problem | undefined {
  const misfit = hasCommand ? undefined : findMisfit(packages, start);
  if (start === undefined || misfit !== undefined) return misfit;
  if (packages !== undefined) return hasCommand ? undefined : detectOtherList(tree, packages, start);
  if (start.framework !== undefined)
    return createNoPackagesProblem(`This is a ${start.framework} app`, start.framework);
  const server = start.file === undefined ? undefined : findReachedServer(tree, start.file);
  return server === undefined
    ? undefined
    : createNoPackagesProblem(`${start.because} ${server.path} imports ${server.library}`, server.library);
}

/**
 * Rejects a start in a folder with a list of packages of its own, which names the framework while the list at the root
 * does not: the root's packages are not those of the app.
 */
function detectOtherList(tree: Tree, packages: PythonPackages, start: PythonStart): Problem | undefined {
  const { file, framework, known } = start;
  if (file === undefined || framework === undefined || known === true) return undefined;
  for (let folder = posix.dirname(file); folder !== '.'; folder = posix.dirname(folder)) {
    const other = findPackages(tree.getSubtree(folder));
    if (other?.names.has(framework.toLowerCase()) !== true) continue;
    return {
      problem: {
        rule: 'plan/no-packages',
        severity: 'error',
        file: packages.file,
        message: `${start.because} ${packages.file} does not list ${framework}; ${posix.join(folder, other.file)} does.`,
        fix: `Set source.path: ${folder} in moorage.yaml, so that the app is planned with the packages of that folder.`,
      },
    };
  }
  return undefined;
}

/** Returns the reason why nothing can be started unless the author specifies a command; undefined if something can. */
function findMisfit(packages: PythonPackages | undefined, start: PythonStart | undefined): Problem | undefined {
  if (start === undefined) return createNoStartProblem(packages?.file);
  if (start.other !== undefined) return createSeveralProgramsProblem(start, start.other);
  if (start.silentCommand !== undefined && start.port === undefined) return createSilentProblem(start.silentCommand);
  if (start.windows !== undefined && start.port === undefined) return createWindowProblem(start.windows);
  return start.bot !== undefined && start.port === undefined ? createNoServerProblem(start.bot) : undefined;
}

function createWindowProblem(toolkit: string): Problem {
  const hint = 'If it has a page, set run.command in moorage.yaml to what serves it on $PORT.';
  return createDesktopProblem(`what it starts imports ${toolkit}`, { hint });
}

function createSilentProblem(command: string): Problem {
  return {
    problem: {
      rule: 'plan/no-server',
      severity: 'error',
      file: 'pyproject.toml',
      message: `The only way to start it is the command ${command}, which is a tool for a terminal: nothing in its code listens for HTTP, and no web framework is among its packages.`,
      fix: 'Only apps that answer HTTP are hosted. If it has a page, set run.command in moorage.yaml to what serves it on $PORT, or add a Procfile with a line like "web: …".',
    },
  };
}

function createNoPackagesProblem(evidence: string, framework: string): Problem {
  return {
    problem: {
      rule: 'plan/no-packages',
      severity: 'error',
      message: `${evidence}, but no file lists its dependencies, including ${framework}.`,
      fix: `Add requirements.txt with one line for each package that the code imports, such as "${framework.toLowerCase()}" ("pip freeze" in a working environment lists them), or a pyproject.toml with its dependencies.`,
    },
  };
}

function createSeveralProgramsProblem(start: PythonStart, otherStart: PythonStart): Problem {
  return {
    problem: {
      rule: 'plan/several-programs',
      severity: 'error',
      message: `The app has two programs: ${start.because} ${otherStart.because} Started alone, either is half of it.`,
      fix: 'Set run.command in moorage.yaml to what starts the app, such as ["sh", "-c", "uvicorn api:app --port 9000 & exec streamlit run ui.py --server.port $PORT"], or add a Dockerfile.',
    },
  };
}

function createNoServerProblem(bot: string): Problem {
  return {
    problem: {
      rule: 'plan/no-server',
      severity: 'error',
      message: `This is a bot (what it starts imports ${bot}): it answers no HTTP, so there is nothing to open at an address.`,
      fix: 'Only apps that answer HTTP are hosted. If it has a page, set run.command in moorage.yaml to what serves it on $PORT.',
    },
  };
}

function createNoStartProblem(file = 'requirements.txt'): Problem {
  return {
    problem: {
      rule: 'plan/no-start',
      severity: 'error',
      file,
      message: 'The repository has Python files, but nothing defines how to start the app.',
      fix: 'Add a Procfile with a line like "web: gunicorn --bind 0.0.0.0:$PORT app:app", or set run.command in moorage.yaml. FastAPI, Flask, Django, Streamlit, Gradio, Chainlit, Dash, NiceGUI, Panel and similar apps in main.py or app.py, and Reflex apps by their rxconfig.py, are detected automatically.',
    },
  };
}

interface Parts {
  readonly packages: PythonPackages | undefined;
  readonly undeclared: readonly UndeclaredPackage[];
  /** Packages that have no wheel for the Python of the choice. */
  readonly compiled: readonly string[];
  readonly start: PythonStart | undefined;
  readonly choice: PythonChoice;
  /** Its build script generates files for the app first. */
  readonly pages: Frontend | undefined;
  /** What brings the database up to date before each start. */
  readonly migration: Migration | undefined;
}

function planImage(
  tree: Tree,
  input: PlanInput,
  packages: PythonPackages | undefined,
  start: PythonStart | undefined,
): Recipe | Problem {
  const choice = choosePython(tree, input, packages);
  if ('requestedVersion' in choice) return createNoImageProblem(choice, input);
  const isPublished = tree.registry !== undefined;
  const migration = isPublished ? undefined : findPythonMigration(tree, packages?.names ?? new Set(), start);
  const undeclared =
    packages === undefined || isPublished
      ? []
      : [
          ...listUndeclaredPackages(tree, packages, start),
          ...(migration === undefined ? [] : listGroupedTool(tree, packages, migration)),
        ];
  const minor = Number(choice.version.split('.')[1]);
  const compiled = packages === undefined ? [] : listWithoutWheels(tree, packages.file, packages.names, minor);
  const pages = isPublished ? undefined : findPagesBuild(tree);
  return createRecipe(tree, input, { packages, undeclared, compiled, start, choice, pages, migration });
}

/** Names of the packages that are in the image, apart from those that others bring. */
function collectNames({ packages, undeclared }: Parts): ReadonlySet<string> {
  return new Set([...(packages?.names ?? []), ...undeclared.map((each) => each.package)]);
}

function isLikelyPython(tree: Tree): boolean {
  return (
    !tree.has('package.json') && tree.entries.some((each) => each.kind === 'file' && /^[^/]+\.py$/.test(each.path))
  );
}

function createNoImageProblem({ file, requestedVersion }: RequestedPython, { missingImages = [] }: PlanInput): Problem {
  const available = languages.python.images
    .filter((each) => !missingImages.includes(each.image))
    .map((each) => each.version);
  return {
    problem: {
      rule: 'plan/python-version',
      severity: 'error',
      file,
      message: `The app requires Python ${requestedVersion}, which is not available.`,
      fix: `Widen it to include one of ${available.join(', ')}, or add a Dockerfile.`,
    },
  };
}

function listVersionWarnings({ version, instead }: PythonChoice): Finding[] {
  if (instead === undefined) return [];
  return [
    {
      rule: 'plan/python-version',
      severity: 'warning',
      file: instead.file,
      message: `The app asks for Python ${instead.requestedVersion}; Python ${version} is used.`,
      fix: `Ask for ${version} if the app runs on it; otherwise, add a Dockerfile with the version that it needs.`,
    },
  ];
}

function createRecipe(tree: Tree, input: PlanInput, parts: Parts): Recipe {
  const { start, choice, pages } = parts;
  const port = input.port ?? start?.port ?? defaultPort;
  const reason = explainPlan(tree, parts);
  return {
    plan: {
      strategy: 'python',
      reason,
      port,
      ...(start?.framework === undefined ? {} : { framework: start.framework }),
      certainty: start?.certainty ?? 'certain',
      ...(start?.otherwise === undefined
        ? {}
        : { otherwise: `${start.otherwise} Set run.command in moorage.yaml to start that.` }),
    },
    ...describeServing(tree, input, parts),
    dockerfile: renderDockerfile(reason, [
      ...(pages === undefined ? [] : renderPagesStage(tree, input, pages)),
      ...renderNodeStage(start),
      ...renderBuildStage(tree, input, parts),
      '',
      ...renderRunStage(tree, port, parts),
    ]),
    ignore: isReflex(start) ? [...ignore, '.web'] : ignore,
    findings: [...listVersionWarnings(choice), ...listDatabaseWarnings(tree, parts)],
  };
}

function listDatabaseWarnings(tree: Tree, { packages, migration }: Parts): Finding[] {
  return packages === undefined ? [] : warnAboutPythonMigrations(tree, packages.names, migration);
}

function describeServing(
  tree: Tree,
  input: PlanInput,
  { start, pages }: Parts,
): Pick<Recipe, 'builds' | 'callsOnly' | 'hasFixedPort'> {
  return {
    ...markFixedPort(input, start?.port),
    ...(pages === undefined ? {} : { builds: [pages.folder] }),
    ...(!input.hasCommand && isApiOnly(tree, start?.framework) ? { callsOnly: true } : {}),
  };
}

function explainPlan(tree: Tree, { packages, start, choice, pages, migration }: Parts): string {
  const published = readPublishedPackage(tree);
  return [
    published === undefined ? explainPackages(packages) : `It is the ${published.title}, as published.`,
    start?.because ?? 'run.command says how it starts.',
    start?.port === undefined ? undefined : `Its code listens on port ${start.port}.`,
    pages === undefined || pages.folder === '.'
      ? undefined
      : `The pages of ${pages.folder} are built into ${pages.output}.`,
    migration === undefined ? undefined : describeMigration(migration),
    choice.because,
    explainTorch(packages),
  ]
    .filter((part) => part !== undefined)
    .join(' ');
}

function explainPackages(packages: PythonPackages | undefined): string {
  if (packages === undefined) return 'The repository has Python files without a list of dependencies.';
  const conda = /^(?:environment|conda)\.ya?ml$/.test(packages.file);
  return `${packages.file} makes this a Python app.${conda ? ' Its packages come from PyPI; what only conda has is left out.' : ''}`;
}

function explainTorch(packages: PythonPackages | undefined): string | undefined {
  const torch = findTorchSource(packages?.names ?? []);
  return torch === undefined ? undefined : `${torch} brings torch: its CPU wheels are taken.`;
}

function renderBuildStage(tree: Tree, input: PlanInput, parts: Parts): string[] {
  const { packages, start, choice, pages, undeclared, compiled } = parts;
  const hasPages = pages !== undefined;
  const names = collectNames(parts);
  return [
    `FROM ${choice.image} AS build`,
    // As a variable, because the pip of older Pythons does not have the option.
    'ENV PIP_ROOT_USER_ACTION=ignore UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=true UV_COMPILE_BYTECODE=1 UV_NO_PROGRESS=1',
    ...renderStep(
      'plan',
      `installing uv ${uvVersion}`,
      `RUN ${cache} ${renderUvInstall()} && ${uv} venv --quiet --python "$(command -v python3)" /opt/venv${renderSetuptools(choice)}`,
    ),
    ...renderSystemPackages(tree, names, 'build', compiled),
    ...renderInstaller(),
    'WORKDIR /app',
    ...renderArguments(
      input,
      input.build.env.some((each) => each.name === 'UV_TORCH_BACKEND') ? {} : { UV_TORCH_BACKEND: 'cpu' },
    ),
    ...(packages?.install(start?.needs ?? []) ?? renderExtras(start?.needs ?? [])),
    ...renderUndeclaredInstall(undeclared),
    ...renderOwnProject(tree, packages, start),
    ...renderStaticFiles(tree, input, hasPages),
    ...compilePages(tree, input, { packages, start, repository: renderTreeCopy(hasPages) }),
  ];
}

/** Environments before Python 3.12 include setuptools, and packages from that time import its pkg_resources. */
function renderSetuptools({ version }: PythonChoice): string {
  const isOld = Number(version.split('.')[1]) < 12;
  return isOld ? ` && ${uv} pip install --quiet --python /opt/venv/bin/python 'setuptools<81'` : '';
}

/**
 * Installs the project itself if possible, for its commands and for code that reads its own version. Required only if
 * the start command is one of the project's.
 */
function renderOwnProject(tree: Tree, packages: PythonPackages | undefined, start: PythonStart | undefined): string[] {
  if (packages === undefined || !tree.has('pyproject.toml') || tree.registry !== undefined) return [];
  const content = tree.readFile('pyproject.toml') ?? '';
  const scripted = /^\[(?:project|tool\.poetry)\.scripts\]/m.test(content);
  if (start?.ofProject !== true && !(scripted && /^\[build-system\]/m.test(content))) return [];
  const install = `${renderOwnVersion(tree)}${uv} pip install --python /opt/venv/bin/python --no-deps .`;
  const otherwise = start?.ofProject === true ? '' : ` || ${formatReport('own-project', 'pyproject.toml')}`;
  return [
    'COPY . .',
    ...renderStep('pyproject.toml', 'installing the project itself', `RUN ${cache} ${install}${otherwise}`),
  ];
}

/** Copies the build stage's files if that stage changed them, otherwise the repository. */
function renderAppCopy(isChanged: boolean, hasPages: boolean): string {
  const owner = '--chown=1000:1000';
  if (isChanged) return renderLinkedCopy(['/app/'], './', '--from=build', owner);
  return hasPages ? renderLinkedCopy(['/app/'], './', '--from=frontend', owner) : renderLinkedCopy(['.'], './', owner);
}

/** Copies the whole repository into the build stage. */
function renderTreeCopy(hasPages: boolean): string {
  return hasPages ? renderPagesCopy() : 'COPY . .';
}

function renderRunStage(tree: Tree, port: number, parts: Parts): string[] {
  const { start, choice, pages, migration } = parts;
  const sourceFolder = tree.getEntry('src')?.kind === 'directory' ? ':/app/src' : '';
  // The environment has a published package. Its sources lack what its build makes, and would take precedence.
  const isPublished = tree.registry !== undefined;
  const sourcePath = isPublished ? '' : ` PYTHONPATH=/app${sourceFolder}`;
  const hosts = findDjangoFolder(tree) === undefined ? {} : buildAllowedHosts(tree);
  const environment = Object.entries({ ...hosts, ...start?.environment })
    .map(([name, value]) => ` ${name}=${value}`)
    .join('');
  return [
    `FROM ${choice.image}`,
    ...renderSystemPackages(tree, collectNames(parts), 'run', parts.compiled),
    'RUN useradd --create-home --uid 1000 app && install -d -o 1000 -g 1000 /app',
    // Only the gateway can reach the app, so its headers with the visitor's address and protocol can be trusted.
    `ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1${sourcePath} FORWARDED_ALLOW_IPS=* PORT=${port}${environment}`,
    'WORKDIR /app',
    renderLinkedCopy(['/opt/venv'], '/opt/venv', '--from=build'),
    ...(isPublished ? [] : [renderAppCopy(shouldCollectStatic(tree) || isReflex(start), pages !== undefined)]),
    'USER 1000:1000',
    `EXPOSE ${port}`,
    ...(start === undefined ? [] : [renderShellCommand(prefixMigration(migration, start.command))]),
  ];
}

/** Fills the folder from which Django serves static files. Variables that the settings require get worthless values. */
function renderStaticFiles(tree: Tree, { build }: PlanInput, hasPages: boolean): string[] {
  if (!shouldCollectStatic(tree)) return [];
  const folder = findDjangoFolder(tree) ?? '.';
  const enter = folder === '.' ? '' : `cd ${quoteShellWord(folder)} && `;
  const variables = new Set([...build.args, ...build.env].map(({ name }) => name));
  const placeholders = { SECRET_KEY: 'none', DJANGO_SECRET_KEY: 'none', ...listSettingsPlaceholders(tree) };
  const assigned = Object.entries(placeholders).flatMap(([name, value]) =>
    variables.has(name) ? [] : [`${name}=${value} `],
  );
  return [
    renderTreeCopy(hasPages),
    ...renderStep(
      posix.join(folder, 'manage.py'),
      'collecting static files',
      `RUN ${enter}${assigned.join('')}/opt/venv/bin/python manage.py collectstatic --noinput || ${formatReport('static-files', 'manage.py')}`,
    ),
  ];
}

function shouldCollectStatic(tree: Tree): boolean {
  return (
    tree.registry === undefined &&
    findDjangoFolder(tree) !== undefined &&
    listSettingsFiles(tree).some((path) => /^\s*STATIC_ROOT\b/m.test(tree.readFile(path) ?? ''))
  );
}

const frameworksOfCalls: ReadonlySet<string> = new Set(['FastAPI', 'Flask', 'Starlette', 'Quart', 'Litestar', 'Sanic']);
/** Server code that sends pages, its own or prebuilt ones. */
const sendsPages =
  /StaticFiles|\bfrontend\(|Templates|render_template|TemplateResponse|HTMLResponse|send_from_directory|static_folder|static_files|add_static|\.html?["']/;

/** Returns true if its framework serves APIs, and no code sends a page. */
function isApiOnly(tree: Tree, framework: string | undefined): boolean {
  if (framework === undefined || !frameworksOfCalls.has(framework)) return false;
  return !listPythonSources(tree).some(({ text }) => sendsPages.test(text));
}

/**
 * Finds the build script that produces files for the app: at the root, unless it is a Node server and so a separate
 * app, or below, if it writes into the folder of the server.
 */
function findPagesBuild(tree: Tree): Frontend | undefined {
  const project = readProject(tree);
  const below = findFrontendForServer(tree);
  if (project?.scripts['build'] === undefined || findServerLibrary(project.runtime) !== undefined) return below;
  const framework = findFramework(tree, project);
  const isTop = framework === undefined || framework.kind === 'files';
  return isTop ? { folder: '.', script: 'build', output: '.' } : below;
}

/**
 * Renders the stage `frontend`, which leaves the repository with the build output in /app. An app may still work if its
 * pages cannot be built, so a failure is only a warning.
 */
function renderPagesStage(tree: Tree, { missingImages }: Pick<PlanInput, 'missingImages'>, pages: Frontend): string[] {
  const file = posix.join(pages.folder, 'package.json');
  // Those of a workspace are at its root.
  const root = pages.folder === '.' ? '' : ' /app/node_modules';
  return [
    ...renderFrontendStage(tree, pages, {
      target: pages.output,
      missingImages,
      otherwise: formatReport('pages', file),
    }),
    ...renderStep(file, 'removing the packages of the pages', `RUN rm -rf node_modules${root}`),
    '',
  ];
}

/** Copies the repository together with the build output. */
function renderPagesCopy(): string {
  return renderCopy(['/app/'], './', '--from=frontend');
}
