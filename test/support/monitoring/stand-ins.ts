// What the lab's operator looks at outside: a gateway with a certificate of so many days, a kubelet with a disk, and a
// registry.
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createServer as createPlainServer, type RequestListener, type Server as PlainServer } from 'node:http';
import { ensureCertificate } from '../../../localnode/node/control-plane/certificates.ts';
import { run } from '../../../localnode/shell.ts';
import { cacheTags } from '../../../crds/names.ts';
import type { ApiServer } from '../kubernetes/api-server.ts';

export interface StandIn {
  readonly port: number;
  stop(): Promise<void>;
}

/** A gateway that can be stopped and started again at its port. */
export interface Gateway extends StandIn {
  start(): Promise<void>;
}

/** Answers everything with an empty page, by a certificate that ends in so many days. */
export async function startGateway(days: number): Promise<Gateway> {
  const folder = await mkdtemp(join(tmpdir(), 'moorage-gateway-'));
  const [key, certificate] = [join(folder, 'key'), join(folder, 'certificate')];
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  await run('openssl', [
    ...request,
    ...['-days', String(days), '-subj', '/CN=gateway', '-addext', 'subjectAltName=DNS:*.apps.localhost'],
    ...['-keyout', key, '-out', certificate],
  ]);
  const files = { key: readFileSync(key), cert: readFileSync(certificate) };
  await rm(folder, { recursive: true, force: true });
  const open = (port?: number): Promise<StandIn> =>
    serve(
      createServer(files, (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>App</title>');
      }),
      port,
    );
  let server: StandIn | undefined = await open();
  const { port } = server;
  return {
    port,
    async start() {
      server ??= await open(port);
    },
    async stop() {
      await server?.stop();
      server = undefined;
    },
  };
}

/** A registry proxy behind which each app has one image of 40 MiB and a cache of 100 MiB. */
export async function startRegistry(): Promise<StandIn> {
  const answer: RequestListener = ({ url = '', method }, response) => {
    const isImage = url.includes('/apps/');
    response.setHeader('docker-content-digest', `sha256:${(isImage ? 'a' : 'c').repeat(64)}`);
    response.statusCode = method === 'DELETE' ? 202 : 200;
    const layers = [{ digest: `sha256:${'b'.repeat(64)}`, size: (isImage ? 40 : 100) * 2 ** 20 }];
    if (url === '/space') response.end('{}');
    else if (url.endsWith('/tags/list')) response.end(JSON.stringify({ tags: [isImage ? 'build-1' : cacheTags.all] }));
    else response.end(JSON.stringify({ layers }));
  };
  return serve(createPlainServer(answer));
}

/** A kubelet of the API server's authority whose disk has so much free, as a share of 100 GiB. */
export async function startKubelet(api: ApiServer, free: () => number): Promise<StandIn> {
  const folder = join(dirname(api.kubeconfig), 'certificates');
  const pair = await ensureCertificate(
    folder,
    { certificate: join(folder, 'ca.crt'), key: join(folder, 'ca.key') },
    { name: 'stand-in-kubelet', commonName: 'kubelet', addresses: ['127.0.0.1'], usage: ['serverAuth'] },
  );
  const size = 100 * 2 ** 30;
  const space = (): object => ({ availableBytes: size * free(), capacityBytes: size });
  const volume = (): object => ({
    ...space(),
    pvcRef: { name: 'data-moorage-postgres-0', namespace: 'moorage-system' },
  });
  const answer: RequestListener = (request, response) => {
    if (request.url === '/stats/summary')
      response.end(
        JSON.stringify({
          node: { nodeName: 'node-a', fs: space(), runtime: { imageFs: space() } },
          pods: [{ volume: [volume()] }],
        }),
      );
    else response.end('');
  };
  return serve(createServer({ key: readFileSync(pair.key), cert: readFileSync(pair.certificate) }, answer));
}

async function serve(server: Server | PlainServer, at = 0): Promise<StandIn> {
  server.listen(at, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    async stop() {
      const closed = once(server, 'close');
      server.closeAllConnections();
      server.close();
      await closed;
    },
  };
}
