// The pod of a hosted app: what it may do, what it may use, and how it is asked whether it serves.
import type { V1Container, V1EnvVar, V1PodSpec, V1PodTemplateSpec } from '@kubernetes/client-node';
import { parseDuration } from '../../../lib/values.ts';
import { annotations, labels, appHost, appUrl } from '../../../crds/names.ts';
import { generatedSecret } from '../../../crds/values.ts';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { hashOf, type KubeObject, type Wire } from '../../../lib/kubernetes/index.ts';
import { bytesOf, shareOf } from '../../objects/quantity.ts';
import type { InstallationConfig } from '../../reconcile/installation-config.ts';
import { claimName } from './data.ts';
import { generatedVariable } from './generated-secrets.ts';
import { modelAccess, modelKeyVariable, modelVariables } from './models.ts';
import { expanded } from './references.ts';
import { hostAliases, passwordVariables, serviceVariables, type ServiceAddresses } from './services/variables.ts';

/** An image and where it came from. */
export interface Release {
  readonly image: string;
  readonly commit: string;
  readonly port: number;
  /** What moorage.yaml of the commit says, JSON. */
  readonly settings?: string | undefined;
  /** The rebuild that it was made by: another one starts the pods anew, even if the image came out the same. */
  readonly attempt?: string | undefined;
}

/** What the app's pods are chosen by; must never change for an existing Deployment. */
export function selectorOf(app: string): Record<string, string> {
  return { [labels.app]: app, [labels.component]: 'app' };
}

/** Labels of everything that belongs to an app. */
export function labelsOf(app: string): Record<string, string> {
  return { ...selectorOf(app), [labels.name]: app, [labels.partOf]: 'moorage', [labels.managedBy]: 'moorage' };
}

/** Milliseconds that the app may take until it serves. */
export function startupMs(app: HostedApp): number {
  return parseDuration(app.spec.run.startupTime);
}

/** What an app has already. */
export interface OwnedObjects {
  readonly claims: readonly KubeObject[];
  /** Of its backing services. */
  readonly addresses: ServiceAddresses;
}

/** The pod template, with a hash of itself by which its pods are known again. */
export function podTemplate(
  app: HostedApp,
  config: InstallationConfig,
  release: Release,
  owned: OwnedObjects,
): { hash: string; template: Wire<V1PodTemplateSpec> } {
  const spec = podSpec(app, config, release, owned);
  const hash = hashOf([spec, release.commit, ...(release.attempt === undefined ? [] : [release.attempt])]);
  const marks = {
    [annotations.template]: hash,
    [annotations.port]: String(release.port),
    [annotations.commit]: release.commit,
    [annotations.image]: release.image,
    [annotations.disk]: String(bytesOf(app.spec.run.resources.disk)),
  };
  return {
    hash,
    template: {
      metadata: {
        labels: { ...labelsOf(app.metadata.name), [labels.commit]: release.commit.slice(0, 40) },
        annotations: marks,
      },
      spec,
    },
  };
}

// What ordinary images need to start: giving up root, taking over their own files, and listening below 1024.
const capabilities = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID', 'KILL', 'NET_BIND_SERVICE'];

function podSpec(
  app: HostedApp,
  config: InstallationConfig,
  release: Release,
  { claims, addresses }: OwnedObjects,
): Wire<V1PodSpec> {
  const { run } = app.spec;
  const { runtimeClass, priorityClass } = config.run;
  const { pullSecret } = config.registry;
  const aliases = hostAliases(app, addresses);
  return {
    hostUsers: false,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // A sleep before the stop lets the gateway forget this pod while it still answers. Where requests are held instead,
    // they wait for its end, and many programs ignore the signal to end. Two seconds are the least that a kubelet gives.
    terminationGracePeriodSeconds: isHeldFor(app, config) ? 2 : 35,
    securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
    ...(runtimeClass === undefined ? {} : { runtimeClassName: runtimeClass }),
    ...(priorityClass === undefined ? {} : { priorityClassName: priorityClass }),
    ...(pullSecret === undefined ? {} : { imagePullSecrets: [{ name: pullSecret }] }),
    ...(aliases.length === 0 ? {} : { hostAliases: aliases }),
    containers: [container(app, config, release)],
    ...(run.volumes.length === 0
      ? {}
      : {
          volumes: run.volumes.map(({ name }) => ({
            name,
            persistentVolumeClaim: { claimName: claimName(app, name, claims) },
          })),
        }),
  };
}

function container(app: HostedApp, config: InstallationConfig, release: Release): Wire<V1Container> {
  const { run } = app.spec;
  const limits = { cpu: run.resources.cpu, memory: run.resources.memory, 'ephemeral-storage': run.resources.disk };
  return {
    name: 'app',
    image: release.image,
    imagePullPolicy: 'IfNotPresent',
    terminationMessagePolicy: 'FallbackToLogsOnError',
    ...(run.command.length === 0 ? {} : { command: run.command }),
    env: [
      ...passwordVariables(app),
      ...modelKeyVariable(app, config),
      ...variables(app, config, release.port),
      ...serviceVariables(app),
      ...modelVariables(app, config),
    ],
    ports: [{ name: 'http', containerPort: release.port, protocol: 'TCP' }],
    resources: { limits, requests: requestsOf(run.resources) },
    securityContext: {
      privileged: false,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'], add: capabilities },
    },
    ...(isHeldFor(app, config) ? {} : { lifecycle: { preStop: { sleep: { seconds: 5 } } } }),
    ...probes(app),
    ...(run.volumes.length === 0
      ? {}
      : { volumeMounts: run.volumes.map(({ name, path }) => ({ name, mountPath: path })) }),
  };
}

/** Whether requests are held while a pod replaces another: the activator forgets a pod as soon as it is to end. */
function isHeldFor({ spec }: HostedApp, { idle }: InstallationConfig): boolean {
  return idle !== undefined && spec.run.volumes.length > 0;
}

/** To begin with; what the app is seen to use replaces it (controller/usage). Without a word a request is the limit. */
export function requestsOf({ cpu, memory, disk }: HostedApp['spec']['run']['resources']): Record<string, string> {
  return { cpu: shareOf(cpu, 100n), memory: shareOf(memory, 8n), 'ephemeral-storage': shareOf(disk, 16n) };
}

function variables(app: HostedApp, config: InstallationConfig, port: number): Wire<V1EnvVar>[] {
  const { env, secrets } = app.spec.run;
  const { name } = app.metadata;
  const given = {
    services: app.spec.services,
    models: modelAccess(app, config),
    app: { host: appHost(name, config.site), url: new URL(appUrl(name, config.site)).origin },
  };
  return [
    { name: 'PORT', value: String(port) },
    // An empty value is not kept by the API server, so it must not be asked for.
    ...env.map(({ name, value }) => {
      if (generatedSecret.test(value)) return generatedVariable(app, name);
      return value === '' ? { name } : { name, value: expanded(value, given) };
    }),
    ...secrets.map(({ name, secret, key }) => ({ name, valueFrom: { secretKeyRef: { name: secret, key } } })),
  ];
}

/** No liveness probe: an app that is merely busy must not be killed. One that exits is started again anyway. */
function probes(app: HostedApp): Pick<Wire<V1Container>, 'startupProbe' | 'readinessProbe'> {
  const { healthPath } = app.spec.run;
  const check =
    healthPath === undefined
      ? { tcpSocket: { port: 'http' } }
      : { httpGet: { path: healthPath, port: 'http', scheme: 'HTTP' } };
  const tries = Math.max(1, Math.ceil(startupMs(app) / 1000));
  return {
    // Every second, so that an app that is quick serves quickly; killed at the end, so that its log can be shown.
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
