// The enforcer's configuration, from its environment.
import { z } from 'zod';
import { flag } from '../../lib/config.ts';
import { readCidr } from './objects/address.ts';

/** The variables that the process reads. */
export const configSchema = z.object({
  /**
   * Path of a kubeconfig that may list and watch pods, namespaces and network policies, and create events; without one,
   * the service account of the pod must be allowed to.
   */
  KUBECONFIG: z.string().optional(),
  /** Name of the node, for the events' reporter. */
  NODE_NAME: z.string(),
  /** The bridge whose ports are the pods. */
  POD_BRIDGE: z
    .string()
    .regex(/^[\w.-]{1,15}$/, 'must be the name of a network device')
    .default('moorage0'),
  /** All addresses that pods may have. */
  POD_CIDR: z
    .string()
    .refine((text) => readCidr(text)?.family === 4, 'must be an IPv4 CIDR such as 10.244.0.0/16')
    .default('10.244.0.0/16'),
  /** The CNI library's folder of records on each pod. */
  CNI_RESULTS: z.string().default('/var/lib/cni/results'),
  /** Bind every bridge port to its pod's MAC and address. Off only where the runtime does not keep CNI_RESULTS. */
  SOURCE_GUARD: flag.default(true),
  /** The file that reports what is enforced and what is refused, as JSON. */
  STATUS_FILE: z.string().default('/run/moorage/network-policy.json'),
});

/** The configuration, as read. */
export type Config = z.output<typeof configSchema>;
