// The server that the gateway reaches apps through: finds the app, holds the request until it may enter, passes it on.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import type { BlockList, Socket } from 'node:net';
import { usualWakeMs } from '../../crds/status.ts';
import { probeHeader } from '../../crds/names.ts';
import type { Logger } from '../../lib/telemetry.ts';
import type { Directory } from '../apps/directory.ts';
import type { AppView } from '../apps/view.ts';
import type { Activity } from '../control/activity.ts';
import type { Gate } from '../hold/gate.ts';
import { choosePatience, type Patience } from '../hold/patience.ts';
import { Refusal } from '../hold/refusal.ts';
import { sendPage, sendProblem } from './answer.ts';
import { forward, NoAnswer } from './forward.ts';
import { hasBody, readClient } from './headers.ts';
import { forwardUpgrade, responseOn } from './upgrade.ts';

export interface ProxyOptions {
  readonly directory: Directory;
  readonly activity: Activity;
  readonly gate: Gate;
  readonly baseUrl: string;
  /** Proxies before the gateway, which name clients in X-Forwarded-For. */
  readonly trustedProxies: BlockList;
  /** By which the platform's own looks are known; without one there are none. */
  readonly probeToken: string | undefined;
  readonly log: Logger;
}

/** Beyond the time to start, for a node to be found and an image to be pulled. */
const marginMs = 60_000;
/** Longer than gateways keep an idle connection, so that they end it and not we, in the middle of a request. */
const keepAliveMs = 300_000;
/** Of what the app did not answer; it may be the request that ends it. */
const maximumTries = 5;
const againMs = 100;

/** A request on its way, whatever is to be done with it once it may enter. */
interface Visit {
  readonly app: AppView;
  readonly request: IncomingMessage;
  readonly signal: AbortSignal;
  readonly patience: Patience;
  readonly isLook: boolean;
  readonly client: string | undefined;
  /** Passes it on. @throws NoAnswer */
  readonly pass: (socket: Socket) => Promise<void>;
}

/** The server; it does not listen yet. */
export function createProxy(options: ProxyOptions): Server {
  const { directory, activity, gate, log } = options;
  const server = createServer({ maxHeaderSize: 65_536 });
  // Bodies and streams take as long as they take.
  server.requestTimeout = 0;
  server.timeout = 0;
  server.keepAliveTimeout = keepAliveMs;
  server.headersTimeout = 60_000;

  server.on('request', (request, response) => {
    serve(request, replyTo(response), (socket) => forward(request, response, socket));
  });
  // The body is asked for once there is somebody to take it.
  server.on('checkContinue', (request, response) => {
    serve(request, replyTo(response), (socket) => {
      response.writeContinue();
      return forward(request, response, socket);
    });
  });
  server.on('upgrade', (request, stream, head) => {
    const client = stream as Socket;
    client.on('error', () => client.destroy());
    const made: { response?: ServerResponse } = {};
    const response = (): ServerResponse => (made.response ??= responseOn(request, client));
    const onClose = (listener: () => void): void => {
      client.once('close', listener);
    };
    serve(request, { onClose, response }, (socket) => forwardUpgrade(request, client, head, socket));
  });

  function serve(request: IncomingMessage, to: Reply, pass: Visit['pass']): void {
    visit(request, to, pass).catch((error: unknown) => {
      log.warn({ error: error instanceof Error ? error.message : String(error) }, 'a request could not be passed on');
      to.response().destroy();
    });
  }

  async function visit(request: IncomingMessage, to: Reply, pass: Visit['pass']): Promise<void> {
    const gone = new AbortController();
    to.onClose(() => {
      gone.abort(new Error('the client is gone'));
    });
    const app = directory.find(request.headers.host);
    if (app === undefined) {
      problem(request, to, new Refusal('unknown', 'There is no app at this address.'));
      return;
    }
    const isLook = isProbe(request.headers[probeHeader], options.probeToken);
    const over = activity.begin(app.metadata.name, isLook);
    to.onClose(over);
    const client = readClient(request, options.trustedProxies);
    const patience = choosePatience(request, app.view.startupMs + marginMs, app.view.idle !== undefined);
    try {
      await enter({ app, request, signal: gone.signal, patience, pass, isLook, client });
    } catch (error) {
      if (!gone.signal.aborted) refuse(request, to, app, patience, error);
    }
  }

  /** Holds it as long as its client has patience, and passes it on. */
  async function enter({ app, request, signal, patience, pass, isLook, client }: Visit): Promise<void> {
    const late = new AbortController();
    const timer = setTimeout(() => {
      late.abort(lateness(app, patience));
    }, patience.afterMs);
    try {
      for (let attempt = 1; ; attempt += 1) {
        const until = AbortSignal.any([signal, late.signal]);
        const { socket } = await (isLook ? gate.glance(app, until) : gate.enter(app, until, client));
        try {
          await pass(socket);
          return;
        } catch (error) {
          if (!(error instanceof NoAnswer) || !mayRepeat(request) || attempt >= maximumTries) throw error;
          late.signal.throwIfAborted();
          await new Promise((resolve) => setTimeout(resolve, againMs * 2 ** attempt));
        }
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** Whole seconds until the app is likely to be there, by what its wakes took. */
  function remaining({ metadata, view }: AppView): number {
    const usual = view.idle?.wakeMs ?? usualWakeMs;
    return Math.max(1, Math.ceil((usual - (gate.wakingMs(metadata.name) ?? 0)) / 1000));
  }

  function lateness(app: AppView, { wait, afterMs }: Patience): Refusal {
    const waited = wait === undefined ? `${Math.round(afterMs / 1000)} s` : `the ${wait} s of Prefer: wait`;
    const seconds = remaining(app);
    return new Refusal(
      'waking',
      `${app.view.title} is waking and was not ready within ${waited}. Try again in ${seconds === 1 ? '1 second' : `${seconds} seconds`}.`,
      seconds,
    );
  }

  function refuse(request: IncomingMessage, to: Reply, app: AppView, patience: Patience, error: unknown): void {
    const response = to.response();
    if (response.headersSent) {
      response.destroy();
      return;
    }
    if (error instanceof Refusal && error.kind === 'waking' && patience.kind === 'page') {
      sendPage(request, response, app, remaining(app));
      return;
    }
    const broken = new Refusal('broken', `${app.view.title} ended the connection before it answered. Try again.`, 1);
    if (!(error instanceof Refusal) && !(error instanceof NoAnswer)) throw error;
    problem(request, to, error instanceof Refusal ? error : broken, patience.wait);
  }

  function problem(request: IncomingMessage, to: Reply, refusal: Refusal, wait?: number): void {
    const { baseUrl } = options;
    const preference = wait === undefined ? {} : { preference: `wait=${wait}` };
    sendProblem(request, to.response(), refusal, { baseUrl, id: idOf(request), ...preference });
  }

  return server;
}

/** Whether a header is that of the platform. Strangers do not know its value. */
function isProbe(given: string | string[] | undefined, token: string | undefined): boolean {
  if (typeof given !== 'string' || token === undefined) return false;
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}

/** Where the response goes; of an upgrade it is made only if there is one. */
interface Reply {
  readonly onClose: (listener: () => void) => void;
  readonly response: () => ServerResponse;
}

function replyTo(response: ServerResponse): Reply {
  return { onClose: (listener) => response.once('close', listener), response: () => response };
}

/** Nothing of it was read, and twice is as good as once. */
function mayRepeat(request: IncomingMessage): boolean {
  return ['GET', 'HEAD', 'OPTIONS'].includes(request.method ?? '') && !hasBody(request);
}

function idOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && /^[\w.-]{1,100}$/.test(given) ? given : randomUUID();
}
