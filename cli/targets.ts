// Where Moorage runs: a cluster that you have, the one-machine node, or kind where Docker is there and the node cannot run.
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { Arguments } from './arguments.ts';
import { existingCluster } from './install/existing.ts';
import { dockerAnswers } from './kind/docker.ts';
import { kindTarget } from './kind/target.ts';
import { nodeTarget } from './node/target.ts';
import { nodeObstacle } from '../localnode/node/machine.ts';
import { paths } from '../localnode/paths.ts';
import type { Target } from './target.ts';

/** What the choice depends on. */
export interface Machine {
  /** What this checkout made here before. */
  nodeExists: boolean;
  kindExists: boolean;
  /** Whether the one-machine node can run here. */
  nodeRuns: boolean;
  dockerAnswers: boolean;
}

/** What exists is used again. Else the node, which needs nothing but the machine, and kind where the node cannot run. */
export function chooseLocal(machine: Machine): 'kind' | 'node' {
  if (machine.nodeExists) return 'node';
  if (machine.kindExists) return 'kind';
  return !machine.nodeRuns && machine.dockerAnswers ? 'kind' : 'node';
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

/** The cluster that the flags name, or the local one that fits this machine. */
export async function pickTarget(args: Arguments): Promise<Target> {
  if (args.context !== undefined) return existingCluster(args.context, args.values);
  if (args.kind) return kindTarget(args);
  const choice = chooseLocal({
    nodeExists: await exists(join(paths.state, 'before.json')),
    kindExists: await exists(paths.kind),
    nodeRuns: (await nodeObstacle()) === undefined,
    dockerAnswers: await dockerAnswers(),
  });
  return choice === 'kind' ? kindTarget(args) : nodeTarget(args);
}
