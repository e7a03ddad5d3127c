// Ends the work of a request that its client cancels. In revision 2026-07-28 a client closes the stream of the request; in
// those of 2025 it sends notifications/cancelled as a message of its own, which names the request only by a small number.
//
// Which client's number that is, a session id says: it is given out with initialize, nobody can guess it, and nothing but
// the requests in progress is kept for it. Without one, or at another replica, a cancellation has no effect.
import { randomUUID } from 'node:crypto';

export const sessionHeader = 'mcp-session-id';

type RequestId = string | number;

export class Cancellations {
  /** Requests in progress, by session and id. */
  readonly #calls = new Map<string, Set<AbortController>>();

  /**
   * Reads a message before it is answered. @returns a signal for a request of a session, which is aborted when the client
   * cancels it; `onFinished` is called with what forgets it
   */
  read(headers: Headers, message: unknown, onFinished: (done: () => void) => void): AbortSignal | undefined {
    const session = headers.get(sessionHeader);
    if (session === null || !isMessage(message)) return undefined;
    const { id, method, params } = message;
    if (method === 'notifications/cancelled' && isId(params?.['requestId'])) {
      for (const call of this.#calls.get(toKey(session, params['requestId'])) ?? [])
        call.abort(new DOMException('The client canceled the request.', 'AbortError'));
      return undefined;
    }
    return isId(id) && method === 'tools/call' ? this.#begin(toKey(session, id), onFinished) : undefined;
  }

  /** Cancels everything of a session, whose client ends it. */
  end(session: string): void {
    for (const [key, calls] of this.#calls)
      if (key.startsWith(`${session} `))
        for (const call of calls) call.abort(new DOMException('The client ended the session.', 'AbortError'));
  }

  #begin(key: string, onFinished: (done: () => void) => void): AbortSignal {
    const controller = new AbortController();
    const calls = this.#calls.get(key) ?? new Set();
    this.#calls.set(key, calls.add(controller));
    onFinished(() => {
      calls.delete(controller);
      if (calls.size === 0) this.#calls.delete(key);
    });
    return controller.signal;
  }
}

/** A session id for a client that initializes; undefined for any other message. */
export function sessionFor(message: unknown): string | undefined {
  return isMessage(message) && message.method === 'initialize' ? randomUUID() : undefined;
}

interface Message {
  readonly id?: unknown;
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>> | undefined;
}

function isMessage(message: unknown): message is Message {
  if (!isObject(message) || typeof message['method'] !== 'string') return false;
  return message['params'] === undefined || isObject(message['params']);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function isId(id: unknown): id is RequestId {
  return typeof id === 'number' || (typeof id === 'string' && id.length <= 200);
}

/** A number and the same number as text are two ids. */
function toKey(session: string, id: RequestId): string {
  return `${session} ${JSON.stringify(id)}`;
}
