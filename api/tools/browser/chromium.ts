// Starts Chromium for a worker: without network, profile and port. It ends when its pipes are closed, so it outlives no
// worker, however that one ends.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { Protocol } from './protocol.ts';

/** Where distributions install it; the smallest one first. */
const programs = [
  // What Debian's /usr/bin/chromium-headless-shell starts.
  '/usr/lib/chromium/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** There is no Chromium on this machine. */
export class NoChromium extends Error {
  override readonly name = 'NoChromium';
}

export interface Chromium {
  readonly protocol: Protocol;
  /** Whether it still runs. */
  readonly alive: () => boolean;
  close(): void;
}

/** JavaScript of a page, at most. */
const heapMb = 384;

/**
 * Its own sandbox needs namespaces, which a container has not: the worker's limits and, in a cluster, its pod without
 * network and secrets are what holds it. Whatever a page asks for is answered by us or not at all (`page.ts`); names
 * resolve to nothing and the proxy does not exist, should anything pass by that.
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
  ...['--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,DnsOverHttps', '--mute-audio'],
  // The same picture on every machine.
  ...['--force-color-profile=srgb', '--font-render-hinting=none', '--disable-lcd-text', '--hide-scrollbars'],
  ...['--lang=en-US', `--js-flags=--max-old-space-size=${heapMb}`, 'about:blank'],
];

/** @throws NoChromium */
export async function startChromium(): Promise<Chromium> {
  for (const program of programs) {
    const child = await started(program);
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
  throw new NoChromium(`none of ${programs.join(', ')} is there`);
}

/** @returns undefined where there is no such program */
async function started(program: string): Promise<ChildProcess | undefined> {
  const { HOME, TMPDIR } = process.env;
  const child = spawn(program, options, {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    env: { PATH: '/usr/bin:/bin', LANG: 'C.UTF-8', HOME, TMPDIR },
  });
  // A worker without work keeps no process alive, and neither does what it has started.
  child.unref();
  try {
    await once(child, 'spawn');
    return child;
  } catch {
    return undefined;
  }
}
