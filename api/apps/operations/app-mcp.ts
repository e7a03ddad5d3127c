// Calls the MCP endpoints of apps with the official client, on a new connection each time and within limits.
import {
  Client,
  ProtocolError,
  StreamableHTTPClientTransport,
  type CallToolResult,
} from '@modelcontextprotocol/client';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTooLarge, limitBytes, type AppResponse, type AppClient } from '../calls/app-client.ts';
import { parseAppPath, methods, selectForwardedHeaders } from '../calls/forwarding.ts';
import type { Target } from '../directory.ts';
import { createTimeLimit } from '../../../lib/values.ts';

export interface McpVisit {
  readonly appClient: AppClient;
  readonly target: Target;
  readonly path: string;
  readonly id: string;
  readonly signal: AbortSignal;
  readonly limitMs: number;
  /** Size limit for all responses together. */
  readonly maxBytes: number;
  /** A request by the platform itself, which wakes no app. */
  readonly isLook?: boolean;
}

/** Compiles no schema of an app. `SchemaReader` rewrites the schemas that agents receive. */
const unchecked = {
  getValidator: () => (input: unknown) => ({ valid: true as const, data: input as never, errorMessage: undefined }),
};
const noReconnecting = {
  maxRetries: 0,
  initialReconnectionDelay: 1_000,
  maxReconnectionDelay: 1_000,
  reconnectionDelayGrowFactor: 1,
};

/** Lists the tools of an app for the platform itself, so it wakes no app and is not counted as a use. */
export async function listMcpTools(visit: McpVisit): Promise<unknown> {
  return runWithClient({ ...visit, isLook: true }, async (client) => (await client.listTools()).tools);
}

export async function callMcpTool(
  visit: McpVisit,
  name: string,
  args: Readonly<Record<string, unknown>>,
): Promise<CallToolResult> {
  return runWithClient(visit, async (client) => {
    try {
      return await client.callTool({ name, arguments: { ...args } }, { timeout: visit.limitMs });
    } catch (error) {
      // This is a response too: the app rejects the arguments.
      if (error instanceof ProtocolError)
        return { isError: true, content: [{ type: 'text', text: error.message.slice(0, 2_000) }] };
      throw error;
    }
  });
}

async function runWithClient<Value>(visit: McpVisit, work: (client: Client) => Promise<Value>): Promise<Value> {
  const { limitMs, target, path } = visit;
  const signal = AbortSignal.any([visit.signal, createTimeLimit(limitMs)]);
  const client = new Client(
    { name: 'moorage', version: '1.1.0' },
    { jsonSchemaValidator: unchecked, versionNegotiation: { mode: 'auto' } },
  );
  const transport = new StreamableHTTPClientTransport(new URL(path, target.origin), {
    fetch: createAppFetch({ ...visit, signal }),
    reconnectionOptions: noReconnecting,
  });
  const working = client.connect(transport, { timeout: limitMs }).then(() => work(client));
  // The client sometimes waits on regardless of the signal.
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
    await endSession(client, transport);
  }
}

/** Servers of the 2025 protocol versions keep a session until it is ended. Waits for that only briefly. */
async function endSession(client: Client, transport: StreamableHTTPClientTransport): Promise<void> {
  if (transport.sessionId !== undefined)
    await Promise.race([transport.terminateSession(), sleep(1_000, undefined, { ref: false })]).catch(() => undefined);
  await client.close().catch(() => undefined);
}

/** Creates a fetch that always goes to this app, whatever address it is given. */
function createAppFetch({ appClient, target, id, signal, maxBytes, isLook }: McpVisit): typeof fetch {
  const budget = { left: maxBytes };
  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const response = await appClient.send(target, {
      method: methods.find((one) => one === init.method) ?? 'GET',
      id,
      path: parseAppPath(`${url.pathname}${url.search}`) ?? '/',
      headers: selectForwardedHeaders(new Headers(init.headers)),
      isLook,
      body: typeof init.body === 'string' ? init.body : undefined,
      signal: AbortSignal.any([signal, ...(init.signal instanceof AbortSignal ? [init.signal] : [])]),
    });
    return toResponse({
      ...response,
      body: limitBytes(response.body, budget, () => createTooLarge(target.slug, maxBytes)),
    });
  };
}

function toResponse({ status, headers, body }: AppResponse): Response {
  const hasNone = [204, 205, 304].includes(status);
  if (hasNone) body.destroy();
  const pairs = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((one): [string, string] => [name, one]),
  );
  return new Response(hasNone ? null : (Readable.toWeb(body) as ReadableStream), { status, headers: pairs });
}
