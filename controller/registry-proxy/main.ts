// Runs the registry proxy, the only process that holds the installation's account at its registry.
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { readConfig } from '../../lib/config.ts';
import { startHealthServer } from '../../lib/kubernetes/index.ts';
import { createLog } from '../../lib/telemetry.ts';
import { registryProxyEnvironment } from '../settings.ts';
import { createAuthorizer, findCredentials } from './account.ts';
import { createFullness, createProxy } from './proxy.ts';

const config = readConfig(registryProxyEnvironment);
const log = createLog('registry-proxy');
const host = config.MOORAGE_REGISTRY_HOST;
const url = `${config.MOORAGE_REGISTRY_INSECURE ? 'http' : 'https'}://${host}`;
const credentials = findCredentials(host, await readFile(config.MOORAGE_REGISTRY_CREDENTIALS, 'utf8'));
if (credentials === undefined)
  log.warn({ host }, 'the Secret has no credentials for the registry; requests are sent without');

const registry = new Registry();
collectDefaultMetrics({ register: registry });
const proxy = createProxy({
  registry: url,
  authorize: createAuthorizer({ url, credentials }),
  tokenSecret: config.MOORAGE_PUSH_TOKEN_SECRET,
  mirrors: config.MOORAGE_REGISTRY_MIRROR === host,
  fullness: createFullness(),
  log,
});
proxy.listen(config.MOORAGE_REGISTRY_PROXY_PORT);
await once(proxy, 'listening');
const health = await startHealthServer({
  port: config.MOORAGE_INTERNAL_PORT,
  registry,
  liveness: [],
  readiness: [],
});
log.info({ registry: url, port: config.MOORAGE_REGISTRY_PROXY_PORT }, 'registry proxy listening');

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    // A push in progress may finish; the pod's grace period bounds it.
    proxy.close(() => {
      void health.close();
    });
    proxy.closeIdleConnections();
  });
}
