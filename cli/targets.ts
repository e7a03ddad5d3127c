// Chooses where Moorage runs: an existing cluster, the one-machine node, or kind if Docker is available and the node cannot
// run.
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { homedir } from 'node:os';
import { z } from 'zod';
import type { Arguments, Target } from './arguments.ts';
import { isDockerAnswering } from './kind/docker.ts';
import { createKindTarget } from './kind/target.ts';
import { createNodeTarget } from './node/target.ts';
import { findNodeObstacle } from '../localnode/node/disk/space.ts';
import { paths } from '../localnode/paths.ts';
import { createKubectl, type Kubectl } from '../localnode/kubectl.ts';
import { createLineReporter, printLine } from './report.ts';
import { run } from '../localnode/shell.ts';
import { runSteps } from '../localnode/steps.ts';
import { installChart, release, waitForRelease, checkWorkloads } from './install/release.ts';
import { findHelm, findKubectl } from './install/programs.ts';

/** The cluster that the flags name, or the local one that fits this machine. */
export async function pickTarget(args: Arguments): Promise<Target> {
  if (args.context !== undefined) return createExistingTarget(args.context, args.values);
  if (args.kind) return createKindTarget(args);
  const choice = chooseLocal({
    nodeExists: await isExistingPath(join(paths.state, 'before.json')),
    kindExists: await isExistingPath(paths.kind),
    nodeRuns: (await findNodeObstacle()) === undefined,
    dockerAnswers: await isDockerAnswering(),
  });
  return choice === 'kind' ? createKindTarget(args) : createNodeTarget(args);
}

/** The facts that the choice depends on. */
export interface Machine {
  /** Whether this checkout created one here before. */
  nodeExists: boolean;
  kindExists: boolean;
  /** Whether the one-machine node can run here. */
  nodeRuns: boolean;
  dockerAnswers: boolean;
}

/** An existing cluster is used again. Otherwise the node, which needs nothing but the machine, or kind if it cannot run. */
export function chooseLocal(machine: Machine): 'kind' | 'node' {
  if (machine.nodeExists) return 'node';
  if (machine.kindExists) return 'kind';
  return !machine.nodeRuns && machine.dockerAnswers ? 'kind' : 'node';
}

async function isExistingPath(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

/**
 * The cluster of a kubeconfig context, which gets only the chart. Its gateway, registry and certificate are named in the
 * values.
 */
function createExistingTarget(context: string, values: string | undefined): Target {
  const kubeconfig = process.env['KUBECONFIG'] ?? join(homedir(), '.kube', 'config');
  return {
    up: async () => {
      const [helm, kubectlCommand] = await Promise.all([findHelm(), findKubectl()]);
      const kubectl = createKubectl(kubectlCommand, kubeconfig, context);
      await runSteps(
        [
          { name: `cluster ${context} answers`, run: () => kubectl(['version', '-o', 'yaml']).then(() => undefined) },
          {
            name: 'moorage chart',
            needs: [`cluster ${context} answers`],
            run: async () => {
              await installChart({ helm, kubeconfig, context }, values === undefined ? [] : [values], []);
              return undefined;
            },
          },
          { name: 'moorage ready', needs: ['moorage chart'], run: () => waitForRelease(kubectl) },
        ],
        createLineReporter(),
      );
      printLine(`\nMoorage is installed on ${context}. Try: kubectl --context ${context} get happ --all-namespaces`);
    },
    down: async () => {
      const helm = await findHelm();
      await run(helm, [
        'uninstall',
        release.name,
        '--namespace',
        release.namespace,
        '--kubeconfig',
        kubeconfig,
        '--kube-context',
        context,
        '--ignore-not-found',
      ]);
      printLine(
        `Moorage was uninstalled from ${context}. The custom resource definition and the HostedApps remain; to delete both: kubectl delete crd hostedapps.moorage.dev`,
      );
    },
    status: async () => {
      const kubectl = createKubectl(await findKubectl(), kubeconfig, context);
      try {
        printLine(await kubectl(['-n', release.namespace, 'get', 'deployments,statefulsets,pods']));
        return [...(await checkWorkloads(kubectl, new Set([release.namespace]))), ...(await checkBaseUrl(kubectl))];
      } catch (error) {
        return [error instanceof Error ? error.message : String(error)];
      }
    },
  };
}

const environmentVariables = z.array(z.object({ name: z.string(), value: z.string().optional() }));

/** Checks that the API can be reached from here, through the cluster's own gateway. */
async function checkBaseUrl(kubectl: Kubectl): Promise<string[]> {
  const path = '{.spec.template.spec.containers[0].env}';
  const api = ['-n', release.namespace, 'get', 'deployment', 'moorage-api', '-o', `jsonpath=${path}`];
  const variables = environmentVariables.parse(JSON.parse(await kubectl(api)));
  const read = (name: string): string => variables.find((each) => each.name === name)?.value ?? '';
  const url = `https://${read('MOORAGE_BASE_DOMAIN')}:${read('MOORAGE_EXTERNAL_PORT') || '443'}/`;
  const outcome = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(10_000) }).then(
    ({ status }) => (status < 500 ? undefined : `HTTP ${status}`),
    (error: unknown) => (error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error)),
  );
  return outcome === undefined ? [] : [`${url} does not respond as it should (${outcome}): see the gateway`];
}
