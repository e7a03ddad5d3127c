// An MCP client for apps that have an endpoint for it: the official one, on a connection of its own each time, within
// limits.
import {
  Client,
  ProtocolError,
  StreamableHTTPClientTransport,
  type CallToolResult,
} from '@modelcontextprotocol/client';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { tooLarge } from '../calls/response.ts';
import { appPath, methods } from '../calls/app-path.ts';
import { limitBytes, type AppResponse, type AppClient } from '../calls/app-client.ts';
import type { Target } from '../directory.ts';
import { forwardedHeaders } from '../calls/headers.ts';
import { timeLimit } from '../../../lib/values.ts';

export interface McpVisit {
  readonly appClient: AppClient;
  readonly target: Target;
  readonly path: string;
  readonly id: string;
  readonly signal: AbortSignal;
  /** Time limit. */
  readonly limitMs: number;
  /** Limit for all responses together. */
  readonly maxBytes: number;
  /** Of the platform itself: it wakes no app. */
  readonly isLook?: boolean;
}

/** Nothing that the app says is compiled here; what agents get is read by `SchemaReader`. */
const unchecked = {
  getValidator: () => (input: unknown) => ({ valid: true as const, data: input as never, errorMessage: undefined }),
};
const noReconnecting = {
  maxRetries: 0,
  initialReconnectionDelay: 1_000,
  maxReconnectionDelay: 1_000,
  reconnectionDelayGrowFactor: 1,
};

/** Asked by the platform for itself, so it wakes no app and is no use of it. */
export async function listMcpTools(visit: McpVisit): Promise<unknown> {
  return visiting({ ...visit, isLook: true }, async (client) => (await client.listTools()).tools);
}

export async function callMcpTool(
  visit: McpVisit,
  name: string,
  given: Readonly<Record<string, unknown>>,
): Promise<CallToolResult> {
  return visiting(visit, async (client) => {
    try {
      return await client.callTool({ name, arguments: { ...given } }, { timeout: visit.limitMs });
    } catch (error) {
      // A response as well: the app rejects the arguments.
      if (error instanceof ProtocolError)
        return { isError: true, content: [{ type: 'text', text: error.message.slice(0, 2_000) }] };
      throw error;
    }
  });
}

async function visiting<Value>(visit: McpVisit, work: (client: Client) => Promise<Value>): Promise<Value> {
  const { limitMs, target, path } = visit;
  const signal = AbortSignal.any([visit.signal, timeLimit(limitMs)]);
  const client = new Client(
    { name: 'moorage', version: '1.1.0' },
    { jsonSchemaValidator: unchecked, versionNegotiation: { mode: 'auto' } },
  );
  const transport = new StreamableHTTPClientTransport(new URL(path, target.origin), {
    fetch: appFetch({ ...visit, signal }),
    reconnectionOptions: noReconnecting,
  });
  const working = client.connect(transport, { timeout: limitMs }).then(() => work(client));
  // The client sometimes waits without regard for the signal.
  const over = Promise.withResolvers<never>();
  const end = (): void => {
    over.reject(signal.reason as Error);
  };
  signal.addEventListener('abort', end, { once: true });
  try {
    return await Promise.race([working, over.promise]);
  } finally {
    signal.removeEventListener('abort', end);
    void working.catch(() => undefined);
    await leave(client, transport);
  }
}

/** Servers of 2025 keep a session until it is ended; but nobody waits long for that. */
async function leave(client: Client, transport: StreamableHTTPClientTransport): Promise<void> {
  if (transport.sessionId !== undefined)
    await Promise.race([transport.terminateSession(), sleep(1_000, undefined, { ref: false })]).catch(() => undefined);
  await client.close().catch(() => undefined);
}

/** A fetch that goes to this app and nowhere else, whatever address it is given. */
function appFetch({ appClient, target, id, signal, maxBytes, isLook }: McpVisit): typeof fetch {
  const budget = { left: maxBytes };
  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const response = await appClient.send(target, {
      method: methods.find((one) => one === init.method) ?? 'GET',
      id,
      path: appPath(`${url.pathname}${url.search}`) ?? '/',
      headers: forwardedHeaders(new Headers(init.headers)),
      isLook,
      body: typeof init.body === 'string' ? init.body : undefined,
      signal: AbortSignal.any([signal, ...(init.signal instanceof AbortSignal ? [init.signal] : [])]),
    });
    return responseOf({ ...response, body: limitBytes(response.body, budget, () => tooLarge(target.slug, maxBytes)) });
  };
}

function responseOf({ status, headers, body }: AppResponse): Response {
  const hasNone = [204, 205, 304].includes(status);
  if (hasNone) body.destroy();
  const pairs = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((one): [string, string] => [name, one]),
  );
  return new Response(hasNone ? null : (Readable.toWeb(body) as ReadableStream), { status, headers: pairs });
}
