// Renders the steps that install packages into /opt/venv, with fallbacks if the first attempt fails.
import { parseToml, readText } from '../../../manifest.ts';
import type { Tree } from '../../../tree.ts';
import { formatReport } from '../../build-warnings.ts';
import { readPublishedPackage } from '../../common/published.ts';
import { quoteShellWord, renderStep } from '../../recipe.ts';
import { normalizePackageName } from './names.ts';

export const cache = '--mount=type=cache,target=/root/.cache';
/** Programs of the build stage. step-runtime.sh looks for this path. */
export const toolFolder = '/opt/moorage/uv';
export const uv = `${toolFolder}/bin/uv`;
export const uvVersion = '0.13.8';
const helper = `${toolFolder}/install`;
/** Ends a file that is written inside the Dockerfile. */
const endOfList = 'EOF';

/**
 * Most apps do not need a compiler, so it is installed only if a package without a wheel fails to build. A list without
 * versions gets today's packages, which may no longer be compatible; those from the day when the list was written were.
 * The list's file time is that day, because a clone sets all file times to the commit's.
 */
const script = `#!/bin/bash
# install FILE ARGUMENTS: uv pip install; once more with a compiler, or with the packages of FILE's own day.
set -o pipefail
list=$1; shift; log=$(mktemp)
# Newer ones are without pkg_resources, which older packages import when they are built, and when they run.
limits=$(mktemp); grep -qisw setuptools "$list" || echo "setuptools<81" > "$limits"
attempt() { ${uv} pip install --python /opt/venv/bin/python --constraint "$limits" --build-constraint "$limits" "$@" 2>&1 | tee "$log"; }
attempt "$@" && exit 0
if ! command -v gcc > /dev/null && grep -qiE "gcc|cc1|g\\+\\+|cmake|compiler|Python\\.h|pkg-config|failed to build" "$log"; then
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -yqq --no-install-recommends build-essential python3-dev pkg-config git > /dev/null && attempt "$@" && exit 0
fi
grep -qiE "dns error|failed to lookup|connection refused|timed out|error sending request" "$log" && exit 1
day=$(date -u -r "$list" +%Y-%m-%dT%H:%M:%SZ) || exit 1
# The time of a folder that has no commit.
case $day in 2000-*) exit 1;; esac
echo "trying the versions of $day"
# What failed first is what its author reads.
attempt --exclude-newer "$day" "$@" > /tmp/second 2>&1 || { echo "the versions of $day do not fit either"; exit 1; }
${formatReport('packages-of-the-day', '${list##*/}')}
`;

/** Tools that take a project's version from the tags of git, and the variable that gives it instead. */
const versionTools: readonly (readonly [RegExp, (project: string | undefined) => string])[] = [
  // Other projects that are built in the same step keep theirs.
  [
    /setuptools[_-]scm|hatch[_-]vcs|flit[_-]scm/,
    (project) =>
      `SETUPTOOLS_SCM_PRETEND_VERSION${project === undefined ? '' : `_FOR_${project.toUpperCase().replaceAll('-', '_')}`}`,
  ],
  [/^\s{0,9}source\s{0,3}=\s{0,3}["']scm["']/m, () => 'PDM_BUILD_SCM_VERSION'],
  [/poetry-dynamic-versioning/, () => 'POETRY_DYNAMIC_VERSIONING_BYPASS'],
  [/uv-dynamic-versioning/, () => 'UV_DYNAMIC_VERSIONING_BYPASS'],
  [/\bpbr\b/, () => 'PBR_VERSION'],
];

/** Renders the assignments with which the project itself can be built without its git repository. */
export function renderOwnVersion(tree: Tree): string {
  const texts = ['pyproject.toml', 'setup.cfg', 'setup.py'].map((file) => tree.readFile(file) ?? '');
  const parsed = parseToml(texts[0]);
  const name =
    readText(parsed, 'project', 'name') ??
    readText(parsed, 'tool', 'poetry', 'name') ??
    /(?:^|[\s(,])name\s{0,3}=\s{0,3}["']?([\w.-]{1,80})/m.exec(texts.slice(1).join('\n'))?.[1];
  const project = name === undefined ? undefined : normalizePackageName(name);
  const version = readPublishedPackage(tree)?.version ?? '0.0.0';
  return versionTools
    .filter(([pattern]) => pattern.test(texts.join('\n')))
    .map(([, toVariable]) => `${toVariable(project)}=${quoteShellWord(version)} `)
    .join('');
}

/** Renders the command that installs uv where step-runtime.sh has not mounted it, such as in a build elsewhere. */
export function renderUvInstall(): string {
  return `{ [ -x ${uv} ] || python3 -m pip install --quiet --no-compile --disable-pip-version-check --target ${toolFolder} uv==${uvVersion}; }`;
}

/** Renders the lines that add the script to the build stage. */
export function renderInstaller(): string[] {
  return renderListFile(helper, script.trimEnd().split('\n'));
}

/** Installs from a list that pins no versions, or only some. */
export function renderPipInstall(file: string, ...what: readonly string[]): string {
  return `RUN ${cache} bash ${helper} ${file} ${what.join(' ')}`;
}

/** Installs the project itself with its packages. */
export function renderProjectInstall(tree: Tree, file: string, extra: readonly string[]): string {
  return `RUN ${cache} ${renderOwnVersion(tree)}bash ${helper} ${[file, '.', ...extra].join(' ')}`;
}

/** Installs packages beyond the author's. */
export function renderExtras(extra: readonly string[]): string[] {
  return extra.length === 0
    ? []
    : renderStep(
        'plan',
        `installing ${extra.join(', ')}`,
        `RUN ${cache} ${uv} pip install --python /opt/venv/bin/python ${extra.join(' ')}`,
      );
}

/** Writes a requirements file for lists that no installer reads directly. Callers validate each line. */
export function renderListFile(path: string, lines: readonly string[]): string[] {
  return [`COPY <<'${endOfList}' ${path}`, ...lines, endOfList];
}

/**
 * Installs exactly the locked packages, from the list that a command prints. Omits packages that only a GPU needs, and
 * takes torch from the CPU wheel index.
 */
export function renderExportedInstall(exported: string, lock: string, withoutCuda: boolean): string {
  const list = '/tmp/locked.txt';
  const edited = withoutCuda
    ? ` && sed -i -E -e '/^(nvidia-|triton\\b|-e )/d' -e 's/\\+cu[0-9]+//' -e '/download\\.pytorch\\.org/d' ${list}`
    : '';
  return `RUN ${cache} ${exported} > ${list}${edited} && bash ${helper} ${lock} --no-deps -r ${list}`;
}

/** Returns whether it is a plain requirement on one line, and not the word that ends a here-document. */
export function isLine(line: string): boolean {
  return line !== endOfList && /^[A-Za-z0-9][\w.[\],<>=!~*+@:/ ;'"()-]{0,300}$/.test(line);
}
