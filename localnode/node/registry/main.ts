// Runs the collector of the node's registry: checks every few minutes whether the registry has grown.
import { setTimeout as delay } from 'node:timers/promises';
import { createLog } from '../../../lib/telemetry.ts';
import { nodeKubectl, processFolders } from '../settings.ts';
import { ensureProcess } from '../daemons/processes.ts';
import { buildRegistrySpec } from './registry.ts';
import { cleanRegistry, measureRegistryBytes } from './registry-cleanup.ts';

const everyMs = 10 * 60_000;
const log = createLog('registry-collector');
const ending = new AbortController();
// Finish a collection in progress, because the registry is stopped during it.
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, () => {
    ending.abort();
  });

let bytesBefore = await measureRegistryBytes();
for (;;) {
  await delay(everyMs, undefined, { signal: ending.signal }).catch(() => undefined);
  if (ending.signal.aborted) break;
  try {
    // If a collection was killed, it has left the registry stopped.
    await ensureProcess(processFolders, await buildRegistrySpec());
    const { bytes, isCollected, text } = await cleanRegistry(nodeKubectl, bytesBefore);
    bytesBefore = isCollected ? bytes : Math.min(bytesBefore, bytes);
    log.info({ outcome: text }, 'checked the registry');
  } catch (error) {
    log.warn({ error: error instanceof Error ? error.message : String(error) }, 'could not clean the registry');
  }
}
