// Plans Deno apps: the image caches the dependencies, and a task or the main file starts the app.
import { languages } from '../../../../crds/languages.ts';
import type { Tree } from '../../tree.ts';
import { findMissingImage } from '../common/frontend.ts';
import {
  renderCopy,
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
import { type DenoStart, findStart, mains, parseJsonc } from './start.ts';

const ignore = ['.git', '**/node_modules', '**/.DS_Store'];

export const deno: Planner = {
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined {
    const file = ['deno.json', 'deno.jsonc'].find((each) => tree.has(each));
    if (file === undefined)
      return findImportingMain(tree) === undefined ? undefined : planStart(tree, input, 'main.ts', undefined);
    return planStart(tree, input, file, parseJsonc(tree.readFile(file)));
  },
};

/** A main file that imports by URL is a Deno program, even without a configuration file. */
function findImportingMain(tree: Tree): string | undefined {
  if (tree.has('package.json')) return undefined;
  return mains.find((each) =>
    /from\s{1,9}["'](?:https:\/\/deno\.land|jsr:|npm:)|\bDeno\.serve\(/.test(tree.readFile(each) ?? ''),
  );
}

function planStart(tree: Tree, input: PlanInput, file: string, config: unknown): Recipe | Problem | undefined {
  const start = findStart(tree, config);
  // Node projects have this file too, for Deno's formatter.
  if (tree.has('package.json') && start?.byTask !== true) return undefined;
  if (start === undefined && !input.hasCommand) return createNoStartProblem(file);
  return (
    findMissingImage(input, [languages.deno.images[0].image], 'Deno', file) ?? createRecipe(tree, input, file, start)
  );
}

function createNoStartProblem(file: string): Problem {
  return {
    problem: {
      rule: 'plan/no-start',
      severity: 'error',
      file,
      message: 'This is a Deno project, but nothing defines how to start it.',
      fix: 'Add a task "start" to it, or a main.ts that serves on Deno.env.get("PORT"), or set run.command in moorage.yaml.',
    },
  };
}

function createRecipe(tree: Tree, input: PlanInput, file: string, start: DenoStart | undefined): Recipe {
  const port = input.port ?? start?.port ?? defaultPort;
  const reason = explainPlan(file, start);
  return {
    plan: { strategy: 'deno', reason, port, ...(start?.framework === undefined ? {} : { framework: start.framework }) },
    ...markFixedPort(input, start?.port),
    dockerfile: renderDockerfile(reason, [
      `FROM ${languages.deno.images[0].image}`,
      'ENV DENO_DIR=/deno-dir DENO_NO_UPDATE_CHECK=1 DENO_NO_PROMPT=1',
      'RUN useradd --create-home --uid 1000 app && install -d -o 1000 -g 1000 /app /deno-dir',
      'USER 1000:1000',
      'WORKDIR /app',
      ...renderArguments(input),
      renderCopy(['.'], './', '--chown=1000:1000'),
      ...renderFetchSteps(tree, file, start),
      `ENV PORT=${port} HOST=0.0.0.0`,
      `EXPOSE ${port}`,
      ...(start === undefined ? [] : [renderShellCommand(start.command)]),
    ]),
    ignore,
    findings: [],
  };
}

function explainPlan(file: string, start: DenoStart | undefined): string {
  const literal = start?.port === undefined ? '' : ` Its code listens on port ${start.port}.`;
  return `${file} makes this a Deno app. ${start?.because ?? 'run.command says how it starts.'}${literal}`;
}

/** Caches everything that a start would have to fetch. */
function renderFetchSteps(tree: Tree, file: string, start: DenoStart | undefined): string[] {
  const modules = tree.has('package.json') || (tree.readFile(file) ?? '').includes('"nodeModulesDir"');
  return [
    ...(modules ? renderStep(file, 'installing the packages', 'RUN deno install --allow-scripts') : []),
    ...(start?.build === true ? renderStep(file, 'running the build task', 'RUN deno task build') : []),
    ...(start?.entry === undefined
      ? []
      : renderStep(start.entry, 'fetching the modules', `RUN deno cache ${quoteShellWord(start.entry)}`)),
  ];
}
