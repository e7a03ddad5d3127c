// The operator's caches: which objects are mirrored, and which parts of each are worth their memory.
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { labels } from '../../crds/names.ts';
import {
  createLabelIndexer,
  computeHash,
  type KubeObject,
  type Manager,
  type ObjectMeta,
  type Resource,
  type Store,
} from '../../lib/kubernetes/index.ts';
import { omitUndefined } from '../../lib/values.ts';
import {
  claims,
  cronJobs,
  deployments,
  gateways,
  hostedApps,
  jobs,
  pods,
  policies,
  routes,
  services,
  type ContainerStatus,
  type CronJob,
  type Deployment,
  type Gateway,
  type HostedAppObject,
  type HttpRoute,
  type Job,
  type NetworkPolicy,
  type PersistentVolumeClaim,
  type Pod,
  type Service,
} from '../objects/kinds.ts';
import { childSelector } from '../steps/deploy/objects.ts';
import type { InstallationConfig } from './installation-config.ts';

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
  /** Jobs that run task and cron components of apps. */
  readonly taskJobs: Store<Job>;
  readonly cronJobs: Unpacker<CronJob>;
  /** Of own domains; absent where apps have none. */
  readonly gateways?: Unpacker<Gateway> | undefined;
}

/** Name of the index by app. */
export const byApp = 'app';

/** Small pages: the memory used to parse one is never fully returned. */
const pageSize = 100;

const indexers = { [byApp]: createLabelIndexer(labels.app) };

/** Starts mirroring everything that the reconciler reads. */
export function createCaches(manager: Manager, config: InstallationConfig): Caches {
  const { appsNamespace: apps, buildsNamespace: builds } = config;
  const watchPacked = <T extends KubeObject>(
    resource: Resource<T>,
    namespace: string,
    labelSelector: string | undefined,
    keep: (object: T) => T,
  ): Unpacker<T> => {
    // The server sends a T; it is kept packed.
    const texts = createSimilarTexts();
    const transform = createPacker(labels.app, texts, (object) => keep(object as T));
    return createUnpacker(
      manager.addReflector(resource as unknown as Resource<PackedObject>, {
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
    apps: watchPacked(hostedApps, apps, undefined, stripManagedFields),
    jobs: manager.addReflector(jobs, {
      pageSize,
      namespace: builds,
      labelSelector: labels.app,
      indexers,
      transform: pickJobFields,
    }).store,
    pipelinePods: watchPacked(pods, builds, labels.app, pickPodFields),
    deployments: watchPacked(deployments, apps, childSelector, stripManagedFields),
    services: watchPacked(services, apps, childSelector, stripManagedFields),
    policies: watchPacked(policies, apps, childSelector, stripManagedFields),
    claims: watchPacked(claims, apps, childSelector, stripManagedFields),
    pods: watchPacked(pods, apps, childSelector, pickPodFields),
    routes: watchPacked(routes, apps, childSelector, stripManagedFields),
    taskJobs: manager.addReflector(jobs, {
      ...{ pageSize, namespace: apps, labelSelector: childSelector, indexers, transform: pickJobFields },
    }).store,
    cronJobs: watchPacked(cronJobs, apps, childSelector, stripManagedFields),
    gateways: config.domains && watchPacked(gateways, config.domains.namespace, childSelector, stripManagedFields),
  };
}

/** Keeps the whole spec, so that changes by others are detected and reverted. */
function stripManagedFields<T extends KubeObject>(object: T): T {
  return { ...object, metadata: omitFields(object.metadata, 'managedFields') };
}

function omitFields<Fields extends object, Name extends keyof Fields>(
  fields: Fields,
  ...names: readonly Name[]
): Omit<Fields, Name> {
  const dropped: ReadonlySet<string> = new Set(names.map(String));
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !dropped.has(name))) as Omit<Fields, Name>;
}

/** Of a Job's spec only `suspend` is read; the template is by far its biggest part. */
function pickJobFields(job: Job): Job {
  const {
    name,
    namespace,
    uid,
    resourceVersion,
    creationTimestamp,
    deletionTimestamp,
    labels: marks,
    annotations,
    ownerReferences,
  } = job.metadata;
  const { startTime, completionTime, conditions } = job.status ?? {};
  return {
    apiVersion: job.apiVersion,
    kind: job.kind,
    metadata: omitUndefined({
      name,
      namespace,
      uid,
      resourceVersion,
      creationTimestamp,
      deletionTimestamp,
      labels: marks,
      annotations,
      ownerReferences,
    }),
    spec: { suspend: job.spec?.suspend ?? false },
    status: omitUndefined({ startTime, completionTime, conditions }),
  };
}

/** Of a pod only what its state is read from. */
export function pickPodFields(pod: Pod): Pod {
  const { apiVersion, kind, status } = pod;
  const { phase, reason, message, hostIP, conditions, initContainerStatuses, containerStatuses } = status ?? {};
  const app = pod.metadata.labels?.[labels.app];
  return {
    apiVersion,
    kind,
    metadata: {
      ...omitFields(pod.metadata, 'managedFields', 'labels'),
      ...(app === undefined ? {} : { labels: { [labels.app]: app } }),
    },
    status: omitUndefined({
      phase,
      reason,
      message,
      hostIP,
      conditions: conditions?.filter(({ type }) => type === 'Ready' || type === 'PodScheduled'),
      initContainerStatuses: initContainerStatuses?.map(pickContainerFields),
      containerStatuses: containerStatuses?.map(pickContainerFields),
    }),
  };
}

function pickContainerFields(status: ContainerStatus): ContainerStatus {
  const { name, ready, started, restartCount, state, lastState, resources } = status;
  return omitUndefined({ name, ready, started, restartCount, state, lastState, resources });
}

// Cached objects are kept as deflated text: a parsed object takes more than ten times the memory, and most are not read
// between resyncs.

/**
 * A cached object. Its metadata has what caches and watches need; everything else that is kept is in `packed`.
 */
export interface PackedObject extends KubeObject {
  readonly packed: string;
  /** Differs when anything but the status does. */
  readonly specHash: string;
}

/** Reads objects of one kind out of a cache. */
export interface Unpacker<T extends KubeObject> {
  get(key: string): T | undefined;
  listByIndex(index: string, value: string): T[];
  list(): T[];
  /** The cache itself, to be watched. */
  readonly store: Store<PackedObject>;
}

/** Unpacks on each read, so the caller owns the objects. */
export function createUnpacker<T extends KubeObject>(store: Store<PackedObject>, texts: SimilarTexts): Unpacker<T> {
  const unpack = ({ packed }: PackedObject): T => JSON.parse(texts.unpack(packed)) as T;
  return {
    store,
    get(key) {
      const found = store.get(key);
      return found === undefined ? undefined : unpack(found);
    },
    listByIndex: (index, value) => store.listByIndex(index, value).map(unpack),
    list: () => store.list().map(unpack),
  };
}

/** Packs what `keep` returns of an object; `label` is the one label that the cache files it by. */
export function createPacker(
  label: string,
  texts: SimilarTexts,
  keep: (object: KubeObject) => object,
): (object: KubeObject) => PackedObject {
  return (object) => {
    const {
      name,
      namespace,
      uid,
      resourceVersion,
      creationTimestamp,
      labels,
      generation,
      deletionTimestamp,
      annotations,
      finalizers,
    } = object.metadata;
    const value = labels?.[label];
    const metadata: ObjectMeta = omitUndefined({
      name,
      namespace,
      uid,
      resourceVersion,
      creationTimestamp,
      labels: value === undefined ? undefined : { [label]: value },
    });
    const specHash = computeHash([generation, deletionTimestamp, labels, annotations, finalizers]);
    return {
      apiVersion: object.apiVersion,
      kind: object.kind,
      metadata,
      specHash,
      packed: texts.pack(JSON.stringify(keep(object))),
    };
  };
}

// Similar texts take little memory: the first one is the dictionary for deflating the others.

export interface SimilarTexts {
  /** Returns a short string of bytes for {@link unpack} of the same instance. */
  pack(text: string): string;
  unpack(packed: string): string;
}

/** zlib looks this far back, so a longer dictionary is of no use. */
const maximumDictionary = 32 * 1024;

export function createSimilarTexts(): SimilarTexts {
  let dictionary: Buffer | undefined;
  return {
    pack(text) {
      dictionary ??= Buffer.from(text).subarray(-maximumDictionary);
      // V8 keeps a string of single bytes as is; a Buffer would cost several times its bytes on top.
      return deflateRawSync(text, { dictionary }).toString('latin1');
    },
    unpack: (packed) => inflateRawSync(Buffer.from(packed, 'latin1'), { dictionary }).toString(),
  };
}
