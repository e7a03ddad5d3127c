// The main program of a workers' pod, which runs the tasks of tools as another user and without secrets. Wiring only.
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { readConfig } from '../../../../../lib/config.ts';
import { listenForShutdown, startHealthServer, stopOnShutdown } from '../../../../../lib/kubernetes/index.ts';
import { createLog } from '../../../../../lib/telemetry.ts';
import { createRegistry } from '../../../../../lib/telemetry.ts';
import { computeMemoryBudgetMb, programFolder } from '../worker-process.ts';
import { createWorkers } from '../pool.ts';
import { environment, registerWorkerMetrics, startWorkerServer } from './worker-server.ts';

/** Above the time limit of the longest task. */
const finishMs = 70_000;
/** Reserved for this process, which holds the inputs and results of running tasks. */
const ownMb = 192;

const config = readConfig(environment);
const log = createLog('workers');
const drainMs = config.MOORAGE_DRAIN_SECONDS * 1000;
const shutdown = listenForShutdown({ log, limitMs: drainMs + finishMs + 5_000 });
const registry = createRegistry();
const workers = createWorkers({ budgetMb: computeMemoryBudgetMb({ ownMb }) });
const server = await startWorkerServer({
  workers,
  modules: pathToFileURL(`${programFolder}/api/`),
  log,
  port: config.MOORAGE_PORT,
});
registerWorkerMetrics(registry, () => server.tasks());
const state = { draining: false };
const health = await startHealthServer({
  port: config.MOORAGE_INTERNAL_PORT,
  registry,
  liveness: [],
  readiness: [{ name: 'draining', check: () => (state.draining ? 'the process is shutting down' : undefined) }],
});

stopOnShutdown(shutdown, log, stop);

async function stop(): Promise<void> {
  state.draining = true;
  await delay(drainMs);
  await Promise.race([server.drain(), delay(finishMs)]);
  await workers.close();
  await health.close();
}
