// The objects that run an app: Deployment, Service, NetworkPolicy and volume claims.
import type {
  V1DeploymentSpec,
  V1NetworkPolicyEgressRule,
  V1NetworkPolicyPeer,
  V1NetworkPolicySpec,
  V1PersistentVolumeClaimSpec,
  V1PodTemplateSpec,
  V1ServiceSpec,
} from '@kubernetes/client-node';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { activator, labels, taskComponent, trialComponent } from '../../../crds/names.ts';
import { assignServicePorts, type PodComponent } from '../../../crds/routes.ts';
import type { KubeObject, Manifest, Wire } from '../../../lib/kubernetes/index.ts';
import type { InstallationConfig } from '../../reconcile/installation-config.ts';
import { chooseClaimName, toKeptClaim } from '../../retention/retention.ts';
import { listGeneratedSecretNames } from './secrets.ts';
import { buildAppPodsSelector, buildServiceEgress } from './services/connections.ts';
import { computeStartupMs, isRecreated, listVolumes } from './components.ts';

export function buildChild(
  app: HostedApp,
  apiVersion: string,
  kind: string,
  name: string,
  marks: Record<string, string> = {},
): Manifest {
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      namespace: app.metadata.namespace,
      labels: buildLabels(app.metadata.name),
      ...(Object.keys(marks).length === 0 ? {} : { annotations: marks }),
      ownerReferences: [
        {
          apiVersion: app.apiVersion,
          kind: app.kind,
          name: app.metadata.name,
          uid: app.metadata.uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
  };
}

/** The wanted number of replicas; at most one with a volume. */
export function resolveReplicas(app: HostedApp): number {
  if (app.spec.suspend) return 0;
  return isRecreated(app) ? Math.min(1, app.spec.run.replicas) : app.spec.run.replicas;
}

/** `marks` are the annotations that record decisions about the rollout. */
export function buildDeployment(
  app: HostedApp,
  template: Wire<V1PodTemplateSpec>,
  marks: Record<string, string>,
  replicas = resolveReplicas(app),
): Manifest {
  return {
    ...buildChild(app, 'apps/v1', 'Deployment', app.metadata.name, marks),
    spec: {
      replicas,
      revisionHistoryLimit: 3,
      // The time on top of the startup time is for scheduling and pulling the image.
      progressDeadlineSeconds: Math.ceil(computeStartupMs(app) / 1000) + 600,
      selector: { matchLabels: buildSelector(app.metadata.name) },
      strategy: isRecreated(app)
        ? { type: 'Recreate' }
        : { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template,
    } satisfies Wire<V1DeploymentSpec>,
  };
}

/**
 * The Service targets ports by name, so that pods of two releases with different ports are both reached.
 *
 * @param components of all pods that may serve; empty if the app is one process
 */
export function buildService(app: HostedApp, components: readonly PodComponent[] = []): Manifest {
  return {
    ...buildChild(app, 'v1', 'Service', app.metadata.name),
    spec: {
      selector: buildSelector(app.metadata.name),
      ports: [...assignServicePorts(components)].map(([name, port]) => ({
        ...{ name, port, protocol: 'TCP', targetPort: name },
      })),
    } satisfies Wire<V1ServiceSpec>,
  };
}

/**
 * All but 25: an app that sends mail itself is a source of spam, and the platform's address would be blocked for it.
 */
const publicPorts = [
  { protocol: 'TCP', port: 1, endPort: 24 },
  { protocol: 'TCP', port: 26, endPort: 65_535 },
  { protocol: 'UDP', port: 1, endPort: 65_535 },
];

/**
 * Ingress only from the gateway, the activator, and the API, which forwards calls of agents; egress only to DNS and public
 * addresses.
 */
export function buildPolicy(app: HostedApp, config: InstallationConfig, ports: readonly number[]): Manifest {
  const listClosedCidrs = (six: boolean): string[] =>
    config.run.closedCidrs.filter((cidr) => cidr.includes(':') === six);
  const buildEgressRule = (cidr: string, except: string[]): Wire<V1NetworkPolicyEgressRule> => ({
    to: [{ ipBlock: { cidr, ...(except.length === 0 ? {} : { except }) } }],
    ports: publicPorts,
  });
  return {
    ...buildChild(app, 'networking.k8s.io/v1', 'NetworkPolicy', app.metadata.name),
    spec: {
      podSelector: buildAppPodsSelector(app),
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        {
          from: [
            { namespaceSelector: { matchLabels: config.gateway.namespaceLabels } },
            buildPlatformPeer(config, 'api'),
            ...(config.idle === undefined ? [] : [buildPlatformPeer(config, activator.component)]),
          ],
          ports: ports.map((port) => ({ port, protocol: 'TCP' })),
        },
      ],
      egress: [
        {
          to: [
            {
              namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } },
              podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } },
            },
          ],
          ports: [
            { port: 53, protocol: 'UDP' },
            { port: 53, protocol: 'TCP' },
          ],
        },
        ...buildModelEgress(app, config),
        ...buildServiceEgress(app),
        buildEgressRule('0.0.0.0/0', listClosedCidrs(false)),
        buildEgressRule('::/0', listClosedCidrs(true)),
      ],
    } satisfies Wire<V1NetworkPolicySpec>,
  };
}

/** Selects the pods of a platform component in a policy. */
function buildPlatformPeer({ systemNamespace }: InstallationConfig, component: string): Wire<V1NetworkPolicyPeer> {
  return {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': systemNamespace } },
    podSelector: { matchLabels: { [labels.name]: 'moorage', [labels.component]: component } },
  };
}

/** Egress to the API for apps with models; everything else inside the cluster stays closed. */
export function buildModelEgress(app: HostedApp, config: InstallationConfig): Wire<V1NetworkPolicyEgressRule>[] {
  const { models } = config.run;
  if (models === undefined || !app.spec.models.enabled) return [];
  return [
    {
      to: [buildPlatformPeer(config, 'api')],
      // Only the API's port for apps.
      ports: [{ port: 8081, protocol: 'TCP' }],
    },
  ];
}

/**
 * Builds the claims of the app's volumes; `claims` are the existing ones. They outlive the volume's entry in the spec: an
 * edit must not delete data.
 */
export function buildClaims(app: HostedApp, config: InstallationConfig, claims: readonly KubeObject[]): Manifest[] {
  const { storageClass } = config.run;
  return listVolumes(app).map(({ name, size }) => {
    const claim: Manifest = {
      ...buildChild(app, 'v1', 'PersistentVolumeClaim', chooseClaimName(app, name, claims)),
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: size } },
        ...(storageClass === undefined ? {} : { storageClassName: storageClass }),
      } satisfies Wire<V1PersistentVolumeClaimSpec>,
    };
    return toKeptClaim(app, claim, listGeneratedSecretNames(app));
  });
}

/** Label selector of all children of apps, including those of their backing services. */
export const childSelector = `${labels.app},${labels.component} in (app,service,${trialComponent},${taskComponent})`;

/** Selects the app's pods; must never change for an existing Deployment. */
function buildSelector(app: string): Record<string, string> {
  return { [labels.app]: app, [labels.component]: 'app' };
}

/** The labels of everything that belongs to an app. */
export function buildLabels(app: string): Record<string, string> {
  return { ...buildSelector(app), [labels.name]: app, [labels.partOf]: 'moorage', [labels.managedBy]: 'moorage' };
}
