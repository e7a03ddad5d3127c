// Whether the one-machine node can run on this machine.
import { succeeds } from '../shell.ts';

const instead = 'start Docker (kind is used then), or use --context NAME with a cluster that you have';

/** What keeps the one-machine node from running here, with what to do instead; undefined when nothing does. */
export async function nodeObstacle(): Promise<string | undefined> {
  if (process.platform !== 'linux') return `the one-machine node runs on Linux, not on ${process.platform}: ${instead}`;
  if (process.getuid?.() !== 0)
    return `the one-machine node sets up network devices and containers, for which it must be root: run this with sudo, ${instead}`;
  if (!(await succeeds('apt-get', ['--version'])))
    return `the one-machine node is built from Debian packages, and this machine has no apt-get: ${instead}`;
  return undefined;
}

/** Throws with what to do instead where the one-machine node cannot run. */
export async function requireNodeMachine(): Promise<void> {
  const obstacle = await nodeObstacle();
  if (obstacle !== undefined) throw new Error(obstacle);
}
