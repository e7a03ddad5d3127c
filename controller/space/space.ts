// Watches the disks of nodes and the registry, so that builds wait before a disk is full.
import { Counter, Gauge, type Registry } from 'prom-client';
import { z } from 'zod';
import {
  askKubelet,
  toErrorMessage,
  sleep,
  systemClock,
  type Connection,
  type Logger,
  type Watch,
} from '../../lib/kubernetes/index.ts';
import { omitUndefined, createTimeLimit } from '../../lib/values.ts';
import type { Pod } from '../objects/kinds.ts';

export interface SpaceOptions {
  readonly read: DiskReader;
  /** Pods of apps and pipelines: the disks of their nodes are read. */
  readonly listPods: () => readonly Pod[];
  /** Base URL of the registry proxy. */
  readonly proxyUrl: string;
  readonly registryClaim?: string | undefined;
  readonly reserve: Reserve;
  readonly intervalMs: number;
  readonly log: Logger;
  readonly metrics: SpaceMetrics;
  readonly disks: DiskMetrics;
  readonly now?: () => number;
}

export interface Space {
  /** Why no build may start, as a sentence; undefined where one may. */
  explainShortage(): string | undefined;
  /** What each container of this pod has written to its own disk; undefined if that was not measured. */
  getLayers(namespace: string, pod: string): PodLayers | undefined;
  /** Enqueues `keys` when a shortage begins or ends. */
  watchChanges(keys: () => readonly string[]): Watch;
  /** Reads disks at the interval until the signal is aborted. */
  run(signal: AbortSignal): Promise<void>;
}

const proxyAnswer = z.object({ refusal: z.object({ at: z.iso.datetime() }).optional() });
const askMilliseconds = 10_000;

/** Creates the watch. Until disks were first read, there is space. */
export function createSpace(options: SpaceOptions): Space {
  const { log, metrics, disks, registryClaim, now = Date.now } = options;
  const listeners = new Set<() => void>();
  let shortage: string | undefined;
  let layers: ReadonlyMap<string, PodLayers> = new Map();

  async function readNode(address: string, signal: AbortSignal): Promise<[string, NodeDisks] | undefined> {
    try {
      return [address, await options.read(address, AbortSignal.any([signal, createTimeLimit(askMilliseconds)]))];
    } catch (error) {
      if (signal.aborted) return undefined;
      metrics.failures.inc({ of: 'node' });
      log.warn({ node: address, error: toErrorMessage(error) }, 'cannot read the disks of a node');
      return undefined;
    }
  }

  /** If the proxy does not answer, nothing is known about space: builds will notice themselves. */
  async function readRefusalTime(signal: AbortSignal): Promise<number | undefined> {
    try {
      const ended = AbortSignal.any([signal, createTimeLimit(askMilliseconds)]);
      const answer = await fetch(new URL('/space', options.proxyUrl), { signal: ended });
      const { refusal } = proxyAnswer.parse(await answer.json());
      return refusal === undefined ? undefined : Date.parse(refusal.at);
    } catch {
      return undefined;
    }
  }

  async function look(signal: AbortSignal): Promise<void> {
    const addresses = new Set(options.listPods().flatMap(({ status }) => status?.hostIP ?? []));
    const [read, refused] = await Promise.all([
      Promise.all([...addresses].map((address) => readNode(address, signal))),
      readRefusalTime(signal),
    ]);
    if (signal.aborted) return;
    const nodes = new Map(read.filter((each) => each !== undefined));
    disks.replaceSamples([...nodes.values()]);
    layers = new Map([...nodes.values()].flatMap((node) => [...(node.layers ?? [])]));
    const newShortage = findShortage({ nodes, registryClaim, refusedAt: refused }, options.reserve, now());
    metrics.short.set(newShortage === undefined ? 0 : 1);
    const hasChanged = (newShortage === undefined) !== (shortage === undefined);
    shortage = newShortage;
    if (!hasChanged) return;
    if (newShortage === undefined) log.info({}, 'there is disk space for builds again');
    else log.warn({ shortage: newShortage }, 'no build is started for lack of disk space');
    for (const listener of listeners) listener();
  }

  return {
    explainShortage: () => shortage,
    getLayers: (namespace, pod) => layers.get(`${namespace}/${pod}`),
    watchChanges: (keys) => ({
      start: (enqueue) => {
        const listener = (): void => {
          keys().forEach(enqueue);
        };
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      listResyncKeys: () => [],
      hasSynced: true,
      waitUntilSynced: () => Promise.resolve(),
    }),
    async run(signal) {
      while (!signal.aborted) {
        await look(signal);
        await sleep(systemClock, options.intervalMs, signal);
      }
    },
  };
}

// Judges whether there is disk space for another build, and explains a shortage.

/** Free space that is kept: bytes, or a share of the disk between 0 and 1. */
export type Reserve = { readonly bytes: number } | { readonly share: number };

export interface SpaceReadings {
  /** By address. */
  readonly nodes: ReadonlyMap<string, NodeDisks>;
  /** `namespace/name` of the claim on which the registry stores; absent: it is elsewhere, or on the disk of a node. */
  readonly registryClaim?: string | undefined;
  /** When the registry last had no space for a push, in milliseconds since 1970; absent: it had. */
  readonly refusedAt?: number | undefined;
}

/** A registry that refused a push for lack of space is tried again by one build after this long. */
export const refusalMs = 5 * 60_000;

/**
 * Why no build may start, as a sentence with what would help; undefined where there is space, or nothing is known. With
 * several nodes there is space as long as one of them has some, since the scheduler avoids the others.
 */
export function findShortage(readings: SpaceReadings, reserve: Reserve, now: number): string | undefined {
  return findRegistryShortage(readings, reserve, now) ?? findNodeShortage(readings, reserve);
}

function findRegistryShortage(
  { nodes, registryClaim, refusedAt }: SpaceReadings,
  reserve: Reserve,
  now: number,
): string | undefined {
  const disk = registryClaim === undefined ? undefined : findClaim(nodes, registryClaim);
  if (disk !== undefined && isSpaceShort(disk, reserve))
    return `the volume of the registry has ${describeDisk(disk, reserve)}. The operator of this installation can lower builds.imageLimit, have the registry collect its garbage, or enlarge the volume.`;
  if (refusedAt === undefined || now - refusedAt >= refusalMs) return undefined;
  return 'the registry had no space left for the last push. The operator of this installation can have it collect its garbage, remove images, or enlarge its disk; builds go on within 5 minutes of that.';
}

function findNodeShortage({ nodes }: SpaceReadings, reserve: Reserve): string | undefined {
  const tightest = [...nodes.values()].flatMap((node) => findTightest(node) ?? []);
  const roomiest = tightest.toSorted((a, b) => b.free - a.free)[0];
  if (roomiest === undefined || tightest.some((disk) => !isSpaceShort(disk, reserve))) return undefined;
  const who = tightest.length === 1 ? 'the node has' : `none of the ${tightest.length} nodes has enough; the best has`;
  return `${who} ${describeDisk(roomiest, reserve)}. Delete apps that are no longer used, or ask the operator of this installation to enlarge the disk.`;
}

/** The file system of the registry's volume; undefined if no known pod mounts it. */
function findClaim(nodes: SpaceReadings['nodes'], name: string): FileSystem | undefined {
  return [...nodes.values()].flatMap(({ claims }) => claims.get(name) ?? [])[0];
}

function isSpaceShort(disk: FileSystem, reserve: Reserve): boolean {
  return disk.free < computeKeptBytes(disk, reserve);
}

function computeKeptBytes({ capacity }: FileSystem, reserve: Reserve): number {
  return 'bytes' in reserve ? reserve.bytes : capacity * reserve.share;
}

function describeDisk(disk: FileSystem, reserve: Reserve): string {
  return `${formatBytes(disk.free)} free, and ${formatBytes(computeKeptBytes(disk, reserve))} are kept free`;
}

/** In a unit small enough to show a difference. */
function formatBytes(bytes: number): string {
  const gib = bytes / 1024 ** 3;
  return gib >= 1 ? `${Number(gib.toFixed(1))} GiB` : `${Math.floor(bytes / 1024 ** 2)} MiB`;
}

// Reads from the kubelets how much is free on the disks of nodes and on the volumes that pods mount.

/** Bytes of a file system. */
export interface FileSystem {
  readonly free: number;
  readonly capacity: number;
}

/** The disks that the kubelet of one node sees. */
export interface NodeDisks {
  /** Name of the node. */
  readonly name: string;
  /** Where pods write (node), and where images are unpacked (images): one file system on most nodes. */
  readonly fileSystems: Readonly<Partial<Record<'node' | 'images', FileSystem>>>;
  /** By `namespace/name` of the claim. */
  readonly claims: ReadonlyMap<string, FileSystem>;
  /** By `namespace/name` of the pod; absent: none. */
  readonly layers?: ReadonlyMap<string, PodLayers>;
}

/** By the name of the container. */
export type PodLayers = ReadonlyMap<string, WritableLayer>;

/** The files that a container has written outside of its volumes. They are gone when its container is. */
export interface WritableLayer {
  readonly bytes: number;
  /** When the container was created, RFC 3339. */
  readonly startedAt: string;
}

/** Reads a node by its address. @throws ApiError when the kubelet refuses or is out of reach */
export type DiskReader = (address: string, signal: AbortSignal) => Promise<NodeDisks>;

/** Values that the kubelet has not measured yet are absent. */
const figures = z
  .object({ availableBytes: z.number(), capacityBytes: z.number() })
  .transform(({ availableBytes, capacityBytes }): FileSystem => ({ free: availableBytes, capacity: capacityBytes }))
  .optional()
  .catch(undefined);
const claim = z.object({ namespace: z.string(), name: z.string() });
const volume = z.object({ pvcRef: claim.optional() });
const summary = z.object({
  node: z.object({ nodeName: z.string(), fs: figures, runtime: z.object({ imageFs: figures }).optional() }),
  pods: z
    .array(
      z.object({
        podRef: claim.optional().catch(undefined),
        volume: z.array(z.unknown()).optional(),
        containers: z.array(z.unknown()).optional(),
      }),
    )
    .default([]),
});
/** Of a container that has just started, nothing is measured yet. */
const measuredContainer = z.object({
  name: z.string(),
  startTime: z.iso.datetime(),
  rootfs: z.object({ usedBytes: z.number() }),
});

/** Reads the statistics of kubelets; needs the right to nodes/stats. */
export function createDiskReader(connection: Connection, port: number): DiskReader {
  const request = { port, path: '/stats/summary', accept: 'application/json', userAgent: 'moorage-operator' };
  return async (address, signal) => {
    const text = await askKubelet(connection, { ...request, address }, signal);
    return parseDisks(text);
  };
}

/** Parses the disks in a kubelet's summary. @throws ZodError, SyntaxError for any other text. */
export function parseDisks(text: string): NodeDisks {
  const { node, pods } = summary.parse(JSON.parse(text));
  const volumes = pods.flatMap((pod) => pod.volume ?? []).map(parseMount);
  const layers = pods.flatMap(({ podRef, containers = [] }) => {
    const measured = containers.flatMap(parseLayer);
    return podRef === undefined || measured.length === 0
      ? []
      : [[`${podRef.namespace}/${podRef.name}`, new Map(measured)] as const];
  });
  return {
    name: node.nodeName,
    fileSystems: omitUndefined({ node: node.fs, images: node.runtime?.imageFs }),
    claims: new Map(volumes.filter((each) => each !== undefined)),
    ...(layers.length === 0 ? {} : { layers: new Map(layers) }),
  };
}

function parseLayer(each: unknown): [string, WritableLayer][] {
  const { data } = measuredContainer.safeParse(each);
  return data === undefined ? [] : [[data.name, { bytes: data.rootfs.usedBytes, startedAt: data.startTime }]];
}

function parseMount(each: unknown): [string, FileSystem] | undefined {
  const { pvcRef } = volume.safeParse(each).data ?? {};
  const disk = figures.parse(each);
  return pvcRef === undefined || disk === undefined ? undefined : [`${pvcRef.namespace}/${pvcRef.name}`, disk];
}

/** The node's file system with the least space; undefined if none is measured. */
export function findTightest({ fileSystems }: NodeDisks): FileSystem | undefined {
  return Object.values(fileSystems).toSorted((one, other) => one.free - other.free)[0];
}

export interface SpaceMetrics {
  readonly short: Gauge;
  readonly stored: Gauge<'app' | 'kind'>;
  readonly removed: Counter;
  readonly failures: Counter<'of'>;
}

export function createSpaceMetrics(registry: Registry): SpaceMetrics {
  const registers = [registry];
  const failures = new Counter({
    name: 'moorage_space_failures_total',
    help: 'Nodes whose disks could not be read (node), and apps whose images could not be removed (registry).',
    labelNames: ['of'],
    registers,
  });
  // From the first scrape on, so that the first failure is an increase.
  for (const kind of ['node', 'registry']) failures.inc({ of: kind }, 0);
  return {
    failures,
    short: new Gauge({
      name: 'moorage_disk_short',
      help: '1 while no pipeline is started for lack of disk space, else 0.',
      registers,
    }),
    stored: new Gauge({
      name: 'moorage_registry_stored_bytes',
      help: 'Bytes of the images and of the layer cache of an app in the registry, when they were last looked at. Layers that are shared count in each.',
      labelNames: ['app', 'kind'],
      registers,
    }),
    removed: new Counter({
      name: 'moorage_registry_removed_total',
      help: 'Manifests of images and caches that were removed from the registry.',
      registers,
    }),
  };
}

export interface DiskMetrics {
  /** Replaces all samples, so that nodes and volumes that are gone do not stay. */
  replaceSamples(nodes: readonly NodeDisks[]): void;
}

/** Of the claims, only those of one namespace are exported. Only the leader reads disks, so other replicas have no sample. */
export function createDiskMetrics(registry: Registry, namespace: string): DiskMetrics {
  const registers = [registry];
  const node = ['node', 'filesystem'] as const;
  const volume = ['claim'] as const;
  const nodeSize = new Gauge({
    name: 'moorage_node_filesystem_size_bytes',
    help: 'Size of a file system of a node that runs apps or builds: node (its own) or images (of its container runtime).',
    labelNames: node,
    registers,
  });
  const nodeAvailable = new Gauge({
    name: 'moorage_node_filesystem_avail_bytes',
    help: 'What is free of it.',
    labelNames: node,
    registers,
  });
  const volumeSize = new Gauge({
    name: 'moorage_volume_size_bytes',
    help: 'Size of a volume of the installation itself, such as that of its PostgreSQL, if it is on a node that runs apps or builds and the kubelet measures it (not of hostPath).',
    labelNames: volume,
    registers,
  });
  const volumeAvailable = new Gauge({
    name: 'moorage_volume_avail_bytes',
    help: 'What is free of it.',
    labelNames: volume,
    registers,
  });
  return {
    replaceSamples(nodes) {
      for (const gauge of [nodeSize, nodeAvailable, volumeSize, volumeAvailable]) gauge.reset();
      for (const { name, fileSystems, claims } of nodes) {
        for (const [filesystem, { capacity, free }] of Object.entries(fileSystems)) {
          nodeSize.set({ node: name, filesystem }, capacity);
          nodeAvailable.set({ node: name, filesystem }, free);
        }
        for (const [claim, { capacity, free }] of claims) {
          if (!claim.startsWith(`${namespace}/`)) continue;
          volumeSize.set({ claim: claim.slice(namespace.length + 1) }, capacity);
          volumeAvailable.set({ claim: claim.slice(namespace.length + 1) }, free);
        }
      }
    },
  };
}
