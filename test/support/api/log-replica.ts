// A replica of the API as a process that can be killed: it collects the logs of apps, and serves them to their authors.
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { AuditLog } from '../../../api/apps/author/audit.ts';
import { AuthorAccess } from '../../../api/apps/author/access.ts';
import { TokenStore } from '../../../api/apps/author/tokens.ts';
import { Accounts } from '../../../api/apps/sign-in/accounts.ts';
import { appIndexers, createAppIndex, hostedApps } from '../../../api/apps/hosted-apps.ts';
import { createLogMetrics } from '../../../api/apps/logs/collector.ts';
import { startLogs } from '../../../api/apps/logs/start.ts';
import { createLogOpener } from '../../../api/apps/submit/follow-log.ts';
import { openLedger } from '../../../api/billing/index.ts';
import { createRequestListener } from '../../../api/http/application.ts';
import { startServer } from '../../../api/http/server.ts';
import { createClient, createReflector } from '../../../lib/kubernetes/index.ts';
import { createBlockList } from '../../../lib/subnets.ts';
import { createHttpMetrics } from '../../../lib/telemetry.ts';
import { openConnection } from '../kubernetes/api-server.ts';
import { apiUser, namespaces, ownershipSecret } from './replica.ts';
import { silent } from './sample.ts';

const [kubeconfig = '', server = '', databaseUrl = ''] = process.argv.slice(2);
const connection = await openConnection({ kubeconfig, server }, apiUser);
const client = createClient(connection);
const ending = new AbortController();
const reflector = createReflector({
  client,
  resource: hostedApps,
  namespace: namespaces.apps,
  indexers: appIndexers,
  backoffMs: [20, 200],
});
void reflector.run(ending.signal);
await reflector.store.waitUntilSynced();
const apps = createAppIndex(reflector.store, namespaces.apps);
const registry = new Registry();
const ledger = openLedger({ databaseUrl, registry, log: silent });
await ledger.opened;
const access = new AuthorAccess({
  apps,
  lookUpKeys: () => Promise.reject(new Error('nothing is changed here')),
  tokens: new TokenStore(() => ledger.get().database),
  accounts: new Accounts([], 'salt'),
  audit: new AuditLog(() => ledger.get().database),
});
const log = pino({ level: 'warn' }, pino.destination(2));
const metrics = createLogMetrics(registry);
const logs = startLogs({
  ...{ apps, access, ledger, client, metrics, log },
  getRun: () => Promise.reject(new Error('nothing runs here')),
  openLog: createLogOpener(connection, namespaces.apps),
  namespace: namespaces.apps,
  key: ownershipSecret,
  streams: 10,
  times: { leaseMs: 1_500, flushMs: 50, inspectMs: 200, cleanMs: 1_000, retryMs: [20, 1_000], pollMs: 20 },
});
const listening = await startServer({
  port: 0,
  host: '127.0.0.1',
  log: silent,
  listener: createRequestListener({
    endpoints: logs.endpoints,
    baseUrl: 'http://127.0.0.1',
    callers: { salt: 'salt', trustedProxies: createBlockList(['127.0.0.0/8']) },
    log: silent,
    metrics: createHttpMetrics(new Registry()),
    ending: ending.signal,
  }),
});
logs.start();
process.stdout.write(`${listening.port}\n`);

// How many containers it follows, whenever that changes: only the replica that collects follows any.
let followed = -1;
setInterval(() => {
  void metrics.followed.get().then(({ values }) => {
    const now = values[0]?.value ?? 0;
    if (now !== followed) process.stdout.write(`followed ${now}\n`);
    followed = now;
  });
}, 20);
