// Speaks the DevTools protocol with Chromium over two pipes: there is no port that a page could find.
import type { Readable, Writable } from 'node:stream';
import { z } from 'zod';

const message = z.looseObject({
  id: z.int().optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
  sessionId: z.string().optional(),
  result: z.unknown().optional(),
  error: z.looseObject({ message: z.string() }).optional(),
});

export interface ProtocolEvent {
  readonly method: string;
  readonly params: unknown;
  /** The page that it is of. */
  readonly sessionId: string | undefined;
}

export class Protocol {
  readonly #out: Writable;
  readonly #awaited = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #listeners = new Set<(event: ProtocolEvent) => void>();
  #count = 0;
  #partial: Buffer[] = [];
  #closed: Error | undefined;

  constructor(input: Readable, output: Writable) {
    this.#out = output;
    output.on('error', () => undefined);
    input.on('error', () => undefined);
    input.on('data', (chunk: Buffer) => {
      this.#read(chunk);
    });
  }

  /** @throws Error when Chromium refuses it, or has ended */
  async send(method: string, params: object = {}, sessionId?: string): Promise<unknown> {
    if (this.#closed !== undefined) throw this.#closed;
    const reply = Promise.withResolvers<unknown>();
    this.#count += 1;
    this.#awaited.set(this.#count, reply);
    const of = sessionId === undefined ? {} : { sessionId };
    this.#out.write(`${JSON.stringify({ id: this.#count, method, params, ...of })}\0`);
    return reply.promise;
  }

  /** @returns what ends it */
  listen(listener: (event: ProtocolEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Chromium has ended: nothing more is answered. */
  close(why: Error): void {
    this.#closed ??= why;
    for (const { reject } of this.#awaited.values()) reject(why);
    this.#awaited.clear();
  }

  #read(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(0); end >= 0; end = chunk.indexOf(0, from)) {
      this.#partial.push(chunk.subarray(from, end));
      from = end + 1;
      this.#take(Buffer.concat(this.#partial).toString('utf8'));
      this.#partial = [];
    }
    if (from < chunk.length) this.#partial.push(chunk.subarray(from));
  }

  #take(text: string): void {
    const { id, method, params, sessionId, result, error } = message.parse(JSON.parse(text));
    if (method !== undefined) for (const listener of this.#listeners) listener({ method, params, sessionId });
    if (id === undefined) return;
    const reply = this.#awaited.get(id);
    this.#awaited.delete(id);
    if (error === undefined) reply?.resolve(result);
    else reply?.reject(new Error(error.message));
  }
}
