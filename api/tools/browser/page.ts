// A browser page for one drawing, in a separate browser context. Its requests are answered from given files or blocked.
import { z } from 'zod';
import type { Chromium } from './chromium.ts';
import type { Picture, BrowserTask } from '../svg/picture.ts';
import { limitZoom } from '../svg/draw.ts';

/** Origin of the page: a name that never resolves. */
export const pageOrigin = 'http://page.invalid';

/** Files that a page may load, by path, such as `/index.html`; `/` is the page itself. */
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
  /** URLs of blocked requests. */
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

  /** Opens `/` and waits until it has loaded. */
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

  /** Evaluates an expression in the page and awaits its value. @throws Error if it throws */
  async evaluate<Schema extends z.ZodType>(expression: string, schema: Schema): Promise<z.output<Schema>> {
    const { result, exceptionDetails } = evaluated.parse(
      await this.#send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true }),
    );
    if (exceptionDetails !== undefined)
      throw new Error(`the page threw: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
    return schema.parse(result.value);
  }

  /** Captures the upper left corner as PNG. */
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

  /** @throws PageCrashed, or Error if Chromium has exited */
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

/** Thrown if a page's process has ended. */
export class PageCrashed extends Error {
  override readonly name = 'PageCrashed';
}

const size = z.object({ width: z.number().positive(), height: z.number().positive() });

/** Draws a clean SVG as PNG, with system fonts, color emoji and HTML inside the SVG. */
export async function drawSvg(
  page: Page,
  { svg, scale }: Extract<BrowserTask, { readonly kind: 'svg' }>,
): Promise<Picture> {
  const text = toScriptLiteral(new TextDecoder().decode(svg));
  const box = await page.evaluate(`showSvg(${text})`, size);
  return takeScreenshot(page, box, scale);
}

/** JSON as a JavaScript literal. */
export function toScriptLiteral(value: unknown): string {
  return JSON.stringify(value).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
}

/** Captures the page as a picture of this size. */
export async function takeScreenshot(page: Page, box: z.output<typeof size>, scale: number): Promise<Picture> {
  const zoom = limitZoom(box, scale);
  const bytes = await page.screenshot({ ...box, scale: zoom });
  return {
    format: 'png',
    bytes,
    width: Math.round(box.width * zoom),
    height: Math.round(box.height * zoom),
    warnings: [],
  };
}
