// Follows an app through its pipeline: reports stages as they change, the log lines of each container, and the end.
import { setTimeout as delay } from 'node:timers/promises';
import { containers, type PipelineContainer } from '../../../crds/names.ts';
import { toPublicStatus } from '../../../crds/public-status.ts';
import type { App, AppIndex } from '../hosted-apps.ts';
import { readLogLines } from '../../../lib/harmless-text.ts';
import { ApiError, exchange, type Connection } from '../../../lib/kubernetes/index.ts';

/** `at` is the position of a line, from which a reader can resume. */
export type FollowEvent =
  | { readonly type: 'stage'; readonly app: App }
  | { readonly type: 'log'; readonly stage: PipelineContainer; readonly line: string; readonly at: string }
  | { readonly type: 'gone' }
  | { readonly type: 'end'; readonly app: App | undefined };

export interface FollowOptions {
  readonly apps: AppIndex;
  readonly openLog: OpenLog;
  readonly signal: AbortSignal;
  /** Position of the last line already read, from an event's `at`. */
  readonly after?: string | undefined;
  /** Milliseconds between two attempts to open a log that is not available yet; default 500. */
  readonly retryMs?: number;
}

/**
 * Yields events until the app is live or rejected and its log is read, the app is removed, or the signal is aborted.
 * Requests nothing from the cluster before the first event is requested.
 */
export async function* follow(name: string, options: FollowOptions): AsyncGenerator<FollowEvent, void, undefined> {
  const channel = createChannel<FollowEvent>(64);
  const readerEnd = new AbortController();
  const signal = AbortSignal.any([options.signal, readerEnd.signal]);
  if (signal.aborted) return;
  signal.addEventListener('abort', () => {
    channel.close();
  });
  const follower = new Follower(name, { ...options, signal }, channel);
  const work = follower
    .run()
    .catch((error: unknown) => {
      if (!signal.aborted) throw error;
    })
    .finally(() => {
      channel.close();
    });
  // Awaited below; without this, a failure while the reader is slow would be reported as unhandled.
  work.catch(() => undefined);
  try {
    yield* channel;
    await work;
  } finally {
    readerEnd.abort();
  }
}

/** Number of interruptions without a new line between them, after which the rest of a log is skipped. */
const maxFailures = 5;

class Follower {
  readonly #name: string;
  readonly #options: FollowOptions;
  readonly #channel: Channel<FollowEvent>;
  readonly #resume: LogPosition | undefined;
  #reported = '';
  #changed = Promise.withResolvers<undefined>();

  constructor(name: string, options: FollowOptions, channel: Channel<FollowEvent>) {
    this.#name = name;
    this.#options = options;
    this.#channel = channel;
    this.#resume = parsePosition(options.after);
  }

  async run(): Promise<void> {
    const { signal, apps } = this.#options;
    const stop = apps.subscribe(this.#name, () => {
      this.#changed.resolve(undefined);
      this.#changed = Promise.withResolvers<undefined>();
      void this.#reportStage();
    });
    signal.addEventListener('abort', () => {
      this.#changed.resolve(undefined);
    });
    try {
      await this.#reportStage();
      await this.#readPods();
      await this.#channel.push({ type: 'end', app: this.#app });
    } finally {
      stop();
    }
  }

  get #app(): App | undefined {
    return this.#options.apps.get(this.#name);
  }

  get #pod(): string | undefined {
    return this.#app?.status?.pipeline?.pod;
  }

  /** Whether nothing more will happen by itself. */
  get #isFinished(): boolean {
    return this.#options.signal.aborted || this.#app === undefined || isFinished(this.#app);
  }

  /** Reads the log of the newest pod, and of each pod that replaces it, until the app is finished. */
  async #readPods(): Promise<void> {
    let lastPod: string | undefined;
    for (;;) {
      const pod = this.#pod;
      const finished = this.#isFinished;
      if (pod !== undefined && pod !== lastPod) {
        lastPod = pod;
        await this.#readPod(pod);
      } else if (finished) {
        if (lastPod === undefined && this.#app !== undefined) await this.#channel.push({ type: 'gone' });
        return;
      } else {
        await this.#changed.promise;
      }
    }
  }

  async #readPod(pod: string): Promise<void> {
    const from = this.#resume?.pod === pod ? containers.indexOf(this.#resume.container) : 0;
    for (const container of containers.slice(from)) {
      if (!(await this.#readContainer(pod, container))) return;
    }
  }

  /** Reads the log of a container to its end, resuming where a connection broke. False if it never started. */
  async #readContainer(pod: string, container: PipelineContainer): Promise<boolean> {
    let linesRead = this.#resume?.pod === pod && this.#resume.container === container ? this.#resume.line : 0;
    for (let failures = 0; failures < maxFailures;) {
      const bytes = await this.#open(pod, container);
      if (bytes === undefined) return false;
      let number = 0;
      try {
        for await (const line of readLogLines(bytes)) {
          number += 1;
          if (number <= linesRead) continue;
          linesRead = number;
          failures = 0;
          await this.#channel.push({ type: 'log', stage: container, line, at: `${pod}/${container}/${number}` });
        }
        return true;
      } catch (error) {
        if (this.#options.signal.aborted) throw error;
        failures += 1;
      }
    }
    return true;
  }

  /** Waits until the container has started; undefined if it never will. */
  async #open(pod: string, container: PipelineContainer): Promise<AsyncIterable<Uint8Array> | undefined> {
    const { openLog, signal, retryMs = 500 } = this.#options;
    for (;;) {
      const over = this.#isFinished || this.#pod !== pod;
      const opened = await openLog(pod, container, signal);
      if (opened.state === 'open') return opened.bytes;
      if (opened.state === 'gone') {
        if (container === containers[0]) await this.#channel.push({ type: 'gone' });
        return undefined;
      }
      // The app was finished before the request and the container never started: an earlier stage rejected the app.
      if (over) return undefined;
      await Promise.race([this.#changed.promise, delay(retryMs, undefined, { signal })]);
    }
  }

  async #reportStage(): Promise<void> {
    const app = this.#app;
    if (app === undefined) return;
    const status = toPublicStatus(app);
    const now = status.status === 'live' ? (status.update ?? status.problem ?? status) : status;
    const shown = JSON.stringify([status.status, now, this.#pod]);
    if (shown === this.#reported) return;
    this.#reported = shown;
    await this.#channel.push({ type: 'stage', app });
  }
}

/** Whether an app is live or rejected and nothing newer is in progress. */
export function isFinished(app: App): boolean {
  const status = toPublicStatus(app);
  return status.status === 'rejected' || (status.status === 'live' && status.update === undefined && isSeen(app));
}

/** How long the end of a log waits for the inspection of the app's page, which may load slowly. */
const longestLookMs = 30_000;

/** Whether the page of the serving release was inspected, if pages are inspected at all. */
function isSeen({ status }: App): boolean {
  const { page, served } = status ?? {};
  if (page === undefined || served === undefined || page.seenAt !== undefined) return true;
  return Date.now() - Date.parse(served.since) > longestLookMs;
}

interface LogPosition {
  readonly pod: string;
  readonly container: PipelineContainer;
  readonly line: number;
}

function parsePosition(position: string | undefined): LogPosition | undefined {
  const [pod, container, line] = (position ?? '').split('/');
  const known = containers.find((name) => name === container);
  if (pod === undefined || known === undefined || !/^\d{1,9}$/.test(line ?? '')) return undefined;
  return { pod, container: known, line: Number(line) };
}

/** A bounded queue between producers of events and their reader. Writers wait while it is full. */
export interface Channel<Item> extends AsyncIterable<Item> {
  /** Resolves when the item is in the queue. After `close`, drops the item and resolves immediately. */
  push(item: Item): Promise<void>;
  /** Accepts no more items; those in the queue are still read. */
  close(): void;
}

/** Creates a channel of up to `capacity` items, for one reader. */
export function createChannel<Item>(capacity: number): Channel<Item> {
  const items: Item[] = [];
  let closed = false;
  let changed = Promise.withResolvers<undefined>();
  const signal = (): void => {
    changed.resolve(undefined);
    changed = Promise.withResolvers<undefined>();
  };
  const isClosed = (): boolean => closed;
  return {
    async push(item) {
      while (items.length >= capacity && !isClosed()) await changed.promise;
      if (isClosed()) return;
      items.push(item);
      signal();
    },
    close() {
      closed = true;
      signal();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (items.length > 0) {
          const item = items.shift() as Item;
          signal();
          yield item;
        }
        if (isClosed()) return;
        await changed.promise;
      }
    },
  };
}

/** `waiting`: the container has not started; `gone`: the pod no longer exists. */
export type OpenedLog =
  { readonly state: 'open'; readonly bytes: AsyncIterable<Uint8Array> } | { readonly state: 'waiting' | 'gone' };

/** Which part of a log to open, and how. By default, all of it, followed to its end. */
export interface LogPart {
  /** Ends with what is there, instead of with the container. */
  readonly isFinite?: boolean;
  /** The log of the run of the container before its last restart. */
  readonly previous?: boolean;
  /** Puts the time of each line before it: RFC 3339 with nanoseconds. */
  readonly timestamps?: boolean;
  /** RFC 3339 in whole seconds. */
  readonly since?: string;
  /** The last lines only. */
  readonly tailLines?: number;
}

/** Opens the log of a container. The log ends with the container, or when the signal is aborted. */
export type OpenLog = (pod: string, container: string, signal: AbortSignal, part?: LogPart) => Promise<OpenedLog>;

/**
 * Opens logs of pods in one namespace. Needs only `get` on pods/log. @throws ApiError if that is not allowed
 */
export function createLogOpener(connection: Connection, namespace: string): OpenLog {
  return async (pod, container, signal, part = {}) => {
    const query = buildLogQuery(container, part);
    const path = `/api/v1/namespaces/${namespace}/pods/${encodeURIComponent(pod)}/log?${query.toString()}`;
    try {
      const answer = await exchange(connection, {
        method: 'GET',
        path,
        headers: { accept: '*/*', 'user-agent': 'moorage-api' },
        body: undefined,
        signal,
      });
      // The API server has no content before the pod is on a node.
      if (answer.statusCode === 204) {
        answer.resume();
        return { state: 'waiting' };
      }
      return { state: 'open', bytes: answer as AsyncIterable<Uint8Array> };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 404) return { state: 'gone' };
      // 400 is the kubelet's "waiting to start". A missing response and 5xx are temporary too, so trying again is safe.
      if (error.status === 400 || error.status === 0 || error.status === 429 || error.status >= 500)
        return { state: 'waiting' };
      throw error;
    }
  };
}

function buildLogQuery(container: string, part: LogPart): URLSearchParams {
  const { isFinite = false, previous = false, timestamps = false, since, tailLines } = part;
  return new URLSearchParams({
    container,
    ...(isFinite ? {} : { follow: 'true' }),
    ...(previous ? { previous: 'true' } : {}),
    ...(timestamps ? { timestamps: 'true' } : {}),
    ...(since === undefined ? {} : { sinceTime: since }),
    ...(tailLines === undefined ? {} : { tailLines: String(tailLines) }),
  });
}
