// Speaks MCP with an app that has an endpoint for it, by the official client; each time on a connection of its own,
// within limits.
import {
  Client,
  ProtocolError,
  StreamableHTTPClientTransport,
  type CallToolResult,
} from '@modelcontextprotocol/client';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { tooLarge } from '../calls/response.ts';
import { appPath, limited, methods, type Brought, type Courier } from '../calls/app-client.ts';
import type { Target } from '../directory.ts';
import { headersOn } from '../calls/headers.ts';

export interface McpVisit {
  readonly courier: Courier;
  readonly target: Target;
  readonly path: string;
  readonly id: string;
  readonly signal: AbortSignal;
  /** How long it may take. */
  readonly limitMs: number;
  /** Bytes of all that the app says together. */
  readonly mostBytes: number;
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

export async function listMcpTools(visit: McpVisit): Promise<unknown> {
  return visiting(visit, async (client) => (await client.listTools()).tools);
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
      // An answer as well: the app says what it does not take.
      if (error instanceof ProtocolError)
        return { isError: true, content: [{ type: 'text', text: error.message.slice(0, 2_000) }] };
      throw error;
    }
  });
}

async function visiting<Value>(visit: McpVisit, work: (client: Client) => Promise<Value>): Promise<Value> {
  const { limitMs, target, path } = visit;
  const signal = AbortSignal.any([visit.signal, AbortSignal.timeout(limitMs)]);
  const client = new Client(
    { name: 'moorage', version: '1.1.0' },
    { jsonSchemaValidator: unchecked, versionNegotiation: { mode: 'auto' } },
  );
  const transport = new StreamableHTTPClientTransport(new URL(path, target.origin), {
    fetch: courierFetch({ ...visit, signal }),
    reconnectionOptions: noReconnecting,
  });
  const working = client.connect(transport, { timeout: limitMs }).then(() => work(client));
  // The client waits in places where it hears no signal.
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
function courierFetch({ courier, target, id, signal, mostBytes }: McpVisit): typeof fetch {
  const budget = { left: mostBytes };
  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const brought = await courier.carry(target, {
      method: methods.find((one) => one === init.method) ?? 'GET',
      id,
      path: appPath(`${url.pathname}${url.search}`) ?? '/',
      headers: headersOn(new Headers(init.headers)),
      body: typeof init.body === 'string' ? init.body : undefined,
      signal: AbortSignal.any([signal, ...(init.signal instanceof AbortSignal ? [init.signal] : [])]),
    });
    return responseOf({ ...brought, body: limited(brought.body, budget, () => tooLarge(target.slug, mostBytes)) });
  };
}

function responseOf({ status, headers, body }: Brought): Response {
  const hasNone = [204, 205, 304].includes(status);
  if (hasNone) body.destroy();
  const pairs = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((one): [string, string] => [name, one]),
  );
  return new Response(hasNone ? null : (Readable.toWeb(body) as ReadableStream), { status, headers: pairs });
}
