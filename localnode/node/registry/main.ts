// Runs the collector of the node's registry: looks every few minutes whether it has grown.
import { setTimeout as delay } from 'node:timers/promises';
import { createLog } from '../../../lib/telemetry.ts';
import { nodeKubectl, processFolders } from '../settings.ts';
import { ensureProcess } from '../daemons/processes.ts';
import { buildRegistrySpec } from './registry.ts';
import { cleanRegistry, measureRegistryBytes } from './registry-cleanup.ts';

const everyMs = 10 * 60_000;
const log = createLog('registry-collector');
const ending = new AbortController();
// A collection in progress is brought to its end, since the registry is stopped meanwhile.
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, () => {
    ending.abort();
  });

let before = await measureRegistryBytes();
for (;;) {
  await delay(everyMs, undefined, { signal: ending.signal }).catch(() => undefined);
  if (ending.signal.aborted) break;
  try {
    // One that was killed within a collection has left the registry stopped.
    await ensureProcess(processFolders, await buildRegistrySpec());
    const { bytes, isCollected, text } = await cleanRegistry(nodeKubectl, before);
    before = isCollected ? bytes : Math.min(before, bytes);
    log.info({ outcome: text }, 'looked at the registry');
  } catch (error) {
    log.warn({ error: error instanceof Error ? error.message : String(error) }, 'the registry could not be cleaned');
  }
}
