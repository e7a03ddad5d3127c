// A page of its own for one drawing: another context than any other, all of its requests answered from given files or
// refused, and remembered.
import { z } from 'zod';
import type { Chromium } from './chromium.ts';

/** The page's own address: a name that no resolver knows. */
export const pageOrigin = 'http://page.invalid';

/** What a page may load: by path, such as `/index.html`; `/` is the page itself. */
export type PageFiles = Readonly<Record<string, { readonly type: string; readonly body: Uint8Array }>>;

const policy = `default-src 'none'; script-src ${pageOrigin}; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; form-action 'none'`;

const session = z.object({ sessionId: z.string() });
const paused = z.object({ requestId: z.string(), request: z.object({ url: z.string() }) });
const evaluated = z.object({
  result: z.looseObject({ value: z.unknown().optional() }),
  exceptionDetails: z
    .looseObject({ text: z.string(), exception: z.looseObject({ description: z.string().optional() }).optional() })
    .optional(),
});

export interface Clip {
  readonly width: number;
  readonly height: number;
  readonly scale: number;
}

export class Page {
  /** Addresses that it asked for and did not get. */
  readonly refused: string[] = [];
  readonly #chromium: Chromium;
  readonly #contextId: string;
  readonly #sessionId: string;
  readonly #files: PageFiles;
  readonly #crashed = Promise.withResolvers<never>();
  readonly #stop: () => void;

  private constructor(chromium: Chromium, ids: { contextId: string; sessionId: string }, files: PageFiles) {
    this.#chromium = chromium;
    this.#contextId = ids.contextId;
    this.#sessionId = ids.sessionId;
    this.#files = files;
    this.#crashed.promise.catch(() => undefined);
    this.#stop = chromium.protocol.listen(({ method, params, sessionId }) => {
      if (sessionId !== this.#sessionId) return;
      if (method === 'Fetch.requestPaused') void this.#answer(paused.parse(params)).catch(() => undefined);
      if (method === 'Inspector.targetCrashed') this.#crashed.reject(new PageCrashed('the page ran out of memory'));
    });
  }

  /** Opens `/` of these files, and waits until it has loaded. */
  static async open(chromium: Chromium, files: PageFiles): Promise<Page> {
    const { protocol } = chromium;
    const { browserContextId } = z
      .object({ browserContextId: z.string() })
      .parse(await protocol.send('Target.createBrowserContext'));
    const { targetId } = z
      .object({ targetId: z.string() })
      .parse(await protocol.send('Target.createTarget', { url: 'about:blank', browserContextId }));
    const { sessionId } = session.parse(await protocol.send('Target.attachToTarget', { targetId, flatten: true }));
    const page = new Page(chromium, { contextId: browserContextId, sessionId }, files);
    await page.#load();
    return page;
  }

  /** The value of an expression in the page, or of what it promises. @throws Error when it throws */
  async evaluate<Schema extends z.ZodType>(expression: string, schema: Schema): Promise<z.output<Schema>> {
    const { result, exceptionDetails } = evaluated.parse(
      await this.#send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true }),
    );
    if (exceptionDetails !== undefined)
      throw new Error(`the page threw: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
    return schema.parse(result.value);
  }

  /** Its upper left corner as PNG. */
  async screenshot({ width, height, scale }: Clip): Promise<Uint8Array> {
    await this.#send('Emulation.setDeviceMetricsOverride', {
      width: Math.ceil(width),
      height: Math.ceil(height),
      deviceScaleFactor: scale,
      mobile: false,
    });
    const clip = { x: 0, y: 0, width, height, scale: 1 };
    const answer = await this.#send('Page.captureScreenshot', { format: 'png', clip });
    return new Uint8Array(Buffer.from(z.object({ data: z.string() }).parse(answer).data, 'base64'));
  }

  async close(): Promise<void> {
    this.#stop();
    await this.#chromium.protocol.send('Target.disposeBrowserContext', { browserContextId: this.#contextId });
  }

  async #load(): Promise<void> {
    await this.#send('Fetch.enable', { patterns: [{ urlPattern: '*' }] });
    await this.#send('Page.enable');
    const loaded = Promise.withResolvers<undefined>();
    const stop = this.#chromium.protocol.listen(({ method, sessionId }) => {
      if (method === 'Page.loadEventFired' && sessionId === this.#sessionId) loaded.resolve(undefined);
    });
    await this.#send('Page.navigate', { url: `${pageOrigin}/` });
    await loaded.promise;
    stop();
  }

  /** @throws PageCrashed, or Error when Chromium has ended */
  async #send(method: string, params: object = {}): Promise<unknown> {
    return Promise.race([this.#chromium.protocol.send(method, params, this.#sessionId), this.#crashed.promise]);
  }

  async #answer({ requestId, request: { url } }: z.output<typeof paused>): Promise<void> {
    const file = url.startsWith(`${pageOrigin}/`) ? this.#files[url.slice(pageOrigin.length)] : undefined;
    if (file === undefined) {
      this.refused.push(url);
      await this.#send('Fetch.failRequest', { requestId, errorReason: 'BlockedByClient' });
      return;
    }
    await this.#send('Fetch.fulfillRequest', {
      requestId,
      responseCode: 200,
      responseHeaders: [
        { name: 'content-type', value: file.type },
        { name: 'content-security-policy', value: policy },
      ],
      body: Buffer.from(file.body).toString('base64'),
    });
  }
}

/** The process of a page ended. */
export class PageCrashed extends Error {
  override readonly name = 'PageCrashed';
}
