// Starts a Reflex app, whose pages are written in Python. They are compiled while the image is built, with Node next to
// Python, and served with their events on one port. The running app needs no Node.
import type { Tree } from '../../tree.ts';
import type { PythonStart } from './start/find.ts';
import { listPythonSources } from './start/sources.ts';
import { hasImport, parsePython } from '../syntax/python.ts';
import { defaultNode } from '../../../../crds/languages.ts';
import { findMissingImage } from '../common/frontend.ts';
import { type PlanInput, type Problem, renderStep } from '../recipe.ts';
import { listPlaceholderKeys, placeholder } from '../node/placeholders.ts';
import { readRequestedRange, isBelow } from './packages/asked.ts';
import type { PythonPackages } from './packages/find.ts';

const configFile = 'rxconfig.py';
/** The first version that serves its compiled pages itself, on the port of its events. */
export const firstReflex = '0.8.14';
const locks = ['uv.lock', 'poetry.lock', 'Pipfile.lock'];

/** Finds the app that rxconfig.py names; undefined if there is none. */
export function findReflexStart(tree: Tree, names: ReadonlySet<string>): PythonStart | undefined {
  const config = tree.readFile(configFile, 64 * 1024) ?? '';
  const name = /\bapp_name\s{0,9}=\s{0,9}["']([A-Za-z_]\w{0,60})["']/.exec(config)?.[1];
  if (name === undefined || !(names.has('reflex') || hasImport(parsePython(config), 'reflex'))) return undefined;
  return {
    command: formatCommand(tree, readModuleName(config) ?? `${name}.${name}`),
    framework: 'Reflex',
    because: `${configFile} makes it the Reflex app ${name}.`,
    // A list without versions could otherwise get versions from its own time, which cannot serve the pages this way.
    needs: locks.some((each) => tree.has(each)) ? [] : [`'reflex>=${firstReflex}'`],
    environment: {
      REFLEX_ENV_MODE: 'prod',
      REFLEX_TELEMETRY_ENABLED: 'false',
      __REFLEX_SKIP_COMPILE: 'true',
      __REFLEX_MOUNT_FRONTEND_COMPILED_APP: 'true',
    },
    known: names.has('reflex'),
  };
}

/** Reads the module that rxconfig.py specifies instead of the default. */
function readModuleName(config: string): string | undefined {
  return /\bapp_module_import\s{0,9}=\s{0,9}["']([A-Za-z_][\w.]{0,200})["']/.exec(config)?.[1];
}

function formatCommand(tree: Tree, module: string): string {
  const migrate = tree.getEntry('alembic')?.kind === 'directory' ? '( reflex db migrate ) && ' : '';
  return `${migrate}exec granian --interface asgi --factory --host 0.0.0.0 --port $PORT ${module}:app`;
}

export function isReflex(start: PythonStart | undefined): boolean {
  return start?.framework === 'Reflex';
}

/** Returns why its pages cannot be compiled here; undefined if they can. */
export function findReflexProblem(
  tree: Tree,
  input: PlanInput,
  packages: PythonPackages | undefined,
  start: PythonStart | undefined,
): Problem | undefined {
  if (!isReflex(start) || packages === undefined) return undefined;
  const range = readRequestedRange(tree, packages.file, 'reflex');
  if (range !== undefined && isBelow(range, firstReflex)) return createTooOldProblem(packages.file, range);
  return findMissingImage(input, [defaultNode], 'Reflex', configFile);
}

function createTooOldProblem(file: string, range: string): Problem {
  return {
    problem: {
      rule: 'plan/reflex-version',
      severity: 'error',
      file,
      message: `The app asks for Reflex ${range}. Reflex older than ${firstReflex} cannot be planned: it fetches Node from GitHub, and serves its pages and its events on two ports.`,
      fix: `Ask for reflex>=${firstReflex} and follow Reflex's notes on upgrading, or add a Dockerfile.`,
    },
  };
}

/** Renders the stage that provides Node; empty for other apps. */
export function renderNodeStage(start: PythonStart | undefined): string[] {
  return isReflex(start) ? [`FROM ${defaultNode} AS node`, ''] : [];
}

interface Pages {
  readonly packages: PythonPackages | undefined;
  readonly start: PythonStart | undefined;
  /** The line that copies the repository. */
  readonly repository: string;
}

/** Renders the build stage's lines that compile the pages of the repository in /app; empty for other apps. */
export function compilePages(tree: Tree, input: PlanInput, { packages, start, repository }: Pages): string[] {
  if (!isReflex(start)) return [];
  return [
    'COPY --from=node /usr/local/bin/node /usr/local/bin/node',
    'COPY --from=node /usr/local/lib/node_modules/npm /usr/local/lib/node_modules/npm',
    'RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm',
    repository,
    ...buildDefaultArguments(tree, input, packages?.names ?? new Set()),
    ...renderStep(
      configFile,
      'compiling the pages',
      `RUN --mount=type=cache,target=/root/.npm /opt/venv/bin/reflex export --frontend-only --no-zip && rm -rf .web/node_modules`,
    ),
  ];
}

const settings: Readonly<Record<string, string>> = {
  REFLEX_USE_NPM: 'true',
  REFLEX_TELEMETRY_ENABLED: 'false',
  REFLEX_CHECK_LATEST_VERSION: 'false',
  // A page with this host calls the host that served it, over HTTPS if the page was served over HTTPS.
  REFLEX_API_URL: 'http://localhost:8000',
  NODE_EXTRA_CA_CERTS: '/etc/ssl/certs/ca-certificates.crt',
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_update_notifier: 'false',
};

/** Build arguments that the author does not set: settings, and a placeholder for each key. */
function buildDefaultArguments(tree: Tree, input: PlanInput, names: ReadonlySet<string>): string[] {
  const variables = new Set([...input.build.args, ...input.build.env].map((each) => each.name));
  const keys = listPlaceholderKeys(tree, names, listReadVariables(tree)).map((each) => [each, placeholder] as const);
  return [...Object.entries(settings), ...keys]
    .filter(([each]) => !variables.has(each))
    .map(([each, value]) => `ARG ${each}=${value}`);
}

/** Lists variables that the code reads, because compiling a page runs the code. */
function listReadVariables(tree: Tree): string[] {
  return listPythonSources(tree).flatMap(({ text }) =>
    [...text.matchAll(/\bos\.(?:getenv|environ(?:\.get)?)[([]\s{0,9}["']([A-Z][A-Z0-9_]{0,60})["']/g)].map(
      (match) => match[1] ?? '',
    ),
  );
}
