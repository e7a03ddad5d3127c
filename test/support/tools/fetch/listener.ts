// A listener on every address of this machine, loopback and others, IPv4 and IPv6, that counts who connects.
import { once } from 'node:events';
import { createServer } from 'node:net';

export interface Listener {
  readonly port: number;
  connections(): number;
  close(): Promise<void>;
}

export async function countConnections(): Promise<Listener> {
  let count = 0;
  const server = createServer((socket) => {
    count += 1;
    socket.destroy();
  });
  server.listen(0, '::');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  return {
    port: address.port,
    connections: () => count,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}
