// An existing cluster: only the chart is installed there, with the user's own values.
import { join } from 'node:path';
import { z } from 'zod';
import { kubectlFor, type Kubectl } from '../../localnode/kubectl.ts';
import { lineReporter, say } from '../report.ts';
import { run } from '../../localnode/shell.ts';
import { runSteps } from '../../localnode/steps.ts';
import type { Target } from '../target.ts';
import { installChart, release, waitForRelease } from './helm.ts';
import { checkWorkloads } from './workloads.ts';
import { findHelm, findKubectl } from './tools.ts';
import { homedir } from 'node:os';

const environment = z.array(z.object({ name: z.string(), value: z.string().optional() }));

/** Whether the API is reached from here, through the cluster's own gateway. */
async function checkBaseUrl(kubectl: Kubectl): Promise<string[]> {
  const path = '{.spec.template.spec.containers[0].env}';
  const api = ['-n', release.namespace, 'get', 'deployment', 'moorage-api', '-o', `jsonpath=${path}`];
  const variables = environment.parse(JSON.parse(await kubectl(api)));
  const read = (name: string): string => variables.find((each) => each.name === name)?.value ?? '';
  const url = `https://${read('MOORAGE_BASE_DOMAIN')}:${read('MOORAGE_EXTERNAL_PORT') || '443'}/`;
  const outcome = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(10_000) }).then(
    ({ status }) => (status < 500 ? undefined : `HTTP ${status}`),
    (error: unknown) => (error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error)),
  );
  return outcome === undefined ? [] : [`${url} does not respond as it should (${outcome}): see the gateway`];
}

/** The cluster behind a kubeconfig context. Its gateway, registry and certificate are its own: the values name them. */
export function existingCluster(context: string, values: string | undefined): Target {
  const kubeconfig = process.env['KUBECONFIG'] ?? join(homedir(), '.kube', 'config');
  return {
    up: async () => {
      const [helm, kubectlCommand] = await Promise.all([findHelm(), findKubectl()]);
      const kubectl = kubectlFor(kubectlCommand, kubeconfig, context);
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
        lineReporter(),
      );
      say(`\nMoorage is installed on ${context}. Try: kubectl --context ${context} get happ --all-namespaces`);
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
      say(
        `Moorage was uninstalled from ${context}. The custom resource definition and the HostedApps remain; to delete both: kubectl delete crd hostedapps.moorage.dev`,
      );
    },
    status: async () => {
      const kubectl = kubectlFor(await findKubectl(), kubeconfig, context);
      try {
        say(await kubectl(['-n', release.namespace, 'get', 'deployments,statefulsets,pods']));
        return [...(await checkWorkloads(kubectl, new Set([release.namespace]))), ...(await checkBaseUrl(kubectl))];
      } catch (error) {
        return [error instanceof Error ? error.message : String(error)];
      }
    },
  };
}
