// Runs a node's NetworkPolicy enforcer: reads its configuration and connects its parts.
import { rm } from 'node:fs/promises';
import { z } from 'zod';
import {
  createClient,
  createEventRecorder,
  readDefaultConnection,
  readFileConnection,
  listenForShutdown,
} from '../../lib/kubernetes/index.ts';
import { readConfig, flag } from '../../lib/config.ts';
import { createLog } from '../../lib/telemetry.ts';
import { createApplier, createNftRunner, hasTable, forgetFlows, showBridgedPackets } from './tables/apply.ts';
import { readAttachments } from './objects/endpoints.ts';
import { createEnforcer, createSources, writeStatus } from './enforcer.ts';
import { runEnforcer } from './run.ts';
import { TABLE } from './tables/script.ts';
import { readCidr } from './objects/model.ts';

/** Environment variables of the process. */
const configSchema = z.object({
  /**
   * Path of a kubeconfig that may list and watch pods, namespaces and network policies, and create events; without one,
   * the service account of the pod must be allowed to.
   */
  KUBECONFIG: z.string().optional(),
  /** Name of the node, for the reporter of events. */
  NODE_NAME: z.string(),
  /** The bridge whose ports belong to the pods. */
  POD_BRIDGE: z
    .string()
    .regex(/^[\w.-]{1,15}$/, 'must be the name of a network device')
    .default('moorage0'),
  /** All addresses that pods may have. */
  POD_CIDR: z
    .string()
    .refine((text) => readCidr(text)?.family === 4, 'must be an IPv4 CIDR such as 10.244.0.0/16')
    .default('10.244.0.0/16'),
  /** The CNI library's folder with a record per pod. */
  CNI_RESULTS: z.string().default('/var/lib/cni/results'),
  /**
   * Bind every bridge port to its pod's MAC and address. Turn this off only if the runtime does not keep CNI_RESULTS.
   */
  SOURCE_GUARD: flag.default(true),
  /** The file that reports what is enforced and what is refused, as JSON. */
  STATUS_FILE: z.string().default('/run/moorage/network-policy.json'),
});

const log = createLog('network-policy');
const config = readConfig(configSchema);
const shutdown = listenForShutdown({ log });
// The status of an earlier run does not apply until the API server has answered.
await rm(config.STATUS_FILE, { force: true });
const connection = config.KUBECONFIG === undefined ? readDefaultConnection() : readFileConnection(config.KUBECONFIG);
const client = createClient(await connection, { userAgent: 'moorage-network-policy' });
const recorder = createEventRecorder({
  client,
  controller: 'moorage.dev/network-policy',
  instance: config.NODE_NAME,
  log,
});
const sources = createSources(client, log);
const applier = createApplier(createNftRunner());
const enforcer = createEnforcer({
  scope: { table: TABLE, bridge: config.POD_BRIDGE, podCidr: config.POD_CIDR },
  sources,
  applier,
  log,
  recorder,
  readAttachments: async () =>
    config.SOURCE_GUARD ? readAttachments(config.CNI_RESULTS, config.POD_BRIDGE) : undefined,
  forgetFlows,
  writeStatus: async (status) => writeStatus(config.STATUS_FILE, status),
});

await runEnforcer(
  {
    enforcer,
    applier,
    sources,
    log,
    records: config.CNI_RESULTS,
    hasRules: hasTable,
    prepareKernel: showBridgedPackets,
    restoreMs: 30_000,
  },
  shutdown.signal,
);
await recorder.flush();
client.close();
shutdown.finish();
