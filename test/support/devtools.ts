// Starts Chromium and speaks its DevTools protocol. Every host name is this machine.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { run } from '../../localnode/shell.ts';
import { runExclusively } from './exclusively.ts';

const program = '/usr/bin/chromium';
/** What pictures are drawn with: the browser, its smaller edition that workers prefer, and fonts of most scripts. */
const packages = ['chromium', 'chromium-headless-shell', 'fonts-noto-core', 'fonts-noto-cjk', 'fonts-noto-color-emoji'];
const emoji = '/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf';

const message = z.looseObject({
  id: z.int().optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
  sessionId: z.string().optional(),
  result: z.unknown().optional(),
  error: z.looseObject({ message: z.string() }).optional(),
});

/** One tab of a browser of its own. */
export interface Tab {
  send(method: string, params?: object): Promise<unknown>;
  /** The next event of this name. */
  event(method: string): Promise<unknown>;
  /** Every event of this name from now on. */
  on(method: string, listener: (params: unknown) => void): void;
  /** Ends the browser and removes what it wrote. */
  close(): Promise<void>;
}

interface Devtools {
  send(method: string, params?: object, sessionId?: string): Promise<unknown>;
  on(method: string, listener: (params: unknown) => void): void;
  close(): void;
}

/** Installs the browser where it is not there. */
export async function ensureBrowser(): Promise<void> {
  if (!existsSync(program) || !existsSync(emoji))
    await runExclusively(() => run('apt-get', ['install', '--yes', ...packages]));
}

/** Starts a browser with an empty tab. */
export async function openTab(): Promise<Tab> {
  await ensureBrowser();
  const folder = mkdtempSync(join(tmpdir(), 'moorage-browser-'));
  const child = spawn(
    program,
    [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-proxy-server'],
      // Its authority is not among those that the browser knows; what is tested is not the certificate.
      ...['--ignore-certificate-errors', '--host-resolver-rules=MAP * 127.0.0.1', '--remote-debugging-port=0'],
      // Each pod adds an interface to this machine, and the browser then ends all of its HTTP/2 sessions.
      '--disable-http2',
      // It would load two pages for the address bar of every window.
      '--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup',
      ...[`--user-data-dir=${folder}`, 'about:blank'],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: '/usr/bin:/bin', HOME: folder } },
  );
  const atExit = (): void => {
    child.kill('SIGKILL');
  };
  process.once('exit', atExit);
  const devtools = await connect(await address(child));
  const { targetId } = z
    .object({ targetId: z.string() })
    .parse(await devtools.send('Target.createTarget', { url: 'about:blank' }));
  const attached = await devtools.send('Target.attachToTarget', { targetId, flatten: true });
  const { sessionId } = z.object({ sessionId: z.string() }).parse(attached);
  return {
    send: (method, params) => devtools.send(method, params, sessionId),
    event(method) {
      const seen = Promise.withResolvers<unknown>();
      devtools.on(method, seen.resolve);
      return seen.promise;
    },
    on: (method, listener) => {
      devtools.on(method, listener);
    },
    async close() {
      devtools.close();
      process.off('exit', atExit);
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}

async function address(child: ChildProcess & { readonly stderr: Readable }): Promise<string> {
  const said: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    const found = /^DevTools listening on (ws:\S+)$/.exec(line)?.[1];
    if (found !== undefined) {
      child.stderr.resume();
      return found;
    }
    said.push(line);
  }
  throw new Error(`chromium did not start: ${said.join('\n').slice(-2_000)}`);
}

async function connect(url: string): Promise<Devtools> {
  const socket = new WebSocket(url);
  await once(socket, 'open');
  const awaited = new Map<number, PromiseWithResolvers<unknown>>();
  const listeners: { method: string; listener: (params: unknown) => void }[] = [];
  let count = 0;
  socket.addEventListener('message', ({ data }) => {
    const { id, method, params, result, error } = message.parse(JSON.parse(String(data)));
    if (method !== undefined) for (const each of listeners) if (each.method === method) each.listener(params);
    if (id === undefined) return;
    if (error === undefined) awaited.get(id)?.resolve(result);
    else awaited.get(id)?.reject(new Error(error.message));
    awaited.delete(id);
  });
  return {
    send(method, params = {}, sessionId) {
      const reply = Promise.withResolvers<unknown>();
      awaited.set(++count, reply);
      socket.send(JSON.stringify({ id: count, method, params, ...(sessionId === undefined ? {} : { sessionId }) }));
      return reply.promise;
    },
    on(method, listener) {
      listeners.push({ method, listener });
    },
    close() {
      socket.close();
    },
  };
}
