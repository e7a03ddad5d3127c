// Plans Python apps: packages by uv into a virtual environment, then a small image without any build tool.
import type { Tree } from '../../tree.ts';
import { copy, declaredArguments, dockerfileText, shellCommand, step } from '../dockerfile-text.ts';
import { findPackages, type PythonPackages } from './packages.ts';
import { findStart, type PythonStart } from './start.ts';
import { choosePython, type NoPython, type PythonChoice } from './version.ts';
import { defaultPort, type Language, type PlanInput, type Problem, type Recipe } from '../recipe.ts';

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
/** Packages that are known to bring torch. Its default wheels hold CUDA, several GB that no CPU uses. */
const torchPackages = new Set([
  'torch',
  'torchvision',
  'torchaudio',
  'sentence-transformers',
  'openai-whisper',
  'easyocr',
  'ultralytics',
  'accelerate',
  'timm',
  'docling',
  'peft',
  'lightning',
  'pytorch-lightning',
  'demucs',
  'marker-pdf',
]);

export const python: Language = {
  name: 'python',
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined {
    const packages = findPackages(tree);
    const start = findStart(tree, packages?.names ?? new Set());
    if (packages === undefined && (start === undefined || !looksLikePython(tree))) return undefined;
    return missing(input, packages, start) ?? withImage(tree, input, packages, start);
  },
};

function missing(
  { hasCommand }: PlanInput,
  packages: PythonPackages | undefined,
  start: PythonStart | undefined,
): Problem | undefined {
  if (start === undefined) return hasCommand ? undefined : noStart(packages?.file);
  return packages === undefined && start.framework !== undefined ? noPackages(start.framework) : undefined;
}

function noPackages(framework: string): Problem {
  return {
    problem: {
      rule: 'plan/no-packages',
      severity: 'error',
      message: `This is a ${framework} app, but no file lists its dependencies, including ${framework}.`,
      fix: `Add requirements.txt with one line for each package that the code imports, such as "${framework.toLowerCase()}" ("pip freeze" in a working environment lists them), or a pyproject.toml with its dependencies.`,
    },
  };
}

interface Parts {
  readonly packages: PythonPackages | undefined;
  readonly start: PythonStart | undefined;
  readonly choice: PythonChoice;
}

function withImage(
  tree: Tree,
  input: PlanInput,
  packages: PythonPackages | undefined,
  start: PythonStart | undefined,
): Recipe | Problem {
  const choice = choosePython(tree);
  return 'asked' in choice ? noImage(choice) : recipe(tree, input, { packages, start, choice });
}

function looksLikePython(tree: Tree): boolean {
  return (
    !tree.has('package.json') && tree.entries.some((each) => each.kind === 'file' && /^[^/]+\.py$/.test(each.path))
  );
}

function noImage({ file, asked }: NoPython): Problem {
  return {
    problem: {
      rule: 'plan/python-version',
      severity: 'error',
      file,
      message: `The app requires Python ${asked}, which is not available.`,
      fix: 'Widen requires-python to include 3.11 or 3.13, or add a Dockerfile.',
    },
  };
}

function noStart(file = 'requirements.txt'): Problem {
  return {
    problem: {
      rule: 'plan/no-start',
      severity: 'error',
      file,
      message: 'The repository has Python files, but nothing defines how to start the app.',
      fix: 'Add a Procfile with a line like "web: gunicorn --bind 0.0.0.0:$PORT app:app", or set run.command in moorage.yaml. FastAPI, Flask, Django, Streamlit and Gradio apps in main.py or app.py are detected automatically.',
    },
  };
}

function recipe(tree: Tree, input: PlanInput, { packages, start, choice }: Parts): Recipe {
  const port = input.port ?? start?.port ?? defaultPort;
  const reason = reasonOf({ packages, start, choice });
  return {
    plan: {
      strategy: 'python',
      reason,
      port,
      ...(start?.framework === undefined ? {} : { framework: start.framework }),
    },
    dockerfile: dockerfileText(reason, [
      ...buildStage(tree, input, { packages, start, choice }),
      '',
      ...runStage(tree, port, { packages, start, choice }),
    ]),
    ignore,
    findings: [],
  };
}

function reasonOf({ packages, start, choice }: Parts): string {
  const torch = [...(packages?.names ?? [])].find((name) => torchPackages.has(name));
  return [
    packages === undefined
      ? 'The repository has Python files without a list of dependencies.'
      : `${packages.file} makes this a Python app.`,
    start?.because ?? 'run.command says how it starts.',
    start?.port === undefined ? undefined : `Its code listens on port ${start.port}.`,
    choice.because,
    torch === undefined ? undefined : `${torch} brings torch: its CPU wheels are taken.`,
  ]
    .filter((part) => part !== undefined)
    .join(' ');
}

function buildStage(tree: Tree, input: PlanInput, { packages, start, choice }: Parts): string[] {
  return [
    `FROM ${choice.image} AS build`,
    'ENV UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=true UV_COMPILE_BYTECODE=1 UV_NO_PROGRESS=1',
    ...step(
      'plan',
      `installing uv ${uvVersion}`,
      `RUN --mount=type=cache,target=/root/.cache python3 -m pip install --quiet --no-compile --disable-pip-version-check --root-user-action=ignore --target /opt/uv uv==${uvVersion} && /opt/uv/bin/uv venv --quiet --python "$(command -v python3)" /opt/venv`,
    ),
    ...systemPackages(tree),
    'WORKDIR /app',
    ...declaredArguments(
      input,
      input.build.env.some((each) => each.name === 'UV_TORCH_BACKEND') ? {} : { UV_TORCH_BACKEND: 'cpu' },
    ),
    ...(packages?.install(start?.needs ?? []) ?? extraOnly(start?.needs ?? [])),
    ...staticFiles(tree),
  ];
}

function extraOnly(needs: readonly string[]): string[] {
  return needs.length === 0
    ? []
    : step(
        'plan',
        `installing ${needs.join(', ')}`,
        `RUN --mount=type=cache,target=/root/.cache /opt/uv/bin/uv pip install --python /opt/venv/bin/python ${needs.join(' ')}`,
      );
}

function runStage(tree: Tree, port: number, { start, choice }: Parts): string[] {
  const sourceFolder = tree.entry('src')?.kind === 'directory' ? ':/app/src' : '';
  const environment = Object.entries(start?.environment ?? {})
    .map(([name, value]) => ` ${name}=${value}`)
    .join('');
  return [
    `FROM ${choice.image}`,
    ...systemPackages(tree),
    'RUN useradd --create-home --uid 1000 app && install -d -o 1000 -g 1000 /app',
    `ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/app${sourceFolder} PORT=${port}${environment}`,
    'COPY --from=build /opt/venv /opt/venv',
    'WORKDIR /app',
    collectsStatic(tree)
      ? copy(['/app/'], './', '--from=build', '--chown=1000:1000')
      : copy(['.'], './', '--chown=1000:1000'),
    'USER 1000:1000',
    `EXPOSE ${port}`,
    ...(start === undefined ? [] : [shellCommand(start.command)]),
  ];
}

/**
 * Django serves its static files from the folder that this fills. Settings that want a key to be read get one that is
 * worth nothing.
 */
function staticFiles(tree: Tree): string[] {
  if (!collectsStatic(tree)) return [];
  return [
    'COPY . .',
    ...step(
      'manage.py',
      'collecting static files',
      'RUN SECRET_KEY=none DJANGO_SECRET_KEY=none /opt/venv/bin/python manage.py collectstatic --noinput',
    ),
  ];
}

function collectsStatic(tree: Tree): boolean {
  const settings = tree.entries
    .filter((each) => each.kind === 'file' && /^(?:[^/]+\/){0,3}settings(?:\/[^/]+|[^/]*)\.py$/.test(each.path))
    .slice(0, 20);
  return tree.has('manage.py') && settings.some((each) => /^\s*STATIC_ROOT\b/m.test(tree.text(each.path) ?? ''));
}

/** packages.txt lists Debian packages, one a line, as Streamlit and Hugging Face have it. */
function systemPackages(tree: Tree): string[] {
  const names = (tree.text('packages.txt', 16 * 1024) ?? '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => /^[a-z0-9][a-z0-9+.-]{1,80}$/.test(line));
  if (names.length === 0) return [];
  return step(
    'packages.txt',
    'installing Debian packages',
    `RUN apt-get update && apt-get install --yes --no-install-recommends ${names.slice(0, 100).join(' ')} && rm -rf /var/lib/apt/lists/*`,
  );
}
