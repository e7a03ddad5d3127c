// A real browser with a cookie jar of its own: Chromium by its DevTools protocol. Every host name is this machine.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { run } from '../../cluster/shell.ts';
import { exclusively } from './exclusively.ts';

const program = '/usr/bin/chromium';

export interface Browser {
  /** Opens a page and waits until it has loaded. */
  open(url: URL): Promise<void>;
  /** Names of the cookies that it would send with a request to this address. */
  cookiesFor(url: URL): Promise<string[]>;
  close(): Promise<void>;
}

const message = z.looseObject({
  id: z.int().optional(),
  method: z.string().optional(),
  result: z.unknown().optional(),
  error: z.looseObject({ message: z.string() }).optional(),
});

/** Commands and events of one connection. */
interface Devtools {
  send(method: string, params?: object, sessionId?: string): Promise<unknown>;
  event(method: string): Promise<unknown>;
  close(): void;
}

export async function startBrowser(): Promise<Browser> {
  if (!existsSync(program)) await exclusively(() => run('apt-get', ['install', '--yes', 'chromium']));
  const folder = mkdtempSync(join(tmpdir(), 'moorage-browser-'));
  const child = spawn(
    program,
    [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-proxy-server'],
      // Its authority is not among those that the browser knows; what is tested is not the certificate.
      ...['--ignore-certificate-errors', '--host-resolver-rules=MAP * 127.0.0.1', '--remote-debugging-port=0'],
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
  await devtools.send('Page.enable', {}, sessionId);
  return {
    async open(url) {
      const loaded = devtools.event('Page.loadEventFired');
      const answer = z
        .looseObject({ errorText: z.string().optional() })
        .parse(await devtools.send('Page.navigate', { url: url.href }, sessionId));
      if (answer.errorText !== undefined) throw new Error(`${url.href}: ${answer.errorText}`);
      await loaded;
    },
    async cookiesFor(url) {
      const answer = await devtools.send('Network.getCookies', { urls: [url.href] }, sessionId);
      return z
        .object({ cookies: z.array(z.looseObject({ name: z.string() })) })
        .parse(answer)
        .cookies.map(({ name }) => name)
        .sort();
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
  const events = new Map<string, PromiseWithResolvers<undefined>>();
  let count = 0;
  socket.addEventListener('message', ({ data }) => {
    const { id, method, result, error } = message.parse(JSON.parse(String(data)));
    if (method !== undefined) events.get(method)?.resolve(undefined);
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
    event(method) {
      const seen = Promise.withResolvers<undefined>();
      events.set(method, seen);
      return seen.promise;
    },
    close() {
      socket.close();
    },
  };
}
