// The chart's values for hosted apps: how many, what they may take, and how they are run.
import { z } from 'zod';
import { duration, name, allowEmpty } from './value-kinds.ts';

export const apps = z.strictObject({
  max: z.int().min(1).max(100_000).default(500).describe('Maximum number of hosted apps.'),
  perNetwork: z
    .int()
    .min(1)
    .max(100_000)
    .default(10)
    .describe('Maximum number of hosted apps that were submitted from one network (/24 of IPv4, /48 of IPv6).'),
  expireAfter: duration
    .default('168h')
    .describe('A submitted app that has never been live is deleted after this time, with a warning before. 0s: never.'),
  keepDataFor: duration
    .default('168h')
    .describe(
      'How long the volumes and generated passwords of a deleted app are kept, unless spec.deletionPolicy is Retain. Applying the same HostedApp within this time restores them. 0s: they are deleted with the app.',
    ),
  quota: z
    .record(z.string(), z.string())
    .default({
      pods: '1500',
      'limits.cpu': '1000',
      'limits.memory': '2Ti',
      'limits.ephemeral-storage': '4Ti',
      'requests.storage': '2Ti',
      'services.nodeports': '0',
      'services.loadbalancers': '0',
    })
    .describe('ResourceQuota of the apps namespace.'),
  goodAfter: duration
    .default('10m')
    .describe(
      'A release that has served this long without a crash is good: a rollback chooses the newest good one, and a crash loop is over.',
    ),
  usageInterval: duration
    .default('30s')
    .describe(
      'How often the operator reads from the kubelets (port 10250 of network.nodeCidrs) what apps use, and lets them request that, and how full disks are, for metrics. 0s: never; apps then request a hundredth of their CPU limit and an eighth of their memory limit.',
    ),
  idleAfter: allowEmpty(z.union([z.literal('auto'), duration]))
    .default('')
    .describe(
      'Time without use after which an app is put to rest that does not set spec.run.idleAfter: auto (chosen by its own pauses) or a duration. If empty, only apps that ask for it rest.',
    ),
  callSeconds: z
    .int()
    .min(1)
    .max(3_600)
    .default(120)
    .describe('Time limit in seconds of a call to an app, until the last byte of its response.'),
  runtimeClassName: allowEmpty(name).default('').describe('RuntimeClass of app pods, such as gvisor.'),
  storageClass: allowEmpty(name)
    .default('')
    .describe('StorageClass of app volumes. Defaults to the default StorageClass of the cluster.'),
});
