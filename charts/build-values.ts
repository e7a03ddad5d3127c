// The chart's values for pipelines: how many at once, what they may take, and what is kept of them.
import { z } from 'zod';
import { quantity, reserve, duration, cidr, port } from './value-kinds.ts';

export const builds = z.strictObject({
  concurrency: z
    .int()
    .min(1)
    .max(100)
    .default(2)
    .describe('Maximum number of concurrent pipelines; the others are queued.'),
  perSubmitter: z
    .int()
    .min(1)
    .max(100)
    .default(1)
    .describe(
      'Maximum number of concurrent pipelines of apps that were submitted from one network; the others wait. An app that was created with kubectl counts by itself.',
    ),
  schedulingTime: duration
    .default('60s')
    .describe(
      'How long the pod of a pipeline may wait for a node; after that, the pipeline is queued again. With a cluster autoscaler, longer than it takes to add a node.',
    ),
  maximum: z
    .strictObject({ cpu: quantity.default('4'), memory: quantity.default('8Gi'), disk: quantity.default('20Gi') })
    .prefault({})
    .describe('Resource limits of every build, whatever its HostedApp requests.'),
  timeout: duration.default('2h').describe('Maximum duration of every build, whatever its HostedApp requests.'),
  historyLimit: z
    .int()
    .min(1)
    .max(20)
    .default(3)
    .describe('Number of finished pipelines that are kept for each app, with their logs.'),
  imageLimit: z
    .int()
    .min(0)
    .max(18)
    .default(3)
    .describe(
      'Number of images of an app that are kept in the registry besides those in use, the newest first, for going back to them.',
    ),
  cacheLimit: quantity
    .default('2Gi')
    .describe(
      'Maximum size of the layer cache of an app in the registry. Of an app that exceeds it, only the layers of its image are cached, which take no further space.',
    ),
  keepFree: reserve
    .default('5Gi')
    .describe(
      'Disk space of a node, and of the volume of the registry, below which no new pipeline is started: a quantity, or a share such as 10%. It should be more than the threshold at which your kubelets evict pods (10% to 15% by default). 0: never wait.',
    ),
  spaceInterval: duration
    .default('30s')
    .describe('How often the free disk space of nodes and of the registry is read. 0s: never.'),
  quota: z
    .record(z.string(), z.string())
    .default({
      pods: '20',
      'limits.cpu': '32',
      'limits.memory': '64Gi',
      'limits.ephemeral-storage': '200Gi',
      'count/jobs.batch': '5000',
    })
    .describe('ResourceQuota of the builds namespace.'),
  ports: z.array(port).min(1).default([80, 443]).describe('TCP ports on the public internet that a build may reach.'),
  packageCidrs: z
    .array(cidr)
    .default([])
    .describe(
      'Addresses among the closed ones at which builds find packages, such as those of a mirror inside. Apps and tools cannot reach them.',
    ),
});
