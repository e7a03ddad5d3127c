// Runs inside one network namespace of the lab: listens, connects and holds connections as its parent asks over IPC.
import { createSocket } from 'node:dgram';
import { connect, createServer, type Socket } from 'node:net';
import process from 'node:process';

/** What the parent asks. */
export type Ask =
  | { op: 'listen'; ports: number[] }
  | { op: 'tcp' | 'udp'; host: string; port: number; from: string; waitMs: number }
  | { op: 'hold'; host: string; port: number }
  | { op: 'echo'; held: number; waitMs: number }
  | { op: 'heard' };

/** `open`: an answer came. `refused`: the other end said no. `silent`: nothing came in time. */
export type Reply = 'done' | 'open' | 'refused' | 'silent' | number | string[];

const heard: string[] = [];
const held: Socket[] = [];

async function listen(ports: readonly number[]): Promise<Reply> {
  for (const port of ports) {
    const server = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      socket.pipe(socket);
    });
    await new Promise<void>((resolve) => server.listen(port, '0.0.0.0', resolve));
    const datagrams = createSocket('udp4', (message, peer) => {
      heard.push(message.toString());
      datagrams.send(message, peer.port, peer.address);
    });
    await new Promise<void>((resolve) => datagrams.bind(port, '0.0.0.0', resolve));
    const sixth = createSocket({ type: 'udp6', ipv6Only: true }, (message, peer) => {
      sixth.send(message, peer.port, peer.address);
    });
    await new Promise<void>((resolve) => sixth.bind(port, '::', resolve));
  }
  return 'done';
}

/** Sends and waits for the echo, so that both directions are known to work. */
async function echo(socket: Socket, waitMs: number): Promise<Reply> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      resolve('silent');
    }, waitMs);
    const settle = (reply: Reply): void => {
      clearTimeout(timer);
      resolve(reply);
    };
    socket.once('data', () => {
      settle('open');
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      settle(error.code === 'ECONNREFUSED' ? 'refused' : 'silent');
    });
    socket.write('hello');
  });
}

async function tcp(host: string, port: number, from: string, waitMs: number): Promise<Reply> {
  const socket = connect({ host, port, ...(from === '' ? {} : { localAddress: from }) });
  const reply = await echo(socket, waitMs);
  socket.destroy();
  return reply;
}

async function udp(host: string, port: number, from: string, waitMs: number): Promise<Reply> {
  return new Promise((resolve) => {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
    const settle = (reply: Reply): void => {
      clearTimeout(timer);
      clearInterval(again);
      socket.close();
      resolve(reply);
    };
    const timer = setTimeout(() => {
      settle('silent');
    }, waitMs);
    const send = (): void => {
      socket.send('hello', port, host, () => undefined);
    };
    const again = setInterval(send, 200);
    socket.once('message', () => {
      settle('open');
    });
    socket.once('error', () => {
      settle('refused');
    });
    socket.bind(0, from === '' ? undefined : from, send);
  });
}

async function hold(host: string, port: number): Promise<Reply> {
  const socket = connect({ host, port });
  await echo(socket, 10_000);
  return held.push(socket) - 1;
}

async function answer(ask: Ask): Promise<Reply> {
  switch (ask.op) {
    case 'listen':
      return listen(ask.ports);
    case 'tcp':
      return tcp(ask.host, ask.port, ask.from, ask.waitMs);
    case 'udp':
      return udp(ask.host, ask.port, ask.from, ask.waitMs);
    case 'hold':
      return hold(ask.host, ask.port);
    case 'echo': {
      const socket = held[ask.held];
      return socket === undefined ? 'silent' : echo(socket, ask.waitMs);
    }
    case 'heard':
      return heard;
  }
}

process.on('message', (message: { id: number; ask: Ask }) => {
  void answer(message.ask).then((reply) => process.send?.({ id: message.id, reply }));
});
process.on('disconnect', () => process.exit());
process.send?.({ id: -1, reply: 'done' });
