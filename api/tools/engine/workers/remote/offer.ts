// One task at one workers' pod: offered until a worker there is free for it, then sent and answered.
import { request as openRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { Problem } from '../../../../../lib/problem.ts';
import { toolFailed, unprocessable } from '../../../problems.ts';
import { outputOf, reply, type Reply } from '../messages.ts';
import { bytesOf, pathOf, valueIn, type TaskHead } from './protocol.ts';

/** Beside others in the cluster, a pod that is there answers within milliseconds. */
const connectMs = 1_000;

/** The pod did not answer, or went away before it answered. */
export class PodLost extends Error {
  override readonly name = 'PodLost';
}

export interface Pod {
  readonly host: string;
  readonly port: number;
}

export class Offer {
  readonly #request: ClientRequest;
  readonly #accepted: Promise<unknown>;
  readonly #reply: Promise<Reply>;

  constructor({ host, port }: Pod, head: TaskHead) {
    this.#request = openRequest({
      host,
      port,
      method: 'POST',
      path: pathOf(head),
      headers: { expect: '100-continue' },
      agent: false,
    });
    const slow = setTimeout(() => this.#request.destroy(), connectMs);
    this.#request.once('socket', (socket) =>
      socket.once('connect', () => {
        clearTimeout(slow);
      }),
    );
    this.#request.once('close', () => {
      clearTimeout(slow);
    });
    this.#accepted = new Promise((resolve) =>
      this.#request.once('continue', () => {
        resolve(undefined);
      }),
    );
    this.#reply = replyTo(this.#request);
    // It may come to nothing before anybody waits for it.
    this.#reply.catch(() => undefined);
  }

  /** Until a worker is free. @throws Problem when the pod refuses the task, PodLost, or the signal's reason */
  async accepted(signal: AbortSignal): Promise<void> {
    await this.#until(signal, () => Promise.race([this.#accepted, this.#reply.then(outputOf)]));
  }

  /** Sends the input. @returns what came of it @throws as `Workers.run`, PodLost, or the signal's reason */
  async answer(input: unknown, signal: AbortSignal): Promise<unknown> {
    return this.#until(signal, async () => {
      this.#request.end(written(input));
      return outputOf(await this.#reply);
    });
  }

  /** The pod ends the task when nobody waits for it any more. */
  close(): void {
    this.#request.destroy();
  }

  async #until<Value>(signal: AbortSignal, event: () => Promise<Value>): Promise<Value> {
    const stop = (): void => {
      this.close();
    };
    signal.addEventListener('abort', stop, { once: true });
    try {
      signal.throwIfAborted();
      return await event();
    } catch (error) {
      this.close();
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }
}

function written(input: unknown): Buffer {
  try {
    return bytesOf(input, 'input');
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem(unprocessable, 'The input is nested too deeply.', { cause: error });
  }
}

async function replyTo(request: ClientRequest): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  let fault: Error | undefined;
  request.once('response', resolve);
  request.on('error', (error) => (fault = error));
  request.once('close', () => {
    reject(new PodLost('the connection was closed', { cause: fault }));
  });
  const response = await promise;
  if (response.statusCode !== 200) throw new PodLost(`the pod answered ${response.statusCode ?? 0}`);
  const value = await valueIn(response, 'result').catch((error: unknown) => {
    throw error instanceof Problem ? error : new PodLost('the answer was cut off', { cause: error });
  });
  const read = reply.safeParse(value);
  if (!read.success) throw new Problem(toolFailed, 'The worker gave no valid answer.', { cause: read.error });
  return read.data;
}
