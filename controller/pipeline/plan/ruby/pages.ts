// Plans the JavaScript part of a Ruby app: Node and the npm packages that build its assets.
import { defaultNode } from '../../../../crds/languages.ts';
import type { Tree } from '../../tree.ts';
import { renderCopy, type PlanInput, renderStep } from '../recipe.ts';
import {
  buildInstallCommand,
  getManagerPackage,
  renderNodeEnvironment,
  renderReactEnvironment,
  runScript,
} from '../node/manager.ts';
import { readProject, type NodeProject } from '../node/project.ts';
import { chooseNode } from '../node/version.ts';
import type { Bundle } from './bundle.ts';

export interface RubyPages {
  readonly image: string;
  /** Absent if only the program node is needed. */
  readonly project?: NodeProject;
  /** The package.json script `build` must run, because no gem's task runs it. */
  readonly isBuiltFirst: boolean;
  /** The running app needs node too. */
  readonly isRunNeeded: boolean;
}

const bundlers = ['jsbundling-rails', 'cssbundling-rails', 'vite_rails', 'vite_ruby', 'shakapacker', 'webpacker'];
/** Gems that run JavaScript without Node. */
const engines = ['mini_racer', 'therubyracer', 'duktape'];

export function findPages(tree: Tree, bundle: Bundle, { missingImages = [] }: PlanInput): RubyPages | undefined {
  const project = readProject(tree);
  const isScript = bundle.has('execjs') && !bundle.has(...engines);
  const isBundled = bundle.has(...bundlers);
  const isBuilt = project?.scripts['build'] !== undefined;
  if (project === undefined || !(isBundled || isBuilt))
    return isScript ? { image: defaultNode, isBuiltFirst: false, isRunNeeded: true } : undefined;
  return {
    image: chooseNode(tree, project.ranges, missingImages).image,
    project,
    isBuiltFirst: isBuilt && !isBundled,
    isRunNeeded: isScript,
  };
}

const cache = '--mount=type=cache,target=/root/.npm --mount=type=cache,target=/root/.cache';
// Node has its own list of certificate authorities; the image's list also has those of the installation's mirror.
const authorities = 'export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt; ';

/** Renders the lines before the assets are built, with the repository in place. */
export function renderPagesTools(tree: Tree, { image, project, isBuiltFirst }: RubyPages): string[] {
  const node = [
    `COPY --from=${image} /usr/local/bin/ /usr/local/bin/`,
    `COPY --from=${image} /usr/local/lib/node_modules/ /usr/local/lib/node_modules/`,
  ];
  if (project === undefined) return node;
  const manager = getManagerPackage(project);
  // webpacker and vite_ruby call yarn by default.
  const programs = [manager, project.manager === 'npm' ? 'yarn@1.22.22' : undefined].filter(
    (each) => each !== undefined,
  );
  const install = buildInstallCommand(project.manager, project.locked ? project.file : undefined);
  return [
    ...node,
    ...renderNodeEnvironment(project.manager),
    ...renderStep(
      project.file,
      'installing the packages of the pages',
      `RUN ${cache} ${authorities}${programs.length === 0 ? '' : `npm install --global --force ${programs.join(' ')} && `}{ ${install}; }`,
    ),
    ...renderReactEnvironment(tree, project.dependencies, true),
    ...(isBuiltFirst
      ? renderStep(
          'package.json',
          'building the pages',
          `RUN ${cache} ${authorities}${runScript(project.manager, 'build')}`,
        )
      : []),
  ];
}

/** Copies node into the final image. */
export function renderPagesRuntime(pages: RubyPages | undefined): string[] {
  return pages?.isRunNeeded === true
    ? [renderCopy(['/usr/local/bin/node'], '/usr/local/bin/', `--from=${pages.image}`)]
    : [];
}
