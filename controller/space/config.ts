// The operator's variables of disk space: what is kept in the registry, and free on disks.
import { z } from 'zod';
import { flag } from '../../lib/config.ts';
import { bytes, duration, reserve } from '../config-kinds.ts';
import type { Reserve } from './shortage.ts';

export const spaceVariables = {
  MOORAGE_REGISTRY_PRUNE: flag
    .default(true)
    .describe('true: images and caches that are no longer kept are removed from the registry.'),
  MOORAGE_REGISTRY_VOLUME_CLAIM: z
    .string()
    .regex(/^[^/]+\/[^/]+$/, 'must be namespace/name')
    .optional()
    .describe('PersistentVolumeClaim (namespace/name) on which the registry stores, where it runs in the cluster.'),
  MOORAGE_BUILDS_IMAGE_LIMIT: z.coerce
    .number()
    .int()
    .min(0)
    .default(3)
    .describe('Images of an app that are kept in the registry besides those in use.'),
  MOORAGE_BUILDS_CACHE_LIMIT: bytes.prefault('2Gi').describe('Maximum size of the layer cache of an app.'),
  MOORAGE_BUILDS_KEEP_FREE: reserve
    .prefault('5Gi')
    .describe('Disk space, or share of the disk, below which no pipeline is started; 0: never mind.'),
  MOORAGE_BUILDS_SPACE_INTERVAL: duration
    .prefault('30s')
    .describe('How often the disks of nodes and the registry are looked at; 0s: never.'),
};

export interface SpaceConfig {
  /** Whether anything is removed from the registry. */
  readonly prune: boolean;
  readonly imageLimit: number;
  readonly registryClaim?: string | undefined;
  readonly reserve: Reserve;
  /** 0: disks are not looked at. */
  readonly intervalMs: number;
}

const variables = z.object(spaceVariables);

export function spaceConfig(read: z.output<typeof variables>): SpaceConfig {
  return {
    prune: read.MOORAGE_REGISTRY_PRUNE,
    imageLimit: read.MOORAGE_BUILDS_IMAGE_LIMIT,
    registryClaim: read.MOORAGE_REGISTRY_VOLUME_CLAIM,
    reserve: read.MOORAGE_BUILDS_KEEP_FREE,
    intervalMs: read.MOORAGE_BUILDS_SPACE_INTERVAL,
  };
}
