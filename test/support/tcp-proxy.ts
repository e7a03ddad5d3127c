// A TCP proxy on loopback whose connections a test freezes or resets: what a network does to a client and a server that are both well.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface TcpProxy {
  readonly port: number;
  /** From now on nothing is passed on, in connections that are open and in new ones. */
  freeze(): void;
  /** Passes on what has waited, and everything after it. */
  thaw(): void;
  /** Resets every open connection, and each new one as soon as the client has sent something. */
  reset(): void;
  stop(): Promise<void>;
}

export async function startTcpProxy(target: { readonly host: string; readonly port: number }): Promise<TcpProxy> {
  let state: 'passing' | 'frozen' | 'resetting' = 'passing';
  const pairs = new Set<readonly [Socket, Socket]>();
  const server = createServer((client) => {
    if (state === 'resetting') {
      client.on('error', () => undefined);
      client.once('data', () => {
        client.resetAndDestroy();
      });
      return;
    }
    const upstream = connect(target);
    const pair = [client, upstream] as const;
    pairs.add(pair);
    for (const [from, to] of [pair, [upstream, client] as const]) {
      from.on('error', () => undefined);
      from.on('data', (bytes: Buffer) => to.write(bytes));
      // A frozen network passes on no end either.
      from.on('close', () => {
        if (state !== 'frozen') to.destroy();
      });
      if (state === 'frozen') from.pause();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    freeze() {
      state = 'frozen';
      for (const pair of pairs) for (const socket of pair) socket.pause();
    },
    thaw() {
      state = 'passing';
      for (const pair of pairs) for (const socket of pair) socket.resume();
    },
    reset() {
      state = 'resetting';
      for (const [client] of pairs) client.resetAndDestroy();
    },
    async stop() {
      for (const pair of pairs) for (const socket of pair) socket.destroy();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}
