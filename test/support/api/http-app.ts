// An application with endpoints and protocols of the test's choice, and raw connections to it.
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Registry } from 'prom-client';
import { z } from 'zod';
import { createRequestListener } from '../../../api/http/application.ts';
import {
  defineEndpoint,
  type Endpoint,
  type Method,
  type ProtocolMount,
  type RequestContext,
} from '../../../api/http/endpoint.ts';
import { startServer, type PublicServer } from '../../../api/http/server.ts';
import { createHttpMetrics } from '../../../lib/telemetry.ts';
import { createBlockList } from '../../../lib/subnets.ts';
import { baseUrl, silent } from './sample.ts';

export function createApp(endpoints: readonly Endpoint[], protocols: readonly ProtocolMount[] = []): RequestListener {
  return createRequestListener({
    endpoints,
    protocols,
    baseUrl,
    callers: { salt: 'salt', trustedProxies: createBlockList([]) },
    log: silent,
    metrics: createHttpMetrics(new Registry()),
    ending: new AbortController().signal,
  });
}

/** What an endpoint was given. */
export interface EndpointInput {
  readonly params: Record<string, unknown>;
  readonly query: Record<string, unknown>;
}

/** An endpoint that takes any parameters. */
export function findEndpoint(
  method: Method,
  path: string,
  handler: (given: EndpointInput, context: RequestContext) => unknown,
): Endpoint {
  return defineEndpoint({
    method,
    path,
    operation: `${method}${path}`,
    tag: 'test',
    summary: '.',
    description: '.',
    params: z.looseObject({}),
    query: z.looseObject({}),
    ...(method === 'POST' ? { body: z.unknown() } : {}),
    ...(method === 'GET' ? { head: 'as GET' as const } : {}),
    output: z.unknown(),
    outputDescription: '.',
    handler: async (given, context) => await handler(given, context),
  });
}

export async function serve(listener: RequestListener): Promise<PublicServer> {
  return startServer({ port: 0, host: '127.0.0.1', listener, log: silent, baseUrl });
}

export async function stop(server: PublicServer): Promise<void> {
  await server.drain({ graceMs: 0, limitMs: 100, endStreams: () => undefined });
}

/** A connection that sends what the test writes. */
export async function open({ port }: PublicServer, text: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

/** Everything that comes until the other side ends, or until `enough` has come. */
export async function receive(socket: Socket, enough?: RegExp): Promise<string> {
  let text = '';
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    if (enough?.test(text) === true) break;
  }
  return text;
}
