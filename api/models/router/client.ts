// The client of a model router: calls, streams, keys and records, as the shape of the router has them. Sends requests with their
// credentials, and makes a failure of every way in which that can go wrong.
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Dispatcher, Agent, request } from 'undici';
import {
  type BillWindow,
  type LookupResult,
  type Payer,
  type Prices,
  type RouterBill,
  zero,
} from '../../billing/index.ts';
import type { RouterSettings } from '../config.ts';
import { cancelledMessage, RouterFailure, toRefusal } from './failures.ts';
import { liteLlm } from './litellm.ts';
import {
  addEvent,
  type Chunk,
  completion,
  embeddings,
  type KeyLimit,
  type LimitRequest,
  type Lookup,
  offered,
  openRouter,
  parseBody,
  readErrorMessage,
  readEvents,
  readHeader,
  readReference,
  readText,
  type RouterAnswer,
  type RouterHeaders,
  type RouterShape,
  type RouterUsage,
  type StreamProgress,
  toUnexpectedBodyFailure,
} from './openrouter.ts';

export interface RouterCall {
  /** A UUID: the id of the hold that pays for it, which is sent along. */
  readonly id: string;
  /** The request, with the router's name of the model and with max_tokens. */
  readonly body: Readonly<Record<string, unknown>>;
  /** With the caller's own key; undefined: the platform's. */
  readonly payer: Pick<Payer, 'key'>;
  /** List prices of the model. */
  readonly model: Prices;
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
}

/** One event of a stream. */
export interface StreamPart {
  readonly text: string;
  readonly chunk: Chunk;
}

export interface RouterOptions {
  /** Longest call, in milliseconds. */
  readonly callMs: number;
  /** Longest wait for a connection; default 5 000 ms. */
  readonly connectMs?: number;
}

/** A router as the platform and its callers use it. */
export class RouterClient {
  readonly #settings: RouterSettings;
  readonly #options: RouterOptions;
  readonly #shape: RouterShape;
  readonly #transport: RouterTransport;

  constructor(settings: RouterSettings, options: RouterOptions) {
    this.#settings = settings;
    this.#options = options;
    this.#shape = { openrouter: openRouter, litellm: liteLlm }[settings.kind];
    this.#transport = new RouterTransport(settings, options.connectMs ?? 5_000);
  }

  /** Name of the router in the ledger. */
  get name(): string {
    return this.#settings.kind;
  }

  /** Asks for one whole answer. @throws RouterFailure */
  async chat(call: RouterCall): Promise<RouterAnswer> {
    return this.#whole('chat/completions', call, (text, headers) => {
      const read = completion.safeParse(parseBody(text, headers));
      if (!read.success) throw toUnexpectedBodyFailure(text, headers);
      const { id, choices, usage } = read.data;
      const [first] = choices;
      return this.#answer(call, headers, {
        id,
        usage,
        body: text,
        streamed: false,
        text: first?.message.content ?? '',
        finish: first?.finish_reason,
      });
    });
  }

  /** Asks for embeddings. @throws RouterFailure */
  async embed(call: RouterCall): Promise<RouterAnswer> {
    return this.#whole('embeddings', call, (text, headers) => {
      const read = embeddings.safeParse(parseBody(text, headers));
      if (!read.success) throw toUnexpectedBodyFailure(text, headers);
      const { id, usage } = read.data;
      return this.#answer(call, headers, { id, usage, body: text, streamed: false, text: '', finish: undefined });
    });
  }

  /**
   * Asks for an answer piece by piece; returns its summary at the end. Ending it early ends the call. @throws
   * RouterFailure
   */
  async *stream(call: RouterCall): AsyncGenerator<StreamPart, RouterAnswer, undefined> {
    const deadline = startDeadline(call.signal, this.#options.callMs);
    const seen: StreamProgress = { done: false, text: '' };
    let headers: RouterHeaders = {};
    try {
      const response = await this.#post(
        'chat/completions',
        { ...call.body, stream: true },
        call,
        true,
        deadline.signal,
      );
      ({ headers } = response);
      for await (const data of readEvents(response.body)) {
        const part = addEvent(seen, data, headers);
        if (part !== undefined) yield part;
      }
    } catch (error) {
      throw toFailure(error, deadline, seen.id ?? readReference(headers));
    } finally {
      deadline.clear();
    }
    if (!seen.done && seen.finish === undefined)
      throw new RouterFailure('interrupted', 'the stream ended before the answer was complete', {
        reference: seen.id ?? readReference(headers),
      });
    return this.#answer(call, headers, { ...seen, usage: seen.usage, body: '', streamed: true });
  }

  /** Whether the router knows a key. @throws RouterFailure when it cannot be reached */
  async knowsKey(key: string): Promise<boolean> {
    const { status, said } = await this.#transport.get(this.#shape.keyAddress(this.#settings.url), key);
    if (status === 200) return true;
    if ([401, 403, 404].includes(status)) return false;
    throw new RouterFailure('broken', `the router responded with status ${status}`, { status, said });
  }

  /** What the router itself allows the platform's key to spend. Never rejects. */
  async platformLimit(): Promise<KeyLimit> {
    if (this.#settings.key === undefined) return { outcome: 'not known', why: 'the platform has no key at the router' };
    try {
      const { status, body } = await this.#transport.get(this.#shape.keyAddress(this.#settings.url));
      return status === 200
        ? this.#shape.keyLimit(body)
        : { outcome: 'not known', why: `the router answered with status ${status}` };
    } catch (error) {
      if (error instanceof RouterFailure) return { outcome: 'not known', why: error.message };
      throw error;
    }
  }

  /**
   * Sets it, with the key that may manage others. @returns why that did not work; undefined where it did
   */
  async limitPlatform(usd: number): Promise<string | undefined> {
    const { key, billKey, url } = this.#settings;
    if (key === undefined) return 'the platform has no key at the router';
    if (billKey === undefined) return 'no key is configured that may manage the platform key (MOORAGE_ROUTER_BILL_KEY)';
    const hash = createHash('sha256').update(key).digest('hex');
    try {
      const status = await this.#transport.change(this.#shape.setLimit({ key, hash, usd }, url), billKey);
      return status < 300 ? undefined : `the router answered with status ${status}`;
    } catch (error) {
      if (error instanceof RouterFailure) return error.message;
      throw error;
    }
  }

  /** How to set such a limit. */
  get limitAdvice(): string {
    return this.#shape.limitAdvice;
  }

  /** Names of the models that the router offers. @throws RouterFailure */
  async offers(): Promise<ReadonlySet<string>> {
    const { status, body, said } = await this.#transport.get(`${this.#settings.url}/models`);
    const read = offered.safeParse(body);
    if (!read.success)
      throw status === 200
        ? new RouterFailure('malformed', 'the list of models of the router has an unexpected form')
        : toRefusal(status, said);
    return new Set(read.data.data.map(({ id }) => id));
  }

  /** Asks the router's records for the cost of a call. */
  async lookUp(call: Lookup, key?: string): Promise<LookupResult> {
    return this.#shape.lookUp(call, async (address) => this.#transport.get(address, key), this.#settings.url);
  }

  /** Why the router's records can never show what a call cost, as far as it says so. @throws RouterFailure */
  async missingRecords(): Promise<string | undefined> {
    return this.#shape.missingRecords((address) => this.#transport.get(address), this.#settings.url);
  }

  /** What the router billed in a time, by its own records; why not, where they cannot be read. */
  async fetchBill(window: BillWindow): Promise<RouterBill> {
    const { key, billKey = key, url } = this.#settings;
    const keyHash = key === undefined ? undefined : createHash('sha256').update(key).digest('hex');
    try {
      return await this.#shape.fetchBill(
        { ...window, keyHash },
        (address) => this.#transport.get(address, billKey),
        url,
      );
    } catch (error) {
      if (error instanceof RouterFailure) return { outcome: 'not known', why: error.message };
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#transport.close();
  }

  async #whole(
    path: string,
    call: RouterCall,
    read: (text: string, headers: RouterHeaders) => RouterAnswer,
  ): Promise<RouterAnswer> {
    const deadline = startDeadline(call.signal, this.#options.callMs);
    let headers: RouterHeaders = {};
    try {
      const response = await this.#post(path, call.body, call, false, deadline.signal);
      ({ headers } = response);
      return read(await readText(response.body), headers);
    } catch (error) {
      throw toFailure(error, deadline, readReference(headers));
    } finally {
      deadline.clear();
    }
  }

  #answer(
    call: RouterCall,
    headers: RouterHeaders,
    from: {
      id?: string | null | undefined;
      usage: RouterUsage | null | undefined;
      text: string;
      finish?: string | null | undefined;
      body: string;
      streamed: boolean;
    },
  ): RouterAnswer {
    const { usage, streamed } = from;
    const { in_per_m, out_per_m = zero } = call.model;
    return {
      reference: from.id ?? readReference(headers),
      text: from.text,
      finishReason: from.finish ?? undefined,
      tokensIn: usage?.prompt_tokens ?? undefined,
      tokensOut: usage?.completion_tokens ?? undefined,
      cost: this.#shape.cost({ headers, usage, streamed, priced: in_per_m > zero || out_per_m > zero }),
      body: from.body,
    };
  }

  async #post(
    path: string,
    body: Readonly<Record<string, unknown>>,
    { id, payer: { key } }: RouterCall,
    streamed: boolean,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    return this.#transport.post({
      path,
      body: { ...this.#shape.dialect(body), ...this.#shape.fields(id, streamed) },
      headers: this.#shape.headers(id),
      key,
      signal,
    });
  }
}

/** A request that may cost money. */
interface RouterRequest {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** The caller's own key; undefined: the platform's. */
  readonly key: string | undefined;
  readonly signal: AbortSignal;
}

/** A response to a GET: its body as exact JSON where the status is 200, and what it says of an error. */
interface RouterRecord {
  readonly status: number;
  readonly body: unknown;
  readonly said: string | undefined;
}

/** Failures in which no byte of the request left. */
const notSent: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_HAS_EXPIRED',
]);

/** HTTP to the router. */
class RouterTransport {
  readonly #settings: RouterSettings;
  readonly #agent: Agent;

  /** @param connectMs longest wait for a connection */
  constructor(settings: RouterSettings, connectMs: number) {
    this.#settings = settings;
    // Idle connections go before usual servers close theirs (5 s), since a request on a closing one cannot be sent
    // again.
    this.#agent = new Agent({
      connect: { timeout: connectMs },
      keepAliveTimeout: 3_000,
      keepAliveMaxTimeout: 60_000,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** Sends a request; once more when no connection was made. @throws RouterFailure for any status but 2xx */
  async post({ path, body, headers, key, signal }: RouterRequest): Promise<Dispatcher.ResponseData> {
    const send = (): Promise<Dispatcher.ResponseData> =>
      request(`${this.#settings.url}/${path}`, {
        method: 'POST',
        dispatcher: this.#agent,
        headers: { 'content-type': 'application/json', ...this.#credentials(key), ...headers },
        body: JSON.stringify(body),
        signal,
      });
    const response = await send().catch(async (error: unknown) => {
      if (!notSent.has(readErrorCode(error)) || signal.aborted) throw error;
      await sleep(100);
      return send();
    });
    if (response.statusCode >= 200 && response.statusCode < 300) return response;
    const text = await readText(response.body);
    throw toRefusal(response.statusCode, readErrorMessage(text), {
      reference: readReference(response.headers),
      retryAfterSeconds: readRetryAfter(response.headers),
    });
  }

  /** Changes what the router keeps, such as the limit of a key. @returns the status @throws RouterFailure when it cannot be reached */
  async change({ method, address, body }: LimitRequest, key: string): Promise<number> {
    const deadline = startDeadline(new AbortController().signal, 10_000);
    try {
      const response = await request(address, {
        method,
        dispatcher: this.#agent,
        headers: { 'content-type': 'application/json', ...this.#credentials(key) },
        body: JSON.stringify(body),
        signal: deadline.signal,
      });
      await response.body.dump();
      return response.statusCode;
    } catch (error) {
      throw toFailure(error, deadline, undefined);
    } finally {
      deadline.clear();
    }
  }

  /** Asks for one of the router's records. @throws RouterFailure when it cannot be reached */
  async get(address: string, key?: string): Promise<RouterRecord> {
    const deadline = startDeadline(new AbortController().signal, 10_000);
    try {
      const response = await request(address, {
        dispatcher: this.#agent,
        headers: this.#credentials(key),
        signal: deadline.signal,
      });
      const text = await readText(response.body);
      return {
        status: response.statusCode,
        body: response.statusCode === 200 ? parseBody(text, response.headers) : undefined,
        said: readErrorMessage(text),
      };
    } catch (error) {
      throw toFailure(error, deadline, undefined);
    } finally {
      deadline.clear();
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #credentials(key: string | undefined): Record<string, string> {
    const used = key ?? this.#settings.key;
    return used === undefined ? {} : { authorization: `Bearer ${used}` };
  }
}

function readRetryAfter(headers: RouterHeaders): number | undefined {
  const seconds = Number(readHeader(headers, 'retry-after') ?? Number.NaN);
  return Number.isInteger(seconds) && seconds > 0 && seconds < 86_400 ? seconds : undefined;
}

/** What an error in a call means for it. */
function toFailure(error: unknown, deadline: Deadline, reference: string | undefined): RouterFailure {
  if (error instanceof RouterFailure) return error;
  const reason = deadline.reason();
  if (reason === 'timeout')
    return new RouterFailure('timeout', 'the router did not respond in time', { reference, cause: error });
  if (reason === 'cancelled') return new RouterFailure('cancelled', cancelledMessage, { reference, cause: error });
  const code = readErrorCode(error);
  if (notSent.has(code))
    return new RouterFailure('unreachable', `the router is unreachable (${code})`, { cause: error });
  return new RouterFailure('interrupted', `the connection to the router was lost${code === '' ? '' : ` (${code})`}`, {
    reference,
    cause: error,
  });
}

function readErrorCode(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  return readErrorCode(error.cause);
}

/** One signal for the two ways in which a call is cut short: the caller disconnects, or the time limit is reached. */
interface Deadline {
  readonly signal: AbortSignal;
  /** Why the signal was aborted. */
  readonly reason: () => 'cancelled' | 'timeout' | undefined;
  /** Lets go of the caller's signal and the timer. */
  readonly clear: () => void;
}

/** By hand instead of AbortSignal.any, which keeps what it made alive for as long as the caller's signal lives. */
function startDeadline(caller: AbortSignal, ms: number): Deadline {
  const controller = new AbortController();
  let reason: 'cancelled' | 'timeout' | undefined;
  const end = (why: 'cancelled' | 'timeout'): void => {
    reason ??= why;
    controller.abort();
  };
  const leave = (): void => {
    end('cancelled');
  };
  if (caller.aborted) leave();
  caller.addEventListener('abort', leave, { once: true });
  const timer = setTimeout(end, ms, 'timeout');
  return {
    signal: controller.signal,
    reason: () => reason,
    clear: () => {
      clearTimeout(timer);
      caller.removeEventListener('abort', leave);
    },
  };
}
