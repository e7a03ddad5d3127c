// What runs one backing service: Deployment, Service, NetworkPolicy, volume claim and the Secret with its password.
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
import { bytesOf, least, shareOf } from '../../../objects/quantity.ts';
import type { InstallationConfig } from '../../../reconcile/installation-config.ts';
import { keptClaim, keptObject } from '../data.ts';
import { generatedSecretNames } from '../generated-secrets.ts';
import { serviceKinds } from './kinds.ts';
import { literal } from './literal.ts';
import { generatedPassword, loginOf, passwordVariable } from './login.ts';
import { appPods, backingName, backingSelector } from './names.ts';

function child(app: HostedApp, service: BackingService, apiVersion: string, kind: string): Manifest {
  const { name, namespace, uid } = app.metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      name: backingName(app, service),
      namespace,
      labels: labelsOf(app, service),
      annotations: { [annotations.service]: service.name },
      ownerReferences: [
        { apiVersion: app.apiVersion, kind: app.kind, name, uid, controller: true, blockOwnerDeletion: true },
      ],
    },
  };
}

function labelsOf(app: HostedApp, service: BackingService): Record<string, string> {
  return {
    ...backingSelector(app, service.name),
    [labels.name]: service.type,
    [labels.instance]: app.metadata.name,
    [labels.partOf]: 'moorage',
    [labels.managedBy]: 'moorage',
  };
}

/** Created once and never read or changed, so that the password outlives whatever it was made of. */
export function backingSecret(app: HostedApp, service: BackingService, config: InstallationConfig): Manifest {
  return keptObject(app, {
    ...child(app, service, 'v1', 'Secret'),
    type: 'Opaque',
    immutable: true,
    stringData: { password: generatedPassword(app, service, config.run.services.passwordSecret) },
  });
}

/** The generated password as a variable, to be named by those that come after it. */
export function passwordReference(app: HostedApp, service: BackingService): Wire<V1EnvVar> {
  return {
    name: passwordVariable(service.name),
    valueFrom: { secretKeyRef: { name: backingName(app, service), key: 'password' } },
  };
}

/** Its volume. It outlives the service's entry in the spec: data is not deleted by an edit. */
export function backingClaim(app: HostedApp, service: BackingService, config: InstallationConfig): Manifest {
  const { storageClass, services } = config.run;
  const claim: Manifest = {
    ...child(app, service, 'v1', 'PersistentVolumeClaim'),
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: least(service.disk, services.maximum.disk) } },
      ...(storageClass === undefined ? {} : { storageClassName: storageClass }),
    } satisfies Wire<V1PersistentVolumeClaimSpec>,
  };
  return keptClaim(app, claim, [backingName(app, service), ...generatedSecretNames(app)]);
}

export function backingAddress(app: HostedApp, service: BackingService): Manifest {
  return {
    ...child(app, service, 'v1', 'Service'),
    spec: {
      selector: backingSelector(app, service.name),
      ports: serviceKinds[service.type].ports.map((port) => ({
        name: `port-${port}`,
        port,
        protocol: 'TCP',
        targetPort: port,
      })),
    } satisfies Wire<V1ServiceSpec>,
  };
}

/** Only the pods of this app may come in, and it reaches nothing: not even DNS. */
export function backingPolicy(app: HostedApp, service: BackingService): Manifest {
  return {
    ...child(app, service, 'networking.k8s.io/v1', 'NetworkPolicy'),
    spec: {
      podSelector: { matchLabels: backingSelector(app, service.name) },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        {
          from: [{ podSelector: appPods(app) }],
          ports: serviceKinds[service.type].ports.map((port) => ({ port, protocol: 'TCP' })),
        },
      ],
      egress: [],
    } satisfies Wire<V1NetworkPolicySpec>,
  };
}

/** One replica that ends before the next begins: the volume is mounted once. */
export function backingDeployment(
  app: HostedApp,
  service: BackingService,
  config: InstallationConfig,
  { image, replicas }: { image: string; replicas: number },
): Manifest {
  return {
    ...child(app, service, 'apps/v1', 'Deployment'),
    spec: {
      replicas,
      revisionHistoryLimit: 1,
      selector: { matchLabels: backingSelector(app, service.name) },
      strategy: { type: 'Recreate' },
      template: podTemplate(app, service, config, image),
    } satisfies Wire<V1DeploymentSpec>,
  };
}

/** Beside its volume, what it writes to folders that do not last. */
const scratchSize = '256Mi';

function podTemplate(
  app: HostedApp,
  service: BackingService,
  config: InstallationConfig,
  image: string,
): Wire<V1PodTemplateSpec> {
  const kind = serviceKinds[service.type];
  const { runtimeClass, priorityClass, services } = config.run;
  const memory = least(service.memory ?? kind.memory, services.maximum.memory);
  const limits = { cpu: '1', memory, 'ephemeral-storage': scratchSize };
  const arguments_ = kind.args?.(loginOf(service, kind.login), bytesOf(memory));
  const check = { tcpSocket: { port: kind.ports[0] } };
  return {
    metadata: {
      labels: labelsOf(app, service),
      annotations: { [annotations.service]: service.name, [annotations.disk]: String(bytesOf(scratchSize)) },
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
          env: environment(app, service),
          ports: kind.ports.map((port) => ({ name: `port-${port}`, containerPort: port, protocol: 'TCP' })),
          resources: { limits, requests: { cpu: '10m', memory: shareOf(memory, 4n) } },
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
        { name: 'data', persistentVolumeClaim: { claimName: backingName(app, service) } },
        ...kind.scratch.map((_path, index) => ({ name: `scratch-${index}`, emptyDir: { sizeLimit: scratchSize } })),
      ],
    },
  };
}

/** What the platform sets wins over the settings, which may say the same in other words. */
function environment(app: HostedApp, service: BackingService): Wire<V1EnvVar>[] {
  const kind = serviceKinds[service.type];
  const own = kind.environment(loginOf(service, kind.login));
  const password = passwordReference(app, service);
  const more = service.env.filter(({ name }) => !Object.hasOwn(own, name) && name !== password.name);
  return [
    password,
    ...Object.entries(own).map(([name, value]) => variable(name, value)),
    ...more.map(({ name, value }) => variable(name, literal(value))),
  ];
}

/** An empty value is not kept by the API server, so it must not be asked for. */
function variable(name: string, value: string): Wire<V1EnvVar> {
  return value === '' ? { name } : { name, value };
}
