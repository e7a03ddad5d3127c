// Lets a request enter its app: immediately if the app accepts it, otherwise held until it does.
import type { Socket } from 'node:net';
import { Gauge, Histogram, type Registry } from 'prom-client';
import { chooseComponent, stripRoutePath } from '../crds/routes.ts';
import type { AppView, Backend, Site } from './directory.ts';
import { dial, Refusal, startWake, type Wake, type WakeOptions } from './wake.ts';

export interface GateOptions extends WakeOptions {
  readonly limits: { readonly perApp: number; readonly total: number; readonly perClient: number };
}

/** What a request is for. */
export interface Destination extends Site {
  /** Path and query, as the client sent them. */
  readonly url: string;
}

/** A connection to an app, or to one of its components. */
export interface Connection {
  readonly socket: Socket;
  /** Path and query, as the component is to see them. */
  readonly url: string;
  /** Whether the request was held. */
  readonly wasHeld: boolean;
}

export interface Gate {
  /** `client`: the client network, from `readClient`. @throws Refusal, or the signal's reason */
  enter(destination: Destination, signal: AbortSignal, client?: string): Promise<Connection>;
  /** The same for a look by the platform, which is never held, since it must not wake an app. */
  peek(destination: Destination, signal: AbortSignal): Promise<Connection>;
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

type OpenConnection = Omit<Connection, 'wasHeld'>;

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
      // Of several components, one may accept connections before the others.
      .filter(
        ({ isReady, components }) => isReady || isOpened || (view.healthPath === undefined && components === undefined),
      );
    turn = (turn + 1) % 1_000_000;
    return usable[turn % Math.max(1, usable.length)];
  }

  /** @throws Refusal if no component has this path */
  async function passThrough(
    destination: Destination,
    signal: AbortSignal,
    heldRequest?: { isOpened: boolean },
  ): Promise<OpenConnection | undefined> {
    const backend = pick(destination.app, heldRequest?.isOpened === true);
    if (backend === undefined) return undefined;
    const { port, url } = resolveEntry(backend, destination);
    try {
      const timeoutMs = heldRequest === undefined ? connectMs : heldConnectMs;
      return { socket: await dial({ ...backend, port }, timeoutMs, signal), url };
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

  async function hold(
    destination: Destination,
    signal: AbortSignal,
    client: string | undefined,
  ): Promise<OpenConnection> {
    const { app } = destination;
    const { name } = app.metadata;
    for (;;) {
      const { wake, releaseSlot } = takeSlot(app, client);
      const isOpened = await raceAbort(wake.opened, signal).finally(releaseSlot);
      const newest = { ...destination, app: directory.get(name) ?? app };
      const connection = await runInTurn(name, () => passThrough(newest, signal, { isOpened }));
      if (connection !== undefined) return connection;
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
    async enter(destination, signal, client) {
      const { app } = destination;
      const startedAt = performance.now();
      const isWaking = waits.has(app.metadata.name);
      const connection = isWaking ? undefined : await passThrough(destination, signal);
      if (connection === undefined) return { ...(await hold(destination, signal, client)), wasHeld: true };
      const { idle } = app.view;
      if (idle?.state === 'Napping') endNap(app.metadata.name, idle.number, performance.now() - startedAt);
      return { ...connection, wasHeld: false };
    },
    async peek(destination, signal) {
      const { app } = destination;
      const connection = waits.has(app.metadata.name) ? undefined : await passThrough(destination, signal);
      if (connection !== undefined) return { ...connection, wasHeld: false };
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

/** The port of the component that gets the request, and the URL that it sees. @throws Refusal if none has this path */
function resolveEntry(backend: Backend, { subdomain, url }: Destination): { port: number; url: string } {
  const { components, port } = backend;
  if (components === undefined && subdomain === undefined) return { port, url };
  const component = chooseComponent(components ?? [], subdomain, url);
  if (component === undefined) throw new Refusal('unknown', 'No component of the app has this path.');
  return { port: component.port, url: stripRoutePath(url, component.route) };
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
