// Node or Bun for a Rust app whose build script (build.rs) calls them, for the styles and scripts of its pages.
import type { Tree } from '../../tree.ts';
import { step } from '../dockerfile-text.ts';
import { installCommand, managerPackage } from '../node/manager.ts';
import { readProject } from '../node/project.ts';
import { defaultNode } from '../recipe.ts';

const calls = /Command::new\(\s{0,20}"(bunx?|npm|npx|node|yarn|pnpm)"/;

/** The program of Node or Bun that build.rs calls first; undefined when it calls none. */
export function calledByBuildScript(tree: Tree): string | undefined {
  return calls.exec(tree.text('build.rs') ?? '')?.[1];
}

/** Lines that go before the compiler, with the repository in place: Node, the package manager, and the packages. */
export function buildScriptTools(tree: Tree, called: string): string[] {
  const project = readProject(tree);
  // Bun also runs where the lock is another's.
  const managers = [
    project === undefined ? undefined : managerPackage(project),
    called.startsWith('bun') && project?.manager !== 'bun' ? 'bun@1' : undefined,
  ].filter((each) => each !== undefined);
  const commands = [
    ...(managers.length === 0 ? [] : [`npm install --global --force ${managers.join(' ')}`]),
    ...(project === undefined
      ? []
      : [`{ ${installCommand(project.manager, project.locked ? project.file : undefined)}; }`]),
  ];
  return [
    `COPY --from=${defaultNode} /usr/local/bin/ /usr/local/bin/`,
    `COPY --from=${defaultNode} /usr/local/lib/node_modules/ /usr/local/lib/node_modules/`,
    ...(commands.length === 0
      ? []
      : step(
          'build.rs',
          `installing what it calls (${called})`,
          // Node has its own list of authorities; the image's has those of the installation's mirror too.
          `RUN --mount=type=cache,target=/root/.npm export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt; ${commands.join(' && ')}`,
        )),
  ];
}
