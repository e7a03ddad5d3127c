// Runs tasks in the workers' pods, where native code that an input has taken over finds no secret, no token and no
// network. Their number, queue and limits are those of the pool in each pod.
import { setTimeout as sleep } from 'node:timers/promises';
import { busy } from '../busy.ts';
import type { WorkerCall, WorkerTask, Workers } from '../workers.ts';
import { usualMs } from '../workers.ts';
import { Offer, PodLost, type Pod } from './offer.ts';
import { Pods, resolveByDns, type Resolve } from './pods.ts';
import { headOf, type TaskHead } from './protocol.ts';

export interface RemoteWorkersOptions {
  /** How long a pod that answers is looked for; default 10 000: a container that ended is started again within that. */
  readonly searchMs?: number;
  /** How long a task may wait in all, the wait in a pod's queue included; default 40 000. */
  readonly maxWaitMs?: number;
  /** For tests: where pods are. */
  readonly resolve?: Resolve;
}

/** For the start of a process and for both messages, beside the time limit of a task. The pod's own limits come first. */
const marginMs = 30_000;
const searchPauseMs = 200;
const longRoundMs = 2_000;

/** `url`: of a headless Service, whose name resolves to every pod that is ready. */
export function remoteWorkers(url: string, options: RemoteWorkersOptions = {}): Workers {
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
    this.#closing.abort(busy('This replica is shutting down. Try again.'));
    await Promise.allSettled(this.#calls);
  }

  async #run(task: WorkerTask, call: WorkerCall): Promise<unknown> {
    const accepted = this.#accepted(headOf(task, call.owner), call);
    const { offer, pod } = await (call.waiting?.(accepted) ?? accepted);
    const { timeoutMs = usualMs, load, input } = task;
    const late = busy('The worker of this call has not answered. Try again in 5 seconds.');
    try {
      const given = load === undefined ? input : await load();
      return await this.#within(timeoutMs + marginMs, late, call, (signal) => offer.answer(given, signal));
    } catch (error) {
      // Not tried again: it may be the task itself that ended the pod.
      if (error instanceof PodLost)
        throw busy('The worker of this call was stopped. Try again in 5 seconds.', { cause: error });
      throw error;
    } finally {
      offer.close();
      this.#pods.left(pod);
    }
  }

  /** Offers a task to one pod after the other, until one has a worker for it. */
  async #accepted(head: TaskHead, call: WorkerCall): Promise<Acceptance> {
    const late = busy(`No worker became free within ${this.#maxWaitMs / 1000} s. Try again in 5 seconds.`);
    return this.#within(this.#maxWaitMs, late, call, async (signal) => {
      let searchedMs = 0;
      while (searchedMs < this.#searchMs) {
        const since = performance.now();
        const accepted = await this.#offered(head, signal);
        if (accepted !== undefined) return accepted;
        await sleep(searchPauseMs, undefined, { signal }).catch(() => {
          signal.throwIfAborted();
        });
        // Most of a long round was the queue of a pod that was lost then, and no search.
        searchedMs += Math.min(performance.now() - since, longRoundMs);
      }
      throw busy('No worker answers. Try again in 5 seconds.');
    });
  }

  /** Offers a task to each pod once. @returns undefined when none has answered */
  async #offered(head: TaskHead, signal: AbortSignal): Promise<Acceptance | undefined> {
    const tried = new Set<string>();
    for (let pod = await this.#pods.take(tried); pod !== undefined; pod = await this.#pods.take(tried)) {
      tried.add(pod.host);
      const offer = new Offer(pod, head);
      try {
        await offer.accepted(signal);
        return { offer, pod };
      } catch (error) {
        this.#pods.left(pod);
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
