// Detects the pages of a Python app, and renders the Node stage that builds them from a package.json next to it.
import type { Tree } from '../../tree.ts';
import { formatReport } from '../build-warnings.ts';
import { renderFrontendStage } from '../common/frontend.ts';
import { renderCopy, type PlanInput, renderStep } from '../recipe.ts';
import { findFramework } from '../node/framework.ts';
import { readProject } from '../node/project.ts';
import { findServerLibrary } from '../node/app.ts';
import { listPythonSources } from './start/sources.ts';

const frameworksOfCalls: ReadonlySet<string> = new Set(['FastAPI', 'Flask', 'Starlette', 'Quart', 'Litestar', 'Sanic']);
/** Server code that sends pages, its own or prebuilt ones. */
const sendsPages =
  /StaticFiles|\bfrontend\(|Templates|render_template|TemplateResponse|HTMLResponse|send_from_directory|static_folder|static_files|add_static|\.html?["']/;

/** Returns true if its framework serves APIs, and no code sends a page. */
export function isApiOnly(tree: Tree, framework: string | undefined): boolean {
  if (framework === undefined || !frameworksOfCalls.has(framework)) return false;
  return !listPythonSources(tree).some(({ text }) => sendsPages.test(text));
}

/** Returns true if a build script at the root produces files for the app; a Node server would be a separate app. */
export function hasPagesBuild(tree: Tree): boolean {
  const project = readProject(tree);
  if (project?.scripts['build'] === undefined || findServerLibrary(project.runtime) !== undefined) return false;
  const framework = findFramework(tree, project);
  return framework === undefined || framework.kind === 'files';
}

/**
 * Renders the stage `frontend`, which leaves the repository with the build output in /app. An app may still work if its
 * pages cannot be built, so a failure is only a warning.
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

/** Copies the repository together with the build output. */
export function renderPagesCopy(...flags: readonly string[]): string {
  return renderCopy(['/app/'], './', '--from=frontend', ...flags);
}
