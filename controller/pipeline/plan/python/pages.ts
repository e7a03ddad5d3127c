// The pages of a Python app: whether it has any, and those that a package.json beside it builds first, in a stage of
// Node.
import type { Tree } from '../../tree.ts';
import { formatReport } from '../build-warnings.ts';
import { renderFrontendStage } from '../common/frontend.ts';
import { renderCopy, type PlanInput, renderStep } from '../recipe.ts';
import { findFramework } from '../node/framework.ts';
import { readProject } from '../node/project.ts';
import { findServerLibrary } from '../node/app.ts';
import { listPythonSources } from './start/sources.ts';

const frameworksOfCalls: ReadonlySet<string> = new Set(['FastAPI', 'Flask', 'Starlette', 'Quart', 'Litestar', 'Sanic']);
/** What the code of a server has that sends pages, of its own or built elsewhere. */
const sendsPages =
  /StaticFiles|\bfrontend\(|Templates|render_template|TemplateResponse|HTMLResponse|send_from_directory|static_folder|static_files|add_static|\.html?["']/;

/** True when its framework answers calls, and nothing in its code sends a page. */
export function isApiOnly(tree: Tree, framework: string | undefined): boolean {
  if (framework === undefined || !frameworksOfCalls.has(framework)) return false;
  return !listPythonSources(tree).some(({ text }) => sendsPages.test(text));
}

/** True when a build script at the top makes files for the app; a server of Node is another app. */
export function hasPagesBuild(tree: Tree): boolean {
  const project = readProject(tree);
  if (project?.scripts['build'] === undefined || findServerLibrary(project.runtime) !== undefined) return false;
  const framework = findFramework(tree, project);
  return framework === undefined || framework.kind === 'files';
}

/**
 * Lines of the stage `frontend`, which leaves the repository with what was built in /app. An app whose pages cannot be
 * built may still serve: that is a warning.
 */
export function renderPagesStage(tree: Tree, { missingImages }: Pick<PlanInput, 'missingImages'>): string[] {
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

/** Copies the repository with what was built. */
export function renderPagesCopy(...flags: readonly string[]): string {
  return renderCopy(['/app/'], './', '--from=frontend', ...flags);
}
