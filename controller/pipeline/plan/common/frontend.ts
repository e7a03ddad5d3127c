// Plans the stage that builds the frontend of an app whose server is written in another language.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import { type PlanInput, type Problem, quoteShellWord, renderStep } from '../recipe.ts';
import {
  buildInstallCommand,
  getManagerPackage,
  renderNodeEnvironment,
  renderReactEnvironment,
} from '../node/manager.ts';
import { type NodeProject, readProject } from '../node/project.ts';
import { chooseNode } from '../node/version.ts';

export interface Frontend {
  /** Folder with its package.json. */
  readonly folder: string;
  /** Output folder of its build. */
  readonly output: string;
  readonly script: string;
}

const usual = ['web', 'frontend', 'ui', 'client', 'webui', 'web-ui', 'dashboard', 'app', 'webapp', 'src/web', '.'];
const outputOption = /--out-?dir[= ]\s{0,3}["']?([\w./-]{1,200})/i;
const outputConfigured = /\boutDir\s{0,9}:\s{0,9}["'`]([\w./-]{1,200})["'`]/;
const configs = ['vite.config.ts', 'vite.config.js', 'vite.config.mjs', 'vite.config.mts'];

/** Finds the Node project whose build writes to this folder, or the most likely one; undefined if there is none. */
export function findFrontend(tree: Tree, target: string): Frontend | undefined {
  const frontends = listAllFrontends(tree);
  return (
    frontends.find((each) => each.output === target || target.startsWith(`${each.output}/`)) ??
    usual.flatMap((name) => frontends.find((each) => each.folder === name) ?? [])[0]
  );
}

/**
 * Finds the Node project whose build writes to another folder of the repository, which the commit lacks: that is where
 * a server reads its pages, as in `outDir: '../backend/static'`.
 */
export function findFrontendForServer(tree: Tree): Frontend | undefined {
  return listAllFrontends(tree).find(
    ({ folder, output }) =>
      folder !== '.' &&
      output !== '.' &&
      !output.startsWith('../') &&
      !`${output}/`.startsWith(`${folder}/`) &&
      !tree.has(posix.join(output, 'index.html')),
  );
}

function listAllFrontends(tree: Tree): Frontend[] {
  return tree.entries
    .filter((each) => each.kind === 'file' && /^(?:[^/]+\/){0,3}package\.json$/.test(each.path))
    .slice(0, 20)
    .flatMap((each) => listFrontends(tree, posix.dirname(each.path)));
}

/** Lists the output folder of each build script. */
function listFrontends(tree: Tree, folder: string): Frontend[] {
  const project = readProject(tree.getSubtree(folder));
  if (project === undefined) return [];
  const config =
    configs.map((name) => tree.readFile(posix.join(folder, name))).find((text) => text !== undefined) ?? '';
  const configured = outputConfigured.exec(config)?.[1];
  return Object.entries(project.scripts).flatMap(([script, command]) => {
    const named = outputOption.exec(command)?.[1];
    if (named === undefined && script !== 'build') return [];
    const usualOutput = project.dependencies.has('react-scripts') ? 'build' : 'dist';
    return [{ folder, script, output: posix.join(folder, named ?? configured ?? usualOutput) }];
  });
}

interface FrontendStage {
  /** Folder that receives the built pages. */
  readonly target: string;
  readonly missingImages: readonly string[] | undefined;
  /** Fallback command if the pages cannot be built; without one, the build fails. */
  readonly otherwise?: string;
}

/** Renders a stage named `frontend`, with the repository in /app and the Node version that the frontend requests. */
export function renderFrontendStage(
  tree: Tree,
  { folder, script, output }: Frontend,
  { target, missingImages, otherwise }: FrontendStage,
): string[] {
  const frontend = tree.getSubtree(folder);
  const project = readProject(frontend);
  if (project === undefined) return [];
  const file = posix.join(folder, 'package.json');
  const installed = selectInstalledProject(tree, folder, project);
  return [
    `FROM ${chooseNode(frontend, project.ranges, missingImages).image} AS frontend`,
    ...renderNodeEnvironment(installed.manager),
    'WORKDIR /app',
    'COPY . .',
    `WORKDIR ${JSON.stringify(posix.join('/app', folder))}`,
    ...renderStep(
      file,
      'installing the packages of the pages',
      `RUN --mount=type=cache,target=/root/.npm ${install(installed)}`,
    ),
    ...renderReactEnvironment(frontend, project.dependencies, true),
    ...renderStep(
      file,
      'building the pages',
      `RUN npm run ${quoteShellWord(script)}${renderMove(output, target)}${otherwise === undefined ? '' : ` || ${otherwise}`}`,
    ),
  ];
}

/** Selects the project whose lock file counts: a package of a workspace has none, and its manager finds the root's. */
function selectInstalledProject(tree: Tree, folder: string, project: NodeProject): NodeProject {
  const root = folder === '.' || project.locked ? undefined : readProject(tree);
  return root?.isWorkspace === true && root.locked ? root : project;
}

/** A build that writes to the target folder itself leaves nothing to move. */
function renderMove(output: string, target: string): string {
  if (output === target || target.startsWith(`${output}/`)) return '';
  const [from, to] = [quoteShellWord(posix.join('/app', output)), quoteShellWord(posix.join('/app', target))];
  return ` && if [ -d ${from} ]; then mkdir -p ${to} && cp -r ${from}/. ${to}/; fi`;
}

/** Installs the project's version of its package manager, then all packages. */
function install(project: NodeProject): string {
  const manager = getManagerPackage(project);
  const command = buildInstallCommand(project.manager, project.locked ? project.file : undefined);
  return manager === undefined ? command : `npm install --global --force ${manager} && ${command}`;
}

export function findMissingImage(
  { missingImages = [] }: PlanInput,
  needed: readonly string[],
  language: string,
  file: string,
): Problem | undefined {
  const missing = needed.find((image) => missingImages.includes(image));
  if (missing === undefined) return undefined;
  return {
    problem: {
      rule: 'plan/base-image',
      severity: 'error',
      file,
      message: `This is a ${language} app, and the image ${missing}, from which it would be built, is not on this installation.`,
      fix: 'Add a Dockerfile that starts from an image that is there, or ask the operator of this installation to add it to the registry mirror and to take it out of registry.missingImages.',
    },
  };
}

const dockerfile = /(?:^|\/)(?:[\w.-]{1,60}\.)?(?:Dockerfile|Containerfile)(?:\.[\w-]{1,40})?$/i;

/** Returns the only port that the Dockerfiles in the tree expose; undefined if there is none or they differ. */
export function findExposedPort(tree: Tree): number | undefined {
  const ports = tree.entries
    .filter((each) => each.kind === 'file' && dockerfile.test(each.path) && each.path.split('/').length <= 3)
    .slice(0, 10)
    .flatMap((each) => [...(tree.readFile(each.path, 64 * 1024) ?? '').matchAll(/^\s{0,9}EXPOSE\s{1,9}(\d{4,5})\b/gim)])
    .map((match) => Number(match[1]));
  const [first, ...more] = new Set(ports);
  return more.length === 0 ? first : undefined;
}
