// The server between the gateway and apps: finds the app, admits the visitor, holds the request until it can enter, and forwards
// it.
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { BlockList, Socket } from 'node:net';
import { probeHeader } from '../crds/names.ts';
import { usualWakeMs } from '../crds/status.ts';
import { isSameSecret } from '../lib/sealed-text.ts';
import type { Logger } from '../lib/telemetry.ts';
import { isStillAdmitted, judgeVisitor, PasswordChecks, type Sessions, type Verdict } from './access.ts';
import type { Activity } from './activity.ts';
import { choosePatience, sendMoved, sendPage, sendProblem, type Patience } from './answer.ts';
import type { AppView, Directory } from './directory.ts';
import { createResponse, forward, forwardUpgrade, hasBody, NoAnswer, readClient } from './forward.ts';
import type { Destination, Gate } from './gate.ts';
import { acceptSignIn, isSignIn, sendSignInPage, sendToApp, shouldShowPage } from './sign-in.ts';
import { Refusal } from './wake.ts';

export interface ProxyOptions {
  readonly directory: Directory;
  readonly activity: Activity;
  readonly gate: Gate;
  readonly baseUrl: string;
  /** Proxies before the gateway, which name clients in X-Forwarded-For. */
  readonly trustedProxies: BlockList;
  /** Identifies looks by the platform itself; without a token there are none. */
  readonly probeToken: string | undefined;
  /** Of visitors of protected apps. */
  readonly sessions: Sessions;
  readonly log: Logger;
}

/** Added to the startup time, for scheduling and pulling the image. */
const marginMs = 60_000;
/** Longer than gateways keep an idle connection: they should close it, and not we in the middle of a request. */
const keepAliveMs = 300_000;
/** For requests the app never answered; the request itself may be what crashes it. */
const maximumTries = 5;
const againMs = 100;
/** User agent of calls that the API makes for agents. */
const apiAgent = 'moorage-api';

/** A request or upgrade, and how to forward it once it can enter. */
interface Visit {
  readonly destination: Destination;
  readonly request: IncomingMessage;
  readonly signal: AbortSignal;
  readonly patience: Patience;
  readonly isLook: boolean;
  readonly client: string | undefined;
  /** Forwards it. @throws NoAnswer */
  readonly pass: (socket: Socket) => Promise<void>;
}

/** Creates the server; it does not listen yet. */
export function createProxy(options: ProxyOptions): Server {
  const { directory, activity, gate, sessions, log } = options;
  const passwords = new PasswordChecks();
  /** Requests and connections in progress, by app. */
  const admitted = new Map<string, Set<AdmittedVisit>>();
  const server = createServer({ maxHeaderSize: 65_536 });
  // Bodies and streams may take any time.
  server.requestTimeout = 0;
  server.timeout = 0;
  server.keepAliveTimeout = keepAliveMs;
  server.headersTimeout = 60_000;

  server.on('request', (request, response) => {
    serve(request, createReply(response), (socket) => forward(request, response, socket));
  });
  // The body is requested once an app accepts it.
  server.on('checkContinue', (request, response) => {
    serve(request, createReply(response), (socket) => {
      response.writeContinue();
      return forward(request, response, socket);
    });
  });
  server.on('upgrade', (request, stream, head) => {
    const client = stream as Socket;
    client.on('error', () => client.destroy());
    const lazyResponse: { response?: ServerResponse } = {};
    const getResponse = (): ServerResponse => (lazyResponse.response ??= createLastResponse(request, client));
    const onClose = (listener: () => void): void => {
      client.once('close', listener);
    };
    serve(request, { onClose, getResponse }, (socket) => forwardUpgrade(request, client, head, socket));
  });
  // Another password or the end of a key also ends the streams that it has opened.
  directory.subscribe((name) => {
    const policy = directory.get(name)?.view.access;
    for (const { credential, end } of admitted.get(name) ?? []) if (!isStillAdmitted(credential, policy)) end();
  });

  function serve(request: IncomingMessage, to: Reply, pass: Visit['pass']): void {
    visit(request, to, pass).catch((error: unknown) => {
      log.warn({ error: error instanceof Error ? error.message : String(error) }, 'could not forward a request');
      to.getResponse().destroy();
    });
  }

  async function visit(request: IncomingMessage, to: Reply, pass: Visit['pass']): Promise<void> {
    const clientGone = new AbortController();
    to.onClose(() => {
      clientGone.abort(new Error('the client is gone'));
    });
    const site = directory.find(request.headers.host);
    if (site === undefined) {
      replyWithProblem(request, to, new Refusal('unknown', 'There is no app at this address.'));
      return;
    }
    const { app } = site;
    // Calls for agents come past the gateway, with the address that the API has seen last.
    if (site.movedTo !== undefined && request.headers['user-agent'] !== apiAgent) {
      sendMoved(request, to.getResponse(), site.movedTo);
      return;
    }
    const destination = { ...site, url: request.url ?? '/' };
    const isLook = isProbe(request.headers[probeHeader], options.probeToken);
    const client = readClient(request, options.trustedProxies);
    if (!isLook) {
      const verdict = judgeVisitor(request, app, { directory, sessions });
      if (await answerVisitor(request, to, app, verdict, client)) return;
      if (verdict.kind === 'admitted') trackVisit(request, to, app, verdict.credential);
    }
    const over = activity.begin(app.metadata.name, isLook);
    to.onClose(over);
    const patience = choosePatience(request, app.view.startupMs + marginMs, app.view.idle !== undefined);
    try {
      await enter({ destination, request, signal: clientGone.signal, patience, pass, isLook, client });
    } catch (error) {
      if (!clientGone.signal.aborted) refuse(request, to, app, patience, error);
    }
  }

  /** Answers a request that no app gets. False: the visitor is admitted, and the request is for the app. */
  async function answerVisitor(
    request: IncomingMessage,
    to: Reply,
    app: AppView,
    verdict: Verdict,
    client: string | undefined,
  ): Promise<boolean> {
    if (app.view.access === undefined) return false;
    if (isSignIn(request) && request.method === 'POST') {
      await acceptSignIn(request, to.getResponse(), { app, network: client ?? '' }, { directory, sessions, passwords });
      return true;
    }
    if (verdict.kind === 'admitted') {
      if (isSignIn(request)) sendToApp(to.getResponse(), '/');
      return isSignIn(request);
    }
    if (verdict.kind === 'missing' && shouldShowPage(request)) sendSignInPage(request, to.getResponse(), app);
    else replyWithProblem(request, to, createAccessRefusal(app, verdict.kind));
    return true;
  }

  function trackVisit(request: IncomingMessage, to: Reply, app: AppView, credential: string | undefined): void {
    const { name } = app.metadata;
    const visits = admitted.get(name) ?? new Set();
    admitted.set(name, visits);
    const visit = { credential, end: () => request.socket.destroy() };
    visits.add(visit);
    to.onClose(() => {
      visits.delete(visit);
      if (visits.size === 0 && admitted.get(name) === visits) admitted.delete(name);
    });
  }

  /** Holds the request as long as its client waits, and forwards it. */
  async function enter({ destination, request, signal, patience, pass, isLook, client }: Visit): Promise<void> {
    const late = new AbortController();
    const timer = setTimeout(() => {
      late.abort(createLateRefusal(destination.app, patience));
    }, patience.afterMs);
    try {
      for (let attempt = 1; ; attempt += 1) {
        const until = AbortSignal.any([signal, late.signal]);
        const { socket, url } = await (isLook ? gate.peek(destination, until) : gate.enter(destination, until, client));
        request.url = url;
        try {
          await pass(socket);
          return;
        } catch (error) {
          if (!(error instanceof NoAnswer) || !canRepeat(request) || attempt >= maximumTries) throw error;
          late.signal.throwIfAborted();
          await new Promise((resolve) => setTimeout(resolve, againMs * 2 ** attempt));
        }
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** Whole seconds until the app is likely to be ready, by its past wakes. */
  function estimateRemainingSeconds({ metadata, view }: AppView): number {
    const usual = view.idle?.wakeMs ?? usualWakeMs;
    return Math.max(1, Math.ceil((usual - (gate.measureWaking(metadata.name) ?? 0)) / 1000));
  }

  function createLateRefusal(app: AppView, { wait, afterMs }: Patience): Refusal {
    const waited = wait === undefined ? `${Math.round(afterMs / 1000)} s` : `the ${wait} s of Prefer: wait`;
    const seconds = estimateRemainingSeconds(app);
    return new Refusal(
      'waking',
      `${app.view.title} is waking and was not ready within ${waited}. Try again in ${seconds === 1 ? '1 second' : `${seconds} seconds`}.`,
      seconds,
    );
  }

  function refuse(request: IncomingMessage, to: Reply, app: AppView, patience: Patience, error: unknown): void {
    const response = to.getResponse();
    if (response.headersSent) {
      response.destroy();
      return;
    }
    if (error instanceof Refusal && error.kind === 'waking' && patience.kind === 'page') {
      sendPage(request, response, app, estimateRemainingSeconds(app));
      return;
    }
    const broken = new Refusal('broken', `${app.view.title} ended the connection before it answered. Try again.`, 1);
    if (!(error instanceof Refusal) && !(error instanceof NoAnswer)) throw error;
    replyWithProblem(request, to, error instanceof Refusal ? error : broken, patience.wait);
  }

  function replyWithProblem(request: IncomingMessage, to: Reply, refusal: Refusal, wait?: number): void {
    const { baseUrl } = options;
    const preference = wait === undefined ? {} : { preference: `wait=${wait}` };
    sendProblem(request, to.getResponse(), refusal, { baseUrl, id: readRequestId(request), ...preference });
  }

  return server;
}

interface AdmittedVisit {
  /** Hash of what opened the app; undefined if anyone could visit it. */
  readonly credential: string | undefined;
  readonly end: () => void;
}

function createAccessRefusal({ view }: AppView, kind: 'missing' | 'wrong'): Refusal {
  const { title, access } = view;
  if (kind === 'wrong')
    return new Refusal('wrong', `This access key does not open ${title}. Ask its author for another one.`);
  const fix =
    access?.mode === 'locked'
      ? 'Its author has to set who may visit it again.'
      : 'Send an access key of its author as Authorization: Bearer mvk-…, or open its address in a browser.';
  return new Refusal('locked', `${title} is protected. ${fix}`);
}

/** Whether the header has the platform's secret value. */
function isProbe(header: string | string[] | undefined, token: string | undefined): boolean {
  return typeof header === 'string' && token !== undefined && isSameSecret(header, token);
}

/** Where the response goes; for an upgrade it is created only if one is needed. */
interface Reply {
  readonly onClose: (listener: () => void) => void;
  readonly getResponse: () => ServerResponse;
}

/** A response to a rejected upgrade. It closes the connection: nothing reads it any more, so its end would go unnoticed. */
function createLastResponse(request: IncomingMessage, client: Socket): ServerResponse {
  return createResponse(request, client).once('finish', () => {
    client.destroySoon();
  });
}

function createReply(response: ServerResponse): Reply {
  return { onClose: (listener) => response.once('close', listener), getResponse: () => response };
}

/** Nothing of the body was read, and the method is safe to repeat. */
function canRepeat(request: IncomingMessage): boolean {
  return ['GET', 'HEAD', 'OPTIONS'].includes(request.method ?? '') && !hasBody(request);
}

function readRequestId({ headers }: IncomingMessage): string {
  const requestId = headers['x-request-id'];
  return typeof requestId === 'string' && /^[\w.-]{1,100}$/.test(requestId) ? requestId : randomUUID();
}
