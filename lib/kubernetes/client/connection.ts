// Finds the API server and the credentials for it: from the pod's service account, or from a kubeconfig file.
import { readFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { Agent as HttpAgent } from 'node:http';
import type { RequestOptions } from 'node:https';
import { Agent as HttpsAgent } from 'node:https';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** What one request needs. */
export interface Credentials {
  headers: Record<string, string>;
  agent: HttpAgent;
}

/** An API server and our identity towards it. */
export interface Connection {
  /** Base URL, such as `https://10.96.0.1:443`. */
  readonly server: string;
  /** The namespace of the pod or of the kubeconfig's context. */
  readonly namespace: string | undefined;
  /** Called before every request, so that a rotated token is used. */
  readCredentials(): Promise<Credentials>;
  /** Closes every connection. */
  close(): void;
}

/** TLS identity and trust. All fields as in `node:tls`. */
export interface TlsSettings {
  ca?: string | Buffer | undefined;
  cert?: string | Buffer | undefined;
  key?: string | Buffer | undefined;
  servername?: string | undefined;
  rejectUnauthorized?: boolean | undefined;
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
/** The kubelet replaces a token well before it expires, so a minute of age does no harm (client-go does the same). */
const CREDENTIALS_AGE_MS = 60_000;
/** Below the 90 s after which a Go server closes an idle connection, so that we never write to one being closed. */
const IDLE_MS = 60_000;

/** Keeps one agent for as long as the TLS settings stay the same. */
class AgentHolder {
  #agent: HttpAgent | undefined;
  #settings = '';

  getAgent(server: string, tls: TlsSettings): HttpAgent {
    const settings = JSON.stringify([
      tls.ca?.toString(),
      tls.cert?.toString(),
      tls.key?.toString(),
      tls.servername,
      tls.rejectUnauthorized,
    ]);
    if (this.#agent !== undefined && settings === this.#settings) return this.#agent;
    // The old agent is left to its running watches; its idle sockets end by their time limit.
    this.#settings = settings;
    const options = { keepAlive: true, timeout: IDLE_MS, maxFreeSockets: 64, scheduling: 'lifo' as const };
    this.#agent = server.startsWith('http:') ? new HttpAgent(options) : new HttpsAgent({ ...options, ...tls });
    return this.#agent;
  }

  close(): void {
    this.#agent?.destroy();
    this.#agent = undefined;
  }
}

/** Creates a connection whose credentials are reloaded once they are a minute old. */
function createRefreshing(
  server: string,
  namespace: string | undefined,
  load: () => Promise<Credentials>,
  close: () => void,
): Connection {
  let loaded: Promise<Credentials> | undefined;
  let loadedAt = -Infinity;
  return {
    server: server.replace(/\/+$/, ''),
    namespace,
    readCredentials() {
      const now = performance.now();
      if (loaded === undefined || now - loadedAt > CREDENTIALS_AGE_MS) {
        loadedAt = now;
        loaded = load().catch((error: unknown) => {
          loaded = undefined;
          throw error;
        });
      }
      return loaded;
    },
    close,
  };
}

/** A connection with fixed headers and TLS settings. */
export function createStaticConnection(
  server: string,
  settings: { namespace?: string; headers?: Record<string, string>; tls?: TlsSettings } = {},
): Connection {
  const holder = new AgentHolder();
  const { headers = {}, tls = {}, namespace } = settings;
  return createRefreshing(
    server,
    namespace,
    () => Promise.resolve({ headers, agent: holder.getAgent(server, tls) }),
    () => {
      holder.close();
    },
  );
}

/** The connection of a pod, by its service account. Throws when not run in a pod. */
export async function readInClusterConnection(directory = SERVICE_ACCOUNT): Promise<Connection> {
  const host = process.env['KUBERNETES_SERVICE_HOST'];
  const port = process.env['KUBERNETES_SERVICE_PORT'];
  if (host === undefined || host === '' || port === undefined || port === '') {
    throw new Error(
      'Not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set. Set KUBECONFIG to a kubeconfig file instead.',
    );
  }
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const holder = new AgentHolder();
  const read = async (name: string): Promise<string> => (await readFile(join(directory, name), 'utf8')).trim();
  const namespace = await read('namespace').catch(() => undefined);
  const load = async (): Promise<Credentials> => {
    const [token, ca] = await Promise.all([read('token'), read('ca.crt')]);
    return { headers: { authorization: `Bearer ${token}` }, agent: holder.getAgent(server, { ca }) };
  };
  return createRefreshing(server, namespace, load, () => {
    holder.close();
  });
}

/**
 * The connection that a kubeconfig file describes, in its current context or the named one. Throws when the file or the
 * context is missing.
 */
export async function readFileConnection(path: string, context?: string): Promise<Connection> {
  // Imported only here: it costs some 60 MB of memory, which a pod with a service account need not pay.
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  config.loadFromFile(path);
  if (context !== undefined) config.setCurrentContext(context);
  const cluster = config.getCurrentCluster();
  if (cluster === null)
    throw new Error(
      `${path}: context "${config.getCurrentContext()}" names no cluster. Name another context, or fix current-context.`,
    );
  const holder = new AgentHolder();
  const load = async (): Promise<Credentials> => {
    const options: RequestOptions = { headers: {} };
    await config.applyToHTTPSOptions(options);
    const headers = readHeaders(options);
    // Its own agent is only needed for proxies, and does not keep connections alive.
    const agent =
      cluster.proxyUrl !== undefined && options.agent instanceof HttpAgent
        ? options.agent
        : holder.getAgent(cluster.server, readTls(options));
    return { headers, agent };
  };
  const namespace = config.getContextObject(config.getCurrentContext())?.namespace;
  return createRefreshing(cluster.server, namespace, load, () => {
    holder.close();
  });
}

/** In a pod: its service account. Else the file named by `KUBECONFIG`, else `~/.kube/config`. */
export async function readDefaultConnection(): Promise<Connection> {
  const path = process.env['KUBECONFIG'];
  if (path !== undefined && path !== '') return readFileConnection(path);
  if (existsSync(join(SERVICE_ACCOUNT, 'token'))) return readInClusterConnection();
  return readFileConnection(join(homedir(), '.kube', 'config'));
}

function readHeaders(options: RequestOptions): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    if (value !== undefined) headers[name.toLowerCase()] = String(value);
  }
  if (typeof options.auth === 'string')
    headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
  return headers;
}

function readTls(options: RequestOptions): TlsSettings {
  const readPem = (value: unknown): string | Buffer | undefined =>
    typeof value === 'string' || Buffer.isBuffer(value) ? value : undefined;
  return {
    ca: readPem(options.ca),
    cert: readPem(options.cert),
    key: readPem(options.key),
    servername: options.servername,
    rejectUnauthorized: options.rejectUnauthorized,
  };
}
