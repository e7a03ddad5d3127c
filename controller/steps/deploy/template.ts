// Builds the pod template of a hosted app: its rights, limits, variables and probes.
import type { V1Container, V1EnvVar, V1PodSpec, V1PodTemplateSpec } from '@kubernetes/client-node';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { annotations, formatAppHost, formatAppUrl, labels } from '../../../crds/names.ts';
import { generatedSecret } from '../../../crds/values.ts';
import { computeHash, type KubeObject, type Wire } from '../../../lib/kubernetes/index.ts';
import { parseDuration } from '../../../lib/values.ts';
import { divideQuantity, parseBytes } from '../../objects/values.ts';
import type { InstallationConfig } from '../../reconcile/installation-config.ts';
import { chooseClaimName } from './data.ts';
import { buildGeneratedVariable, buildModelKeyVariables, buildModelVariables, resolveModelAccess } from './secrets.ts';
import {
  buildHostAliases,
  buildPasswordVariables,
  buildServiceVariables,
  expandReferences,
  type ServiceAddresses,
} from './services/connections.ts';

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
export function buildSelector(app: string): Record<string, string> {
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
export interface OwnedObjects {
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
