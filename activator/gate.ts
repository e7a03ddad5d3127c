// Lets a request enter its app: immediately if the app accepts it, otherwise held until it does.
import type { Socket } from 'node:net';
import { Gauge, Histogram, type Registry } from 'prom-client';
import type { AppView, Backend } from './directory.ts';
import { dial, Refusal, startWake, type Wake, type WakeOptions } from './wake.ts';

export interface GateOptions extends WakeOptions {
  readonly limits: { readonly perApp: number; readonly total: number; readonly perClient: number };
}

/** A connection to an app. */
export interface Connection {
  readonly socket: Socket;
  /** Whether the request was held. */
  readonly wasHeld: boolean;
}

export interface Gate {
  /** `client`: the client network, from `readClient`. @throws Refusal, or the signal's reason */
  enter(app: AppView, signal: AbortSignal, client?: string): Promise<Connection>;
  /** The same for a look by the platform, which is never held, since it must not wake an app. */
  peek(app: AppView, signal: AbortSignal): Promise<Connection>;
  /** Milliseconds that the app has been waking; undefined: it is not. */
  measureWaking(app: string): number | undefined;
  /** Something has changed about the app. */
  checkNow(app: string): void;
  readonly heldRequests: number;
}

const connectMs = 10_000;
/**
 * All held requests arrive together, and the accept queue of a small server is soon full. The kernel would then retry
 * after one, three and seven seconds.
 */
const heldConnectMs = 250;
const againMs = 50;
/** Connections to one app that are opened at the same time for held requests: small servers have a short queue. */
const maximumDials = 32;

interface Wait {
  readonly wake: Wake;
  held: number;
}

export function createGate(options: GateOptions): Gate {
  const { directory, activity, limits } = options;
  const waits = new Map<string, Wait>();
  /** Held requests of each client, for all apps. */
  const clients = new Map<string, number>();
  const dials = new Map<string, { free: number; queue: (() => void)[] }>();
  let heldRequests = 0;
  let turn = 0;

  /** Picks pods in turn; undefined if none may be used now. @param isOpened the app has been seen to take requests */
  function pick({ metadata, view }: AppView, isOpened: boolean): Backend | undefined {
    const { name } = metadata;
    if (activity.isClosed(name, view.restNumber)) return undefined;
    const usable = directory
      .listBackends(name)
      .filter(({ isReady }) => isReady || isOpened || view.healthPath === undefined);
    turn = (turn + 1) % 1_000_000;
    return usable[turn % Math.max(1, usable.length)];
  }

  async function passThrough(
    app: AppView,
    signal: AbortSignal,
    heldRequest?: { isOpened: boolean },
  ): Promise<Socket | undefined> {
    const backend = pick(app, heldRequest?.isOpened === true);
    if (backend === undefined) return undefined;
    try {
      return await dial(backend, heldRequest === undefined ? connectMs : heldConnectMs, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      return undefined;
    }
  }

  function endNap(name: string, number: number, ms: number): void {
    if (activity.recordWake(name, number, ms)) options.onMeasured(name, 'nap', ms);
    // The operator also wakes it when it sees its use.
    options.ask(name, number).catch(() => undefined);
  }

  function join(name: string): Wait {
    const existing = waits.get(name);
    if (existing !== undefined) return existing;
    const waiting: Wait = { wake: startWake(name, options), held: 0 };
    waits.set(name, waiting);
    const removeWait = (): void => {
      if (waits.get(name) === waiting) waits.delete(name);
    };
    waiting.wake.opened.then(removeWait, removeWait);
    return waiting;
  }

  /** Counts a request as held for an app, until `releaseSlot` is called. @throws Refusal where too many are held already */
  function takeSlot({ metadata: { name }, view }: AppView, client?: string): { wake: Wake; releaseSlot: () => void } {
    const ofClient = client === undefined ? 0 : (clients.get(client) ?? 0);
    if (ofClient >= limits.perClient) {
      const reason = `${limits.perClient} requests of your network wait for apps to wake.`;
      throw new Refusal('limited', `${reason} Wait for their answers, or try again in a few seconds.`, 5);
    }
    if ((waits.get(name)?.held ?? 0) >= limits.perApp || heldRequests >= limits.total)
      throw new Refusal('full', `Too many requests wait for ${view.title} to wake. Try again in a few seconds.`, 5);
    const waiting = join(name);
    waiting.held += 1;
    heldRequests += 1;
    if (client !== undefined) clients.set(client, ofClient + 1);
    const releaseSlot = (): void => {
      waiting.held -= 1;
      heldRequests -= 1;
      if (waiting.held === 0) waiting.wake.end();
      if (client === undefined) return;
      const remaining = (clients.get(client) ?? 1) - 1;
      if (remaining > 0) clients.set(client, remaining);
      else clients.delete(client);
    };
    return { wake: waiting.wake, releaseSlot };
  }

  async function hold(app: AppView, signal: AbortSignal, client: string | undefined): Promise<Socket> {
    const { name } = app.metadata;
    for (;;) {
      const { wake, releaseSlot } = takeSlot(app, client);
      const isOpened = await raceAbort(wake.opened, signal).finally(releaseSlot);
      const socket = await runInTurn(name, () => passThrough(directory.get(name) ?? app, signal, { isOpened }));
      if (socket !== undefined) return socket;
      signal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, againMs));
    }
  }

  async function runInTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
    const line = dials.get(name) ?? { free: maximumDials, queue: [] };
    dials.set(name, line);
    if (line.free === 0) await new Promise<void>((resolve) => line.queue.push(resolve));
    else line.free -= 1;
    try {
      return await work();
    } finally {
      const next = line.queue.shift();
      if (next === undefined) line.free += 1;
      else next();
      if (line.free === maximumDials) dials.delete(name);
    }
  }

  return {
    async enter(app, signal, client) {
      const startedAt = performance.now();
      const isWaking = waits.has(app.metadata.name);
      const socket = isWaking ? undefined : await passThrough(app, signal);
      if (socket === undefined) return { socket: await hold(app, signal, client), wasHeld: true };
      const { idle } = app.view;
      if (idle?.state === 'Napping') endNap(app.metadata.name, idle.number, performance.now() - startedAt);
      return { socket, wasHeld: false };
    },
    async peek(app, signal) {
      const socket = waits.has(app.metadata.name) ? undefined : await passThrough(app, signal);
      if (socket !== undefined) return { socket, wasHeld: false };
      throw new Refusal('asleep', `${app.view.title} is not awake, and a look does not wake it.`);
    },
    measureWaking(name) {
      const waiting = waits.get(name);
      return waiting === undefined ? undefined : performance.now() - waiting.wake.startedAt;
    },
    checkNow(name) {
      waits.get(name)?.wake.checkNow();
    },
    get heldRequests() {
      return heldRequests;
    },
  };
}

/** Settles with the promise, or with the reason of the signal if that comes first. */
function raceAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      reject(signal.reason as Error);
    };
    if (signal.aborted) {
      stop();
      return;
    }
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', stop);
    });
  });
}

export interface ActivatorMetrics {
  /** Seconds from the first request to the first connection. */
  readonly wakes: Histogram<'depth'>;
}

/** @param counts requests that are held, and all that are in progress */
export function createActivatorMetrics(
  registry: Registry,
  counts: () => { readonly held: number; readonly open: number },
): ActivatorMetrics {
  const registers = [registry];
  const registerGauge = (name: string, help: string, read: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  };
  registerGauge(
    'moorage_activator_held_requests',
    'Requests that are held until their app wakes.',
    () => counts().held,
  );
  registerGauge(
    'moorage_activator_open_requests',
    'Requests and connections in progress through the activator, held ones included.',
    () => counts().open,
  );
  return {
    wakes: new Histogram({
      name: 'moorage_wake_duration_seconds',
      help: 'Seconds from the first request for an app at rest until it took the connection.',
      labelNames: ['depth'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2.5, 5, 10, 30, 60, 120],
      registers,
    }),
  };
}
