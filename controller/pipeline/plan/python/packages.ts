// Finds which packages a Python project wants, and how they are installed.
import { keys, parseToml, text, texts } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { copy, step } from '../dockerfile-text.ts';

export interface PythonPackages {
  /** File that names the packages. */
  readonly file: string;
  /** Normalized names of the direct dependencies (PEP 503). */
  readonly names: ReadonlySet<string>;
  /** Lines of the build stage that install them into /opt/venv; `extra` are packages beyond the author's. */
  install(extra: readonly string[]): string[];
}

const cache = '--mount=type=cache,target=/root/.cache';
const uv = '/opt/uv/bin/uv';

/** How this tree names its packages; undefined when it does not. */
export function findPackages(tree: Tree): PythonPackages | undefined {
  return locked(tree) ?? poetry(tree) ?? requirements(tree) ?? project(tree) ?? setup(tree);
}

function pipInstall(...what: readonly string[]): string {
  return `RUN ${cache} ${uv} pip install --python /opt/venv/bin/python ${what.join(' ')}`;
}

function extras(extra: readonly string[]): string[] {
  return extra.length === 0 ? [] : step('plan', `installing ${extra.join(', ')}`, pipInstall(...extra));
}

function locked(tree: Tree): PythonPackages | undefined {
  if (!tree.has('uv.lock') || !tree.has('pyproject.toml')) return undefined;
  const whole = /^\[tool\.uv\.(?:workspace|sources)/m.test(tree.text('pyproject.toml') ?? '');
  return {
    file: 'uv.lock',
    names: projectNames(tree),
    install: (extra) => [
      ...(whole ? ['COPY . .'] : [copy(['pyproject.toml', 'uv.lock'], './')]),
      ...step(
        'uv.lock',
        'installing the locked packages',
        `RUN ${cache} UV_PROJECT_ENVIRONMENT=/opt/venv ${uv} sync --frozen --no-dev --no-install-project --python /opt/venv/bin/python`,
      ),
      ...extras(extra),
    ],
  };
}

function poetry(tree: Tree): PythonPackages | undefined {
  if (!tree.has('poetry.lock') || !tree.has('pyproject.toml')) return undefined;
  return {
    file: 'poetry.lock',
    names: projectNames(tree),
    install: (extra) => [
      ...step('plan', 'installing poetry', `RUN ${cache} ${uv} tool install poetry`),
      copy(['pyproject.toml', 'poetry.lock'], './'),
      ...step(
        'poetry.lock',
        'installing the locked packages',
        `RUN ${cache} VIRTUAL_ENV=/opt/venv PATH=/opt/venv/bin:$PATH /root/.local/bin/poetry install --only main --no-root --no-interaction --no-ansi`,
      ),
      ...extras(extra),
    ],
  };
}

function requirements(tree: Tree): PythonPackages | undefined {
  const file = [
    'requirements.txt',
    'requirements/prod.txt',
    'requirements/production.txt',
    'requirements/base.txt',
  ].find((each) => tree.has(each));
  if (file === undefined) return undefined;
  const lines = (tree.text(file) ?? '').split('\n').map((line) => line.trim());
  // Lines that point at other files of the repository need them to be there first.
  const whole =
    file.includes('/') ||
    lines.some((line) =>
      /^(?:-r|-c|-e|--requirement|--constraint|--editable|\.|file:|[\w.-]+ *@ *(?:file:|\.))/.test(line),
    );
  return {
    file,
    names: new Set(lines.flatMap(requirementName)),
    install: (extra) => [
      ...(whole ? ['COPY . .'] : [copy([file], './')]),
      ...step(file, 'installing the packages', pipInstall('-r', file, ...extra)),
    ],
  };
}

function project(tree: Tree): PythonPackages | undefined {
  const parsed = parseToml(tree.text('pyproject.toml'));
  if (keys(parsed, 'project').length === 0 && keys(parsed, 'tool', 'poetry').length === 0) return undefined;
  const names = projectNames(tree);
  if (keys(parsed, 'project').length > 0) {
    // Only the dependencies: an app seldom is a well-formed package itself.
    return {
      file: 'pyproject.toml',
      names,
      install: (extra) => [
        copy(['pyproject.toml'], './'),
        ...step('pyproject.toml', 'installing the packages', pipInstall('-r', 'pyproject.toml', ...extra)),
      ],
    };
  }
  return {
    file: 'pyproject.toml',
    names,
    install: (extra) => ['COPY . .', ...step('pyproject.toml', 'installing the project', pipInstall('.', ...extra))],
  };
}

function setup(tree: Tree): PythonPackages | undefined {
  const file = ['setup.py', 'setup.cfg'].find((each) => tree.has(each));
  if (file === undefined) return undefined;
  const quoted = (tree.text(file) ?? '').match(/["']([A-Za-z0-9][A-Za-z0-9._-]{0,60})(?=[^"'\n]{0,60}["'])/g) ?? [];
  return {
    file,
    names: new Set(quoted.map((each) => normalise(each.slice(1)))),
    install: (extra) => ['COPY . .', ...step(file, 'installing the project', pipInstall('.', ...extra))],
  };
}

function projectNames(tree: Tree): ReadonlySet<string> {
  const parsed = parseToml(tree.text('pyproject.toml'));
  const declared = [
    ...texts(parsed, 'project', 'dependencies').flatMap(requirementName),
    ...keys(parsed, 'tool', 'poetry', 'dependencies').map(normalise),
  ];
  const script = text(parsed, 'project', 'name');
  return new Set(declared.filter((name) => name !== script));
}

function requirementName(requirement: string): string[] {
  const name = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,100}[A-Za-z0-9])?/.exec(requirement)?.[0];
  return name === undefined || requirement.startsWith('-') ? [] : [normalise(name)];
}

function normalise(name: string): string {
  return name.toLowerCase().replace(/[-_.]+/g, '-');
}
