// Metrics of space for builds: what apps have in the registry, and whether builds wait for a disk.
import { Counter, Gauge, type Registry } from 'prom-client';

export interface SpaceMetrics {
  readonly short: Gauge;
  readonly stored: Gauge<'app' | 'kind'>;
  readonly removed: Counter;
  readonly failures: Counter<'of'>;
}

export function spaceMetrics(registry: Registry): SpaceMetrics {
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
