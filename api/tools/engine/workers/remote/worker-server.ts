// A workers' pod: takes tasks from the API over HTTP and runs them in its pool. It knows no secret, and trusts nobody
// but whoever the NetworkPolicy lets in.
import { existsSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from '../../../../../lib/telemetry.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { busy } from '../busy.ts';
import { errorReply } from '../error-reply.ts';
import type { Reply } from '../messages.ts';
import type { Workers } from '../workers.ts';
import { bytesOf, headIn, moduleIn, valueIn, type TaskHead } from './protocol.ts';

export interface WorkerServerOptions {
  readonly workers: Workers;
  /** Folder whose modules may be run. */
  readonly modules: URL;
  readonly log: Logger;
  readonly port: number;
  /** Default all addresses. */
  readonly host?: string;
}

export interface WorkerServer {
  readonly port: number;
  /** Tasks that wait for a worker, and tasks that have one. */
  tasks(): { readonly waiting: number; readonly running: number };
  /** Takes no more tasks, sends those away that wait, and resolves when those that run are answered. */
  drain(): Promise<void>;
}

/** A task that its caller does not send loses its worker. */
const inputMs = 15_000;

/** Starts to listen. @throws Error when the port is taken */
export async function startWorkerServer(options: WorkerServerOptions): Promise<WorkerServer> {
  const tasks = new Tasks(options);
  const server = createServer((_request, response) => {
    response.writeHead(404, { 'content-type': 'text/plain' }).end('Tasks come to /run with Expect: 100-continue.\n');
  });
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => void tasks.run(request, response));
  server.listen(options.port, options.host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  options.log.info({ port }, 'listening');
  return { port, tasks: () => tasks.counts(), drain: () => drained(server, tasks) };
}

async function drained(server: Server, tasks: Tasks): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  tasks.sendAway();
  await closed;
}

class Tasks {
  readonly #options: WorkerServerOptions;
  readonly #waiting = new Set<ServerResponse>();
  readonly #running = new Set<ServerResponse>();

  constructor(options: WorkerServerOptions) {
    this.#options = options;
  }

  counts(): { waiting: number; running: number } {
    return { waiting: this.#waiting.size, running: this.#running.size };
  }

  /** Those that wait: the API offers them to another pod. */
  sendAway(): void {
    for (const response of this.#waiting) response.destroy();
  }

  async run(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => {
      gone.abort(new Error('the API waits no more'));
    });
    request.on('error', () => undefined);
    const head = headIn(request.url ?? '');
    const body =
      head === undefined ? undefined : written(await this.#reply(head, { request, response, signal: gone.signal }));
    this.#waiting.delete(response);
    this.#running.delete(response);
    if (gone.signal.aborted) return;
    response.writeHead(body === undefined ? 400 : 200, { connection: 'close' }).end(body);
  }

  async #reply(head: TaskHead, { request, response, signal }: Exchange): Promise<Reply> {
    const { workers, modules, log } = this.#options;
    try {
      const module = moduleIn(modules, head);
      // While another version of Moorage is rolled out, an API may meet pods of the other one.
      if (module === undefined || !existsSync(module))
        throw busy('The workers are being updated. Try again in 5 seconds.');
      const { owner, module: _path, ...limits } = head;
      const load = async (): Promise<unknown> => {
        this.#waiting.delete(response);
        this.#running.add(response);
        response.writeContinue();
        const late = setTimeout(() => request.destroy(), inputMs);
        return valueIn(request, 'input').finally(() => {
          clearTimeout(late);
        });
      };
      this.#waiting.add(response);
      const output = await workers.run({ ...limits, module, load }, { owner, signal });
      return { kind: 'done', output, spent: false };
    } catch (error) {
      // The API hears what to answer; what the process said is known only here.
      if (error instanceof Problem && error.cause !== undefined)
        log.warn({ err: error.cause, module: head.module }, error.message);
      return errorReply(error, false);
    }
  }
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly signal: AbortSignal;
}

function written(reply: Reply): Buffer {
  try {
    return bytesOf(reply, 'result');
  } catch (error) {
    return bytesOf(errorReply(error, false), 'result');
  }
}
