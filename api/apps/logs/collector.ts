// Collects what apps print: one replica of the API at a time follows the log of every container of every app, and stores it
// in batches. A replica that is killed is replaced by another one, which reads on from the stored positions.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, Gauge, type Registry } from 'prom-client';
import { labels } from '../../../crds/names.ts';
import { type Client, createReflector, type Store } from '../../../lib/kubernetes/index.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import { createTimeLimit } from '../../../lib/values.ts';
import { type OpenLedger, runAsTask } from '../../billing/index.ts';
import type { App, AppIndex } from '../hosted-apps.ts';
import { splitLog } from '../../../lib/harmless-text.ts';
import type { OpenLog } from '../submit/follow-log.ts';
import {
  longestReadLine,
  LogCursor,
  parseLogLine,
  readContainer,
  type ReadLine,
  toLogTime,
} from './container-reader.ts';
import { listFingerprints } from './fingerprints.ts';
import { createLogMask, prepareLines } from './log-mask.ts';
import { type Crash, type LogStore, StalePosition, type StreamChange } from './log-store.ts';
import { LogQueue, type QueuedBatch, type QueuedStream, type QueueLimits, SharedRoom } from './log-queue.ts';
import {
  findCrashes,
  isPodOfApp,
  listStreams,
  type Pod,
  pods as podResource,
  podSelector,
  readContainerState,
  shortenPod,
  type Termination,
} from './pods.ts';

export interface CollectorTimes {
  /** After which another replica takes over from one that was killed; default 15 s. */
  readonly leaseMs: number;
  /** Between two batches; default 500 ms. */
  readonly flushMs: number;
  /** Between two inspections of all pods, for apps that came late and crashes that could not be stored; default 2 s. */
  readonly inspectMs: number;
  /** Between two removals of what is kept of apps that are gone; default 10 minutes. */
  readonly cleanMs: number;
  /** Shortest and longest wait before a log is opened again; default 500 ms and 30 s. */
  readonly retryMs: readonly [number, number];
}

export interface CollectorOptions {
  readonly store: LogStore;
  readonly apps: Pick<AppIndex, 'get' | 'listAll'>;
  readonly client: Pick<Client, 'list' | 'watch'>;
  readonly openLog: OpenLog;
  readonly namespace: string;
  /** Key of the fingerprints of secrets; without it, there are none. */
  readonly key: string | undefined;
  readonly metrics: LogMetrics;
  readonly log: Logger;
  readonly times?: Partial<CollectorTimes>;
  readonly limits?: Partial<QueueLimits>;
}

const defaultTimes: CollectorTimes = {
  leaseMs: 15_000,
  flushMs: 500,
  inspectMs: 2_000,
  cleanMs: 600_000,
  retryMs: [500, 30_000],
};

/** Apps whose batches are stored at the same time, and crashes that are recorded at the same time. */
const workers = 4;
/** After a failure of the database or of a reader. */
const retryAfterMs = 5_000;
/** Lines before a crash. */
const crashLines = 200;
const crashCharacters = 256 * 1024;

export class LogCollector {
  readonly #options: CollectorOptions;
  readonly #times: CollectorTimes;
  readonly #holder = randomUUID();
  #collecting: Collecting | undefined;
  #claimedAt = 0;
  #isStopped = false;

  constructor(options: CollectorOptions) {
    this.#options = options;
    this.#times = { ...defaultTimes, ...options.times };
  }

  get isCollecting(): boolean {
    return this.#collecting !== undefined;
  }

  /** Collects from now on whenever no other replica does. Call it once the apps are known. */
  start({ repeat }: Pick<OpenLedger, 'repeat'>): void {
    repeat('collect logs of apps', this.#times.leaseMs / 4, async () => {
      await this.#claim();
      return 0;
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#end();
    // Otherwise the next collector waits until the claim has expired.
    await this.#options.store.release(this.#holder).catch(() => undefined);
  }

  async #claim(): Promise<void> {
    if (this.#isStopped) return;
    const { leaseMs } = this.#times;
    const claimedAt = performance.now();
    const isHolder = await this.#options.store.claim(this.#holder, leaseMs).catch((error: unknown) => {
      this.#options.log.warn({ err: error }, 'cannot claim the collection of logs');
      return undefined;
    });
    if (isHolder === true) this.#claimedAt = claimedAt;
    const isExpired = performance.now() - this.#claimedAt > leaseMs;
    if (isHolder === false || isExpired) await this.#end();
    else if (isHolder === true) this.#begin();
  }

  #begin(): void {
    // It may have been stopped while the database answered.
    if (this.#isStopped) return;
    this.#collecting ??= new Collecting(this.#options, this.#times);
  }

  async #end(): Promise<void> {
    const collecting = this.#collecting;
    this.#collecting = undefined;
    await collecting?.stop();
  }
}

interface Reader {
  readonly stream: QueuedStream;
  readonly podKey: string;
  readonly ending: AbortController;
}

/** One replica's time as the collector. */
class Collecting {
  readonly #options: CollectorOptions;
  readonly #times: CollectorTimes;
  readonly #ending = new AbortController();
  readonly #pods: Store<Pod>;
  /** Readers by pod UID and container, those that are done included. */
  readonly #readers = new Map<string, Reader>();
  /** By UID of the app. */
  readonly #queues = new Map<string, { app: App; queue: LogQueue }>();
  readonly #room: SharedRoom;
  /** Runs whose end was recorded, or is about to be. */
  readonly #knownCrashes = new Set<string>();
  readonly #crashes: { readonly app: App; readonly ended: Termination }[] = [];
  readonly #work: Promise<unknown>;
  #changed = Promise.withResolvers<undefined>();

  constructor(options: CollectorOptions, times: CollectorTimes) {
    this.#options = options;
    this.#times = times;
    this.#room = new SharedRoom(options.limits);
    const { client, namespace, log } = options;
    const reflector = createReflector<Pod>({
      client,
      resource: podResource,
      namespace,
      labelSelector: podSelector,
      transform: shortenPod,
      log,
    });
    this.#pods = reflector.store;
    const { signal } = this.#ending;
    this.#work = runAsTask(async () => {
      log.info('this replica collects the logs of apps');
      const watching = reflector.run(signal);
      await this.#pods.waitUntilSynced(signal).catch(() => undefined);
      const stop = this.#pods.subscribe(({ type, object }) => {
        this.#changed.resolve(undefined);
        this.#changed = Promise.withResolvers<undefined>();
        if (type === 'deleted') this.#forget(object);
        else this.#inspect(object);
      });
      await Promise.all([
        watching,
        this.#repeat(times.inspectMs, () => {
          this.#inspectAll();
        }),
        this.#repeat(times.flushMs, () => this.#flush()),
        this.#repeat(times.flushMs, () => this.#recordCrashes()),
        this.#repeat(times.cleanMs, () => this.#clean()),
      ]);
      stop();
    });
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    for (const { ending } of this.#readers.values()) ending.abort();
    await this.#work;
    this.#options.metrics.followed.set(0);
    this.#options.log.info('this replica does not collect the logs of apps any more');
  }

  async #repeat(everyMs: number, run: () => Promise<void> | void): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      let pauseMs = everyMs;
      try {
        await run();
      } catch (error) {
        this.#options.log.warn({ err: error }, 'logs of apps could not be stored');
        pauseMs = Math.max(everyMs, retryAfterMs);
      }
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }

  #inspectAll(): void {
    for (const pod of this.#pods.list()) this.#inspect(pod);
    let followed = 0;
    for (const { ending } of this.#readers.values()) if (!ending.signal.aborted) followed += 1;
    this.#options.metrics.followed.set(followed);
  }

  #inspect(pod: Pod): void {
    const app = this.#options.apps.get(pod.metadata.labels?.[labels.app] ?? '');
    if (app === undefined || !isPodOfApp(pod, app)) return;
    for (const stream of listStreams(pod)) {
      const key = `${stream.podUid}/${stream.container}`;
      if (!this.#readers.has(key))
        this.#startReader(key, app, { ...stream, version: 0, cursor: new LogCursor(undefined) });
    }
    for (const ended of findCrashes(pod)) {
      if (this.#knownCrashes.has(ended.instance)) continue;
      this.#knownCrashes.add(ended.instance);
      this.#crashes.push({ app, ended });
    }
  }

  /** Readers that are done stay known until their pod is gone, so that they are not started again. Others end with its log. */
  #forget({ metadata }: Pod): void {
    for (const [key, { stream }] of this.#readers) if (stream.podUid === metadata.uid) this.#readers.delete(key);
  }

  #startReader(key: string, app: App, stream: QueuedStream): void {
    const { namespace, openLog, store, log } = this.#options;
    const reader = { stream, podKey: `${namespace}/${stream.pod}`, ending: new AbortController() };
    this.#readers.set(key, reader);
    const signal = AbortSignal.any([this.#ending.signal, reader.ending.signal]);
    const getPod = (): Pod | undefined => {
      const pod = this.#pods.get(reader.podKey);
      return pod?.metadata.uid === stream.podUid ? pod : undefined;
    };
    const read = async (): Promise<void> => {
      const position = await store.findPosition(stream.podUid, stream.container);
      stream.cursor = new LogCursor(position);
      stream.version = position?.version ?? 0;
      const queue = this.#findQueue(app);
      await readContainer({
        ...{ pod: stream.pod, container: stream.container, cursor: stream.cursor, openLog, signal },
        retryMs: this.#times.retryMs,
        getState: () => readContainerState(getPod(), stream.container),
        waitForChange: () => this.#changed.promise,
        take: (line, isLive) => queue.push(stream, line, isLive),
      });
    };
    read()
      .catch((error: unknown) => {
        if (signal.aborted) return;
        log.warn({ err: error, pod: stream.pod, container: stream.container }, 'the log of a container cannot be read');
        // An inspection starts it again, but not immediately: all readers may have failed for the same reason.
        setTimeout(() => {
          if (this.#readers.get(key) === reader) this.#readers.delete(key);
        }, retryAfterMs).unref();
      })
      .finally(() => {
        reader.ending.abort();
      });
  }

  #findQueue(app: App): LogQueue {
    const known = this.#queues.get(app.metadata.uid);
    if (known !== undefined) return known.queue;
    const queue = new LogQueue(this.#room, this.#options.limits);
    this.#queues.set(app.metadata.uid, { app, queue });
    return queue;
  }

  async #flush(): Promise<void> {
    const waiting = [...this.#queues.values()].filter(({ queue }) => queue.isWaiting);
    await runAll(waiting, async ({ app, queue }) => {
      // The newest spec names the newest variables.
      const current = this.#options.apps.get(app.metadata.name);
      await queue.flush((batch) => this.#store(current?.metadata.uid === app.metadata.uid ? current : app, batch));
    });
  }

  async #store(app: App, { lines, streams, dropped }: QueuedBatch): Promise<void> {
    const { store, key, metrics } = this.#options;
    const { uid } = app.metadata;
    const fingerprints = key === undefined ? [] : await listFingerprints(store.database, uid);
    const prepared = await prepareLines(lines, createLogMask({ app, fingerprints, key }));
    const index = new Map(streams.map(({ stream }, number) => [stream, number]));
    const sorted = prepared.sort((a, b) => (a.at < b.at ? -1 : Number(a.at > b.at)));
    const changes = streams.map(({ stream, position }): StreamChange => {
      const { podUid, pod, container, component, version } = stream;
      return { podUid, pod, container, component, position, version: version + 1 };
    });
    try {
      await store.append(
        uid,
        changes,
        sorted.map(({ stream, at, text }) => ({ stream: index.get(stream) ?? -1, at, text })),
      );
    } catch (error) {
      if (!(error instanceof StalePosition)) throw error;
      // Another replica collects too, or this batch was stored although its connection was lost.
      this.#restart(uid);
      return;
    }
    for (const { stream } of streams) stream.version += 1;
    metrics.lines.inc({ result: 'stored' }, sorted.length);
    metrics.lines.inc({ result: 'dropped' }, dropped);
  }

  /** Reads all logs of an app again from the positions in the database. What was read of them is not stored. */
  #restart(app: string): void {
    const queue = this.#queues.get(app)?.queue;
    this.#queues.delete(app);
    for (const [key, { stream, ending }] of this.#readers)
      if (queue?.has(stream) === true) {
        ending.abort();
        this.#readers.delete(key);
      }
    queue?.close();
  }

  async #recordCrashes(): Promise<void> {
    const found = this.#crashes.splice(0);
    await runAll(found, async ({ app, ended }) => {
      try {
        await this.#recordCrash(app, ended);
      } catch (error) {
        // The next inspection finds it again.
        this.#knownCrashes.delete(ended.instance);
        throw error;
      }
    });
    const { size } = this.#knownCrashes;
    if (size > 10_000) this.#knownCrashes.clear();
  }

  async #recordCrash(app: App, ended: Termination): Promise<void> {
    const { store, key } = this.#options;
    const { uid } = app.metadata;
    if (await store.hasCrash(uid, ended.instance)) return;
    const { instance, pod, component, restarts, exitCode, signal, reason, finishedAt } = ended;
    const fingerprints = key === undefined ? [] : await listFingerprints(store.database, uid);
    const read = await this.#readLastLines(ended);
    const lines =
      read.length > 0
        ? (await prepareLines(read, createLogMask({ app, fingerprints, key }))).map(({ at, text }) => ({
            at,
            line: text,
          }))
        : await this.#findLastLines(uid, ended);
    const crash: Crash = {
      ...{ instance, pod, component, restarts, exitCode, signal, reason, at: finishedAt },
      lines: lines.slice(-crashLines),
    };
    await store.addCrash(uid, crash);
    this.#options.log.info({ app: app.metadata.name, component, exitCode, reason }, 'a container of an app has ended');
  }

  /** The last lines of a run from its own log, which has them whatever was dropped. Empty if the log is gone. */
  async #readLastLines(ended: Termination): Promise<ReadLine[]> {
    for (const previous of [ended.isPrevious, !ended.isPrevious]) {
      const lines = await this.#readTail(ended, previous).catch(() => []);
      if (lines.length > 0) return lines;
    }
    return [];
  }

  async #readTail({ pod, container, ...ended }: Termination, previous: boolean): Promise<ReadLine[]> {
    const { from, to } = toTimes(ended);
    const signal = AbortSignal.any([this.#ending.signal, createTimeLimit(10_000)]);
    const part = { isFinite: true, previous, timestamps: true, tailLines: crashLines };
    const opened = await this.#options.openLog(pod, container, signal, part);
    if (opened.state !== 'open') return [];
    const lines: ReadLine[] = [];
    let characters = 0;
    for await (const text of splitLog(opened.bytes, /\n/, longestReadLine)) {
      const line = parseLogLine(text);
      // Another run of the container may have begun.
      if (line === undefined || line.at < from || line.at > to) continue;
      lines.push(line);
      characters += line.text.length;
      while (characters > crashCharacters && lines.length > 1) characters -= lines.shift()?.text.length ?? 0;
    }
    return lines;
  }

  /** The same from what was stored, once the rest of it had time to be. */
  async #findLastLines(app: string, { pod, component, ...ended }: Termination): Promise<Crash['lines']> {
    await sleep(4 * this.#times.flushMs, undefined, { signal: this.#ending.signal });
    const { from, to } = toTimes(ended);
    const { lines } = await this.#options.store.read(app, {
      tail: crashLines,
      since: from,
      isWanted: (line) => line.pod === pod && line.component === component && line.at <= to,
    });
    return lines.map(({ at, line }) => ({ at, line }));
  }

  async #clean(): Promise<void> {
    const { apps, store } = this.#options;
    if (!this.#pods.hasSynced) return;
    const uids = new Set(apps.listAll().map(({ metadata }) => metadata.uid));
    for (const [uid, { queue }] of this.#queues) if (!uids.has(uid) && !queue.isWaiting) this.#queues.delete(uid);
    await store.clean(
      [...uids],
      this.#pods.list().map(({ metadata }) => metadata.uid),
    );
  }
}

/** Between which times a run printed. The cluster knows its start and its end in whole seconds. */
function toTimes({ startedAt, finishedAt }: Pick<Termination, 'startedAt' | 'finishedAt'>): {
  from: string;
  to: string;
} {
  return {
    from: toLogTime(new Date(startedAt ?? 0)),
    to: toLogTime(new Date(Date.parse(finishedAt) + 2_000)),
  };
}

/** Runs work on each item, a few at a time. @throws the first failure, after all have run */
async function runAll<Item>(items: readonly Item[], run: (item: Item) => Promise<void>): Promise<void> {
  const rest = [...items];
  const failures: unknown[] = [];
  await Promise.all(
    Array.from({ length: workers }, async () => {
      for (let item = rest.shift(); item !== undefined; item = rest.shift())
        await run(item).catch((error: unknown) => failures.push(error));
    }),
  );
  if (failures.length > 0) throw failures[0];
}

export interface LogMetrics {
  /** Lines by `result`: stored or dropped. */
  readonly lines: Counter<'result'>;
  readonly followed: Gauge;
}

export function createLogMetrics(registry: Registry): LogMetrics {
  const registers = [registry];
  const metrics: LogMetrics = {
    lines: new Counter({
      name: 'moorage_app_log_lines_total',
      help: 'Lines that apps printed, by result: stored, or dropped because an app printed more than its rate.',
      labelNames: ['result'],
      registers,
    }),
    followed: new Gauge({
      name: 'moorage_app_logs_followed',
      help: 'Containers of apps whose log this replica follows. Only one replica follows any.',
      registers,
    }),
  };
  // A rate needs a sample from before the first line.
  for (const result of ['stored', 'dropped'] as const) metrics.lines.inc({ result }, 0);
  return metrics;
}
