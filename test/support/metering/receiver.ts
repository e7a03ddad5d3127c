// The receiver as a process of its own, over a real ledger and ten apps: node receiver.ts DATABASE_URL PORT TOKEN [GRACE_MS]
import { BlockList } from 'node:net';
import { startHealthServer } from '../../../lib/kubernetes/index.ts';
import { createLog, createRegistry } from '../../../lib/telemetry.ts';
import { openLedger } from '../../../api/billing/index.ts';
import { startMetering } from '../../../api/accounting/metering/index.ts';
import { baseUrl, sampleApp, sampleApps, site } from '../api/sample.ts';

const [databaseUrl = '', port = '', token = '', graceMs = '3600000'] = process.argv.slice(2);
const log = createLog('receiver');
const registry = createRegistry();
const ledger = openLedger({ databaseUrl, registry, log });
const { apps } = sampleApps(...Array.from({ length: 10 }, (_, index) => sampleApp(`app-${index}`)));
const { routes } = startMetering({
  settings: { token, graceMs: Number(graceMs) },
  ledger,
  apps: { apps, site },
  baseUrl,
  callers: { salt: 'a salt of the tests', trustedProxies: new BlockList() },
  keepDays: 400,
  registry,
  log,
});
await ledger.opened;
await startHealthServer({ port: Number(port), host: '127.0.0.1', registry, routes, liveness: [], readiness: [] });
