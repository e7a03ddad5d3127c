// Ports of loopback for tests.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';

/** Listens on loopback. Returns the port. */
export async function listen(server: Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Below the ports that the kernel gives to outgoing connections, and below those of nodes of Kubernetes. */
const first = 20_000;
const count = 10_000;
/** Processes begin at different places, so that they rarely try the same port. */
let next = (process.pid * 37) % count;

/**
 * A port that nothing listens on, for a program that listens later. No other process of tests is given the same one
 * while this process lives, and no outgoing connection takes it.
 */
export async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < count; tries += 1) {
    const port = first + next;
    next = (next + 1) % count;
    if ((await reserve(port)) && (await isFree(port))) return port;
  }
  throw new Error(`every port from ${first} to ${first + count - 1} is in use`);
}

/** The UDP port of the same number, kept for as long as this process lives, marks it as taken for other processes. */
async function reserve(port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  try {
    socket.bind({ port, address: '127.0.0.1', exclusive: true });
    await once(socket, 'listening');
    socket.unref();
    return true;
  } catch {
    socket.close();
    return false;
  }
}

/** On every address, as programs listen that are not given one. */
async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port);
    await once(server, 'listening');
    server.close();
    await once(server, 'close');
    return true;
  } catch {
    return false;
  }
}
