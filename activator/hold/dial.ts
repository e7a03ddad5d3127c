// Connects to a pod of an app, and finds out whether an app that starts takes requests yet.
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Backend } from '../apps/directory.ts';

/** A connection that is open. @throws Error when it is refused, or not accepted in time */
export function dial({ address, port }: Backend, timeoutMs: number, signal?: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 });
    const timer = setTimeout(() => socket.destroy(new Error('not accepted in time')), timeoutMs);
    const stop = (): void => {
      socket.destroy(new Error('not wanted any more'));
    };
    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
    };
    socket.once('connect', () => {
      settle();
      socket.removeListener('error', reject);
      resolve(socket);
    });
    socket.once('error', reject);
    socket.once('close', settle);
    if (signal?.aborted === true) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}

/** A new pod may drop packets until its network is open, and the kernel would then wait a second to try again. */
const attemptMs = 150;
const healthMs = 1_000;

/** True when the app accepts connections and, where it says how it is, says that it is well. */
export async function accepts(backend: Backend, healthPath: string | undefined): Promise<boolean> {
  try {
    const socket = await dial(backend, attemptMs);
    if (healthPath !== undefined) return await isWell(socket, healthPath);
    socket.destroy();
    return true;
  } catch {
    return false;
  }
}

function isWell(socket: Socket, path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request({
      createConnection: () => socket,
      path,
      headers: { host: 'localhost', connection: 'close' },
      timeout: healthMs,
    });
    const end = (well: boolean): void => {
      resolve(well);
      socket.destroy();
    };
    asked.on('response', ({ statusCode = 0 }) => {
      end(statusCode >= 200 && statusCode < 400);
    });
    asked.on('timeout', () => {
      end(false);
    });
    asked.on('error', () => {
      end(false);
    });
    asked.end();
  });
}
