// Starts Chromium for a worker without network, profile or port, and sends it DevTools commands. Chromium exits when its
// pipes are closed, so it never outlives its worker.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { z } from 'zod';

/** Where distributions install it; the smallest program first. */
const programs = [
  // Debian's /usr/bin/chromium-headless-shell starts this program.
  '/usr/lib/chromium/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** Thrown if Chromium is not installed. */
export class NoChromium extends Error {
  override readonly name = 'NoChromium';
}

export interface Chromium {
  readonly protocol: Protocol;
  readonly alive: () => boolean;
  close(): void;
}

/** Maximum JavaScript heap of a page. */
const heapMb = 384;

const disabledFeatures = [
  ...['Translate', 'OptimizationHints', 'MediaRouter', 'DialMediaRouteProvider', 'DnsOverHttps'],
  // Two pages that Chromium, unlike its headless shell, loads for the address bar of every window: half of the work.
  ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup'],
];

/**
 * Chromium's own sandbox needs namespaces, which a container does not have. The worker's limits contain it instead and, in a
 * cluster, its pod without network and secrets. `page.ts` answers or blocks every request of a page; as a second line of
 * defense, no name resolves and the proxy does not exist.
 */
const options = [
  ...['--headless', '--no-sandbox', '--remote-debugging-pipe', '--disable-dev-shm-usage'],
  ...['--disable-gpu', '--in-process-gpu', '--enable-features=NetworkServiceInProcess2', '--renderer-process-limit=1'],
  ...['--host-resolver-rules=MAP * ~NOTFOUND', '--proxy-server=127.0.0.1:9', '--proxy-bypass-list=<-loopback>'],
  ...['--force-webrtc-ip-handling-policy=disable_non_proxied_udp', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync', '--disable-extensions', '--disable-default-apps'],
  ...[
    '--disable-domain-reliability',
    '--disable-breakpad',
    '--no-first-run',
    '--no-pings',
    '--no-default-browser-check',
  ],
  ...[`--disable-features=${disabledFeatures.join(',')}`, '--mute-audio'],
  // Identical pictures on every machine.
  ...['--force-color-profile=srgb', '--font-render-hinting=none', '--disable-lcd-text', '--hide-scrollbars'],
  ...['--lang=en-US', `--js-flags=--max-old-space-size=${heapMb}`, 'about:blank'],
];

/** @throws NoChromium */
export async function startChromium(): Promise<Chromium> {
  for (const program of programs) {
    const child = await spawnChromium(program);
    if (child === undefined) continue;
    const protocol = new Protocol(child.stdio[4] as Readable, child.stdio[3] as Writable);
    let alive = true;
    child.once('exit', (code, signal) => {
      alive = false;
      protocol.close(new Error(`Chromium ended (${signal ?? `code ${code ?? '?'}`})`));
    });
    await protocol.send('Browser.getVersion');
    return { protocol, alive: () => alive, close: () => child.kill('SIGKILL') };
  }
  throw new NoChromium(`none of ${programs.join(', ')} is installed`);
}

/** @returns undefined if there is no such program */
async function spawnChromium(program: string): Promise<ChildProcess | undefined> {
  const { HOME, TMPDIR } = process.env;
  const child = spawn(program, options, {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    env: { PATH: '/usr/bin:/bin', LANG: 'C.UTF-8', HOME, TMPDIR },
  });
  // Neither an idle worker nor its child processes keep a process alive.
  child.unref();
  try {
    await once(child, 'spawn');
    return child;
  } catch {
    return undefined;
  }
}

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
  /** The page of the event. */
  readonly sessionId: string | undefined;
}

/** The DevTools protocol over two pipes: there is no port that a page could find. */
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

  /** @throws Error if Chromium rejects the command or has exited */
  async send(method: string, params: object = {}, sessionId?: string): Promise<unknown> {
    if (this.#closed !== undefined) throw this.#closed;
    const reply = Promise.withResolvers<unknown>();
    this.#count += 1;
    this.#awaited.set(this.#count, reply);
    const of = sessionId === undefined ? {} : { sessionId };
    this.#out.write(`${JSON.stringify({ id: this.#count, method, params, ...of })}\0`);
    return reply.promise;
  }

  /** @returns a function that removes the listener */
  listen(listener: (event: ProtocolEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Fails all pending commands, because Chromium has exited. */
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
