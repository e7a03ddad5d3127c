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

const buildsFirst = /^(?:npm|pnpm|yarn|bun)(?: run)? build && /;

/**
 * A script that only calls node is called without npm, which would swallow its signals; development packages are then
 * not needed.
 */
export function startScript(tree: Tree, text: string, name = 'start'): Pick<NodeServer, 'command' | 'prune' | 'port'> {
  // The image holds what the build script left; to build at every start would only take time and memory.
  const script = text.replace(buildsFirst, '');
  const file = /^node (?:-\S+ )*(?:\.\/)?([\w./-]+)/.exec(script)?.[1];
  const port = portOfCommand(script) ?? portOfStarted(tree, file);
  if (/^node (?:[\w./=@:-]+ ?)+$/.test(script)) return { command: `exec ${script}`, prune: true, port };
  return { command: name === 'start' ? 'exec npm start' : `exec npm run ${name}`, prune: false, port };
}

/** The port that a file started by node listens on by its own code. */
export function portOfStarted(tree: Tree, file: string | undefined): number | undefined {
  const path = sourcesOf(file?.replace(/^\.\//, '') ?? '').find((each) => tree.has(each));
  return path === undefined ? undefined : portOfFile(tree.text(path));
}

/** Node takes "x" for x.js and x/index.js too, and what a build leaves in dist comes from src as a rule. */
function sourcesOf(name: string): string[] {
  const built = /^(?:dist|build|out|lib)\/(?:src\/)?([\w./-]{1,100}?)(?:\.[cm]?js)?$/.exec(name)?.[1];
  const sources = built === undefined ? [] : [`src/${built}.ts`, `src/${built}.js`, `${built}.ts`];
  return name === '' ? [] : [name, `${name}.js`, `${name}/index.js`, ...sources];
}
