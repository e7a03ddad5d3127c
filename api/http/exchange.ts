// One request and its response: request id, negotiation, CORS, sending with backpressure, and the line in the access log.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import Negotiator from 'negotiator';
import { NodeRequest } from 'srvx/node';
import { type Logger, toMethodLabel, type HttpMetrics } from '../../lib/telemetry.ts';
import { Problem, buildProblemBody, problemMediaType } from '../../lib/problem.ts';
import { identifyCaller, type Caller, type CallerRules } from './caller.ts';
import type { CallContext } from './endpoint.ts';
import { notAcceptable } from './problems.ts';
import { groupFields, type RequestFields } from './request-fields.ts';
import { createJsonResponse, isBuffered } from './response.ts';

/** The parts of a refused request that its problem page shows. */
export interface RefusedRequest {
  readonly id: string;
  /** As it was sent, without the query. */
  readonly path: string;
  readonly query: RequestFields;
  readonly headers: Headers;
}

/** What every exchange needs. */
export interface ExchangeOptions {
  readonly baseUrl: string;
  readonly callers: CallerRules;
  readonly log: Logger;
  readonly metrics: HttpMetrics;
  /** Aborted when open streams have to end because the process is shutting down. */
  readonly ending: AbortSignal;
  /** Paths whose responses pages of other sites may read. Default: none. */
  readonly isOpenToSites?: ((path: string) => boolean) | undefined;
  /** Extra members of a path's problems, for clients that expect errors in another format. */
  readonly problemMembers?: ((problem: Problem, path: string) => Readonly<Record<string, unknown>>) | undefined;
  /** Extra headers of a path's problems. */
  readonly problemHeaders?: ((problem: Problem, path: string) => Readonly<Record<string, string>>) | undefined;
  /** Renders a problem for a person in a browser; undefined sends it as JSON. */
  readonly problemPage?: ((problem: Problem, request: RefusedRequest) => Response | undefined) | undefined;
}

export class Exchange implements CallContext {
  readonly id: string;
  readonly incoming: IncomingMessage;
  /** Path of the endpoint that answers, for metrics and the log. */
  route = 'unmatched';
  /** Whether the response describes the caller, who is identified by address when they send no key. */
  returnsCallerData = false;
  readonly #outgoing: ServerResponse;
  readonly #options: ExchangeOptions;
  /** As it was sent: the router changes `incoming.url`. */
  readonly #url: string;
  readonly #start = performance.now();
  readonly #onFinished: (() => void)[] = [];
  #isFinished = false;
  #request: Request | undefined;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse, options: ExchangeOptions) {
    const requestId = incoming.headers['x-request-id'];
    this.id = typeof requestId === 'string' && /^[A-Za-z0-9._-]{8,64}$/.test(requestId) ? requestId : randomUUID();
    this.incoming = incoming;
    this.#outgoing = outgoing;
    this.#options = options;
    this.#url = incoming.url ?? '/';
    options.metrics.open.inc();
  }

  /** The request as protocol handlers take it. Its parts are created on demand. */
  get request(): Request {
    return (this.#request ??= new NodeRequest({ req: this.incoming, res: this.#outgoing }));
  }

  get headers(): Headers {
    return this.request.headers;
  }

  get signal(): AbortSignal {
    return AbortSignal.any([this.request.signal, this.#options.ending]);
  }

  get log(): Logger {
    return this.#options.log.child({ request_id: this.id });
  }

  get path(): string {
    return this.#url.split('?', 1)[0] ?? '';
  }

  get query(): RequestFields {
    const start = this.#url.indexOf('?');
    return start === -1 ? {} : groupFields(new URLSearchParams(this.#url.slice(start + 1)));
  }

  caller(): Caller {
    const { headers, socket } = this.incoming;
    const forwardedFor = headers['x-forwarded-for'];
    return identifyCaller(
      {
        peer: socket.remoteAddress,
        // Node joins repeated headers itself, but its types do not say for which.
        forwardedFor: Array.isArray(forwardedFor) ? forwardedFor.join(', ') : forwardedFor,
        authorization: headers.authorization,
      },
      this.#options.callers,
    );
  }

  /** Returns the media type that the client prefers among those of an endpoint. @throws Problem (not-acceptable) */
  negotiateMediaType(produces: readonly string[]): string {
    const [preferred] = produces;
    const { accept } = this.incoming.headers;
    // An endpoint that returns files of any type ignores Accept, as RFC 9110 (12.5.1) allows.
    if (preferred !== undefined && (accept === undefined || preferred === '*/*')) return preferred;
    const [chosen] = new Negotiator({ headers: { accept } }).mediaTypes([...produces]);
    if (chosen !== undefined) return chosen;
    throw new Problem(
      notAcceptable,
      `This endpoint answers with ${produces.join(' or ')}, which the Accept header excludes.`,
      { members: { offers: produces } },
    );
  }

  /**
   * Whether a page of another site may read the response. Data of a visitor who is identified by address alone is closed
   * to it: their browser would hand that data to any page they open.
   */
  get allowsOtherSites(): boolean {
    if (this.#options.isOpenToSites?.(this.path) !== true) return false;
    return !this.returnsCallerData || this.incoming.headers.authorization !== undefined;
  }

  onFinished(done: () => void): void {
    if (this.#isFinished) done();
    else this.#onFinished.push(done);
  }

  /** Records the response in the log and the metrics, and sends it. Never throws. */
  async send(response: Response): Promise<void> {
    this.#record(response.status);
    const added = ['x-request-id', this.id, 'x-content-type-options', 'nosniff'];
    if (this.allowsOtherSites) added.push(...corsHeaders);
    try {
      await sendResponse(response, this.incoming, this.#outgoing, added);
    } catch (error) {
      // The headers are sent, so there is no way to report the error: the connection is closed.
      this.log.debug({ err: error }, 'response was not sent to its end');
    } finally {
      this.#isFinished = true;
      for (const done of this.#onFinished.splice(0)) done();
    }
  }

  async sendProblem(problem: Problem): Promise<void> {
    const { baseUrl, metrics, problemPage, problemMembers, problemHeaders } = this.#options;
    metrics.problems.inc({ type: problem.type.slug });
    const page = problemPage?.(problem, this);
    if (page !== undefined) {
      await this.send(page);
      return;
    }
    const body = {
      ...buildProblemBody(problem, baseUrl, this.path.slice(0, 300), this.id),
      ...problemMembers?.(problem, this.path),
    };
    await this.send(
      createJsonResponse(body, {
        status: problem.type.status,
        headers: {
          ...problemHeaders?.(problem, this.path),
          ...problem.headers,
          'content-type': problemMediaType,
          'cache-control': 'no-store',
        },
      }),
    );
  }

  #record(status: number): void {
    const { log, metrics } = this.#options;
    const seconds = (performance.now() - this.#start) / 1000;
    const labels = { method: toMethodLabel(this.incoming.method ?? ''), route: this.route };
    metrics.open.dec();
    metrics.seconds.observe({ ...labels, status: String(status) }, seconds);
    log.info({ request_id: this.id, ...labels, status, ms: Math.round(seconds * 10_000) / 10 }, 'request');
  }
}

/**
 * Sends a web Response over the connection of its request. Resolves when the content is sent.
 * @param added names and values of further headers, alternating
 * @throws Error when the source fails or the client leaves; the connection is closed then
 */
async function sendResponse(
  response: Response,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  added: readonly string[],
): Promise<void> {
  if (!incoming.complete) discardRest(incoming, outgoing);
  if (isBuffered(response)) {
    const { status, headers, body } = response._toNodeResponse();
    outgoing.writeHead(status, headers.concat(added)).end(incoming.method === 'HEAD' ? undefined : body);
    return;
  }
  const { body, status } = response;
  try {
    // Several headers of one name, such as Set-Cookie, stay several.
    outgoing.writeHead(status, [...response.headers].flat().concat(added));
  } catch (error) {
    outgoing.destroy();
    await body?.cancel(error);
    throw error;
  }
  if (body === null || incoming.method === 'HEAD' || outgoing.destroyed) {
    outgoing.end();
    await body?.cancel();
    return;
  }
  await pump(body.getReader(), outgoing);
}

const discardMs = 500;

/**
 * Reads and drops what a client still sends after its request was answered. Closing the connection immediately would
 * lose the response, and keeping it open would mean reading for ever.
 */
function discardRest(incoming: IncomingMessage, outgoing: ServerResponse): void {
  // A request whose body was abandoned has no socket any more.
  const { socket } = outgoing;
  if (socket === null) return;
  outgoing.once('finish', () => {
    const timer = setTimeout(() => {
      socket.destroySoon();
    }, discardMs);
    const done = (): void => {
      clearTimeout(timer);
      socket.off('close', done);
    };
    // Not on the request's 'close' event: a request whose body was abandoned leaves the rest of it on the connection.
    incoming.once('end', done);
    socket.once('close', done);
    incoming.resume();
  });
}

/** Node's own `pipeline` with `Readable.fromWeb` would cost a short response more than everything else done for it. */
async function pump(reader: ReadableStreamDefaultReader<Uint8Array>, outgoing: ServerResponse): Promise<void> {
  // Headers go out with the first bytes, but do not wait for them.
  const flush = setImmediate(() => {
    outgoing.flushHeaders();
  });
  const leave = (): void => {
    reader.cancel().catch(() => undefined);
  };
  outgoing.once('close', leave);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      clearImmediate(flush);
      if (done) break;
      if (!outgoing.write(value)) await waitForDrain(outgoing);
    }
    outgoing.end();
  } catch (error) {
    outgoing.destroy();
    throw error;
  } finally {
    outgoing.off('close', leave);
  }
}

async function waitForDrain(outgoing: ServerResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const go = (): void => {
    outgoing.off('drain', go).off('close', go);
    resolve(undefined);
  };
  outgoing.once('drain', go).once('close', go);
  await promise;
}

/** Our headers that scripts need: browsers show only a few standard ones unless a response names the others. */
const exposedHeaders = [
  'content-disposition',
  'etag',
  'idempotent-replayed',
  'link',
  'location',
  'mcp-session-id',
  'ratelimit',
  'ratelimit-policy',
  'retry-after',
  'www-authenticate',
  'x-charged-usd',
  'x-cost-source',
  'x-cost-usd',
  'x-latency-ms',
  'x-quota-hint',
  'x-request-id',
  'x-warnings',
].join(', ');

/**
 * Names and values, alternating, for every response of an open path. CORS is granted to public endpoints only, and never
 * with the browser's credentials.
 */
const corsHeaders: readonly string[] = [
  'access-control-allow-origin',
  '*',
  'access-control-expose-headers',
  exposedHeaders,
];

const headerList = /^[A-Za-z0-9-]{1,60}(?:\s*,\s*[A-Za-z0-9-]{1,60}){0,40}$/;

/**
 * Builds the headers of a preflight response. Clients add headers of their own, so the requested ones are allowed by
 * name: `*` would not include Authorization.
 */
export function createPreflightHeaders(methods: string, requested: string | null): Record<string, string> {
  return {
    'access-control-allow-methods': methods,
    'access-control-allow-headers':
      requested !== null && headerList.test(requested.trim())
        ? requested.trim()
        : 'authorization, content-type, idempotency-key',
    'access-control-max-age': '7200',
    vary: 'access-control-request-headers',
  };
}
