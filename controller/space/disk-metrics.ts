// Metrics of the disks of nodes, and of the volumes of the installation itself.
import { Gauge, type Registry } from 'prom-client';
import type { NodeDisks } from './kubelet.ts';

export interface DiskMetrics {
  /** Replaces what was seen before, so that nodes and volumes that are gone do not stay. */
  seen(nodes: readonly NodeDisks[]): void;
}

/** Of the claims, those of one namespace. Only the leader looks: without a look there is no sample. */
export function diskMetrics(registry: Registry, namespace: string): DiskMetrics {
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
    seen(nodes) {
      for (const gauge of [nodeSize, nodeAvailable, volumeSize, volumeAvailable]) gauge.reset();
      for (const { name, own, claims } of nodes) {
        for (const [filesystem, { capacity, free }] of Object.entries(own)) {
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
