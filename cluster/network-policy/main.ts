// The NetworkPolicy enforcer of the one-machine node: wiring only.
import { watch } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createClient, createEventRecorder, fileConnection, listenForShutdown, messageOf } from '../../controller/runtime/index.ts';
import { readConfig } from '../../lib/config.ts';
import { createLog } from '../../lib/log.ts';
import { createApplier, nftRunner, tableExists } from './apply.ts';
import { readAttachments } from './attachments.ts';
import { configSchema } from './config.ts';
import { createEnforcer } from './enforcer.ts';
import { forgetFlows } from './flows.ts';
import { showBridgedPackets } from './kernel.ts';
import { createLatest } from './latest.ts';
import { TABLE } from './scope.ts';
import { createSources } from './sources.ts';
import { writeStatus } from './status-file.ts';

/** How often everything is put anew, in case someone flushed the kernel's tables or reset its switches. */
const RESTORE_MS = 30_000;

const log = createLog('network-policy');
const config = readConfig(configSchema);
const shutdown = listenForShutdown({ log });
const client = createClient(await fileConnection(config.KUBECONFIG), { userAgent: 'moorage-network-policy' });
const sources = createSources(client, log);
const applier = createApplier(nftRunner());
const enforcer = createEnforcer({
  scope: { table: TABLE, bridge: config.POD_BRIDGE, podCidr: config.POD_CIDR },
  sources,
  applier,
  log,
  recorder: createEventRecorder({ client, controller: 'moorage.dev/network-policy', instance: config.NODE_NAME, log }),
  readAttachments: async () => (config.SOURCE_GUARD ? readAttachments(config.CNI_RESULTS, config.POD_BRIDGE) : undefined),
  forgetFlows,
  writeStatus: async (status) => writeStatus(config.STATUS_FILE, status),
});

await showBridgedPackets();
await mkdir(config.CNI_RESULTS, { recursive: true });
// Rules of an earlier run hold until the new ones are known; without any, nothing flows until then.
if (!(await tableExists())) await enforcer.close();

const reflectors = [sources.pods, sources.namespaces, sources.policies];
const running = reflectors.map(async (reflector) => reflector.run(shutdown.signal));
const onError = (error: unknown): void => {
  log.error({ problem: messageOf(error) }, 'rules could not be applied; those in the kernel stay');
};
const reconciling = createLatest(async () => enforcer.reconcile(), { settleMs: 5, retryMs: 1000, onError }, shutdown.signal);
const restore = async (): Promise<void> => {
  await showBridgedPackets();
  applier.distrust();
  reconciling.request();
};

try {
  await Promise.all(reflectors.map(async ({ store }) => store.whenSynced(shutdown.signal)));
  for (const { store } of reflectors) store.subscribe(() => { reconciling.request(); });
  const records = watch(config.CNI_RESULTS, () => { reconciling.request(); });
  const timer = setInterval(() => { restore().catch(onError); }, RESTORE_MS);
  reconciling.request();
  await Promise.all(running);
  clearInterval(timer);
  records.close();
  await reconciling.idle();
} catch (error) {
  if (!shutdown.signal.aborted) throw error;
}
client.close();
shutdown.finish();
