// Keeps a store equal to what the API server has: lists once, watches from there, and recovers from every interruption.
import type { Client, Selection, WatchEvent } from '../client/client.ts';
import { type Clock, applyJitter, sleep, systemClock } from '../clock.ts';
import { ApiError, toErrorMessage } from '../errors.ts';
import { type Logger, silentLogger, type RuntimeMetrics } from '../observability.ts';
import type { KubeObject, Resource } from '../object.ts';
import type { Store, StoreOptions, WritableStore } from './store.ts';
import { createStore } from './store.ts';

/** A watch that ends sooner than this without an event counts as a failure. */
const SHORT_WATCH_MS = 1000;

/** Settings of a reflector. */
export interface ReflectorOptions<T extends KubeObject> extends Selection, StoreOptions<T> {
  client: Pick<Client, 'list' | 'watch'>;
  resource: Resource<T>;
  /**
   * Changes each object before it is stored, to save memory; default drops `managedFields`. May change its argument.
   */
  transform?: (object: T) => T;
  /** Objects a page; default 500. */
  pageSize?: number;
  /** Bounds of a watch's length in seconds, chosen at random for each watch; default [300, 600]. */
  watchSeconds?: readonly [number, number];
  /** Wait after the first failure and at most, in ms, before jitter; default [800, 30 000]. */
  backoffMs?: readonly [number, number];
  clock?: Clock;
  log?: Logger;
  metrics?: RuntimeMetrics;
}

/** A mirror of one kind of object. */
export interface Reflector<T extends KubeObject> {
  readonly resource: Resource<T>;
  readonly store: Store<T>;
  /**
   * Milliseconds since the server last responded (an event, a bookmark, a list, a watch that ended well), or since the
   * start.
   */
  getLastEventAgeMs(): number;
  /**
   * Milliseconds since the loop last did anything, a failed attempt included: a reflector that is stuck grows old here.
   */
  getLastTurnAgeMs(): number;
  /** Lists and watches until `signal` is aborted; never rejects. Call once. */
  run(signal: AbortSignal): Promise<void>;
}

/** Creates a reflector, which sends nothing to the server until `run`. */
export function createReflector<T extends KubeObject>(options: ReflectorOptions<T>): Reflector<T> {
  return new ListWatch(options);
}

class ListWatch<T extends KubeObject> implements Reflector<T> {
  readonly resource: Resource<T>;
  readonly store: WritableStore<T>;
  readonly #options: ReflectorOptions<T>;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #transform: (object: T) => T;
  readonly #labels: { resource: string };
  /** Where to resume the watch; `undefined` when a list is needed. */
  #version: string | undefined;
  /** Consecutive attempts that brought nothing. */
  #failures = 0;
  /** When the server accepted the present watch. */
  #openedAt: number | undefined;
  /** Whether the present watch brought an event or a bookmark. */
  #brought = false;
  #heardAt: number;
  #turnedAt: number;

  constructor(options: ReflectorOptions<T>) {
    this.resource = options.resource;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLogger;
    const onError = (error: unknown): void => {
      this.#log.error(
        { err: error, resource: options.resource.plural },
        `A change of ${options.resource.plural} could not be handled: ${toErrorMessage(error)}`,
      );
    };
    this.store = createStore({ onError, ...options });
    this.#transform = options.transform ?? dropManagedFields;
    this.#labels = { resource: options.resource.plural };
    this.#heardAt = this.#clock.now();
    this.#turnedAt = this.#heardAt;
  }

  getLastEventAgeMs(): number {
    return this.#clock.now() - this.#heardAt;
  }

  getLastTurnAgeMs(): number {
    return this.#clock.now() - this.#turnedAt;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const wait = await this.#runTurn(signal);
      this.#turnedAt = this.#clock.now();
      if (wait > 0) await sleep(this.#clock, wait, signal);
    }
  }

  /** One list if need be, and one watch to its end. Returns the milliseconds to wait before the next turn. */
  async #runTurn(signal: AbortSignal): Promise<number> {
    this.#openedAt = undefined;
    this.#brought = false;
    try {
      this.#version ??= await this.#list(signal);
      await this.#watch(this.#version, signal);
    } catch (error) {
      return signal.aborted ? 0 : this.#handleError(error);
    }
    this.#countRestart('end');
    // A server that ends each watch immediately would otherwise get requests without pause.
    if (!this.#hasLasted()) this.#failures += 1;
    return this.#failures === 0 ? 0 : this.#computeBackoff();
  }

  #handleError(error: unknown): number {
    this.#hasLasted();
    this.#failures += 1;
    const lost = isExpired(error);
    this.#countRestart(lost ? 'expired' : 'error');
    if (lost) this.#version = undefined;
    // Losing the position once is normal; only a repetition is a fault.
    if (lost && this.#failures === 1) return 0;
    const wait = Math.max(this.#computeBackoff(), retryAfterMs(error));
    const { plural } = this.resource;
    this.#log.warn(
      { resource: plural, error: toErrorMessage(error), waitMs: Math.round(wait), failures: this.#failures },
      `The watch of ${plural} was interrupted; it resumes after a delay.`,
    );
    return wait;
  }

  /**
   * Whether the watch brought something or lasted a while. Then it was no failure, however quiet it was and however it
   * ended.
   */
  #hasLasted(): boolean {
    const lived = this.#openedAt === undefined ? 0 : this.#clock.now() - this.#openedAt;
    const lasted = this.#brought || lived >= SHORT_WATCH_MS;
    if (lasted) this.#failures = 0;
    return lasted;
  }

  /** Lists everything into the store and returns the version to watch from. */
  async #list(signal: AbortSignal): Promise<string> {
    this.#options.metrics?.lists.inc(this.#labels);
    let pages: { objects: T[]; version: string };
    try {
      pages = await this.#listPages(this.#options.pageSize ?? 500, signal);
    } catch (error) {
      // A list of many pages can take longer than the server keeps its snapshot. One of a single page cannot.
      if (!isExpired(error)) throw error;
      pages = await this.#listPages(undefined, signal);
    }
    this.store.replace(pages.objects);
    this.#markHeard();
    return pages.version;
  }

  async #listPages(limit: number | undefined, signal: AbortSignal): Promise<{ objects: T[]; version: string }> {
    const { client, namespace, labelSelector, fieldSelector } = this.#options;
    const objects: T[] = [];
    let token: string | undefined;
    for (;;) {
      const page = await client.list(this.resource, {
        namespace,
        labelSelector,
        fieldSelector,
        signal,
        continue: token,
        ...(limit === undefined ? {} : { limit }),
      });
      for (const object of page.items) objects.push(this.#transform(object));
      token = page.continue;
      if (token === undefined) return { objects, version: page.resourceVersion };
    }
  }

  async #watch(resourceVersion: string, signal: AbortSignal): Promise<void> {
    const { client, namespace, labelSelector, fieldSelector } = this.#options;
    const [least, maximum] = this.#options.watchSeconds ?? [300, 600];
    // Random, so that the watches of many replicas do not all end at the same time.
    const timeoutSeconds = Math.round(least + Math.random() * (maximum - least));
    const onOpen = (): void => {
      this.#openedAt = this.#clock.now();
      this.#markHeard();
    };
    for await (const event of client.watch(this.resource, {
      namespace,
      labelSelector,
      fieldSelector,
      resourceVersion,
      timeoutSeconds,
      signal,
      onOpen,
    })) {
      this.#handle(event);
    }
  }

  #handle(event: WatchEvent<T>): void {
    if (event.type === 'BOOKMARK') {
      this.#version = event.resourceVersion;
    } else {
      if (event.type === 'DELETED') this.store.remove(event.object);
      else this.store.set(this.#transform(event.object));
      this.#version = event.object.metadata.resourceVersion;
    }
    this.#brought = true;
    this.#markHeard();
  }

  #markHeard(): void {
    this.#heardAt = this.#clock.now();
    this.#turnedAt = this.#heardAt;
    this.#options.metrics?.cachedObjects.set(this.#labels, this.store.size);
  }

  #computeBackoff(): number {
    const [first, maximum] = this.#options.backoffMs ?? [800, 30_000];
    return applyJitter(Math.min(first * 2 ** Math.min(this.#failures - 1, 30), maximum), 0.3);
  }

  #countRestart(reason: 'end' | 'expired' | 'error'): void {
    this.#options.metrics?.watchRestarts.inc({ ...this.#labels, reason });
  }
}

/** The default transform: a reconciler has no use for managedFields, which are often the larger half of an object. */
export function dropManagedFields<T extends KubeObject>(object: T): T {
  delete object.metadata.managedFields;
  return object;
}

/** Whether the server no longer has the requested version (or, restored from a backup, does not have it yet). */
function isExpired(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return (
    error.status === 410 ||
    error.reason === 'Expired' ||
    error.reason === 'Gone' ||
    /too large resource version/i.test(error.message)
  );
}

function retryAfterMs(error: unknown): number {
  return error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
}
