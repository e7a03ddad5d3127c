// Sends a request on to the registry, and waits where the registry is being started anew, as while it frees space.
import type { ClientRequest, IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';

/** How long nobody may listen at the registry's address before the build is given an error. */
const patienceMs = 60_000;
const pauseMs = 250;
/** A server need not say that it takes the body; it gets it then. */
const continueMs = 1_000;

/** Errors of a registry that is being stopped: of its address, and of a connection that it has closed. */
const stopping = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE'];

/** The header by which a registry is asked whether it takes the body of a request; none for a request without one. */
export function expectation({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  return hasBody(headers) ? { expect: '100-continue' } : {};
}

/**
 * The reply of the registry. `start` makes the request anew for each try, with its {@link expectation}. Nothing of the
 * body is sent before the registry takes it, so what a stopping one drops can be sent again.
 *
 * @throws Error of the connection.
 */
export async function sendOn(start: () => ClientRequest, body: IncomingMessage): Promise<IncomingMessage> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const attempt = { isSending: false };
    try {
      return await send(start(), body, attempt);
    } catch (error) {
      if (attempt.isSending || !isStopping(error) || body.destroyed || Date.now() > deadline) throw error;
      await delay(pauseMs);
    }
  }
}

async function send(
  onward: ClientRequest,
  body: IncomingMessage,
  attempt: { isSending: boolean },
): Promise<IncomingMessage> {
  const replied = new Promise<IncomingMessage>((resolve, reject) => {
    onward.on('response', resolve);
    onward.on('error', reject);
  });
  if (!hasBody(body.headers)) {
    onward.end();
    return await replied;
  }
  onward.flushHeaders();
  await Promise.race([replied, taken(onward)]);
  attempt.isSending = true;
  // A registry may reply before it has read everything, as with a refusal; what it says counts, not the upload's end.
  pipeline(body, onward).catch(() => undefined);
  return await replied;
}

/** Once the registry takes the body, or has had the time to say so since the connection stands. */
async function taken(onward: ClientRequest): Promise<void> {
  await new Promise<void>((resolve) => {
    onward.once('continue', resolve);
    onward.once('socket', (socket) => {
      const wait = (): void => {
        setTimeout(resolve, continueMs).unref();
      };
      if (socket.connecting) socket.once('connect', wait);
      else wait();
    });
  });
}

function hasBody(headers: IncomingMessage['headers']): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function isStopping(error: unknown): boolean {
  return error instanceof Error && 'code' in error && stopping.includes(String(error.code));
}
