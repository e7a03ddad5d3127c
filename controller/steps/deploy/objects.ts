// The objects beside the pod: Deployment, Service, NetworkPolicy, volume claims and HTTPRoute of an app.
import type {
  V1DeploymentSpec,
  V1NetworkPolicyEgressRule,
  V1NetworkPolicySpec,
  V1PersistentVolumeClaimSpec,
  V1PodTemplateSpec,
  V1ServiceSpec,
} from '@kubernetes/client-node';
import { activator, labels, probeHeader, trialComponent, appHost } from '../../../crds/names.ts';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import type { KubeObject, Manifest, Wire } from '../../../lib/kubernetes/index.ts';
import type { InstallationConfig } from '../../reconcile/installation-config.ts';
import { claimName, keptClaim } from './data.ts';
import { generatedSecretNames } from './generated-secrets.ts';
import { modelEgress, platformPods } from './models.ts';
import { appPods } from './services/names.ts';
import { serviceEgress } from './services/variables.ts';
import { labelsOf, selectorOf, startupMs } from './template.ts';

function child(
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
      labels: labelsOf(app.metadata.name),
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

/** Replicas that are asked for now; with a volume at most one. */
export function replicasOf(app: HostedApp): number {
  if (app.spec.suspend) return 0;
  return isRecreated(app) ? Math.min(1, app.spec.run.replicas) : app.spec.run.replicas;
}

/** The Deployment of one pod template; `marks` are annotations by which the rollout is steered. */
export function deploymentOf(
  app: HostedApp,
  template: Wire<V1PodTemplateSpec>,
  marks: Record<string, string>,
  replicas = replicasOf(app),
): Manifest {
  return {
    ...child(app, 'apps/v1', 'Deployment', app.metadata.name, marks),
    spec: {
      replicas,
      revisionHistoryLimit: 3,
      // Beyond the time to start, what is left is for scheduling and for pulling the image.
      progressDeadlineSeconds: Math.ceil(startupMs(app) / 1000) + 600,
      selector: { matchLabels: selectorOf(app.metadata.name) },
      strategy: isRecreated(app)
        ? { type: 'Recreate' }
        : { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template,
    } satisfies Wire<V1DeploymentSpec>,
  };
}

/** True when the old replica has to go before the new one can come: a volume can be mounted once. */
export function isRecreated(app: HostedApp): boolean {
  return app.spec.run.volumes.length > 0;
}

/** The Service. It aims at the port by name, so that pods of two releases with two ports are both reached. */
export function serviceOf(app: HostedApp): Manifest {
  return {
    ...child(app, 'v1', 'Service', app.metadata.name),
    spec: {
      selector: selectorOf(app.metadata.name),
      ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 'http' }],
    } satisfies Wire<V1ServiceSpec>,
  };
}

/**
 * All but 25: a stranger's app that sends mail itself is a source of spam, and the address of the platform pays for it.
 */
const publicPorts = [
  { protocol: 'TCP', port: 1, endPort: 24 },
  { protocol: 'TCP', port: 26, endPort: 65_535 },
  { protocol: 'UDP', port: 1, endPort: 65_535 },
];

/**
 * Only the gateway, the activator, and the API, which passes calls of agents on, may come in; only DNS and public addresses may be
 * reached.
 */
export function policyOf(app: HostedApp, config: InstallationConfig, ports: readonly number[]): Manifest {
  const closed = (six: boolean): string[] => config.run.closedCidrs.filter((cidr) => cidr.includes(':') === six);
  const open = (cidr: string, except: string[]): Wire<V1NetworkPolicyEgressRule> => ({
    to: [{ ipBlock: { cidr, ...(except.length === 0 ? {} : { except }) } }],
    ports: publicPorts,
  });
  return {
    ...child(app, 'networking.k8s.io/v1', 'NetworkPolicy', app.metadata.name),
    spec: {
      podSelector: appPods(app),
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        {
          from: [
            { namespaceSelector: { matchLabels: config.gateway.namespaceLabels } },
            platformPods(config, 'api'),
            ...(config.idle === undefined ? [] : [platformPods(config, activator.component)]),
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
        ...modelEgress(app, config),
        ...serviceEgress(app),
        open('0.0.0.0/0', closed(false)),
        open('::/0', closed(true)),
      ],
    } satisfies Wire<V1NetworkPolicySpec>,
  };
}

/**
 * The claims of the app's volumes; `claims` are those that it has. They outlive the volume's entry in the spec: data is
 * not deleted by an edit.
 */
export function claimsOf(app: HostedApp, config: InstallationConfig, claims: readonly KubeObject[]): Manifest[] {
  const { storageClass } = config.run;
  return app.spec.run.volumes.map(({ name, size }) => {
    const claim: Manifest = {
      ...child(app, 'v1', 'PersistentVolumeClaim', claimName(app, name, claims)),
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: size } },
        ...(storageClass === undefined ? {} : { storageClassName: storageClass }),
      } satisfies Wire<V1PersistentVolumeClaimSpec>,
    };
    return keptClaim(app, claim, generatedSecretNames(app));
  });
}

function routeFilters({ gateway: { hstsSeconds } }: InstallationConfig, isActivated: boolean): { filters?: object[] } {
  const https = { name: 'Strict-Transport-Security', value: `max-age=${hstsSeconds}` };
  const filters = [
    // The activator reads it and removes it; an app never gets it, from whomever it comes.
    ...(isActivated ? [] : [{ type: 'RequestHeaderModifier', requestHeaderModifier: { remove: [probeHeader] } }]),
    ...(hstsSeconds === 0 ? [] : [{ type: 'ResponseHeaderModifier', responseHeaderModifier: { set: [https] } }]),
  ];
  return filters.length === 0 ? {} : { filters };
}

/** The HTTPRoute; an app that may rest is always reached through the activator, which sees when it is used. */
export function routeOf(app: HostedApp, config: InstallationConfig, isActivated: boolean): Manifest {
  const { name, namespace } = config.gateway;
  return {
    ...child(app, 'gateway.networking.k8s.io/v1', 'HTTPRoute', app.metadata.name),
    spec: {
      parentRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name, namespace, sectionName: 'https' }],
      hostnames: [appHost(app.metadata.name, config.site)],
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: '/' } }],
          ...routeFilters(config, isActivated),
          backendRefs: [
            isActivated
              ? {
                  group: '',
                  kind: 'Service',
                  name: activator.name,
                  namespace: config.systemNamespace,
                  port: 80,
                  weight: 1,
                }
              : { group: '', kind: 'Service', name: app.metadata.name, port: 80, weight: 1 },
          ],
        },
      ],
    },
  };
}

/** Label selector of all the children of apps, with those of their backing services. */
export const childSelector = `${labels.app},${labels.component} in (app,service,${trialComponent})`;
