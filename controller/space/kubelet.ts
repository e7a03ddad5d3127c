// Reads from the kubelet of a node how much of its disk is free, and of the volumes that its pods mount.
import { z } from 'zod';
import { present } from '../../lib/values.ts';
import { askKubelet, type Connection } from '../../lib/kubernetes/index.ts';

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
  readonly own: Readonly<Partial<Record<'node' | 'images', FileSystem>>>;
  /** By `namespace/name` of the claim. */
  readonly claims: ReadonlyMap<string, FileSystem>;
}

/** Reads a node by its address. @throws ApiError when the kubelet refuses or is out of reach */
export type ReadDisks = (address: string, signal: AbortSignal) => Promise<NodeDisks>;

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
  pods: z.array(z.object({ volume: z.array(z.unknown()).optional() })).default([]),
});

/** Reads the statistics of kubelets; needs the right to nodes/stats. */
export function kubeletDisks(connection: Connection, port: number): ReadDisks {
  const asked = { port, path: '/stats/summary', accept: 'application/json', userAgent: 'moorage-operator' };
  return async (address, signal) => {
    const text = await askKubelet(connection, { ...asked, address }, signal);
    return parseDisks(text);
  };
}

/** What a kubelet's summary says of disks. @throws ZodError, SyntaxError for any other text. */
export function parseDisks(text: string): NodeDisks {
  const { node, pods } = summary.parse(JSON.parse(text));
  const volumes = pods.flatMap((pod) => pod.volume ?? []).map(mounted);
  return {
    name: node.nodeName,
    own: present({ node: node.fs, images: node.runtime?.imageFs }),
    claims: new Map(volumes.filter((each) => each !== undefined)),
  };
}

function mounted(each: unknown): [string, FileSystem] | undefined {
  const { pvcRef } = volume.safeParse(each).data ?? {};
  const disk = figures.parse(each);
  return pvcRef === undefined || disk === undefined ? undefined : [`${pvcRef.namespace}/${pvcRef.name}`, disk];
}

/** Of these file systems the one with the least space; undefined where none is measured. */
export function tightestOf({ own }: NodeDisks): FileSystem | undefined {
  return Object.values(own).toSorted((one, other) => one.free - other.free)[0];
}
