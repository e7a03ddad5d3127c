// A real API server on a real etcd, alone, in a temporary folder: what integration tests talk to.
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { binariesOf, buildPart } from '../../../localnode/binaries/build.ts';
import { prepareControlPlane } from '../../../localnode/node/control-plane/control-plane.ts';
import { writeKubeconfig } from '../../../localnode/node/control-plane/kubeconfig.ts';
import { ensureProcess, stopProcess, type ProcessSpec } from '../../../localnode/node/daemons/processes.ts';
import { run } from '../../../localnode/shell.ts';
import { exclusively } from '../exclusively.ts';
import { waitFor } from '../../../localnode/wait.ts';

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
  /** Ends both processes and removes the folder. */
  stop: () => Promise<void>;
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
      return server;
    }),
  );
  const ports = servers.map((server) => {
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  });
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

/** A test that is killed must not leave its servers behind: they get the signal when this process ends. */
function boundToThisProcess(spec: ProcessSpec): ProcessSpec {
  return { ...spec, command: 'setpriv', args: ['--pdeathsig', 'KILL', spec.command, ...spec.args] };
}

/**
 * Starts etcd and kube-apiserver (compiled into the cache if need be) on free ports. There are no controllers and no
 * node: nothing deletes what an object owned.
 */
export async function startApiServer(): Promise<ApiServer> {
  await exclusively(() => buildPart('kubernetes'));
  const folder = await mkdtemp(join(tmpdir(), 'moorage-api-server-'));
  const folders = { run: join(folder, 'run'), logs: join(folder, 'log') };
  const [apiPort = 0, etcdPort = 0, etcdPeerPort = 0] = await freePorts(3);
  const plane = await prepareControlPlane({
    ...{
      binaries: binariesOf('kubernetes'),
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
      run(join(binariesOf('kubernetes'), 'kubectl'), args, { env: environment });
    const restart = async (): Promise<void> => {
      await stopProcess(folders, 'kube-apiserver', 0);
      await start(apiServer);
    };
    return { kubeconfig, environment, server: plane.server, kubectl, restart, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Runs `body` against a fresh API server and stops it afterwards, whatever happens. */
export async function withApiServer<T>(body: (server: ApiServer) => Promise<T>): Promise<T> {
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
export async function established(server: Pick<ApiServer, 'kubectl'>, ...crds: readonly string[]): Promise<void> {
  const names = crds.map((crd) => `crd/${crd}`);
  await waitFor(
    `${crds.join(' and ')} being served`,
    () => server.kubectl('wait', '--for=condition=Established', ...names, '--timeout=10s'),
    { seconds: 60 },
  );
}
