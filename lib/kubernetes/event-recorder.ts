// Records Events about objects, for `kubectl describe`. Repeats are counted, floods are cut, and failures are only logged.
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Client } from './client/client.ts';
import { type Clock, type Timer, sleep, systemClock } from './clock.ts';
import { ApiError, toErrorMessage } from './errors.ts';
import { type Logger, silentLogger } from './observability.ts';
import type { KubeObject, Manifest } from './object.ts';
import { defineResource, toObjectKey, formatMicroTime } from './object.ts';

/** What happened. */
export interface EventNote {
  type: 'Normal' | 'Warning';
  /** CamelCase, 128 characters at most; the condition's own reason where there is one. */
  reason: string;
  /** For people; cut at 1 kB. */
  message: string;
  /** What was being done; default `Reconcile`. */
  action?: string;
}

/** Settings of a recorder. */
export interface EventRecorderOptions {
  client: Client;
  /** Who reports, such as `moorage.dev/operator`. */
  controller: string;
  /** Which replica; default the host name. */
  instance?: string;
  /** Events about one object: their burst, and how many per second after it; default 25 and 1/300. */
  perObject?: { perSecond: number; burst: number };
  /** A repeat within this time counts as the same series; default 360 000. */
  seriesWindowMs?: number;
  clock?: Clock;
  log?: Logger;
}

/** Records Events. */
export interface EventRecorder {
  /** Records what happened to `object`. Returns immediately and never throws. */
  record(object: Pick<KubeObject, 'apiVersion' | 'kind' | 'metadata'>, note: EventNote): void;
  /** Resolves when everything recorded so far is sent or given up. */
  flush(): Promise<void>;
}

/** Creates a recorder. */
export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  return new SeriesRecorder(options);
}

const events = defineResource({
  group: 'events.k8s.io',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  namespaced: true,
});
/** Events not yet sent; above it, new ones are dropped, because the API server is not accepting them anyway. */
const MAXIMUM_PENDING = 1000;
/** Series and objects remembered; above it, the oldest are forgotten. */
const MAXIMUM_SERIES = 4096;
/** Repeats of a series are sent together after this long at first, doubling up to the maximum. */
const FIRST_COUNT_MS = 1000;
const MAXIMUM_COUNT_MS = 60_000;
const RETRY_MS = 2000;

/** What repeats of one event have in common. */
interface Series {
  name: string;
  namespace: string;
  count: number;
  lastSeen: number;
  lastObserved: Date;
  waitMs: number;
  timer: Timer | undefined;
}

interface Allowance {
  tokens: number;
  at: number;
}

class SeriesRecorder implements EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #series = new Map<string, Series>();
  readonly #allowances = new Map<string, Allowance>();
  #pending = 0;
  #tail: Promise<void> = Promise.resolve();

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLogger;
  }

  record(object: Pick<KubeObject, 'apiVersion' | 'kind' | 'metadata'>, note: EventNote): void {
    const key = [object.metadata.uid, note.type, note.reason, note.action ?? '', note.message].join('\n');
    const now = this.#clock.now();
    const series = this.#series.get(key);
    if (series !== undefined && now - series.lastSeen <= (this.#options.seriesWindowMs ?? 360_000)) {
      this.#repeat(series, now);
      return;
    }
    if (!this.#allow(object.metadata.uid, now)) {
      this.#log.debug(
        { reason: note.reason, object: toObjectKey(object) },
        'An event is dropped: too many about this object.',
      );
      return;
    }
    this.#begin(key, object, note, now);
  }

  async flush(): Promise<void> {
    for (const series of this.#series.values()) if (series.timer !== undefined) this.#sendCount(series);
    await this.#tail;
  }

  #begin(
    key: string,
    object: Pick<KubeObject, 'apiVersion' | 'kind' | 'metadata'>,
    note: EventNote,
    now: number,
  ): void {
    const old = this.#series.get(key);
    if (old?.timer !== undefined) this.#sendCount(old);
    const date = this.#clock.getDate();
    const { metadata } = object;
    // Events about cluster-scoped objects are kept in `default`, where kubectl looks for them.
    const namespace = metadata.namespace ?? 'default';
    const name = `${metadata.name.slice(0, 236)}.${randomBytes(8).toString('hex')}`;
    this.#series.delete(key);
    this.#series.set(key, {
      name,
      namespace,
      count: 1,
      lastSeen: now,
      lastObserved: date,
      waitMs: FIRST_COUNT_MS,
      timer: undefined,
    });
    trim(this.#series, (series) => {
      this.#drop(series);
    });
    const manifest: Manifest = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name, namespace },
      eventTime: formatMicroTime(date),
      reportingController: this.#options.controller,
      reportingInstance: (this.#options.instance ?? hostname()).slice(0, 128),
      action: note.action ?? 'Reconcile',
      reason: note.reason.slice(0, 128),
      type: note.type,
      note: shorten(note.message),
      regarding: {
        apiVersion: object.apiVersion,
        kind: object.kind,
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        resourceVersion: metadata.resourceVersion,
      },
    };
    this.#send(() => this.#options.client.create(events, manifest));
  }

  #repeat(series: Series, now: number): void {
    series.count += 1;
    series.lastSeen = now;
    series.lastObserved = this.#clock.getDate();
    series.timer ??= this.#clock.setTimer(() => {
      this.#sendCount(series);
    }, series.waitMs);
  }

  #sendCount(series: Series): void {
    this.#drop(series);
    series.waitMs = Math.min(series.waitMs * 2, MAXIMUM_COUNT_MS);
    const patch = { series: { count: series.count, lastObservedTime: formatMicroTime(series.lastObserved) } };
    this.#send(() => this.#options.client.patch(events, series, patch, { type: 'application/merge-patch+json' }));
  }

  #drop(series: Series): void {
    if (series.timer !== undefined) this.#clock.clearTimer(series.timer);
    series.timer = undefined;
  }

  /** Events are sent one after the other: a repeat must not overtake its first. */
  #send(call: () => Promise<unknown>): void {
    if (this.#pending >= MAXIMUM_PENDING) {
      this.#log.warn({ pending: this.#pending }, 'An event is dropped: too many are waiting to be sent.');
      return;
    }
    this.#pending += 1;
    this.#tail = this.#tail
      .then(() => this.#try(call))
      .finally(() => {
        this.#pending -= 1;
      });
  }

  async #try(call: () => Promise<unknown>): Promise<void> {
    try {
      await call().catch(async (error: unknown) => {
        if (!isTransient(error)) throw error;
        await sleep(this.#clock, RETRY_MS);
        return call();
      });
    } catch (error) {
      this.#log.warn({ error: toErrorMessage(error) }, 'An event could not be recorded.');
    }
  }

  #allow(uid: string, now: number): boolean {
    const { perSecond, burst } = this.#options.perObject ?? { perSecond: 1 / 300, burst: 25 };
    const allowance = this.#allowances.get(uid) ?? { tokens: burst, at: now };
    const tokens = Math.min(burst, allowance.tokens + ((now - allowance.at) / 1000) * perSecond);
    this.#allowances.delete(uid);
    this.#allowances.set(uid, { tokens: tokens >= 1 ? tokens - 1 : tokens, at: now });
    trim(this.#allowances, () => undefined);
    return tokens >= 1;
  }
}

/** Forgets the oldest entries of a map that has grown too large. */
function trim<V>(map: Map<string, V>, forget: (value: V) => void): void {
  for (const [key, value] of map) {
    if (map.size <= MAXIMUM_SERIES) return;
    forget(value);
    map.delete(key);
  }
}

/** The API rejects notes of more than 1024 bytes. */
function shorten(message: string): string {
  const bytes = Buffer.from(message);
  // Cutting may leave a part of a character, which decoding turns into U+FFFD.
  return bytes.length <= 1024
    ? message
    : `${bytes
        .subarray(0, 1018)
        .toString('utf8')
        .replace(/\uFFFD+$/, '')}…`;
}

function isTransient(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status === 429 || error.status >= 500);
}
