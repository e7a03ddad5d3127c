// Sends a request on to the registry, and waits where the registry is being started anew, as while it frees space.
import type { ClientRequest, IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';

/** How long nobody may listen at the registry's address before the build is given an error. */
const patienceMs = 60_000;
const pauseMs = 250;

/**
 * The reply of the registry. `start` makes the request anew for each try; nothing of the body is read before a
 * connection stands, so a refused one loses nothing.
 *
 * @throws Error of the connection.
 */
export async function sendOn(start: () => ClientRequest, body: IncomingMessage): Promise<IncomingMessage> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const onward = start();
    const replied = new Promise<IncomingMessage>((resolve, reject) => {
      onward.on('response', resolve);
      onward.on('error', reject);
    });
    try {
      await Promise.race([connected(onward), replied]);
    } catch (error) {
      if (!isRefused(error) || body.destroyed || Date.now() > deadline) throw error;
      await delay(pauseMs);
      continue;
    }
    // A registry may reply before it has read everything, as with a refusal; what it says counts, not the upload's end.
    pipeline(body, onward).catch(() => undefined);
    return await replied;
  }
}

async function connected(onward: ClientRequest): Promise<void> {
  await new Promise<void>((resolve) => {
    onward.once('socket', (socket) => {
      if (socket.connecting) socket.once('connect', resolve);
      else resolve();
    });
  });
}

function isRefused(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
}
