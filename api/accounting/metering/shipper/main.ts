// Runs the shipper in a gateway's pod: it follows the access log and sends it to the API. It loses nothing if it is killed at any line.
import { getPriority, setPriority } from 'node:os';
import { listenForShutdown, startHealthServer, stopOnShutdown } from '../../../../lib/kubernetes/index.ts';
import { createLog, createRegistry } from '../../../../lib/telemetry.ts';
import { readShipperConfig } from '../config.ts';
import { createShipperMetrics, ship } from './ship.ts';
import { createSender } from './sender.ts';

/** After SIGTERM the gateway is gone: what it wrote is sent for so long, and the next shipper sends the rest. */
const drainMs = 15_000;

/** A record can wait and a visitor cannot, so the gateway gets the processor first. */
const niceness = 10;
if (getPriority() < niceness) setPriority(niceness);

const config = readShipperConfig();
const logger = createLog('shipper');
const registry = createRegistry();
const shutdown = listenForShutdown({ log: logger, limitMs: drainMs + 5_000 });
const [ending, draining] = [new AbortController(), new AbortController()];

const health = await startHealthServer({ port: config.port, registry, liveness: [], readiness: [] });
const shipping = ship({
  log: config.log,
  limitBytes: config.limitBytes,
  send: createSender({ url: config.receiver, tokenFile: config.tokenFile, log: logger }),
  metrics: createShipperMetrics(registry),
  logger,
  signal: ending.signal,
  draining: draining.signal,
});
shipping.catch((error: unknown) => {
  if (ending.signal.aborted) return;
  logger.fatal({ err: error }, 'cannot follow the log');
  process.exit(1);
});
logger.info({ log: config.log, receiver: config.receiver }, 'shipping');

stopOnShutdown(shutdown, logger, async () => {
  draining.abort();
  const limit = setTimeout(() => {
    ending.abort();
  }, drainMs);
  await shipping.catch(() => undefined);
  clearTimeout(limit);
  await health.close();
});
