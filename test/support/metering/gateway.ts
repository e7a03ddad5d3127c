// A real Traefik on loopback with ten apps behind it, as the gateway of a cluster is configured.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool, request } from 'undici';
import { stringify } from 'yaml';
import { getBinaryPath, buildPart } from '../../../localnode/binaries/build.ts';
import { findFreePort } from '../free-port.ts';

/** Arguments that make Traefik write what is metered, as in localnode/manifests/traefik.yaml. */
export const accessLogArguments = (file: string): string[] => [
  '--accesslog=true',
  '--accesslog.format=json',
  `--accesslog.filepath=${file}`,
  ...['User-Agent', 'Sec-Fetch-Dest', 'Moorage-Activator'].map(
    (name) => `--accesslog.fields.headers.names.${name}=keep`,
  ),
];

export interface Gateway {
  readonly url: string;
  /** Resolves once it serves, which it takes a request to see. */
  start(seen: Seen): Promise<void>;
  /** Ends it with a signal, and waits for its end. */
  end(signal: NodeJS.Signals): Promise<void>;
  close(): Promise<void>;
}

export interface GatewayOptions {
  readonly folder: string;
  /** Arguments for its access log. */
  readonly args: readonly string[];
}

async function startBackend(): Promise<{ port: number; close: () => void }> {
  const server = createServer((_, response) => response.end('ok')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    port: address.port,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Makes a gateway; it serves once it is started. Routes <anything>.apps.test. */
export async function makeGateway({ folder, args }: GatewayOptions): Promise<Gateway> {
  await buildPart('traefik');
  const backend = await startBackend();
  const port = await findFreePort();
  const routes = join(folder, `routes-${port}.yaml`);
  await writeFile(
    routes,
    stringify({
      http: {
        routers: { apps: { rule: 'HostRegexp(`^.+\\.apps\\.test$`)', service: 'apps' } },
        services: { apps: { loadBalancer: { servers: [{ url: `http://127.0.0.1:${backend.port}` }] } } },
      },
    }),
  );
  const url = `http://127.0.0.1:${port}`;
  let child: ChildProcess | undefined;
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  };
  return {
    url,
    end,
    async start(seen) {
      child = spawn(
        getBinaryPath('traefik', 'traefik'),
        [
          '--global.checknewversion=false',
          '--global.sendanonymoususage=false',
          '--log.level=ERROR',
          `--entrypoints.web.address=127.0.0.1:${port}`,
          '--entrypoints.web.transport.lifecycle.gracetimeout=5s',
          '--providers.file.watch=false',
          `--providers.file.filename=${routes}`,
          ...args,
        ],
        { stdio: ['ignore', 'inherit', 'inherit'] },
      );
      await serving(url, seen);
    },
    async close() {
      await end('SIGKILL');
      backend.close();
    },
  };
}

/** Until a route is there nothing is logged; the first request that is answered by an app counts like any other. */
async function serving(url: string, seen: Seen): Promise<void> {
  for (;;) {
    const status = await request(url, { headers: { host: 'app-0.apps.test', 'user-agent': 'test' } }).then(
      async ({ statusCode, body }) => {
        await body.dump();
        return statusCode;
      },
      () => 0,
    );
    if (status === 200) break;
    await sleep(20);
  }
  seen.sent += 1;
  seen.answered[0] = (seen.answered[0] ?? 0) + 1;
}

/** What a client saw of its requests. */
export interface Seen {
  sent: number;
  /** By app, those that were answered. */
  readonly answered: number[];
  /** Those whose connection broke. */
  broken: number;
}

/** Sends so many requests to ten apps in turn, so many at once, as fast as they are answered. */
export async function load(
  url: string,
  requests: number,
  connections: number,
  seen: Seen,
  userAgent = 'test',
): Promise<void> {
  const pool = new Pool(url, { connections, pipelining: 1 });
  let left = requests;
  const client = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const app = left % 10;
      const path = left % 5 === 0 ? '/style.css' : '/page?secret=1';
      const answer = await pool
        .request({ path, method: 'GET', headers: { host: `app-${app}.apps.test`, 'user-agent': userAgent } })
        .then(async ({ statusCode, body }) => {
          await body.dump();
          return statusCode;
        })
        .catch((error: unknown) => error);
      // A connection that is refused was never a request; a gateway that starts has no route yet, and logs nothing.
      if (isRefused(answer) || answer === 404) {
        left += 1;
        await sleep(5);
        continue;
      }
      seen.sent += 1;
      if (typeof answer === 'number') seen.answered[app] = (seen.answered[app] ?? 0) + 1;
      else seen.broken += 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, client));
  await pool.close();
}

function isRefused(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
}
