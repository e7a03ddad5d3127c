// An app that answers, streams events and changes to another protocol, to be put to rest and woken on a real cluster.
import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { request as requestTls } from 'node:https';
import type { Socket } from 'node:net';
import { Agent, request as ask } from 'undici';
import { listPods, readApp, waitFor } from './cluster.ts';

export const sleeperFiles = (idleAfter: string): Readonly<Record<string, string>> => ({
  'package.json': JSON.stringify({ name: 'sleeper', private: true, scripts: { start: 'node server.js' } }),
  'server.js': `
const { createServer } = require('node:http');
const server = createServer((asked, answer) => {
  if (asked.url === '/events') {
    answer.writeHead(200, { 'content-type': 'text/event-stream' });
    const timer = setInterval(() => answer.write('data: tick\\n\\n'), 200);
    answer.on('close', () => clearInterval(timer));
    return;
  }
  if (asked.method === 'POST') { asked.pipe(answer); return; }
  answer.end('<!doctype html><html lang="en"><title>Sleeper</title><h1>I am awake</h1></html>');
});
server.on('upgrade', (asked, socket) => {
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n');
  socket.on('error', () => socket.destroy());
  socket.pipe(socket);
});
process.on('SIGTERM', () => process.exit(0));
setTimeout(() => server.listen(process.env.PORT), Number(process.env.DELAY_MS || 0));
`,
  'moorage.yaml': `run:\n  idleAfter: ${idleAfter}\n`,
});

const ca = readFileSync('.moorage/ca.crt');
/** Each request has a connection of its own. */
const agent = new Agent({
  connect: {
    ca,
    lookup: (_host, _options, callback) => {
      callback(null, [{ address: '127.0.0.1', family: 4 }]);
    },
  },
  connections: 1_000,
  headersTimeout: 120_000,
});

/** Status and body, and milliseconds until both were there. */
export async function measureTime(
  url: URL,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: string; ms: number; headers: Readonly<Record<string, unknown>> }> {
  const started = performance.now();
  const response = await ask(url, { dispatcher: agent, headers });
  const body = await response.body.text();
  return { status: response.statusCode, body, ms: performance.now() - started, headers: response.headers };
}

/** Waits until the app is in that state, and without pods if it is asleep. */
export async function waitForState(name: string, state: string, seconds = 120): Promise<void> {
  await waitFor(
    `${name} to be ${state}`,
    async () => {
      const { status } = await readApp(name);
      if (status?.idle?.state !== state) return undefined;
      return state === 'Asleep' && (await listPodNames(name)).length > 0 ? undefined : true;
    },
    seconds,
  );
}

/** Names of its pods. */
export async function listPodNames(name: string): Promise<string[]> {
  const found = await listPods(`moorage.dev/app=${name},app.kubernetes.io/component=app`);
  return found.map(({ metadata }) => metadata.name);
}

function open(url: URL, headers: Record<string, string>): ClientRequest {
  return requestTls({
    host: '127.0.0.1',
    port: url.port,
    servername: url.hostname,
    ca,
    path: url.pathname,
    headers: { host: url.host, ...headers },
    agent: false,
  });
}

/** A stream of events, once its response has begun. */
export async function openEvents(url: URL): Promise<IncomingMessage> {
  const asked = open(url, { accept: 'text/event-stream' });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return response;
}

/** A connection after the change of protocol. */
export async function openSocket(url: URL, headers: Readonly<Record<string, string>> = {}): Promise<Socket> {
  const asked = open(url, {
    ...headers,
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  });
  asked.end();
  const [, socket] = (await once(asked, 'upgrade')) as unknown as [IncomingMessage, Socket];
  return socket;
}
