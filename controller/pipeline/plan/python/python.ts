// Plans Python apps: uv installs packages into a virtual environment, and the final image contains no build tools.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import { formatReport } from '../build-warnings.ts';
import {
  renderCopy,
  renderArguments,
  defaultPort,
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
import { cache, renderExtras, renderInstaller, uv } from './packages/install.ts';
import { findTorchSource } from './packages/names.ts';
import { findDjangoFolder, buildAllowedHosts, listSettingsFiles } from './start/django.ts';
import { findStart, type PythonStart } from './start/find.ts';
import { compilePages, isReflex, renderNodeStage, findReflexProblem } from './reflex.ts';
import { renderSystemPackages } from './system-packages.ts';
import { type RequestedPython, choosePython, type PythonChoice } from './version.ts';
import { renderFrontendStage } from '../common/frontend.ts';
import { findFramework } from '../node/framework.ts';
import { readProject } from '../node/project.ts';
import { findServerLibrary } from '../node/app.ts';
import { listPythonSources } from './start/sources.ts';

const uvVersion = '0.13.8';
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
    const start = findStart(tree, packages?.names ?? new Set());
    if (packages === undefined && (start === undefined || !isLikelyPython(tree))) return undefined;
    return (
      findMissingPart(input, packages, start) ??
      findReflexProblem(tree, input, packages, start) ??
      planImage(tree, input, packages, start)
    );
  },
};

function findMissingPart(
  { hasCommand }: PlanInput,
  packages: PythonPackages | undefined,
  start: PythonStart | undefined,
): Problem | undefined {
  const misfit = hasCommand ? undefined : findMisfit(packages, start);
  if (start === undefined || misfit !== undefined) return misfit;
  return packages === undefined && start.framework !== undefined ? createNoPackagesProblem(start.framework) : undefined;
}

/** Returns the reason why nothing can be started unless the author specifies a command; undefined if something can. */
function findMisfit(packages: PythonPackages | undefined, start: PythonStart | undefined): Problem | undefined {
  if (start === undefined) return createNoStartProblem(packages?.file);
  if (start.other !== undefined) return createSeveralProgramsProblem(start, start.other);
  return start.bot !== undefined && start.port === undefined ? createNoServerProblem(start.bot) : undefined;
}

function createNoPackagesProblem(framework: string): Problem {
  return {
    problem: {
      rule: 'plan/no-packages',
      severity: 'error',
      message: `This is a ${framework} app, but no file lists its dependencies, including ${framework}.`,
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
  readonly start: PythonStart | undefined;
  readonly choice: PythonChoice;
  /** A build script generates files for it first. */
  readonly hasPages: boolean;
}

function planImage(
  tree: Tree,
  input: PlanInput,
  packages: PythonPackages | undefined,
  start: PythonStart | undefined,
): Recipe | Problem {
  const choice = choosePython(tree, input);
  return 'requestedVersion' in choice
    ? createNoImageProblem(choice, input)
    : createRecipe(tree, input, { packages, start, choice, hasPages: hasPagesBuild(tree) });
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
  const { start, choice, hasPages } = parts;
  const port = input.port ?? start?.port ?? defaultPort;
  const reason = explainPlan(parts);
  return {
    plan: {
      strategy: 'python',
      reason,
      port,
      ...(start?.framework === undefined ? {} : { framework: start.framework }),
    },
    ...describePages(tree, input, parts),
    dockerfile: renderDockerfile(reason, [
      ...(hasPages ? renderPagesStage(tree, input) : []),
      ...renderNodeStage(start),
      ...renderBuildStage(tree, input, parts),
      '',
      ...renderRunStage(tree, port, parts),
    ]),
    ignore: isReflex(start) ? [...ignore, '.web'] : ignore,
    findings: listVersionWarnings(choice),
  };
}

function describePages(tree: Tree, input: PlanInput, { start, hasPages }: Parts): Pick<Recipe, 'builds' | 'callsOnly'> {
  return {
    ...(hasPages ? { builds: ['.'] } : {}),
    ...(!input.hasCommand && isApiOnly(tree, start?.framework) ? { callsOnly: true } : {}),
  };
}

function explainPlan({ packages, start, choice }: Parts): string {
  return [
    explainPackages(packages),
    start?.because ?? 'run.command says how it starts.',
    start?.port === undefined ? undefined : `Its code listens on port ${start.port}.`,
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

function renderBuildStage(tree: Tree, input: PlanInput, { packages, start, choice, hasPages }: Parts): string[] {
  return [
    `FROM ${choice.image} AS build`,
    // As a variable, because the pip of older Pythons does not have the option.
    'ENV PIP_ROOT_USER_ACTION=ignore UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=true UV_COMPILE_BYTECODE=1 UV_NO_PROGRESS=1',
    ...renderStep(
      'plan',
      `installing uv ${uvVersion}`,
      `RUN --mount=type=cache,target=/root/.cache python3 -m pip install --quiet --no-compile --disable-pip-version-check --target /opt/uv uv==${uvVersion} && /opt/uv/bin/uv venv --quiet --python "$(command -v python3)" /opt/venv${renderSetuptools(choice)}`,
    ),
    ...renderSystemPackages(tree, packages?.names ?? new Set(), 'build'),
    ...renderInstaller(),
    'WORKDIR /app',
    ...renderArguments(
      input,
      input.build.env.some((each) => each.name === 'UV_TORCH_BACKEND') ? {} : { UV_TORCH_BACKEND: 'cpu' },
    ),
    ...(packages?.install(start?.needs ?? []) ?? renderExtras(start?.needs ?? [])),
    ...renderOwnProject(tree, packages, start),
    ...renderStaticFiles(tree, hasPages),
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
  if (packages === undefined || !tree.has('pyproject.toml')) return [];
  const content = tree.readFile('pyproject.toml') ?? '';
  const scripted = /^\[(?:project|tool\.poetry)\.scripts\]/m.test(content);
  if (start?.ofProject !== true && !(scripted && /^\[build-system\]/m.test(content))) return [];
  const install = `SETUPTOOLS_SCM_PRETEND_VERSION=0.0.0 PDM_BUILD_SCM_VERSION=0.0.0 POETRY_DYNAMIC_VERSIONING_BYPASS=0.0.0 ${uv} pip install --python /opt/venv/bin/python --no-deps .`;
  const otherwise = start?.ofProject === true ? '' : ` || ${formatReport('own-project', 'pyproject.toml')}`;
  return [
    'COPY . .',
    ...renderStep('pyproject.toml', 'installing the project itself', `RUN ${cache} ${install}${otherwise}`),
  ];
}

/** Copies the build stage's files if that stage changed them, otherwise the repository. */
function renderAppCopy(isChanged: boolean, hasPages: boolean): string {
  const owner = '--chown=1000:1000';
  if (isChanged) return renderCopy(['/app/'], './', '--from=build', owner);
  return hasPages ? renderPagesCopy(owner) : renderCopy(['.'], './', owner);
}

/** Copies the whole repository into the build stage. */
function renderTreeCopy(hasPages: boolean): string {
  return hasPages ? renderPagesCopy() : 'COPY . .';
}

function renderRunStage(tree: Tree, port: number, { packages, start, choice, hasPages }: Parts): string[] {
  const sourceFolder = tree.getEntry('src')?.kind === 'directory' ? ':/app/src' : '';
  const hosts = findDjangoFolder(tree) === undefined ? {} : buildAllowedHosts(tree);
  const environment = Object.entries({ ...hosts, ...start?.environment })
    .map(([name, value]) => ` ${name}=${value}`)
    .join('');
  return [
    `FROM ${choice.image}`,
    ...renderSystemPackages(tree, packages?.names ?? new Set(), 'run'),
    'RUN useradd --create-home --uid 1000 app && install -d -o 1000 -g 1000 /app',
    // Only the gateway can reach the app, so its headers with the visitor's address and protocol can be trusted.
    `ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/app${sourceFolder} FORWARDED_ALLOW_IPS=* PORT=${port}${environment}`,
    'COPY --from=build /opt/venv /opt/venv',
    'WORKDIR /app',
    renderAppCopy(shouldCollectStatic(tree) || isReflex(start), hasPages),
    'USER 1000:1000',
    `EXPOSE ${port}`,
    ...(start === undefined ? [] : [renderShellCommand(start.command)]),
  ];
}

/** Fills the folder from which Django serves static files. Settings that require a key get a worthless one. */
function renderStaticFiles(tree: Tree, hasPages: boolean): string[] {
  if (!shouldCollectStatic(tree)) return [];
  const folder = findDjangoFolder(tree) ?? '.';
  const enter = folder === '.' ? '' : `cd ${quoteShellWord(folder)} && `;
  return [
    renderTreeCopy(hasPages),
    ...renderStep(
      posix.join(folder, 'manage.py'),
      'collecting static files',
      `RUN ${enter}SECRET_KEY=none DJANGO_SECRET_KEY=none /opt/venv/bin/python manage.py collectstatic --noinput || ${formatReport('static-files', 'manage.py')}`,
    ),
  ];
}

function shouldCollectStatic(tree: Tree): boolean {
  return (
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

/** Returns true if a build script at the root produces files for the app; a Node server would be a separate app. */
function hasPagesBuild(tree: Tree): boolean {
  const project = readProject(tree);
  if (project?.scripts['build'] === undefined || findServerLibrary(project.runtime) !== undefined) return false;
  const framework = findFramework(tree, project);
  return framework === undefined || framework.kind === 'files';
}

/**
 * Renders the stage `frontend`, which leaves the repository with the build output in /app. An app may still work if its
 * pages cannot be built, so a failure is only a warning.
 */
function renderPagesStage(tree: Tree, { missingImages }: Pick<PlanInput, 'missingImages'>): string[] {
  const frontend = { folder: '.', script: 'build', output: '.' };
  return [
    ...renderFrontendStage(tree, frontend, {
      target: '.',
      missingImages,
      otherwise: formatReport('pages', 'package.json'),
    }),
    ...renderStep('package.json', 'removing the packages of the pages', 'RUN rm -rf node_modules'),
    '',
  ];
}

/** Copies the repository together with the build output. */
function renderPagesCopy(...flags: readonly string[]): string {
  return renderCopy(['/app/'], './', '--from=frontend', ...flags);
}
