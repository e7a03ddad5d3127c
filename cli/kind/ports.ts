// The gateway's two ports on this machine. Docker publishes them when the node is made, and cannot change them later.
import { connect } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { GatewayPorts } from '../../localnode/node/gateway/ports.ts';
import { containerExists, containers, docker } from './docker.ts';

const bindings = z.record(z.string(), z.array(z.object({ HostPort: z.string() })).nullable());

/** Reads the ports out of what `docker inspect` prints as a node's port bindings. */
export function readBindings(text: string): GatewayPorts | undefined {
  const published = bindings.parse(JSON.parse(text));
  const [http, https] = ['80/tcp', '443/tcp'].map((port) => published[port]?.[0]?.HostPort);
  return http === undefined || https === undefined ? undefined : { http: Number(http), https: Number(https) };
}

/** The ports of the cluster that exists; undefined when there is none. */
export async function publishedPorts(): Promise<GatewayPorts | undefined> {
  if (!(await containerExists(containers.node))) return undefined;
  return readBindings(await docker(['inspect', '-f', '{{json .HostConfig.PortBindings}}', containers.node]));
}

/** The ports to use. Throws when the cluster that exists publishes other ones than those asked for. */
export function decidePorts(
  wanted: { http: number | undefined; https: number | undefined },
  published: GatewayPorts | undefined,
): GatewayPorts {
  const current = published ?? { http: 80, https: 443 };
  const ports = { http: wanted.http ?? current.http, https: wanted.https ?? current.https };
  if (ports.http === ports.https)
    throw new Error(
      `HTTP and HTTPS cannot share port ${ports.http}: choose another one with --http-port or --https-port`,
    );
  if (published !== undefined && !isDeepStrictEqual(ports, published))
    throw new Error(
      `the kind cluster publishes ports ${published.http} (http) and ${published.https} (https), which cannot change while it exists: remove it with \`npm run down\` first, or leave out --http-port and --https-port`,
    );
  return ports;
}

/** Whether something accepts connections at this port. A person who is not root may not try to listen on 443. */
async function answers(port: number): Promise<boolean> {
  return await new Promise((done) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: 1000 });
    const end = (answer: boolean) => () => {
      socket.destroy();
      done(answer);
    };
    socket.once('connect', end(true)).once('error', end(false)).once('timeout', end(false));
  });
}

/** Throws when another program has one of the ports of a cluster that is to be made. */
export async function requireFreePorts(ports: GatewayPorts): Promise<void> {
  for (const name of ['https', 'http'] as const) {
    if (await answers(ports[name]))
      throw new Error(
        `port ${ports[name]} is already in use by another program: choose a free one with --${name}-port N`,
      );
  }
}
