// Where Moorage runs: a cluster that you have, kind when Docker is there, or the one-machine node.
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { Arguments } from './arguments.ts';
import { existingCluster } from './install/existing.ts';
import { kindCluster } from './install/kind.ts';
import { nodeTarget } from './node/target.ts';
import { paths } from './paths.ts';
import { succeeds } from './shell.ts';

export interface Target {
  up: () => Promise<void>;
  down: () => Promise<void>;
  /** Prints what is there; returns what is wrong. */
  status: () => Promise<string[]>;
}

/**
 * The flag's cluster; else the one-machine node if it is up already; else kind where a Docker engine answers; else the
 * one-machine node.
 */
export async function pickTarget(args: Arguments): Promise<Target> {
  if (args.context !== undefined) return existingCluster(args.context, args.values);
  const nodeExists = await access(join(paths.state, 'before.json')).then(
    () => true,
    () => false,
  );
  if (!nodeExists && (await succeeds('docker', ['info']))) return kindCluster(args);
  return nodeTarget(args);
}
