// Sends a request to an application over a real connection on loopback; its server starts with the first one.
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type RequestListener } from 'node:http';
import { Readable } from 'node:stream';

const origins = new WeakMap<RequestListener, Promise<string>>();

/** Headers go as they are given, those that fetch would refuse to send too. The server does not keep the process alive. */
export async function send(app: RequestListener, path: string, init: RequestInit = {}): Promise<Response> {
  const origin = origins.get(app) ?? listen(app);
  origins.set(app, origin);
  const { pathname, search } = new URL(path, 'http://host');
  const { headers, body } = new Response(init.method === 'HEAD' ? null : (init.body ?? null), {
    headers: init.headers ?? {},
  });
  const isStream = init.body instanceof ReadableStream;
  const sending = request(`${await origin}${pathname}${search}`, {
    agent: false,
    method: init.method ?? 'GET',
    headers: Object.fromEntries(headers),
    ...(init.signal instanceof AbortSignal ? { signal: init.signal } : {}),
  });
  const answered = once(sending, 'response') as Promise<[IncomingMessage]>;
  // An answer may come before the body is sent, and end the connection.
  sending.on('error', () => undefined);
  if (body === null) sending.end();
  else if (isStream)
    Readable.fromWeb(body)
      .on('error', () => undefined)
      .pipe(sending);
  else sending.end(Buffer.from(await new Response(body).arrayBuffer()));
  const [answer] = await answered;
  return toResponse(answer, init.method);
}

function toResponse(answer: IncomingMessage, method: string | undefined): Response {
  const status = answer.statusCode ?? 0;
  const hasContent = method !== 'HEAD' && ![204, 205, 304].includes(status);
  if (!hasContent) answer.resume();
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(answer.headersDistinct))
    for (const value of values) headers.append(name, value);
  return new Response(hasContent ? content(answer) : null, { status, headers });
}

function content(answer: IncomingMessage): ReadableStream<Uint8Array> {
  const chunks = answer[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  return new ReadableStream({
    async pull(controller) {
      const next = await chunks.next();
      if (next.done === true) controller.close();
      else controller.enqueue(next.value);
    },
    cancel() {
      answer.destroy();
    },
  });
}

async function listen(app: RequestListener): Promise<string> {
  const server = createServer(app);
  server.on('connection', (socket) => {
    socket.unref();
  });
  server.listen(0, '127.0.0.1').unref();
  await once(server, 'listening');
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
}
