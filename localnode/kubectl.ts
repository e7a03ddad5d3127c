// Runs kubectl against the cluster of `up`.
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { run } from './shell.ts';

export interface Kubectl {
  /** Runs kubectl and returns what it printed. */
  (args: readonly string[], input?: string): Promise<string>;
}

/** Creates a kubectl for one kubeconfig, and for one of its contexts if given. */
export function createKubectl(command: string, kubeconfig: string, context?: string): Kubectl {
  const scope = context === undefined ? [] : [`--context=${context}`];
  return (args, input) =>
    run(command, [...scope, ...args], { env: { KUBECONFIG: kubeconfig }, ...(input === undefined ? {} : { input }) });
}

/** Replaces each `@NAME@` in a manifest with its value. Throws if there is no value. */
export function fillIn(text: string, values: Readonly<Record<string, string>>): string {
  return text.replaceAll(/@([A-Z_]+(?::[a-z0-9-]+)?)@/g, (placeholder, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`the manifest contains ${placeholder}, but no value was given for it`);
    return value;
  });
}

/** Applies manifests server-side, so that a field removed from them is removed from the cluster too. */
export async function apply(kubectl: Kubectl, manifests: string): Promise<void> {
  await kubectl(['apply', '--server-side', '--force-conflicts', '--field-manager=moorage-up', '-f', '-'], manifests);
}

export async function applyFile(
  kubectl: Kubectl,
  path: string,
  values: Readonly<Record<string, string>> = {},
): Promise<void> {
  await apply(kubectl, fillIn(await readFile(path, 'utf8'), values));
}

const nodes = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string() }),
      status: z.object({ conditions: z.array(z.object({ type: z.string(), status: z.string() })) }),
    }),
  ),
});

/** Lists resources that nodes have run out of, one per line: a pod that is pending because of it does not report it. */
export function listPressures(json: string): string[] {
  return nodes.parse(JSON.parse(json)).items.flatMap(({ metadata, status }) =>
    status.conditions.flatMap((condition) => {
      const scarce = condition.status === 'True' ? /^(\w+)Pressure$/.exec(condition.type)?.[1] : undefined;
      if (scarce === undefined) return [];
      const resource = { Disk: 'disk space', Memory: 'memory', PID: 'process ids' }[scarce] ?? scarce;
      return `node ${metadata.name} is short of ${resource}, so it evicts pods and starts none: free some (${condition.type})`;
    }),
  );
}

/** Waits until a workload serves its current template; a name without a kind is a Deployment. */
export async function waitForRollout(
  kubectl: Kubectl,
  namespace: string,
  name: string,
  seconds: number,
): Promise<void> {
  const workload = name.includes('/') ? name : `deployment/${name}`;
  try {
    await kubectl(['-n', namespace, 'rollout', 'status', workload, `--timeout=${seconds}s`]);
  } catch (error) {
    const pods = await kubectl(['-n', namespace, 'get', 'pods', '-o', 'wide']).catch(() => '');
    const events = await kubectl(['-n', namespace, 'events', '--types=Warning']).catch(() => '');
    const scarce = await kubectl(['get', 'nodes', '-o', 'json']).then(listPressures, () => []);
    const problem = `${workload} in ${namespace} did not become available within ${seconds} s`;
    throw new Error([problem, pods, ...events.split('\n').slice(-8), ...scarce].join('\n'), { cause: error });
  }
}
