// The client of a model router: calls, streams, keys and records, as the shape of the router has them.
import { createHash } from 'node:crypto';
import type { Dispatcher } from 'undici';
import {
  type BillWindow,
  type LookupResult,
  type Payer,
  type Prices,
  type RouterBill,
  zero,
} from '../../billing/index.ts';
import type { RouterSettings } from '../config.ts';
import {
  completion,
  embeddings,
  offered,
  type Chunk,
  type RouterAnswer,
  type RouterUsage,
  toRefusal,
  RouterFailure,
  addEvent,
  readEvents,
  parseBody,
  readReference,
  readText,
  toUnexpectedBodyFailure,
  type StreamProgress,
} from './responses.ts';
import { startDeadline, toFailure, RouterTransport } from './transport.ts';
import { liteLlm, openRouter, type KeyLimit, type Lookup, type RouterHeaders, type RouterShape } from './shapes.ts';

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
