// The caches of the operator: which objects are mirrored, and what of each is worth its memory.
import { labels } from '../../../crds/names.ts';
import { byLabel, type KubeObject, type Manager, type Resource, type Store } from '../../../lib/kubernetes/index.ts';
import {
  claims,
  deployments,
  hostedApps,
  jobs,
  pods,
  policies,
  routes,
  services,
  type ContainerStatus,
  type Deployment,
  type HostedAppObject,
  type HttpRoute,
  type Job,
  type NetworkPolicy,
  type PersistentVolumeClaim,
  type Pod,
  type Service,
} from '../../objects/kinds.ts';
import { packer, unpacking, type PackedObject, type Unpacker } from './packed.ts';
import { childSelector } from '../../steps/deploy/objects.ts';
import { present } from '../../objects/present.ts';
import { similarTexts } from './similar-texts.ts';
import type { InstallationConfig } from '../installation-config.ts';

/**
 * The caches that the operator reads; those of children have an index {@link byApp}, by the label of the app's name.
 */
export interface Caches {
  readonly apps: Unpacker<HostedAppObject>;
  readonly jobs: Store<Job>;
  readonly pipelinePods: Unpacker<Pod>;
  readonly deployments: Unpacker<Deployment>;
  readonly services: Unpacker<Service>;
  readonly policies: Unpacker<NetworkPolicy>;
  readonly claims: Unpacker<PersistentVolumeClaim>;
  readonly pods: Unpacker<Pod>;
  readonly routes: Unpacker<HttpRoute>;
}

/** Name of the index by app. */
export const byApp = 'app';

/** Small pages: what a page takes while it is parsed is never given back wholly. */
const pageSize = 100;

const indexers = { [byApp]: byLabel(labels.app) };

/** Starts mirroring all that the reconciler reads. */
export function mirror(manager: Manager, config: InstallationConfig): Caches {
  const { appsNamespace: apps, buildsNamespace: builds } = config;
  const packed = <T extends KubeObject>(
    resource: Resource<T>,
    namespace: string,
    labelSelector: string | undefined,
    keep: (object: T) => T,
  ): Unpacker<T> => {
    // What the server sends is a T; what is kept of it is packed.
    const texts = similarTexts();
    const transform = packer(labels.app, texts, (object) => keep(object as T));
    return unpacking(
      manager.reflect(resource as unknown as Resource<PackedObject>, {
        pageSize,
        namespace,
        labelSelector,
        indexers,
        transform,
      }).store,
      texts,
    );
  };
  return {
    apps: packed(hostedApps, apps, undefined, slimChild),
    jobs: manager.reflect(jobs, {
      pageSize,
      namespace: builds,
      labelSelector: labels.app,
      indexers,
      transform: slimJob,
    }).store,
    pipelinePods: packed(pods, builds, labels.app, slimPod),
    deployments: packed(deployments, apps, childSelector, slimChild),
    services: packed(services, apps, childSelector, slimChild),
    policies: packed(policies, apps, childSelector, slimChild),
    claims: packed(claims, apps, childSelector, slimChild),
    pods: packed(pods, apps, childSelector, slimPod),
    routes: packed(routes, apps, childSelector, slimChild),
  };
}

/** All of the spec, so that a change by someone else's hand is seen and fixed. */
function slimChild<T extends KubeObject>(object: T): T {
  return { ...object, metadata: without(object.metadata, 'managedFields') };
}

function without<Fields extends object, Name extends keyof Fields>(
  fields: Fields,
  ...names: readonly Name[]
): Omit<Fields, Name> {
  const dropped: ReadonlySet<string> = new Set(names.map(String));
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !dropped.has(name))) as Omit<Fields, Name>;
}

/** Of a Job's spec only `suspend` is read; the template is by far its biggest part. */
function slimJob(job: Job): Job {
  const {
    name,
    namespace,
    uid,
    resourceVersion,
    creationTimestamp,
    deletionTimestamp,
    labels: marks,
    annotations,
  } = job.metadata;
  const { startTime, completionTime, conditions } = job.status ?? {};
  return {
    apiVersion: job.apiVersion,
    kind: job.kind,
    metadata: present({
      name,
      namespace,
      uid,
      resourceVersion,
      creationTimestamp,
      deletionTimestamp,
      labels: marks,
      annotations,
    }),
    spec: { suspend: job.spec?.suspend ?? false },
    status: present({ startTime, completionTime, conditions }),
  };
}

/** Of a pod only what its state is read from. */
function slimPod(pod: Pod): Pod {
  const { apiVersion, kind, status } = pod;
  const { phase, reason, message, hostIP, conditions, initContainerStatuses, containerStatuses } = status ?? {};
  const app = pod.metadata.labels?.[labels.app];
  return {
    apiVersion,
    kind,
    metadata: {
      ...without(pod.metadata, 'managedFields', 'labels'),
      ...(app === undefined ? {} : { labels: { [labels.app]: app } }),
    },
    status: present({
      phase,
      reason,
      message,
      hostIP,
      conditions: conditions?.filter(({ type }) => type === 'Ready' || type === 'PodScheduled'),
      initContainerStatuses: initContainerStatuses?.map(slimContainer),
      containerStatuses: containerStatuses?.map(slimContainer),
    }),
  };
}

function slimContainer(status: ContainerStatus): ContainerStatus {
  const { name, ready, started, restartCount, state, lastState, resources } = status;
  return present({ name, ready, started, restartCount, state, lastState, resources });
}
