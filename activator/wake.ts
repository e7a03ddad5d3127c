// Wakes one app for all requests that are held for it: requests the end of its rest, and waits until it accepts connections.
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Activity } from './activity.ts';
import type { AppView, Backend, Directory } from './directory.ts';

export interface WakeOptions {
  readonly directory: Directory;
  readonly activity: Activity;
  /** Requests the end of the rest with this number. Rejects if that could not be written. */
  readonly ask: (app: string, number: number) => Promise<void>;
  /** Called after a wake, in milliseconds. */
  readonly onMeasured: (app: string, state: 'sleep' | 'nap', ms: number) => void;
}

function refuseStopped(app: AppView | undefined): Refusal {
  return app === undefined
    ? new Refusal('unknown', 'There is no app at this address.')
    : new Refusal('stopped', `${app.view.title} is suspended by the operator of this installation.`);
}

function throwFailure({ title, failure }: AppView['view']): void {
  if (failure === undefined) return;
  throw new Refusal('failed', `${title} does not start. ${failure.message} ${failure.fix}`, failedRetrySeconds);
}

/** A wake in progress. */
export interface Wake {
  /** Milliseconds, monotonic. */
  readonly startedAt: number;
  /** Resolves to true when the app takes requests, to false when no request waits any more; rejects if the app has failed. */
  readonly opened: Promise<boolean>;
  /** Checks immediately: something has changed. */
  checkNow(): void;
  /** Gives up. */
  end(): void;
}

const lookEveryMs = 20;
const askAgainMs = 500;
/** A pod that crashes is started again after longer and longer waits. */
const failedRetrySeconds = 30;

export function startWake(name: string, { directory, activity, ask, onMeasured }: WakeOptions): Wake {
  const startedAt = performance.now();
  const state = { isOver: false, asked: -1, askedAt: 0, checkNow: (): void => undefined };

  /** The end of each rest is requested once; a request that failed is repeated. */
  function requestWake({ idle }: AppView['view']): void {
    if (idle?.state !== 'Asleep') return;
    if (state.asked === idle.number || performance.now() - state.askedAt < askAgainMs) return;
    const { number } = idle;
    state.askedAt = performance.now();
    state.asked = number;
    ask(name, number).catch(() => {
      state.asked = -1;
    });
  }

  /** @throws Refusal if waiting is pointless */
  async function look(): Promise<boolean> {
    const app = directory.get(name);
    if (app === undefined || app.view.isStopped) throw refuseStopped(app);
    const { view } = app;
    requestWake(view);
    if (activity.isClosed(name, view.restNumber)) return false;
    for (const backend of directory.listBackends(name)) if (await isOpen(backend, view.healthPath)) return true;
    if (view.idle?.state !== 'Asleep') throwFailure(view);
    return false;
  }

  async function run(): Promise<boolean> {
    while (!state.isOver) {
      if (await look()) {
        const number = directory.get(name)?.view.restNumber ?? 0;
        const ms = performance.now() - startedAt;
        // If no end of a rest was requested, it was not a rest that kept the requests waiting.
        if (state.asked > 0) {
          activity.recordWake(name, Math.max(number, state.asked), ms);
          onMeasured(name, 'sleep', ms);
        }
        return true;
      }
      await pause();
    }
    return false;
  }

  function pause(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, lookEveryMs);
      state.checkNow = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  const opened = run();
  // Requests that wait get the rejection. There may be none, and that is no error.
  opened.catch(() => undefined);
  return {
    startedAt,
    opened,
    checkNow: () => {
      state.checkNow();
    },
    end: () => {
      state.isOver = true;
      state.checkNow();
    },
  };
}

// Connects to pods, and checks whether a starting app takes requests yet.

/** Opens a connection. @throws Error if it is refused, or not accepted in time */
export function dial({ address, port }: Backend, timeoutMs: number, signal?: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 });
    const timer = setTimeout(() => socket.destroy(new Error('not accepted in time')), timeoutMs);
    const stop = (): void => {
      socket.destroy(new Error('not wanted any more'));
    };
    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
    };
    socket.once('connect', () => {
      settle();
      socket.removeListener('error', reject);
      resolve(socket);
    });
    socket.once('error', reject);
    socket.once('close', settle);
    if (signal?.aborted === true) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}

/** A new pod may drop packets until its network is open, and the kernel would then wait a second to try again. */
const attemptMs = 150;
const healthMs = 1_000;

/** True when every component that listens takes requests: no visitor meets a page without its API. */
async function isOpen(backend: Backend, healthPath: string | undefined): Promise<boolean> {
  const { components, port, isReady } = backend;
  const listening = components?.filter((each) => each.port !== undefined) ?? [{ port, healthPath }];
  const answers = await Promise.all(
    listening.map((each) =>
      isAccepting({ ...backend, port: each.port ?? port }, isReady ? undefined : each.healthPath),
    ),
  );
  return answers.every(Boolean);
}

/** True when the app accepts connections and, if it has a health path, reports that it is healthy. */
export async function isAccepting(backend: Backend, healthPath: string | undefined): Promise<boolean> {
  try {
    const socket = await dial(backend, attemptMs);
    if (healthPath !== undefined) return await isWell(socket, healthPath);
    socket.destroy();
    return true;
  } catch {
    return false;
  }
}

function isWell(socket: Socket, path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = request({
      createConnection: () => socket,
      path,
      headers: { host: 'localhost', connection: 'close' },
      timeout: healthMs,
    });
    const end = (well: boolean): void => {
      resolve(well);
      socket.destroy();
    };
    probe.on('response', ({ statusCode = 0 }) => {
      end(statusCode >= 200 && statusCode < 400);
    });
    probe.on('timeout', () => {
      end(false);
    });
    probe.on('error', () => {
      end(false);
    });
    probe.end();
  });
}

// Reasons for the activator to answer a request itself.
export type RefusalKind =
  /** No app has this host. */
  | 'unknown'
  /** It is suspended or has no replicas. */
  | 'stopped'
  /** It does not come up. */
  | 'failed'
  /** It wakes, and the client does not want to wait longer. */
  | 'waking'
  /** Too many requests wait already. */
  | 'full'
  /** Too many requests of this client wait already. */
  | 'limited'
  /** A look by the platform, which wakes nothing. */
  | 'asleep'
  /** The app ended the connection without an answer. */
  | 'broken'
  /** The app is protected, and the request has nothing that opens it. */
  | 'locked'
  /** The app is protected, and the key in the request does not open it. */
  | 'wrong';

/** Thrown when a request is not forwarded. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly kind: RefusalKind;
  /** Seconds after which to retry; undefined: that would not help. */
  readonly retryAfter: number | undefined;

  constructor(kind: RefusalKind, message: string, retryAfter?: number) {
    super(message);
    this.kind = kind;
    this.retryAfter = retryAfter;
  }
}
