// Finds the packages that a Python project needs, and how to install them.
import { readKeys, parseToml, readText, readField, parseJson, readTexts } from '../../../manifest.ts';
import type { Tree } from '../../../tree.ts';
import { formatReport } from '../../build-warnings.ts';
import { renderCopy, renderStep } from '../../recipe.ts';
import { readPublishedPackage } from '../../common/published.ts';
import { findCondaPackages } from './conda.ts';
import {
  cache,
  renderExportedInstall,
  renderExtras,
  renderPipInstall,
  renderProjectInstall,
  uv,
  isLine,
  renderListFile,
} from './install.ts';
import {
  findTorchSource,
  listLockedNames,
  normalizePackageName,
  listProjectNames,
  parseRequirementName,
} from './names.ts';

export interface PythonPackages {
  /** File that lists the packages. */
  readonly file: string;
  /** Normalized names (PEP 503): the direct dependencies and, with a lock file, all others. */
  readonly names: ReadonlySet<string>;
  /** Renders the build stage's lines that install them into /opt/venv; `extra` are packages beyond the author's. */
  install(extra: readonly string[]): string[];
}

/** Finds how this tree lists its packages; undefined if it does not. */
export function findPackages(tree: Tree): PythonPackages | undefined {
  const found =
    findPublishedPackages(tree) ??
    findUvPackages(tree) ??
    findPoetryPackages(tree) ??
    (tree.has('Pipfile.lock') ? findPipfilePackages(tree) : undefined) ??
    findRequirements(tree) ??
    findProjectPackages(tree) ??
    findPipfilePackages(tree) ??
    findCondaPackages(tree) ??
    findSetupPackages(tree);
  return found === undefined ? undefined : { ...found, names: removeOwnName(tree, found.names) };
}

/** A published package is installed with the dependencies that it states, whatever lock files it contains. */
function findPublishedPackages(tree: Tree): PythonPackages | undefined {
  const published = readPublishedPackage(tree);
  if (published === undefined) return undefined;
  const file = ['pyproject.toml', 'setup.py', 'setup.cfg'].find((each) => tree.has(each)) ?? 'PKG-INFO';
  return {
    file,
    names: published.dependencies,
    install: (extra) => [
      'COPY . .',
      ...renderStep(file, 'installing the published package', renderProjectInstall(tree, file, extra)),
    ],
  };
}

/** A project may list itself, to use its own extras. */
function removeOwnName(tree: Tree, names: ReadonlySet<string>): ReadonlySet<string> {
  const projectName = readText(parseToml(tree.readFile('pyproject.toml')), 'project', 'name');
  return projectName === undefined
    ? names
    : new Set([...names].filter((name) => name !== normalizePackageName(projectName)));
}

function findUvPackages(tree: Tree): PythonPackages | undefined {
  if (!tree.has('uv.lock') || !tree.has('pyproject.toml')) return undefined;
  const whole = /^\[tool\.uv\.(?:workspace|sources)/m.test(tree.readFile('pyproject.toml') ?? '');
  const names = new Set([...listProjectNames(tree), ...listLockedNames(tree, 'uv.lock')]);
  const install = `RUN ${cache} UV_PROJECT_ENVIRONMENT=/opt/venv ${uv} sync --frozen --no-dev --no-install-project --python /opt/venv/bin/python`;
  const exported = `${uv} export --quiet --frozen --no-dev --no-emit-project --no-hashes --no-annotate --no-header`;
  return {
    file: 'uv.lock',
    names,
    install: (extra) => [
      ...(whole ? ['COPY . .'] : [renderCopy(['pyproject.toml', 'uv.lock'], './')]),
      ...renderStep(
        'uv.lock',
        'installing the locked packages',
        findTorchSource(names) === undefined ? install : renderExportedInstall(exported, 'uv.lock', true),
      ),
      ...renderExtras(extra),
    ],
  };
}

function findPoetryPackages(tree: Tree): PythonPackages | undefined {
  if (!tree.has('poetry.lock') || !tree.has('pyproject.toml')) return undefined;
  const names = new Set([...listProjectNames(tree), ...listLockedNames(tree, 'poetry.lock')]);
  const program = '/root/.local/bin/poetry';
  const exported = `${program} export --only main --without-hashes --format requirements.txt`;
  // If the lock file no longer matches its manifest, lock again. Older versions of Poetry use only their bundled
  // certificate authorities.
  const renewed = `REQUESTS_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt ${program} lock --no-interaction --no-ansi 1>&2 && ${exported} && ${formatReport('poetry-lock', 'poetry.lock')} 1>&2`;
  return {
    file: 'poetry.lock',
    names,
    install: (extra) => [
      ...renderStep('plan', 'installing poetry', `RUN ${cache} ${uv} tool install poetry --with poetry-plugin-export`),
      renderCopy(['pyproject.toml', 'poetry.lock'], './'),
      ...renderStep(
        'poetry.lock',
        'installing the locked packages',
        renderExportedInstall(
          `{ ${exported} || { ${renewed}; }; }`,
          'poetry.lock',
          findTorchSource(names) !== undefined,
        ),
      ),
      ...renderExtras(extra),
    ],
  };
}

const lockBytes = 8 * 1024 * 1024;
const listFile = '/opt/requirements.txt';

/** Reads Pipenv's packages from Pipfile.lock, or from Pipfile if there is no lock. */
function findPipfilePackages(tree: Tree): PythonPackages | undefined {
  const locked = readField(parseJson(tree.readFile('Pipfile.lock', lockBytes)), 'default');
  const parsed = parseToml(tree.readFile('Pipfile'));
  const file = locked === undefined ? 'Pipfile' : 'Pipfile.lock';
  const packages = locked ?? readField(parsed, 'packages');
  if (packages === undefined) return undefined;
  const names = readKeys(packages);
  const lines = names.flatMap((name) => formatRequirement(name, readField(packages, name)));
  return {
    file,
    names: new Set(names.map(normalizePackageName)),
    install: (extra) => [
      ...renderListFile(listFile, lines),
      renderCopy([file], './'),
      ...renderStep(
        file,
        'installing the packages',
        renderPipInstall(file, ...(locked === undefined ? [] : ['--no-deps']), '-r', listFile),
      ),
      ...renderExtras(extra),
    ],
  };
}

/** Formats a package as a requirement line; empty if it refers to the author's files. */
function formatRequirement(name: string, value: unknown): string[] {
  if (readField(value, 'path') !== undefined || readField(value, 'file') !== undefined) return [];
  const extra = readTexts(value, 'extras').join(',');
  const whole = `${name}${extra === '' ? '' : `[${extra}]`}`;
  const line = `${whole}${formatRepository(value) ?? formatVersion(value)}`;
  return isLine(line) ? [line] : [];
}

function formatRepository(value: unknown): string | undefined {
  const [git, ref] = [readText(value, 'git'), readText(value, 'ref')];
  return git === undefined ? undefined : ` @ git+${git}${ref === undefined ? '' : `@${ref}`}`;
}

function formatVersion(value: unknown): string {
  const version = typeof value === 'string' ? value : (readText(value, 'version') ?? '*');
  const marker = readText(value, 'markers');
  return `${version === '*' ? '' : version}${marker === undefined ? '' : ` ; ${marker}`}`;
}

const lists = [
  'requirements.txt',
  'requirements/prod.txt',
  'requirements/production.txt',
  'requirements/base.txt',
  'requirements/requirements.txt',
  'requirements-prod.txt',
  'requirement.txt',
  'requirments.txt',
];

function findRequirements(tree: Tree): PythonPackages | undefined {
  const file = lists.find((each) => tree.has(each)) ?? findOnlyRequirements(tree);
  if (file === undefined) return undefined;
  const content = tree.readFile(file) ?? '';
  const lines = content.split('\n').map((line) => line.trim());
  // Lines that refer to other files of the repository need those files first.
  const whole =
    file.includes('/') ||
    lines.some((line) =>
      /^(?:-r|-c|-e|--requirement|--constraint|--editable|\.|file:|[\w.-]+ *@ *(?:file:|\.))/.test(line),
    );
  return {
    file,
    names: new Set(lines.flatMap(parseRequirementName)),
    install: (extra) => [
      ...(whole ? ['COPY . .'] : [renderCopy([file], './')]),
      ...(/\+cu\d/.test(content) ? renderCpuPins(file) : []),
      ...renderStep(file, 'installing the packages', renderPipInstall(file, '-r', file, ...extra)),
    ],
  };
}

/** Finds the only requirements list in the repository, in a folder without another manifest. */
function findOnlyRequirements(tree: Tree): string | undefined {
  if (['pyproject.toml', 'Pipfile', 'setup.py', 'setup.cfg'].some((each) => tree.has(each))) return undefined;
  const found = tree.entries.filter(
    ({ kind, path }) =>
      kind === 'file' &&
      /^(?:env|environment|deps|dependencies|config|install|setup|src)\/requirements\.txt$/.test(path),
  );
  return found.length === 1 ? found[0]?.path : undefined;
}

/** Versions such as 2.1.0+cu118 exist only on an index of CUDA wheels. */
function renderCpuPins(file: string): string[] {
  return renderStep(
    file,
    'taking the CPU wheels of torch',
    `RUN day=$(date -r ${file} +%s) && sed -i -E -e 's/\\+cu[0-9]+//' -e '/download\\.pytorch\\.org/d' ${file} && touch -d "@$day" ${file}`,
  );
}

function findProjectPackages(tree: Tree): PythonPackages | undefined {
  const parsed = parseToml(tree.readFile('pyproject.toml'));
  if (readKeys(parsed, 'project').length === 0 && readKeys(parsed, 'tool', 'poetry').length === 0) return undefined;
  const names = new Set(listProjectNames(tree));
  if (readKeys(parsed, 'project').length > 0) {
    // Install only the dependencies: an app is rarely a well-formed package.
    return {
      file: 'pyproject.toml',
      names,
      install: (extra) => [
        renderCopy(['pyproject.toml'], './'),
        ...renderStep(
          'pyproject.toml',
          'installing the packages',
          renderPipInstall('pyproject.toml', '-r', 'pyproject.toml', ...extra),
        ),
      ],
    };
  }
  return {
    file: 'pyproject.toml',
    names,
    install: (extra) => [
      'COPY . .',
      ...renderStep('pyproject.toml', 'installing the project', renderProjectInstall(tree, 'pyproject.toml', extra)),
    ],
  };
}

function findSetupPackages(tree: Tree): PythonPackages | undefined {
  const file = ['setup.py', 'setup.cfg'].find((each) => tree.has(each));
  if (file === undefined) return undefined;
  const content = tree.readFile(file) ?? '';
  const quoted = content.match(/["']([A-Za-z0-9][A-Za-z0-9._-]{0,60})(?=[^"'\n]{0,60}["'])/g) ?? [];
  const listed = /^install_requires\s{0,9}=([^[]{0,8000})/m.exec(content)?.[1]?.split('\n') ?? [];
  return {
    file,
    names: new Set([
      ...quoted.map((each) => normalizePackageName(each.slice(1))),
      ...listed.flatMap((line) => parseRequirementName(line.trim())),
    ]),
    install: (extra) => [
      'COPY . .',
      ...(tree.has('setup.py') || tree.has('pyproject.toml')
        ? []
        : ['RUN echo "from setuptools import setup; setup()" > setup.py']),
      ...renderStep(file, 'installing the project', renderProjectInstall(tree, file, extra)),
    ],
  };
}
