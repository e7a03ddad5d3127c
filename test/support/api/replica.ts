// A replica of the API on loopback, over a real API server and with no more rights there than it has in a cluster.
import { dirname, join } from 'node:path';
import { readFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Counter, Gauge, Registry } from 'prom-client';
import { createBlockList } from '../../../lib/subnets.ts';
import { createRequestListener } from '../../../api/http/application.ts';
import { createDiscoveryEndpoints } from '../../../api/protocols/discovery/endpoints.ts';
import { startServer } from '../../../api/http/server.ts';
import { createSubmitEndpoints } from '../../../api/apps/submit/endpoints.ts';
import { createAppIndex, appIndexers, hostedApps } from '../../../api/apps/hosted-apps.ts';
import { createLogOpener } from '../../../api/apps/submit/follow-log.ts';
import { createRepositoryCheck, createSubmitter } from '../../../api/apps/submit/submit-app.ts';
import type { LookupAnswer } from '../../../lib/git/lookup.ts';
import type { Repository } from '../../../lib/repository.ts';
import { ensureCertificate } from '../../../localnode/node/control-plane/certificates.ts';
import { createClient, createReflector } from '../../../lib/kubernetes/index.ts';
import { createHttpMetrics } from '../../../lib/telemetry.ts';
import { silent } from './sample.ts';
import { openConnection, waitUntilEstablished, type ApiServer } from '../kubernetes/api-server.ts';

export const namespaces = { apps: 'moorage-apps', builds: 'moorage-builds' } as const;
export const apiUser = 'system:serviceaccount:moorage-system:moorage-api';

/** All that the API may do in a cluster. */
const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: api, namespace: ${namespaces.apps}}
rules:
  - {apiGroups: [moorage.dev], resources: [hostedapps], verbs: [get, list, watch, create, patch]}
  - {apiGroups: [""], resources: [secrets], verbs: [create]}
  - {apiGroups: [""], resources: [pods], verbs: [list, watch]}
  - {apiGroups: [""], resources: [pods/log], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: api, namespace: ${namespaces.builds}}
rules: [{apiGroups: [""], resources: [pods/log], verbs: [get]}]
${Object.values(namespaces)
  .map(
    (namespace) => `---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: api, namespace: ${namespace}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: api}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "${apiUser}"}]`,
  )
  .join('\n')}
`;

/** Applies manifests given as text. */
export async function applyText(server: ApiServer, text: string): Promise<void> {
  const { run } = await import('../../../localnode/shell.ts');
  const { getBinaryPath } = await import('../../../localnode/binaries/build.ts');
  await run(getBinaryPath('kubectl', 'kubectl'), ['apply', '--server-side', '-f', '-'], {
    env: { KUBECONFIG: server.kubeconfig },
    input: text,
  });
}

/** Makes the CRD, the namespaces and the API's rights. */
export async function prepare(server: ApiServer): Promise<void> {
  await server.kubectl(
    'apply',
    '--server-side',
    '-f',
    new URL('../../../crds/hostedapps.yaml', import.meta.url).pathname,
  );
  await waitUntilEstablished(server, 'hostedapps.moorage.dev');
  for (const namespace of Object.values(namespaces)) await server.kubectl('create', 'namespace', namespace);
  await applyText(server, rights);
}

/** What every replica and the operator share. */
export const ownershipSecret = 'o'.repeat(32);

export interface ReplicaOptions {
  perCallerAndDay?: number;
  perNetwork?: number;
  apps?: number;
  pollMs?: number;
  modelsUsd?: string;
  /** Where repositories are looked up; every one can be read unless given. */
  lookUp?: (repository: Repository) => Promise<LookupAnswer>;
  allowed?: string[];
  insecure?: string[];
}

export interface Replica {
  readonly url: string;
  /** Posts to /api/submit as somebody at `address`. */
  submit(repo: string, address?: string, more?: { contact?: string; note?: string }): Promise<Response>;
  stop(): Promise<void>;
}

/** Starts a replica. Its limits are wide unless given. */
export async function startReplica(server: ApiServer, options: ReplicaOptions = {}): Promise<Replica> {
  const {
    perCallerAndDay = 10_000,
    perNetwork = 10_000,
    apps: maximum = 10_000,
    pollMs = 60_000,
    modelsUsd,
    lookUp = () => Promise.resolve({ ok: true, commit: 'a'.repeat(40), reference: 'refs/heads/main' }),
    allowed = ['git.test'],
    insecure = [],
  } = options;
  const ending = new AbortController();
  const connection = await openConnection(server, apiUser);
  const client = createClient(connection);
  const reflector = createReflector({
    client,
    resource: hostedApps,
    namespace: namespaces.apps,
    indexers: appIndexers,
    backoffMs: [20, 200],
  });
  const reflecting = reflector.run(ending.signal);
  await reflector.store.waitUntilSynced();
  const apps = createAppIndex(reflector.store, namespaces.apps);
  const hosts = { allowed, insecure };
  const submit = createSubmitter({
    client,
    apps,
    namespace: namespaces.apps,
    pollMs,
    modelsUsd,
    limits: { perCallerAndDay, perNetwork, apps: maximum },
    checkRepository: createRepositoryCheck({ lookUp }),
  });
  const registers = [new Registry()];
  const port = Promise.withResolvers<number>();
  const make = (baseUrl: string): ReturnType<typeof createRequestListener> => {
    const endpoints = createSubmitEndpoints({
      apps,
      hosts,
      baseUrl,
      site: { domain: 'apps.test', port: 443 },
      submit,
      ownershipSecret,
      openLog: createLogOpener(connection, namespaces.builds),
      identifyAuthor: () => Promise.reject(new Error('no author')),
      logStreams: 100,
      logRetryMs: 20,
      metrics: {
        submissions: new Counter({ name: 'submissions', help: '.', labelNames: ['result'], registers }),
        streams: new Gauge({ name: 'streams', help: '.', registers }),
      },
    });
    return createRequestListener({
      endpoints: [...endpoints, ...createDiscoveryEndpoints(endpoints, baseUrl)],
      baseUrl,
      callers: { salt: 'salt', trustedProxies: createBlockList(['127.0.0.0/8']) },
      log: silent,
      metrics: createHttpMetrics(new Registry()),
      ending: ending.signal,
    });
  };
  const app = port.promise.then((number) => make(`http://127.0.0.1:${number}`));
  const listening = await startServer({
    port: 0,
    host: '127.0.0.1',
    log: silent,
    listener: (request, response) => {
      void app.then((ready) => {
        ready(request, response);
      });
    },
  });
  port.resolve(listening.port);
  const url = `http://127.0.0.1:${listening.port}`;
  return {
    url,
    submit: (repo, address = '203.0.113.1', more = {}) =>
      fetch(`${url}/api/submit`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
        body: JSON.stringify({ repo, ...more }),
      }),
    async stop() {
      await listening.drain({
        graceMs: 0,
        limitMs: 1_000,
        endStreams: () => {
          ending.abort();
        },
      });
      await reflecting;
      client.close();
    },
  };
}

/** What a container's log is asked of: `write` more of it, or `end` it. */
export interface ScriptedKubelet {
  readonly port: number;
  /** Log requests that are open, by `pod/container`. */
  readonly open: Map<string, ServerResponse>;
  /** Log of a container that has ended. A container without one is waiting to start. */
  readonly ended: Map<string, string>;
  /** Prints a line in the present run of a container, which begins with the first one. */
  print(key: string, line: string): void;
  /** Ends the present run of a container. Its log stays readable as the previous one, once the next run has printed. */
  exit(key: string): void;
  stop(): Promise<void>;
}

/** The log of a container as a kubelet keeps it: of its present or last run, and of the one before. */
class RunLog {
  #lines: string[] = [];
  #previous: string[] | undefined;
  #isEnded = false;
  readonly #followers = new Set<ServerResponse>();
  static #printed = 0;

  print(line: string): void {
    if (this.#isEnded) [this.#previous, this.#lines, this.#isEnded] = [this.#lines, [], false];
    RunLog.#printed += 1;
    // Many lines have the same millisecond; a container runtime distinguishes them by nanoseconds.
    const nanoseconds = String(RunLog.#printed % 1_000_000).padStart(6, '0');
    const stamped = `${new Date().toISOString().replace('Z', `${nanoseconds}Z`)} ${line}\n`;
    this.#lines.push(stamped);
    for (const follower of this.#followers) follower.write(stamped);
  }

  exit(): void {
    this.#isEnded = true;
    for (const follower of this.#followers) follower.end();
    this.#followers.clear();
  }

  /** Answers as a kubelet does: it selects by whole seconds. */
  serve(request: IncomingMessage, response: ServerResponse): void {
    const query = new URL(request.url ?? '', 'https://kubelet').searchParams;
    const isPrevious = query.get('previous') === 'true';
    const lines = isPrevious ? this.#previous : this.#lines;
    if (lines === undefined) {
      response.writeHead(400).end('previous terminated container not found');
      return;
    }
    const since = query.get('sinceTime') ?? '';
    const tail = Number(query.get('tailLines') ?? lines.length);
    response.write(
      lines
        .filter((line) => line.slice(0, 19) >= since.slice(0, 19))
        .slice(-tail)
        .join(''),
    );
    if (query.get('follow') !== 'true' || isPrevious || this.#isEnded) {
      response.end();
      return;
    }
    this.#followers.add(response);
    response.on('close', () => {
      this.#followers.delete(response);
    });
  }
}

/** The one edge that is not real here: a kubelet that serves logs as the test writes them, to the real API server. */
export async function startKubelet(server: ApiServer): Promise<ScriptedKubelet> {
  const folder = join(dirname(server.kubeconfig), 'certificates');
  const authority = { certificate: join(folder, 'ca.crt'), key: join(folder, 'ca.key') };
  const pair = await ensureCertificate(folder, authority, {
    name: 'scripted-kubelet',
    commonName: 'kubelet',
    addresses: ['127.0.0.1'],
    usage: ['serverAuth'],
  });
  const open = new Map<string, ServerResponse>();
  const ended = new Map<string, string>();
  const runs = new Map<string, RunLog>();
  const kubelet = createTlsServer(
    { cert: readFileSync(pair.certificate), key: readFileSync(pair.key) },
    (request, response) => {
      const [, pod = '', container = ''] = /^\/containerLogs\/[^/]+\/([^/]+)\/([^/?]+)/.exec(request.url ?? '') ?? [];
      const key = `${pod}/${container}`;
      const run = runs.get(key);
      if (run !== undefined) {
        run.serve(request, response);
        return;
      }
      const text = ended.get(key);
      if (text !== undefined) {
        response.end(text);
        return;
      }
      if (!container.startsWith('clone')) {
        response.writeHead(400).end(`container "${container}" in pod "${pod}" is waiting to start: PodInitializing`);
        return;
      }
      open.set(key, response);
      response.on('close', () => {
        open.delete(key);
      });
      response.flushHeaders();
    },
  );
  await new Promise<void>((resolve) => {
    kubelet.listen(0, '127.0.0.1', resolve);
  });
  const address = kubelet.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    port,
    open,
    ended,
    print(key, line) {
      const run = runs.get(key) ?? new RunLog();
      runs.set(key, run);
      run.print(line);
    },
    exit(key) {
      runs.get(key)?.exit();
    },
    async stop() {
      kubelet.closeAllConnections();
      await new Promise((resolve) => {
        kubelet.close(resolve);
      });
    },
  };
}
