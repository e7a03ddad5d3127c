// Sends a request to an application over a real connection on loopback; its server starts with the first one.
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';

const origins = new WeakMap<RequestListener, Promise<string>>();

/** Redirects are not followed. The server does not keep the process alive. */
export async function send(app: RequestListener, path: string, init: RequestInit = {}): Promise<Response> {
  const origin = origins.get(app) ?? listen(app);
  origins.set(app, origin);
  const { pathname, search } = new URL(path, 'http://host');
  return fetch(`${await origin}${pathname}${search}`, { redirect: 'manual', ...init });
}

async function listen(app: RequestListener): Promise<string> {
  const server = createServer(app);
  server.on('connection', (socket) => {
    socket.unref();
  });
  server.listen(0, '127.0.0.1').unref();
  await once(server, 'listening');
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
}
