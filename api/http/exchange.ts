// One request and its answer: the id, what a handler knows of the request, and the line in the access log.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import Negotiator from 'negotiator';
import { NodeRequest } from 'srvx/node';
import { type Logger, toMethodLabel, type HttpMetrics } from '../../lib/telemetry.ts';
import { Problem, problemBody, problemMediaType } from '../../lib/problem.ts';
import { createJsonResponse } from './response/buffered-response.ts';
import { identifyCaller, type Caller, type CallerRules } from './request/caller.ts';
import { type RequestFields, groupFields } from './request/given-fields.ts';
import type { CallContext } from './endpoint.ts';
import { notAcceptable } from './problems/problems.ts';
import { corsHeaders } from './response/cors.ts';
import { sendResponse } from './response/send-response.ts';

/** A request that is refused, as far as a page about it goes. */
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
  /** Aborted when open streams have to end, because the process does. */
  readonly ending: AbortSignal;
  /** Paths whose answers pages of other sites may read; none when left out. */
  readonly isOpenToSites?: ((path: string) => boolean) | undefined;
  /** Members that the problems of a path get beside their own, for clients that read errors of another form. */
  readonly problemMembers?: ((problem: Problem, path: string) => Readonly<Record<string, unknown>>) | undefined;
  /** Headers that the problems of a path get in addition to their own. */
  readonly problemHeaders?: ((problem: Problem, path: string) => Readonly<Record<string, string>>) | undefined;
  /** The page of a problem, for a person who looks at a page; undefined: the problem as JSON. */
  readonly problemPage?: ((problem: Problem, request: RefusedRequest) => Response | undefined) | undefined;
}

export class Exchange implements CallContext {
  readonly id: string;
  readonly incoming: IncomingMessage;
  /** Path of the endpoint that answers, for metrics and the log. */
  route = 'unmatched';
  /** Whether the answer says something of the caller, who is known by his address where he sends no key. */
  returnsCallerData = false;
  readonly #outgoing: ServerResponse;
  readonly #options: ExchangeOptions;
  /** As it was sent: the router changes that of the request. */
  readonly #url: string;
  readonly #start = performance.now();
  readonly #onFinished: (() => void)[] = [];
  #over = false;
  #request: Request | undefined;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse, options: ExchangeOptions) {
    const given = incoming.headers['x-request-id'];
    this.id = typeof given === 'string' && /^[A-Za-z0-9._-]{8,64}$/.test(given) ? given : randomUUID();
    this.incoming = incoming;
    this.#outgoing = outgoing;
    this.#options = options;
    this.#url = incoming.url ?? '/';
    options.metrics.open.inc();
  }

  /** The request as handlers of protocols take it. Its parts are made on demand. */
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

  /** Fields of the query; one that was given more than once has all its values. */
  get query(): RequestFields {
    const start = this.#url.indexOf('?');
    if (start === -1) return {};
    return groupFields(new URLSearchParams(this.#url.slice(start + 1)));
  }

  caller(): Caller {
    const { headers, socket } = this.incoming;
    return identifyCaller(
      {
        peer: socket.remoteAddress,
        forwardedFor: joinHeader(headers['x-forwarded-for']),
        authorization: headers.authorization,
      },
      this.#options.callers,
    );
  }

  /** The one of these media types that the client prefers. @throws Problem (not-acceptable) */
  negotiateMediaType(produces: readonly string[]): string {
    const [preferred] = produces;
    const { accept } = this.incoming.headers;
    // An endpoint that answers with any type of file does so whatever is accepted, as RFC 9110 (12.5.1) allows.
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
   * Whether a page of another site may read the answer. Not what is known of a visitor by his address alone: his browser
   * would give it to any page that he opens.
   */
  get allowsOtherSites(): boolean {
    if (this.#options.isOpenToSites?.(this.path) !== true) return false;
    return !this.returnsCallerData || this.incoming.headers.authorization !== undefined;
  }

  onFinished(done: () => void): void {
    if (this.#over) done();
    else this.#onFinished.push(done);
  }

  /** Records the answer in the log and the metrics, and sends it. */
  async send(response: Response): Promise<void> {
    this.#record(response.status);
    const added = ['x-request-id', this.id, 'x-content-type-options', 'nosniff'];
    if (this.allowsOtherSites) added.push(...corsHeaders);
    try {
      await sendResponse(response, this.incoming, this.#outgoing, added);
    } catch (error) {
      // Headers are sent, so there is no other answer to give: the connection is closed.
      this.log.debug({ err: error }, 'response was not sent to its end');
    } finally {
      this.#over = true;
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
      ...problemBody(problem, baseUrl, this.path.slice(0, 300), this.id),
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

/** Node joins repeated headers itself; its types do not say for which. */
function joinHeader(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join(', ') : header;
}
