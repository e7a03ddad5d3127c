// Builds an Elixir app's styles and scripts: the aliases of mix.exs, npm, then Phoenix's digests.
import { posix } from 'node:path';
import { defaultNode } from '../../../../crds/languages.ts';
import type { Tree } from '../../tree.ts';
import { quoteShellWord, renderStep } from '../recipe.ts';
import { buildInstallCommand, getManagerPackage } from '../node/manager.ts';
import { readProject } from '../node/project.ts';
import type { ElixirProject } from './project.ts';

/** Renders the lines after the dependencies, with the repository in place. */
export function renderAssetLines(tree: Tree, project: ElixirProject): string[] {
  const folders = listPackageFolders(tree, project);
  const aliases = ['assets.setup', 'assets.deploy'].filter((name) => hasAlias(project, name));
  // An alias that only builds counts if there is none that deploys.
  const builds = !aliases.includes('assets.deploy') && hasAlias(project, 'assets.build') ? ['assets.build'] : [];
  const digests = project.packages.has('phoenix') && !/"phx\.digest"/.test(findAlias(project, 'assets.deploy'));
  return [
    ...(folders.length === 0
      ? []
      : [
          `COPY --from=${defaultNode} /usr/local/bin/ /usr/local/bin/`,
          `COPY --from=${defaultNode} /usr/local/lib/node_modules/ /usr/local/lib/node_modules/`,
          ...folders.flatMap((folder) => renderPackageLines(tree, folder)),
        ]),
    ...renderStep('mix.exs', 'compiling the app', 'RUN mix compile'),
    ...[...aliases, ...builds].flatMap((name) =>
      renderStep('mix.exs', `building the pages (mix ${name})`, `RUN mix ${name}`),
    ),
    ...(digests ? renderStep('mix.exs', 'naming the files of the pages by their content', 'RUN mix phx.digest') : []),
  ];
}

function hasAlias(project: ElixirProject, name: string): boolean {
  return findAlias(project, name) !== '';
}

/** Reads an alias as written: `"assets.deploy": ["esbuild default --minify", "phx.digest"]`. */
function findAlias({ mix }: ElixirProject, name: string): string {
  return (
    new RegExp(String.raw`"${name.replace('.', String.raw`\.`)}":\s{0,9}(?:\[[^\]]{0,2000}\]|"[^"]{0,300}"|&\w)`).exec(
      mix,
    )?.[0] ?? ''
  );
}

function listPackageFolders(tree: Tree, { apps }: ElixirProject): string[] {
  return apps
    .flatMap(({ folder }) => [posix.join(folder, 'assets'), folder])
    .filter((folder) => tree.has(posix.join(folder, 'package.json')));
}

/** Installs npm packages, and runs the script that writes to priv/static. */
function renderPackageLines(tree: Tree, folder: string): string[] {
  const project = readProject(tree.getSubtree(folder));
  if (project === undefined) return [];
  const file = posix.join(folder, 'package.json');
  const manager = getManagerPackage(project);
  const install = buildInstallCommand(project.manager, project.locked ? project.file : undefined);
  const script = ['deploy', 'build'].find((name) => name in project.scripts);
  const enter = folder === '.' ? '' : `cd ${quoteShellWord(folder)} && `;
  // Node has its own list of certificate authorities; the image's list also has those of the installation's mirror.
  const trust = 'export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt; ';
  return [
    ...renderStep(
      file,
      'installing the packages of the pages',
      `RUN --mount=type=cache,target=/root/.npm ${trust}${enter}${manager === undefined ? '' : `npm install --global --force ${manager} && `}{ ${install}; }`,
    ),
    ...(script === undefined ? [] : renderStep(file, 'building the pages', `RUN ${trust}${enter}npm run ${script}`)),
  ];
}
