// A scripted stand-in for a router of OpenRouter's shape, for what a real one cannot be made to do: each model
// misbehaves in its own way.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { z } from 'zod';

/** What came in. */
export interface RouterRequest {
  readonly path: string;
  readonly body: string;
  readonly authorization: string | undefined;
  readonly hold: string | undefined;
}

/** Answers as it likes; `closed` resolves when the other side has gone away. */
export type Script = (response: ServerResponse, asked: RouterRequest, closed: Promise<unknown>) => void | Promise<void>;

export interface ScriptedRouter {
  readonly url: string;
  readonly asked: RouterRequest[];
  close(): Promise<void>;
}

const named = z.looseObject({ model: z.string() });

/** Starts it on loopback. Scripts are found by the model of a POST, or by the path of a GET. */
export async function startScriptedRouter(scripts: Readonly<Record<string, Script>>): Promise<ScriptedRouter> {
  const asked: RouterRequest[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const one: RouterRequest = {
        path: request.url ?? '',
        body: await readBody(request),
        authorization: request.headers.authorization,
        hold: header(request, 'x-request-id'),
      };
      asked.push(one);
      const name = request.method === 'GET' ? one.path.replace(/\?.*/, '') : named.parse(JSON.parse(one.body)).model;
      const script = scripts[name];
      if (script === undefined) response.writeHead(404).end('{"error":{"message":"no script"}}');
      else await script(response, one, once(response, 'close'));
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  return {
    url: `http://127.0.0.1:${address.port}`,
    asked,
    close: async () => {
      const closed = once(server, 'close');
      server.closeAllConnections();
      server.close();
      await closed;
    },
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request as AsyncIterable<Uint8Array>) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' ? value : undefined;
}

/** Answers with a status and a body. */
export function reply(status: number, body: string, headers: Readonly<Record<string, string>> = {}): Script {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
  };
}

/** The body of an answer; `usage` as JSON text. */
export function completion(usage: string | undefined, id = 'gen-1'): string {
  return `{"id":"${id}","choices":[{"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]${usage === undefined ? '' : `,"usage":${usage}`}}`;
}

/** Sends these as events of a stream, and leaves it open. */
export function events(response: ServerResponse, ...data: string[]): void {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const one of data) response.write(`data: ${one}\n\n`);
}

/** Answers with a stream of these events, and ends it. */
export function stream(...data: string[]): Script {
  return (response) => {
    events(response, ...data);
    response.end();
  };
}

/** The event of a stream that has its usage, as JSON text. */
export function usageEvent(usage: string): string {
  return `{"id":"gen-1","choices":[],"usage":${usage}}`;
}

/** A piece of a streamed answer. */
export function delta(content: string, finish: string | null = null, id = 'gen-1'): string {
  return JSON.stringify({ id, choices: [{ index: 0, delta: { content }, finish_reason: finish }] });
}
