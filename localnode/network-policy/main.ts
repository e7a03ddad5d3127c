// The NetworkPolicy enforcer of a node: wiring only.
import { rm } from 'node:fs/promises';
import {
  createClient,
  createEventRecorder,
  defaultConnection,
  fileConnection,
  listenForShutdown,
} from '../../lib/kubernetes/index.ts';
import { readConfig } from '../../lib/config.ts';
import { createLog } from '../../lib/telemetry.ts';
import { createApplier, nftRunner, tableExists } from './tables/apply.ts';
import { readAttachments } from './objects/attachments.ts';
import { configSchema } from './config.ts';
import { createEnforcer } from './enforcer.ts';
import { forgetFlows } from './tables/flows.ts';
import { showBridgedPackets } from './tables/kernel.ts';
import { runEnforcer } from './run.ts';
import { TABLE } from './tables/scope.ts';
import { createSources } from './objects/sources.ts';
import { writeStatus } from './status-file.ts';

const log = createLog('network-policy');
const config = readConfig(configSchema);
const shutdown = listenForShutdown({ log });
// What an earlier run wrote does not hold for this one until the API server has answered.
await rm(config.STATUS_FILE, { force: true });
const connection = config.KUBECONFIG === undefined ? defaultConnection() : fileConnection(config.KUBECONFIG);
const client = createClient(await connection, { userAgent: 'moorage-network-policy' });
const recorder = createEventRecorder({
  client,
  controller: 'moorage.dev/network-policy',
  instance: config.NODE_NAME,
  log,
});
const sources = createSources(client, log);
const applier = createApplier(nftRunner());
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
    rulesExist: tableExists,
    prepareKernel: showBridgedPackets,
    restoreMs: 30_000,
  },
  shutdown.signal,
);
await recorder.flush();
client.close();
shutdown.finish();
