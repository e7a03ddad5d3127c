// The server of a workers' pod: receives tasks from the API over HTTP and runs them in its pool. It has no secrets, and
// relies on the NetworkPolicy for access control.
import { existsSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import { Gauge, type Registry } from 'prom-client';
import type { Logger } from '../../../../../lib/telemetry.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { createBusyProblem, toErrorReply, type Workers } from '../workers.ts';
import type { Reply } from '../worker-process.ts';
import { serializeMessage, parseTaskPath, resolveModule, readMessage, type TaskHead } from './protocol.ts';
import { internalPort, port } from '../../../../../lib/config.ts';

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
  /** Counts tasks that wait for a worker, and tasks that have one. */
  tasks(): { readonly waiting: number; readonly running: number };
  /** Accepts no more tasks, drops waiting ones, and resolves when running ones are answered. */
  drain(): Promise<void>;
}

/** If the API does not send the input in this time, the task loses its worker. */
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
  return { port, tasks: () => tasks.counts(), drain: () => drainServer(server, tasks) };
}

async function drainServer(server: Server, tasks: Tasks): Promise<void> {
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

  /** Drops waiting tasks; the API offers them to another pod. */
  sendAway(): void {
    for (const response of this.#waiting) response.destroy();
  }

  async run(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => {
      gone.abort(new Error('the API closed the connection'));
    });
    request.on('error', () => undefined);
    const head = parseTaskPath(request.url ?? '');
    const body =
      head === undefined
        ? undefined
        : serializeReply(await this.#reply(head, { request, response, signal: gone.signal }));
    this.#waiting.delete(response);
    this.#running.delete(response);
    if (gone.signal.aborted) return;
    response.writeHead(body === undefined ? 400 : 200, { connection: 'close' }).end(body);
  }

  async #reply(head: TaskHead, { request, response, signal }: Exchange): Promise<Reply> {
    const { workers, modules, log } = this.#options;
    try {
      const module = resolveModule(modules, head);
      // During a rollout, an API may reach pods of another version.
      if (module === undefined || !existsSync(module))
        throw createBusyProblem('The workers are being updated. Try again in 5 seconds.');
      const { owner, module: _path, ...limits } = head;
      const load = async (): Promise<unknown> => {
        this.#waiting.delete(response);
        this.#running.add(response);
        response.writeContinue();
        const late = setTimeout(() => request.destroy(), inputMs);
        return readMessage(request, 'input').finally(() => {
          clearTimeout(late);
        });
      };
      this.#waiting.add(response);
      const output = await workers.run({ ...limits, module, load }, { owner, signal });
      return { kind: 'done', output, spent: false };
    } catch (error) {
      // The API receives only the problem; its cause is known only here.
      if (error instanceof Problem && error.cause !== undefined)
        log.warn({ err: error.cause, module: head.module }, error.message);
      return toErrorReply(error, false);
    }
  }
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly signal: AbortSignal;
}

function serializeReply(reply: Reply): Buffer {
  try {
    return serializeMessage(reply, 'result');
  } catch (error) {
    return serializeMessage(toErrorReply(error, false), 'result');
  }
}

/** Every environment variable of a workers' pod. None is secret. */
export const environment = z.object({
  MOORAGE_PORT: port.describe('Port on which the API hands over tasks.'),
  MOORAGE_INTERNAL_PORT: internalPort,
  MOORAGE_DRAIN_SECONDS: z.coerce
    .number()
    .int()
    .min(0)
    .default(5)
    .describe('How long tasks are still taken after SIGTERM, while the API learns of it.'),
});

export function registerWorkerMetrics(
  registry: Registry,
  tasks: () => { readonly waiting: number; readonly running: number },
): void {
  new Gauge({
    name: 'moorage_worker_tasks',
    help: 'Tasks of tools in this pod: those that wait for a worker, and those that have one.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const [state, count] of Object.entries(tasks())) this.set({ state }, count);
    },
  });
}
