// The objects that run an app: Deployment with its pod template, Service, NetworkPolicy and volume claims.
import type {
  V1DeploymentSpec,
  V1NetworkPolicyEgressRule,
  V1NetworkPolicyPeer,
  V1NetworkPolicySpec,
  V1PersistentVolumeClaimSpec,
  V1PodTemplateSpec,
  V1ServiceSpec,
  V1Container,
  V1EnvVar,
  V1PodSpec,
} from '@kubernetes/client-node';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { activator, labels, trialComponent, annotations, formatAppHost, formatAppUrl } from '../../../crds/names.ts';
import { type KubeObject, type Manifest, type Wire, computeHash } from '../../../lib/kubernetes/index.ts';
import type { InstallationConfig } from '../../reconcile/installation-config.ts';
import { chooseClaimName, toKeptClaim } from '../../retention/retention.ts';
import {
  listGeneratedSecretNames,
  buildGeneratedVariable,
  buildModelKeyVariables,
  buildModelVariables,
  resolveModelAccess,
} from './secrets.ts';
import {
  buildAppPodsSelector,
  buildServiceEgress,
  buildHostAliases,
  buildPasswordVariables,
  buildServiceVariables,
  expandReferences,
  type ServiceAddresses,
} from './services/connections.ts';
import { generatedSecret } from '../../../crds/values.ts';
import { parseDuration } from '../../../lib/values.ts';
import { divideQuantity, parseBytes } from '../../objects/kinds.ts';

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
      progressDeadlineSeconds: Math.ceil(parseStartupMs(app) / 1000) + 600,
      selector: { matchLabels: buildSelector(app.metadata.name) },
      strategy: isRecreated(app)
        ? { type: 'Recreate' }
        : { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template,
    } satisfies Wire<V1DeploymentSpec>,
  };
}

/** True when the old replica must end before the new one starts: a volume can be mounted once. */
export function isRecreated(app: HostedApp): boolean {
  return app.spec.run.volumes.length > 0;
}

/** The Service targets the port by name, so that pods of two releases with different ports are both reached. */
export function buildService(app: HostedApp): Manifest {
  return {
    ...buildChild(app, 'v1', 'Service', app.metadata.name),
    spec: {
      selector: buildSelector(app.metadata.name),
      ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 'http' }],
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
  return app.spec.run.volumes.map(({ name, size }) => {
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
export const childSelector = `${labels.app},${labels.component} in (app,service,${trialComponent})`;

// The pod template: rights, limits, variables and probes.

/** An image, with the commit and settings that it was built from. */
export interface Release {
  readonly image: string;
  readonly commit: string;
  readonly port: number;
  /** The settings in moorage.yaml of the commit, as JSON. */
  readonly settings?: string | undefined;
  /** The rebuild that made it: another one restarts the pods, even if the image is the same. */
  readonly attempt?: string | undefined;
}

/** Selects the app's pods; must never change for an existing Deployment. */
function buildSelector(app: string): Record<string, string> {
  return { [labels.app]: app, [labels.component]: 'app' };
}

/** The labels of everything that belongs to an app. */
export function buildLabels(app: string): Record<string, string> {
  return { ...buildSelector(app), [labels.name]: app, [labels.partOf]: 'moorage', [labels.managedBy]: 'moorage' };
}

/** Milliseconds that the app may take to start. */
export function parseStartupMs(app: HostedApp): number {
  return parseDuration(app.spec.run.startupTime);
}

/** Objects of the app that exist already. */
interface OwnedObjects {
  readonly claims: readonly KubeObject[];
  /** Of its backing services. */
  readonly addresses: ServiceAddresses;
}

/** Builds the pod template, with a hash of itself that identifies its pods. */
export function buildPodTemplate(
  app: HostedApp,
  config: InstallationConfig,
  release: Release,
  owned: OwnedObjects,
): { hash: string; template: Wire<V1PodTemplateSpec> } {
  const spec = buildPodSpec(app, config, release, owned);
  const hash = computeHash([spec, release.commit, ...(release.attempt === undefined ? [] : [release.attempt])]);
  const marks = {
    [annotations.template]: hash,
    [annotations.port]: String(release.port),
    [annotations.commit]: release.commit,
    [annotations.image]: release.image,
    [annotations.disk]: String(parseBytes(app.spec.run.resources.disk)),
  };
  return {
    hash,
    template: {
      metadata: {
        labels: { ...buildLabels(app.metadata.name), [labels.commit]: release.commit.slice(0, 40) },
        annotations: marks,
      },
      spec,
    },
  };
}

// Ordinary images need these to start: to drop root, to own their files, and to listen below 1024.
const capabilities = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID', 'KILL', 'NET_BIND_SERVICE'];

function buildPodSpec(
  app: HostedApp,
  config: InstallationConfig,
  release: Release,
  { claims, addresses }: OwnedObjects,
): Wire<V1PodSpec> {
  const { run } = app.spec;
  const { runtimeClass, priorityClass } = config.run;
  const { pullSecret } = config.registry;
  const aliases = buildHostAliases(app, addresses);
  return {
    hostUsers: false,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // A sleep before the stop lets the gateway forget this pod while it still answers. If requests are held instead, they
    // wait for its end, and many programs ignore SIGTERM. Two seconds are the minimum that a kubelet gives.
    terminationGracePeriodSeconds: isHeldWhileReplaced(app, config) ? 2 : 35,
    securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
    ...(runtimeClass === undefined ? {} : { runtimeClassName: runtimeClass }),
    ...(priorityClass === undefined ? {} : { priorityClassName: priorityClass }),
    ...(pullSecret === undefined ? {} : { imagePullSecrets: [{ name: pullSecret }] }),
    ...(aliases.length === 0 ? {} : { hostAliases: aliases }),
    containers: [buildContainer(app, config, release)],
    ...(run.volumes.length === 0
      ? {}
      : {
          volumes: run.volumes.map(({ name }) => ({
            name,
            persistentVolumeClaim: { claimName: chooseClaimName(app, name, claims) },
          })),
        }),
  };
}

function buildContainer(app: HostedApp, config: InstallationConfig, release: Release): Wire<V1Container> {
  const { run } = app.spec;
  const limits = { cpu: run.resources.cpu, memory: run.resources.memory, 'ephemeral-storage': run.resources.disk };
  return {
    name: 'app',
    image: release.image,
    imagePullPolicy: 'IfNotPresent',
    terminationMessagePolicy: 'FallbackToLogsOnError',
    ...(run.command.length === 0 ? {} : { command: run.command }),
    env: [
      ...buildPasswordVariables(app),
      ...buildModelKeyVariables(app, config),
      ...buildVariables(app, config, release.port),
      ...buildServiceVariables(app),
      ...buildModelVariables(app, config),
    ],
    ports: [{ name: 'http', containerPort: release.port, protocol: 'TCP' }],
    resources: { limits, requests: deriveRequests(run.resources) },
    securityContext: {
      privileged: false,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'], add: capabilities },
    },
    ...(isHeldWhileReplaced(app, config) ? {} : { lifecycle: { preStop: { sleep: { seconds: 5 } } } }),
    ...buildProbes(app),
    ...(run.volumes.length === 0
      ? {}
      : { volumeMounts: run.volumes.map(({ name, path }) => ({ name, mountPath: path })) }),
  };
}

/** Whether requests are held while a pod replaces another: the activator forgets a pod as soon as it is terminating. */
function isHeldWhileReplaced({ spec }: HostedApp, { idle }: InstallationConfig): boolean {
  return idle !== undefined && spec.run.volumes.length > 0;
}

/** Initial requests, until measured use replaces them (controller/usage). Without requests, Kubernetes would request the limits. */
export function deriveRequests({ cpu, memory, disk }: HostedApp['spec']['run']['resources']): Record<string, string> {
  return {
    cpu: divideQuantity(cpu, 100n),
    memory: divideQuantity(memory, 8n),
    'ephemeral-storage': divideQuantity(disk, 16n),
  };
}

function buildVariables(app: HostedApp, config: InstallationConfig, port: number): Wire<V1EnvVar>[] {
  const { env, secrets } = app.spec.run;
  const { name } = app.metadata;
  const context = {
    services: app.spec.services,
    models: resolveModelAccess(app, config),
    app: { host: formatAppHost(name, config.site), url: new URL(formatAppUrl(name, config.site)).origin },
  };
  return [
    { name: 'PORT', value: String(port) },
    // The API server drops an empty value, so it must not be applied.
    ...env.map(({ name, value }) => {
      if (generatedSecret.test(value)) return buildGeneratedVariable(app, name);
      return value === '' ? { name } : { name, value: expandReferences(value, context) };
    }),
    ...secrets.map(({ name, secret, key }) => ({ name, valueFrom: { secretKeyRef: { name: secret, key } } })),
  ];
}

/** No liveness probe: a busy app must not be killed. One that exits is restarted anyway. */
function buildProbes(app: HostedApp): Pick<Wire<V1Container>, 'startupProbe' | 'readinessProbe'> {
  const { healthPath } = app.spec.run;
  const check =
    healthPath === undefined
      ? { tcpSocket: { port: 'http' } }
      : { httpGet: { path: healthPath, port: 'http', scheme: 'HTTP' } };
  const tries = Math.max(1, Math.ceil(parseStartupMs(app) / 1000));
  return {
    // Every second, so that a fast app serves quickly; killed at the end, so that its log can be shown.
    startupProbe: {
      ...check,
      periodSeconds: 1,
      timeoutSeconds: 2,
      failureThreshold: tries,
      terminationGracePeriodSeconds: 5,
    },
    readinessProbe: { ...check, periodSeconds: 5, timeoutSeconds: 3, failureThreshold: 2 },
  };
}
