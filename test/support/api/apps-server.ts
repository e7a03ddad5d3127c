// A real API server with what the API needs in it, and the operator's hand in the tests that have none: the status.
import { startApiServer, type ApiServer } from '../kubernetes/api-server.ts';
import { namespaces, prepare } from './replica.ts';

/** Starts an API server that knows HostedApps, their namespaces and the rights of the API. */
export async function startAppsServer(): Promise<ApiServer> {
  const server = await startApiServer();
  await prepare(server);
  return server;
}

/** Since when an app is in the phase that a test gives it. */
export const since = '2026-01-01T00:00:00Z';

/** Merges into the status of an app, as the operator does. */
export async function setStatus(server: ApiServer, app: string, status: object): Promise<void> {
  await server.kubectl(
    'patch',
    'hostedapp',
    app,
    '-n',
    namespaces.apps,
    '--subresource=status',
    '--type=merge',
    '-p',
    JSON.stringify({ status }),
  );
}
