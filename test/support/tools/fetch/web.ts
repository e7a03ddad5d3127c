// A web server on loopback for tests, scripted by path.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

export type Page = (request: IncomingMessage, response: ServerResponse) => void;

export interface Web {
  /** Like 127.0.0.1:4000, for the fetcher's list of what tests may reach. */
  readonly host: string;
  readonly url: string;
  /** What was asked for: method and path. */
  readonly asked: string[];
  close(): Promise<void>;
}

export async function startWeb(pages: Readonly<Record<string, Page>>): Promise<Web> {
  const asked: string[] = [];
  const server = createServer({ maxHeaderSize: 1_000_000 }, (request, response) => {
    const path = request.url ?? '';
    asked.push(`${request.method ?? ''} ${path}`);
    const page = pages[path] ?? pages[path.replace(/\?.*/, '')];
    if (page === undefined) response.writeHead(404, { 'content-type': 'text/plain' }).end('nothing here');
    else page(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  const host = `127.0.0.1:${address.port}`;
  return {
    host,
    url: `http://${host}`,
    asked,
    close: async () => {
      const closed = once(server, 'close');
      server.closeAllConnections();
      server.close();
      await closed;
    },
  };
}

/** Answers with these bytes. */
export function page(
  contentType: string,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Page {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': contentType, ...headers }).end(body);
  };
}
