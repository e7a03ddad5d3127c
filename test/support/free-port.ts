// Ports of loopback for tests.
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';

/** Listens on loopback. Returns the port. */
export async function listen(server: Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** A port on which nothing listens: it was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  server.close();
  await once(server, 'close');
  return port;
}
