// A real API server on a real etcd: what integration tests talk to. Files of one run take turns with a few of them.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { getBinariesFolder, getBinaryPath, buildPart } from '../../../localnode/binaries/build.ts';
import { prepareControlPlane } from '../../../localnode/node/control-plane/control-plane.ts';
import { writeKubeconfig } from '../../../localnode/node/control-plane/certificates.ts';
import { ensureProcess, stopProcess, type ProcessSpec } from '../../../localnode/node/daemons/processes.ts';
import { run, waitFor } from '../../../localnode/shell.ts';
import {
  createClient,
  createStaticConnection,
  type Client,
  type Connection,
  type Manifest,
  type Resource,
} from '../../../lib/kubernetes/index.ts';
import { runExclusively } from '../exclusively.ts';
import { findFreePort } from '../free-port.ts';
import { apiServerLease, openLease } from '../servers/lease.ts';

export interface ApiServer {
  /** A cluster-admin's kubeconfig file. */
  kubeconfig: string;
  /** For clients of it that are other programs; what kubectl and helm keep about it goes with its folder. */
  environment: Record<'KUBECONFIG' | 'KUBECACHEDIR', string>;
  /** The URL of the API server. */
  server: string;
  /** Runs kubectl against it and returns what it printed. */
  kubectl: (...args: string[]) => Promise<string>;
  /** Ends the API server by SIGKILL and starts it again on the same port and data; resolves when it is ready. */
  restart: () => Promise<void>;
  /** Ends both processes and removes the folder, or gives back what was leased. */
  stop: () => Promise<void>;
}

/** An API server on which files of tests find what an earlier one has left for them. */
export interface LayeredApiServer extends ApiServer {
  /** What the file that left the layer noted about it; undefined if this file has to make the layer. */
  readonly note: string | undefined;
  /** Has the objects that are on it now stay for later files. */
  keep: (note: string) => Promise<void>;
}

/** An API server that this process has started. */
export interface OwnApiServer extends ApiServer {
  readonly folder: string;
  readonly etcdPort: number;
}

/** A test that is killed must not leave its servers behind: they get the signal when this process ends. */
function boundToThisProcess(spec: ProcessSpec): ProcessSpec {
  return { ...spec, command: 'setpriv', args: ['--pdeathsig', 'KILL', spec.command, ...spec.args] };
}

/**
 * An API server without any object but its own. There are no controllers and no node: nothing deletes what an object
 * owned. In a run of the integration tests it is one that is shared; otherwise it is started for this process.
 */
export async function startApiServer(): Promise<ApiServer> {
  return startLayeredApiServer(undefined);
}

/**
 * An API server with a layer of objects that several files share. If a file changes these objects, the server is emptied
 * after it.
 */
export async function startLayeredApiServer(layer: string | undefined): Promise<LayeredApiServer> {
  const lease = await openLease();
  if (lease === undefined) return { ...(await startOwnApiServer()), note: undefined, keep: () => Promise.resolve() };
  const { kubeconfig, server, cache, note } = await lease.request({ want: 'api-server', layer }, apiServerLease);
  const environment = { KUBECONFIG: kubeconfig, KUBECACHEDIR: cache };
  return {
    ...{ kubeconfig, server, environment, note: note ?? undefined },
    keep: async (text) => {
      if (layer !== undefined) await lease.request({ want: 'keep', layer, note: text }, z.null());
    },
    kubectl: (...args) => run(getBinaryPath('kubectl', 'kubectl'), args, { env: environment }),
    restart: async () => void (await lease.request({ want: 'restart' }, z.null())),
    stop: async () => {
      lease.end();
      await rm(cache, { recursive: true, force: true });
    },
  };
}

/** Starts etcd and kube-apiserver (compiled into the cache if need be) on free ports. */
export async function startOwnApiServer(): Promise<OwnApiServer> {
  await runExclusively(async () => {
    for (const part of ['kubernetes', 'kubectl'] as const) await buildPart(part);
  });
  const folder = await mkdtemp(join(tmpdir(), 'moorage-api-server-'));
  const folders = { run: join(folder, 'run'), logs: join(folder, 'log') };
  const [apiPort, etcdPort, etcdPeerPort] = [await findFreePort(), await findFreePort(), await findFreePort()];
  const plane = await prepareControlPlane({
    ...{
      binaries: getBinariesFolder('kubernetes'),
      folder,
      address: '127.0.0.1',
      apiPort,
      etcdPort,
      etcdPeerPort,
      serviceCidr: '10.97.0.0/16',
    },
    // No controller makes the default accounts here, and the endpoint of the kubernetes service may not be a loopback
    // address.
    apiServerArgs: [
      '--disable-admission-plugins=ServiceAccount',
      '--endpoint-reconciler-type=none',
      '--etcd-compaction-interval=30s',
    ],
  });
  const [etcd, apiServer] = [plane.etcd, plane.apiServer].map(boundToThisProcess);
  const stop = async (): Promise<void> => {
    await stopProcess(folders, 'kube-apiserver', 1);
    await stopProcess(folders, 'etcd', 2);
    await rm(folder, { recursive: true, force: true });
  };
  const start = async (spec: ProcessSpec | undefined): Promise<void> => {
    if (spec !== undefined) await ensureProcess(folders, spec);
  };
  try {
    await start(etcd);
    await start(apiServer);
    const kubeconfig = join(folder, 'kubeconfig');
    await writeKubeconfig(kubeconfig, {
      server: plane.server,
      authority: plane.authority.certificate,
      ...plane.admin,
      context: 'test',
      namespace: 'default',
    });
    const environment = { KUBECONFIG: kubeconfig, KUBECACHEDIR: join(folder, 'discovered') };
    const kubectl = (...args: string[]): Promise<string> =>
      run(getBinaryPath('kubectl', 'kubectl'), args, { env: environment });
    const restart = async (): Promise<void> => {
      await stopProcess(folders, 'kube-apiserver', 0);
      await start(apiServer);
    };
    return { kubeconfig, environment, server: plane.server, kubectl, restart, stop, folder, etcdPort };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Runs `body` against a fresh API server and stops it afterwards, whatever happens. */
export async function runWithApiServer<T>(body: (server: ApiServer) => Promise<T>): Promise<T> {
  const server = await startApiServer();
  try {
    return await body(server);
  } finally {
    await server.stop();
  }
}

/**
 * Waits until the API server serves these CRDs. A CRD that was just made has no conditions yet, on which `kubectl wait`
 * gives up at once.
 */
export async function waitUntilEstablished(
  server: Pick<ApiServer, 'kubectl'>,
  ...crds: readonly string[]
): Promise<void> {
  const names = crds.map((crd) => `crd/${crd}`);
  await waitFor(
    `${crds.join(' and ')} being served`,
    () => server.kubectl('wait', '--for=condition=Established', ...names, '--timeout=10s'),
    { seconds: 60 },
  );
}

const base64 = z.base64().transform((text) => Buffer.from(text, 'base64'));
const kubeconfigFile = z.object({
  clusters: z.tuple([z.object({ cluster: z.object({ 'certificate-authority-data': base64 }) })]),
  users: z.tuple([z.object({ user: z.object({ 'client-certificate-data': base64, 'client-key-data': base64 }) })]),
});

/** The certificate of the authority that the API server's is signed by, and the administrator's with its key. */
export async function readCertificates({
  kubeconfig,
}: Pick<ApiServer, 'kubeconfig'>): Promise<{ ca: Buffer; cert: Buffer; key: Buffer }> {
  const { clusters, users } = kubeconfigFile.parse(parse(await readFile(kubeconfig, 'utf8')));
  const { 'client-certificate-data': cert, 'client-key-data': key } = users[0].user;
  return { ca: clusters[0].cluster['certificate-authority-data'], cert, key };
}

/**
 * The connection of the administrator, or of another user, as of `kubectl --as`. The library that reads any kubeconfig takes
 * half a second to load.
 */
export async function openConnection(
  server: Pick<ApiServer, 'kubeconfig' | 'server'>,
  user?: string,
): Promise<Connection> {
  const headers = user === undefined ? {} : { 'impersonate-user': user };
  return createStaticConnection(server.server, { headers, tls: await readCertificates(server) });
}

/** A client of the administrator, or of another user. Close it at the end. */
export async function createClientAs(server: Pick<ApiServer, 'kubeconfig' | 'server'>, user?: string): Promise<Client> {
  return createClient(await openConnection(server, user));
}

/** Has the API server judge an object that is not stored. @returns its refusal; undefined if it accepts the object */
export async function findRefusal(client: Client, resource: Resource, object: Manifest): Promise<string | undefined> {
  const { group, version, plural } = resource;
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const path = `${root}/namespaces/${object.metadata.namespace ?? ''}/${plural}?dryRun=All&fieldValidation=Strict`;
  try {
    await client.request({ method: 'POST', path, body: object });
    return undefined;
  } catch (error) {
    return String(error);
  }
}
