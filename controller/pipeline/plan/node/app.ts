// What a Node project can be, and how its start script is called.
import type { Tree } from '../../tree.ts';
import { portOfCommand, portOfFile } from '../port-literal.ts';

export type NodeApp =
  | {
      readonly kind: 'files';
      readonly framework: string;
      readonly folder: string;
      readonly fallback: boolean;
      readonly because: string;
    }
  | { readonly kind: 'standalone'; readonly framework: string; readonly because: string }
  | NodeServer;

export interface NodeServer {
  readonly kind: 'server';
  readonly framework?: string;
  readonly command: string;
  readonly because: string;
  /** It runs without its development packages. */
  readonly prune: boolean;
  /** Port that it listens on whatever $PORT says. */
  readonly port?: number | undefined;
  /** Variables of the build. */
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * A script that only calls node is called without npm, which would swallow its signals; development packages are then
 * not needed.
 */
export function startScript(
  tree: Tree,
  script: string,
  name = 'start',
): Pick<NodeServer, 'command' | 'prune' | 'port'> {
  const file = /^node (?:-\S+ )*(?:\.\/)?([\w./-]+)/.exec(script)?.[1];
  const port = portOfCommand(script) ?? portOfStarted(tree, file);
  if (/^node (?:[\w./=@:-]+ ?)+$/.test(script)) return { command: `exec ${script}`, prune: true, port };
  return { command: name === 'start' ? 'exec npm start' : `exec npm run ${name}`, prune: false, port };
}

/** The port that a file started by node listens on by its own code; node takes "x" for x.js and x/index.js too. */
export function portOfStarted(tree: Tree, file: string | undefined): number | undefined {
  const name = file?.replace(/^\.\//, '');
  const path = name === undefined ? undefined : [name, `${name}.js`, `${name}/index.js`].find((each) => tree.has(each));
  return path === undefined ? undefined : portOfFile(tree.text(path));
}
