// The objects that run one backing service: Deployment, Service, NetworkPolicy, volume claim, and the Secret with its password.
import type {
  V1DeploymentSpec,
  V1EnvVar,
  V1NetworkPolicySpec,
  V1PersistentVolumeClaimSpec,
  V1PodTemplateSpec,
  V1ServiceSpec,
} from '@kubernetes/client-node';
import type { BackingService } from '../../../../crds/backing-services.ts';
import type { HostedApp } from '../../../../crds/hosted-app.ts';
import { annotations, labels } from '../../../../crds/names.ts';
import type { Manifest, Wire } from '../../../../lib/kubernetes/index.ts';
import { chooseSmaller, divideQuantity, parseBytes } from '../../../objects/kinds.ts';
import type { InstallationConfig } from '../../../reconcile/installation-config.ts';
import { toKeptClaim, toKeptObject } from '../../../retention/retention.ts';
import { listGeneratedSecretNames } from '../secrets.ts';
import {
  buildAppPodsSelector,
  buildPasswordReference,
  buildServiceSelector,
  derivePassword,
  formatServiceName,
  resolveLogin,
  toLiteral,
} from './connections.ts';
import { serviceKinds } from './kinds.ts';

function buildChild(app: HostedApp, service: BackingService, apiVersion: string, kind: string): Manifest {
  const { name, namespace, uid } = app.metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      name: formatServiceName(app, service),
      namespace,
      labels: buildLabels(app, service),
      annotations: { [annotations.service]: service.name },
      ownerReferences: [
        { apiVersion: app.apiVersion, kind: app.kind, name, uid, controller: true, blockOwnerDeletion: true },
      ],
    },
  };
}

function buildLabels(app: HostedApp, service: BackingService): Record<string, string> {
  return {
    ...buildServiceSelector(app, service.name),
    [labels.name]: service.type,
    [labels.instance]: app.metadata.name,
    [labels.partOf]: 'moorage',
    [labels.managedBy]: 'moorage',
  };
}

/** Created once and never read or changed, so that the password outlives whatever it was derived from. */
export function buildServiceSecret(app: HostedApp, service: BackingService, config: InstallationConfig): Manifest {
  return toKeptObject(app, {
    ...buildChild(app, service, 'v1', 'Secret'),
    type: 'Opaque',
    immutable: true,
    stringData: { password: derivePassword(app, service, config.run.services.passwordSecret) },
  });
}

/** The volume outlives the service's entry in the spec: an edit must not delete data. */
export function buildServiceClaim(app: HostedApp, service: BackingService, config: InstallationConfig): Manifest {
  const { storageClass, services } = config.run;
  const claim: Manifest = {
    ...buildChild(app, service, 'v1', 'PersistentVolumeClaim'),
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: chooseSmaller(service.disk, services.maximum.disk) } },
      ...(storageClass === undefined ? {} : { storageClassName: storageClass }),
    } satisfies Wire<V1PersistentVolumeClaimSpec>,
  };
  return toKeptClaim(app, claim, [formatServiceName(app, service), ...listGeneratedSecretNames(app)]);
}

export function buildServiceAddress(app: HostedApp, service: BackingService): Manifest {
  return {
    ...buildChild(app, service, 'v1', 'Service'),
    spec: {
      selector: buildServiceSelector(app, service.name),
      ports: serviceKinds[service.type].ports.map((port) => ({
        name: `port-${port}`,
        port,
        protocol: 'TCP',
        targetPort: port,
      })),
    } satisfies Wire<V1ServiceSpec>,
  };
}

/** Ingress only from this app's pods; no egress, not even DNS. */
export function buildServicePolicy(app: HostedApp, service: BackingService): Manifest {
  return {
    ...buildChild(app, service, 'networking.k8s.io/v1', 'NetworkPolicy'),
    spec: {
      podSelector: { matchLabels: buildServiceSelector(app, service.name) },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        {
          from: [{ podSelector: buildAppPodsSelector(app) }],
          ports: serviceKinds[service.type].ports.map((port) => ({ port, protocol: 'TCP' })),
        },
      ],
      egress: [],
    } satisfies Wire<V1NetworkPolicySpec>,
  };
}

/** One replica, which ends before the next starts: the volume can be mounted once. */
export function buildServiceDeployment(
  app: HostedApp,
  service: BackingService,
  config: InstallationConfig,
  { image, replicas }: { image: string; replicas: number },
): Manifest {
  return {
    ...buildChild(app, service, 'apps/v1', 'Deployment'),
    spec: {
      replicas,
      revisionHistoryLimit: 1,
      selector: { matchLabels: buildServiceSelector(app, service.name) },
      strategy: { type: 'Recreate' },
      template: buildPodTemplate(app, service, config, image),
    } satisfies Wire<V1DeploymentSpec>,
  };
}

/** Size of each temporary folder. */
const scratchSize = '256Mi';

function buildPodTemplate(
  app: HostedApp,
  service: BackingService,
  config: InstallationConfig,
  image: string,
): Wire<V1PodTemplateSpec> {
  const kind = serviceKinds[service.type];
  const { runtimeClass, priorityClass, services } = config.run;
  const memory = chooseSmaller(service.memory ?? kind.memory, services.maximum.memory);
  const limits = { cpu: '1', memory, 'ephemeral-storage': scratchSize };
  const arguments_ = kind.args?.(resolveLogin(service, kind.login), parseBytes(memory));
  const check = { tcpSocket: { port: kind.ports[0] } };
  return {
    metadata: {
      labels: buildLabels(app, service),
      annotations: { [annotations.service]: service.name, [annotations.disk]: String(parseBytes(scratchSize)) },
    },
    spec: {
      hostUsers: false,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 60,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: kind.user,
        runAsGroup: kind.user,
        fsGroup: kind.user,
        fsGroupChangePolicy: 'OnRootMismatch',
        seccompProfile: { type: 'RuntimeDefault' },
      },
      ...(runtimeClass === undefined ? {} : { runtimeClassName: runtimeClass }),
      ...(priorityClass === undefined ? {} : { priorityClassName: priorityClass }),
      containers: [
        {
          name: 'service',
          image,
          imagePullPolicy: 'IfNotPresent',
          terminationMessagePolicy: 'FallbackToLogsOnError',
          ...(arguments_ === undefined ? {} : { args: [...arguments_] }),
          env: buildEnvironment(app, service),
          ports: kind.ports.map((port) => ({ name: `port-${port}`, containerPort: port, protocol: 'TCP' })),
          resources: { limits, requests: { cpu: '10m', memory: divideQuantity(memory, 4n) } },
          securityContext: {
            privileged: false,
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          startupProbe: { ...check, periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 300 },
          readinessProbe: { ...check, periodSeconds: 5, timeoutSeconds: 3, failureThreshold: 2 },
          volumeMounts: [
            { name: 'data', mountPath: kind.mount },
            ...kind.scratch.map((path, index) => ({ name: `scratch-${index}`, mountPath: path })),
          ],
        },
      ],
      volumes: [
        { name: 'data', persistentVolumeClaim: { claimName: formatServiceName(app, service) } },
        ...kind.scratch.map((_path, index) => ({ name: `scratch-${index}`, emptyDir: { sizeLimit: scratchSize } })),
      ],
    },
  };
}

/** Variables of the platform win over the settings, which may set the same ones in other words. */
function buildEnvironment(app: HostedApp, service: BackingService): Wire<V1EnvVar>[] {
  const kind = serviceKinds[service.type];
  const serviceVariables = kind.environment(resolveLogin(service, kind.login));
  const password = buildPasswordReference(app, service);
  const more = service.env.filter(({ name }) => !Object.hasOwn(serviceVariables, name) && name !== password.name);
  return [
    password,
    ...Object.entries(serviceVariables).map(([name, value]) => toVariable(name, value)),
    ...more.map(({ name, value }) => toVariable(name, toLiteral(value))),
  ];
}

/** The API server drops an empty value, so it must not be applied. */
function toVariable(name: string, value: string): Wire<V1EnvVar> {
  return value === '' ? { name } : { name, value };
}
