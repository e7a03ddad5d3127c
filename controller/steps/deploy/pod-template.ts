// The pod template of a release: one container for each component, with its rights, limits, variables and probes.
import type { V1Container, V1EnvVar, V1HostAlias, V1PodSpec, V1PodTemplateSpec } from '@kubernetes/client-node';
import {
  findMainComponent,
  isDependedOn,
  onlyComponent,
  parseComponentStartMs,
  type Component,
} from '../../../crds/components.ts';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { annotations, formatAppHost, formatAppUrl, labels, taskComponent } from '../../../crds/names.ts';
import { formatPortName } from '../../../crds/routes.ts';
import { readSlug } from '../../../crds/slugs.ts';
import { generatedSecret } from '../../../crds/values.ts';
import { computeHash, type KubeObject, type Wire } from '../../../lib/kubernetes/index.ts';
import { divideQuantity, parseBytes } from '../../objects/kinds.ts';
import type { InstallationConfig } from '../../reconcile/installation-config.ts';
import { chooseClaimName } from '../../retention/retention.ts';
import {
  hashImages,
  isRecreated,
  listReleaseComponents,
  toPodComponents,
  type Release,
  type RunningComponent,
} from './components.ts';
import { buildLabels } from './objects.ts';
import { buildGeneratedVariable, buildModelKeyVariables, buildModelVariables, resolveModelAccess } from './secrets.ts';
import {
  buildHostAliases,
  buildPasswordVariables,
  buildServiceVariables,
  expandReferences,
  type ServiceAddresses,
} from './services/connections.ts';

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
  const components = listReleaseComponents(app, release);
  const listed = toPodComponents(app, release);
  const imagesHash = hashImages(release);
  const spec = buildPodSpec(app, config, components, owned);
  const { restartedAt } = app.spec.control ?? {};
  const hash = computeHash([
    ...[spec, release.commit],
    ...(release.attempt === undefined ? [] : [release.attempt]),
    ...(listed === undefined ? [] : [listed]),
    ...(restartedAt === undefined ? [] : [restartedAt]),
  ]);
  const marks = {
    [annotations.template]: hash,
    [annotations.port]: String(release.port),
    [annotations.commit]: release.commit,
    [annotations.image]: release.image,
    [annotations.disk]: String(findLargestDisk(components)),
    ...(listed === undefined ? {} : { [annotations.components]: JSON.stringify(listed) }),
    ...(imagesHash === undefined ? {} : { [annotations.imagesHash]: imagesHash }),
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

/** A runtime that enforces disk makes each container's as large. The kubelet holds each to its own limit. */
function findLargestDisk(components: readonly Component[]): bigint {
  return components
    .map(({ resources }) => parseBytes(resources.disk))
    .reduce((largest, bytes) => (bytes > largest ? bytes : largest), 0n);
}

// Ordinary images need these to start: to drop root, to own their files, and to listen below 1024.
const capabilities = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID', 'KILL', 'NET_BIND_SERVICE'];

function buildPodSpec(
  app: HostedApp,
  config: InstallationConfig,
  components: readonly RunningComponent[],
  { claims, addresses }: OwnedObjects,
): Wire<V1PodSpec> {
  const aliases = [...buildHostAliases(app, addresses), ...buildComponentAliases(app, components)];
  const mainPort = findMainComponent(components).port;
  const [first, rest] = [true, false].map((wanted) =>
    components
      .filter((component) => isDependedOn(component, components) === wanted)
      .map((component) => buildContainer(app, config, component, mainPort)),
  );
  return {
    ...buildSandbox(config),
    // A sleep before the stop lets the gateway forget this pod while it still answers. If requests are held instead, they
    // wait for its end, and many programs ignore SIGTERM. Two seconds are the minimum that a kubelet gives.
    terminationGracePeriodSeconds: isHeldWhileReplaced(app, config) ? 2 : 35,
    ...(aliases.length === 0 ? {} : { hostAliases: aliases }),
    // A sidecar of Kubernetes: those after it start once its startup probe has succeeded.
    ...(first === undefined || first.length === 0
      ? {}
      : { initContainers: first.map((container) => ({ ...container, restartPolicy: 'Always' })) }),
    containers: rest ?? [],
    ...buildVolumes(app, components, claims),
  };
}

/** What confines every pod of an app. */
function buildSandbox(config: InstallationConfig): Omit<Wire<V1PodSpec>, 'containers'> {
  const { runtimeClass, priorityClass } = config.run;
  const { pullSecret } = config.registry;
  return {
    hostUsers: false,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
    ...(runtimeClass === undefined ? {} : { runtimeClassName: runtimeClass }),
    ...(priorityClass === undefined ? {} : { priorityClassName: priorityClass }),
    ...(pullSecret === undefined ? {} : { imagePullSecrets: [{ name: pullSecret }] }),
  };
}

function buildVolumes(
  app: HostedApp,
  components: readonly Component[],
  claims: readonly KubeObject[],
): Pick<Wire<V1PodSpec>, 'volumes'> {
  const names = listMountedVolumes(components);
  if (names.length === 0) return {};
  return {
    volumes: names.map((name) => ({ name, persistentVolumeClaim: { claimName: chooseClaimName(app, name, claims) } })),
  };
}

/** The template of a pod that runs a task or cron component to its end. Its container has the name of an app's only one. */
export function buildTaskTemplate(
  app: HostedApp,
  config: InstallationConfig,
  component: RunningComponent,
  commit: string,
  { claims, addresses }: OwnedObjects,
): Wire<V1PodTemplateSpec> {
  const aliases = buildHostAliases(app, addresses);
  return {
    metadata: {
      labels: { ...buildLabels(app.metadata.name), [labels.component]: taskComponent },
      annotations: {
        [annotations.task]: component.name,
        [annotations.commit]: commit,
        [annotations.disk]: String(findLargestDisk([component])),
      },
    },
    spec: {
      ...buildSandbox(config),
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 10,
      ...(aliases.length === 0 ? {} : { hostAliases: aliases }),
      containers: [{ ...buildContainer(app, config, component), name: onlyComponent }],
      ...buildVolumes(app, [component], claims),
    },
  };
}

/** A volume that only a task mounts is none of the pod's. */
function listMountedVolumes(components: readonly Component[]): string[] {
  return [...new Set(components.flatMap(({ volumes }) => volumes.map(({ name }) => name)))];
}

/** All components share the network address of the pod, so each finds the others at their names. */
function buildComponentAliases(app: HostedApp, components: readonly Component[]): Wire<V1HostAlias>[] {
  if (app.spec.components.length === 0) return [];
  const services = new Set(app.spec.services.map(({ name }) => name));
  const names = components.map(({ name }) => name).filter((name) => !services.has(name));
  return names.length === 0 ? [] : [{ ip: '127.0.0.1', hostnames: names }];
}

/** @param mainPort that of the component at /; undefined in a pod that does not serve */
function buildContainer(
  app: HostedApp,
  config: InstallationConfig,
  component: RunningComponent,
  mainPort?: number,
): Wire<V1Container> {
  const { name, image, command, port, resources, volumes } = component;
  const limits = { cpu: resources.cpu, memory: resources.memory, 'ephemeral-storage': resources.disk };
  return {
    name,
    image,
    imagePullPolicy: 'IfNotPresent',
    terminationMessagePolicy: 'FallbackToLogsOnError',
    ...(command.length === 0 ? {} : { command: [...command] }),
    env: [
      ...buildPasswordVariables(app),
      ...buildModelKeyVariables(app, config, component),
      ...buildVariables(app, config, component),
      ...buildServiceVariables(app, component),
      ...buildModelVariables(app, config, component),
    ],
    ...(port === undefined
      ? {}
      : { ports: [{ name: formatContainerPort(component), containerPort: port, protocol: 'TCP' }] }),
    resources: { limits, requests: deriveRequests(resources) },
    securityContext: {
      privileged: false,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'], add: capabilities },
    },
    ...(component.route === undefined || isHeldWhileReplaced(app, config)
      ? {}
      : { lifecycle: { preStop: { sleep: { seconds: 5 } } } }),
    ...buildProbes(component, mainPort),
    ...(volumes.length === 0
      ? {}
      : { volumeMounts: volumes.map((volume) => ({ name: volume.name, mountPath: volume.path })) }),
  };
}

function formatContainerPort({ name, image, route }: RunningComponent): string {
  return formatPortName({ name, image, ...(route === undefined ? {} : { route }) });
}

/** Whether requests are held while a pod replaces another: the activator forgets a pod as soon as it is terminating. */
function isHeldWhileReplaced(app: HostedApp, { idle }: InstallationConfig): boolean {
  return idle !== undefined && isRecreated(app);
}

/** Initial requests, until measured use replaces them (controller/usage). Without requests, Kubernetes would request the limits. */
export function deriveRequests({ cpu, memory, disk }: Component['resources']): Record<string, string> {
  return {
    cpu: divideQuantity(cpu, 100n),
    memory: divideQuantity(memory, 8n),
    'ephemeral-storage': divideQuantity(disk, 16n),
  };
}

function buildVariables(
  app: HostedApp,
  config: InstallationConfig,
  { env, secrets, port }: RunningComponent,
): Wire<V1EnvVar>[] {
  const slug = readSlug(app);
  const context = {
    services: app.spec.services,
    models: resolveModelAccess(app, config),
    app: {
      host: formatAppHost(slug, config.site),
      url: new URL(formatAppUrl(slug, config.site)).origin,
      subdomains: app.spec.components.flatMap(({ route }) => route?.subdomain ?? []),
    },
  };
  return [
    ...(port === undefined ? [] : [{ name: 'PORT', value: String(port) }]),
    // The API server drops an empty value, so it must not be applied.
    ...env.map(({ name, value }) => {
      if (generatedSecret.test(value)) return buildGeneratedVariable(app, name);
      return value === '' ? { name } : { name, value: expandReferences(value, context) };
    }),
    ...secrets.map(({ name, secret, key }) => ({ name, valueFrom: { secretKeyRef: { name: secret, key } } })),
  ];
}

/** A component that does not listen counts as ready after it has run for this long. */
const settledSeconds = 10;

/**
 * No liveness probe: a busy app must not be killed. One that exits is restarted anyway. A component that does not listen
 * would be ready as soon as it runs, and a release whose worker exits after a moment would replace one that works. So its
 * first check is late, and asks the component at /, on which visitors depend.
 */
function buildProbes(
  component: RunningComponent,
  mainPort: number | undefined,
): Pick<Wire<V1Container>, 'startupProbe' | 'readinessProbe'> {
  const { healthPath } = component;
  if (component.port === undefined)
    return mainPort === undefined
      ? {}
      : {
          readinessProbe: {
            tcpSocket: { port: mainPort },
            ...{ initialDelaySeconds: settledSeconds, periodSeconds: 5, timeoutSeconds: 3, failureThreshold: 2 },
          },
        };
  const port = formatContainerPort(component);
  const check =
    healthPath === undefined ? { tcpSocket: { port } } : { httpGet: { path: healthPath, port, scheme: 'HTTP' } };
  const tries = Math.max(1, Math.ceil(parseComponentStartMs(component) / 1000));
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
