// Installs Moorage's chart with Helm and waits until the operator and the API are ready.
import { join } from 'node:path';
import { waitForRollout, type Kubectl } from '../../localnode/kubectl.ts';
import { paths } from '../../localnode/paths.ts';
import { run } from '../../localnode/shell.ts';

export const release = { name: 'moorage', namespace: 'moorage-system' } as const;

export interface HelmTarget {
  helm: string;
  kubeconfig: string;
  context?: string;
}

/**
 * Installs or upgrades the release. `values` are files, `settings` single values such as `image=...`; later ones win.
 */
export async function installChart(
  target: HelmTarget,
  values: readonly string[],
  settings: readonly string[],
): Promise<void> {
  const scope = [
    '--kubeconfig',
    target.kubeconfig,
    ...(target.context === undefined ? [] : ['--kube-context', target.context]),
  ];
  await run(target.helm, [
    ...[
      'upgrade',
      release.name,
      join(paths.root, 'charts', 'moorage'),
      '--install',
      '--namespace',
      release.namespace,
      '--create-namespace',
    ],
    ...['--history-max', '5', '--force-conflicts', ...scope],
    ...values.flatMap((file) => ['--values', file]),
    ...settings.flatMap((setting) => ['--set', setting]),
  ]);
}

/** Values that the release was last given; empty where there is none. */
export async function releaseValues({ helm, kubeconfig }: HelmTarget): Promise<unknown> {
  const scope = ['--kubeconfig', kubeconfig, '--namespace', release.namespace];
  const text = await run(helm, ['get', 'values', release.name, '--output', 'json', ...scope]).catch(() => '{}');
  return JSON.parse(text);
}

/** Waits until every workload of the release serves its current template, but for the Deployments named. */
export async function waitForRelease(kubectl: Kubectl, except: readonly string[] = []): Promise<undefined> {
  const names = await kubectl([
    '-n',
    release.namespace,
    'get',
    'deployments,statefulsets',
    '-l',
    `app.kubernetes.io/instance=${release.name}`,
    '-o',
    'name',
  ]);
  for (const name of names.split('\n').filter((line) => line !== '')) {
    if (except.some((each) => name === `deployment.apps/${each}`)) continue;
    await waitForRollout(kubectl, release.namespace, name, 180);
  }
  return undefined;
}
