// Runs tasks in the workers' pods, where input that takes over native code finds no secrets, token or network. The pool in
// each pod limits their number, queue and resources.
import { setTimeout as sleep } from 'node:timers/promises';
import { request as openRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { lookup } from 'node:dns/promises';
import { createBusyProblem, type WorkerCall, type WorkerTask, type Workers, defaultTimeoutMs } from '../workers.ts';
import { toTaskHead, type TaskHead, serializeMessage, formatTaskPath, readMessage } from './protocol.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { toolFailed, unprocessable } from '../../../problems.ts';
import { readOutput, reply, type Reply } from '../worker-process.ts';

export interface RemoteWorkersOptions {
  /** How long to look for a pod that answers; default 10 000, in which an ended container restarts. */
  readonly searchMs?: number;
  /** How long a task may wait in total, including a pod's queue; default 40 000. */
  readonly maxWaitMs?: number;
  /** For tests: the addresses of pods. */
  readonly resolve?: Resolve;
}

/** Added to a task's time limit for the start of a process and both messages, so that the pod's own limits apply first. */
const marginMs = 30_000;
const searchPauseMs = 200;
const longRoundMs = 2_000;

/** `url`: that of a headless Service, whose name resolves to every ready pod. */
export function createRemoteWorkers(url: string, options: RemoteWorkersOptions = {}): Workers {
  return new RemoteWorkers(new URL(url), options);
}

interface Acceptance {
  readonly offer: Offer;
  readonly pod: Pod;
}

class RemoteWorkers implements Workers {
  readonly #searchMs: number;
  readonly #maxWaitMs: number;
  readonly #closing = new AbortController();
  readonly #calls = new Set<Promise<unknown>>();
  readonly #pods: Pods;

  constructor(url: URL, { searchMs = 10_000, maxWaitMs = 40_000, resolve = resolveByDns }: RemoteWorkersOptions) {
    this.#pods = new Pods(url, resolve);
    this.#searchMs = searchMs;
    this.#maxWaitMs = maxWaitMs;
  }

  async run(task: WorkerTask, call: WorkerCall): Promise<unknown> {
    const running = this.#run(task, call);
    this.#calls.add(running);
    return running.finally(() => this.#calls.delete(running));
  }

  async close(): Promise<void> {
    this.#closing.abort(createBusyProblem('This replica is shutting down. Try again.'));
    await Promise.allSettled(this.#calls);
  }

  async #run(task: WorkerTask, call: WorkerCall): Promise<unknown> {
    const accepted = this.#accepted(toTaskHead(task, call.owner), call);
    const { offer, pod } = await (call.waiting?.(accepted) ?? accepted);
    const { timeoutMs = defaultTimeoutMs, load, input } = task;
    const late = createBusyProblem('The worker of this call has not answered. Try again in 5 seconds.');
    try {
      const given = load === undefined ? input : await load();
      return await this.#within(timeoutMs + marginMs, late, call, (signal) => offer.sendInput(given, signal));
    } catch (error) {
      // Do not retry: the task itself may have ended the pod.
      if (error instanceof PodLost)
        throw createBusyProblem('The worker of this call was stopped. Try again in 5 seconds.', { cause: error });
      throw error;
    } finally {
      offer.close();
      this.#pods.release(pod);
    }
  }

  /** Offers a task to one pod after another until one has a free worker. */
  async #accepted(head: TaskHead, call: WorkerCall): Promise<Acceptance> {
    const late = createBusyProblem(`No worker became free within ${this.#maxWaitMs / 1000} s. Try again in 5 seconds.`);
    return this.#within(this.#maxWaitMs, late, call, async (signal) => {
      let searchedMs = 0;
      while (searchedMs < this.#searchMs) {
        const since = performance.now();
        const accepted = await this.#offered(head, signal);
        if (accepted !== undefined) return accepted;
        await sleep(searchPauseMs, undefined, { signal }).catch(() => {
          signal.throwIfAborted();
        });
        // Most of a long round was spent in the queue of a pod that was then lost, not searching.
        searchedMs += Math.min(performance.now() - since, longRoundMs);
      }
      throw createBusyProblem('No worker answers. Try again in 5 seconds.');
    });
  }

  /** Offers a task to each pod once. @returns undefined if none answered */
  async #offered(head: TaskHead, signal: AbortSignal): Promise<Acceptance | undefined> {
    const tried = new Set<string>();
    for (let pod = await this.#pods.take(tried); pod !== undefined; pod = await this.#pods.take(tried)) {
      tried.add(pod.host);
      const offer = new Offer(pod, head);
      try {
        await offer.waitForAcceptance(signal);
        return { offer, pod };
      } catch (error) {
        this.#pods.release(pod);
        if (!(error instanceof PodLost)) throw error;
        this.#pods.forget();
      }
    }
    return undefined;
  }

  async #within<Value>(
    ms: number,
    late: Error,
    call: WorkerCall,
    work: (signal: AbortSignal) => Promise<Value>,
  ): Promise<Value> {
    const clock = new AbortController();
    const timer = setTimeout(() => {
      clock.abort(late);
    }, ms);
    const signals = [this.#closing.signal, clock.signal, ...(call.signal === undefined ? [] : [call.signal])];
    try {
      return await work(AbortSignal.any(signals));
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Within a cluster, a running pod accepts a connection within milliseconds. */
const connectMs = 1_000;

/** The pod did not answer, or ended before it answered. */
export class PodLost extends Error {
  override readonly name = 'PodLost';
}

export interface Pod {
  readonly host: string;
  readonly port: number;
}

/** One task at one workers' pod: waits there for a free worker, then sends the input and receives the reply. */
export class Offer {
  readonly #request: ClientRequest;
  readonly #accepted: Promise<unknown>;
  readonly #reply: Promise<Reply>;

  constructor({ host, port }: Pod, head: TaskHead) {
    this.#request = openRequest({
      host,
      port,
      method: 'POST',
      path: formatTaskPath(head),
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
    this.#reply = readReply(this.#request);
    // It may fail before anything awaits it.
    this.#reply.catch(() => undefined);
  }

  /** Waits until a worker is free. @throws Problem if the pod rejects the task, PodLost, or the signal's reason */
  async waitForAcceptance(signal: AbortSignal): Promise<void> {
    await this.#until(signal, () => Promise.race([this.#accepted, this.#reply.then(readOutput)]));
  }

  /** Sends the input. @returns the output @throws as `Workers.run`, PodLost, or the signal's reason */
  async sendInput(input: unknown, signal: AbortSignal): Promise<unknown> {
    return this.#until(signal, async () => {
      this.#request.end(serializeInput(input));
      return readOutput(await this.#reply);
    });
  }

  /** Closes the connection, on which the pod ends the task. */
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

function serializeInput(input: unknown): Buffer {
  try {
    return serializeMessage(input, 'input');
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem(unprocessable, 'The input is nested too deeply.', { cause: error });
  }
}

async function readReply(request: ClientRequest): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  let fault: Error | undefined;
  request.once('response', resolve);
  request.on('error', (error) => (fault = error));
  request.once('close', () => {
    reject(new PodLost('the connection was closed', { cause: fault }));
  });
  const response = await promise;
  if (response.statusCode !== 200) throw new PodLost(`the pod answered ${response.statusCode ?? 0}`);
  const value = await readMessage(response, 'result').catch((error: unknown) => {
    throw error instanceof Problem ? error : new PodLost('the answer was cut off', { cause: error });
  });
  const read = reply.safeParse(value);
  if (!read.success) throw new Problem(toolFailed, 'The worker gave no valid answer.', { cause: read.error });
  return read.data;
}

/** How long a DNS answer is cached. */
const believedMs = 1_000;

/** Resolves the addresses of all ready pods. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

export const resolveByDns: Resolve = async (hostname) =>
  (await lookup(hostname, { all: true })).map(({ address }) => address);

/** The ready workers' pods by DNS, and how many tasks of this process each has. */
export class Pods {
  readonly #url: URL;
  readonly #resolve: Resolve;
  readonly #load = new Map<string, { running: number; readonly rank: number }>();
  #known: Promise<readonly string[]> | undefined;
  #asked = 0;

  constructor(url: URL, resolve: Resolve) {
    this.#url = url;
    this.#resolve = resolve;
  }

  /**
   * Selects the pod with the fewest tasks of this process, and counts a task for it. Of equals, always the same pod: it has
   * an idle worker with the module loaded. @returns undefined if all have been tried
   */
  async take(tried: ReadonlySet<string>): Promise<Pod | undefined> {
    const hosts = (await this.#hosts()).filter((host) => !tried.has(host));
    const [host] = hosts.sort((a, b) => this.#weight(a) - this.#weight(b));
    if (host === undefined) return undefined;
    const load = this.#load.get(host);
    if (load !== undefined) load.running += 1;
    return { host, port: Number(this.#url.port === '' ? 80 : this.#url.port) };
  }

  release({ host }: Pod): void {
    const load = this.#load.get(host);
    if (load !== undefined) load.running -= 1;
  }

  /** Call this if a pod does not answer, so that the name is resolved again. */
  forget(): void {
    this.#known = undefined;
  }

  /** Concurrent calls share an answer, and so keep their order. */
  async #hosts(): Promise<readonly string[]> {
    if (this.#known === undefined || performance.now() - this.#asked > believedMs) {
      this.#asked = performance.now();
      this.#known = this.#resolve(this.#url.hostname).then(
        (hosts) => this.#seen(hosts),
        // No pod is ready.
        () => [],
      );
    }
    return this.#known;
  }

  #seen(hosts: readonly string[]): readonly string[] {
    for (const [host, { running }] of this.#load) if (running === 0 && !hosts.includes(host)) this.#load.delete(host);
    for (const host of hosts) if (!this.#load.has(host)) this.#load.set(host, { running: 0, rank: Math.random() });
    return hosts;
  }

  #weight(host: string): number {
    const { running = 0, rank = 0 } = this.#load.get(host) ?? {};
    return running + rank;
  }
}
