// Connects to the MCP endpoints of apps with the official client, within limits of time and size.
import {
  Client,
  ProtocolError,
  StreamableHTTPClientTransport,
  type CallToolResult,
} from '@modelcontextprotocol/client';
import { randomInt } from 'node:crypto';
import { Readable } from 'node:stream';
import { createTooLarge, limitBytes, type AppResponse, type AppClient } from '../calls/app-client.ts';
import { parseAppPath, methods, selectForwardedHeaders } from '../calls/forwarding.ts';
import type { Target } from '../directory.ts';
import type { ExternalProgress } from '../../tools/index.ts';
import { mcpEnvironmentHeader } from '../../../crds/names.ts';
import { createTimeLimit, toAsciiJson } from '../../../lib/values.ts';

/** An MCP endpoint of an app, and the limits of a connection to it. */
export interface McpEndpoint {
  readonly appClient: AppClient;
  readonly target: Target;
  readonly path: string;
  /** Request id of messages that belong to no call. */
  readonly id: string;
  readonly limitMs: number;
  /** Size limit for each response; of the platform's own requests, for all of them together. */
  readonly maxBytes: number;
  /** Values of the caller for variables of the process of the session. They go to the app, and nowhere else. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
  /** Requests by the platform itself, which wake no app. */
  readonly isLook?: boolean;
}

export interface McpVisit extends McpEndpoint {
  readonly signal: AbortSignal;
}

export interface McpCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly id: string;
  readonly signal: AbortSignal;
  readonly report?: ((progress: ExternalProgress) => void) | undefined;
}

/** A session that an app has started: what another connection needs to continue it. */
export interface AppSession {
  readonly id: string;
  readonly protocolVersion: string;
}

/** Compiles no schema of an app. `SchemaReader` rewrites the schemas that agents receive. */
const unchecked = {
  getValidator: () => (input: unknown) => ({ valid: true as const, data: input as never, errorMessage: undefined }),
};
/** How long the end of a session waits for the app. */
const maxEndMs = 1_000;
const noReconnecting = {
  maxRetries: 0,
  initialReconnectionDelay: 1_000,
  maxReconnectionDelay: 1_000,
  reconnectionDelayGrowFactor: 1,
};

/** Lists the tools of an app for the platform itself, so it wakes no app and is not counted as a use. */
export async function listMcpTools(visit: McpVisit): Promise<unknown> {
  const signal = AbortSignal.any([visit.signal, createTimeLimit(visit.limitMs)]);
  const connection = new McpConnection({ ...visit, isLook: true });
  try {
    return await connection.run(signal, async (client) => (await client.listTools()).tools);
  } finally {
    await connection.close();
  }
}

/**
 * A connection to the MCP endpoint of an app: in the 2025 revisions to a session of the app, which it keeps until it is
 * ended. It starts a session, or continues the given one without another handshake.
 */
export class McpConnection {
  readonly #endpoint: McpEndpoint;
  readonly #client: Client;
  readonly #transport: AppTransport;
  #opening: Promise<void> | undefined;

  constructor(endpoint: McpEndpoint, session?: AppSession) {
    this.#endpoint = endpoint;
    this.#client = new Client(
      { name: 'moorage', version: '1.1.0' },
      { jsonSchemaValidator: unchecked, versionNegotiation: { mode: 'auto' } },
    );
    // Several connections continue one session, also at the same time, and each client counts its requests from 0. Two requests
    // of a session may not share an id, or one gets the response of the other. Some servers read ids as 32 bits.
    this.#client['_requestMessageId'] = randomInt(2 ** 31 - 1_000_000);
    this.#transport = new AppTransport(new URL(endpoint.path, endpoint.target.origin), {
      fetch: this.#createFetch(),
      reconnectionOptions: noReconnecting,
      ...(session === undefined ? {} : { sessionId: session.id, protocolVersion: session.protocolVersion }),
    });
  }

  /** The session that the app has started; undefined before that, and if the app has no sessions. */
  get session(): AppSession | undefined {
    const { sessionId: id, protocolVersion } = this.#transport;
    return id === undefined || protocolVersion === undefined ? undefined : { id, protocolVersion };
  }

  /** Connects if it is not connected yet. */
  async open(): Promise<void> {
    const { limitMs } = this.#endpoint;
    this.#opening ??= waitUnlessAborted(
      createTimeLimit(limitMs),
      this.#client.connect(this.#transport, { timeout: limitMs }),
    );
    await this.#opening;
  }

  /** Calls a tool. An app that rejects the arguments has answered, too. @throws SdkHttpError if the session is gone */
  async call({ name, args, id, signal, report }: McpCall): Promise<CallToolResult> {
    const { limitMs } = this.#endpoint;
    return this.run(AbortSignal.any([signal, createTimeLimit(limitMs)]), async (client) => {
      try {
        return await client.callTool(
          { name, arguments: { ...args } },
          {
            timeout: limitMs,
            // The app gets to know that the caller has canceled.
            signal,
            headers: { [requestIdHeader]: id },
            ...(report === undefined ? {} : { onprogress: report }),
          },
        );
      } catch (error) {
        if (error instanceof ProtocolError)
          return { isError: true, content: [{ type: 'text', text: error.message.slice(0, 2_000) }] };
        throw error;
      }
    });
  }

  /** Connects if it is not connected yet, and runs work until the signal aborts. */
  async run<Value>(signal: AbortSignal, work: (client: Client) => Promise<Value>): Promise<Value> {
    // The client sometimes waits on regardless of the signal.
    return waitUnlessAborted(
      signal,
      this.open().then(() => work(this.#client)),
    );
  }

  /** Ends the session of the app, and waits for that only briefly. Never throws. */
  async close(): Promise<void> {
    await this.#transport.terminateSession().catch(() => undefined);
    await this.#client.close().catch(() => undefined);
  }

  /** Creates a fetch that always goes to this app, whatever address it is given. */
  #createFetch(): typeof fetch {
    const { appClient, target, id, maxBytes, isLook = false, limitMs, environment } = this.#endpoint;
    const variables = environment === undefined ? {} : { [mcpEnvironmentHeader]: toAsciiJson(environment) };
    const shared = isLook ? { left: maxBytes } : undefined;
    return async (input, { method = 'GET', body, signal, ...init } = {}) => {
      // A standing stream would keep the app awake, and carries nothing that a call does not.
      if (method === 'GET') return new Response(null, { status: 405 });
      const headers = new Headers(init.headers);
      const isEnd = method === 'DELETE';
      const response = await appClient.send(target, {
        method: methods.find((one) => one === method) ?? 'POST',
        id: headers.get(requestIdHeader) ?? id,
        path: toAppPath(input),
        // Only a message that starts a session has no session yet.
        headers: { ...selectForwardedHeaders(headers), ...(headers.has('mcp-session-id') ? {} : variables) },
        // The end of a session wakes no app: one that sleeps has no sessions.
        isLook: isLook || isEnd,
        body: typeof body === 'string' ? body : undefined,
        // The client's signal has aborted if it closed the connection because the handshake failed.
        signal: isEnd ? createTimeLimit(maxEndMs) : (signal ?? createTimeLimit(limitMs)),
      });
      const budget = shared ?? { left: maxBytes };
      return toResponse({
        ...response,
        body: limitBytes(response.body, budget, () => createTooLarge(target.slug, maxBytes)),
      });
    };
  }
}

/** Reports to the client that a stream has ended without a response, for which it would wait until its time limit. */
class AppTransport extends StreamableHTTPClientTransport {
  override async send(...[message, options]: Parameters<StreamableHTTPClientTransport['send']>): Promise<void> {
    const error = { code: -32_000, message: 'The app ended the connection before it answered.' };
    const onRequestStreamEnd = (): void => {
      options?.onRequestStreamEnd?.();
      if (!Array.isArray(message) && 'method' in message && 'id' in message)
        this.onmessage?.({ jsonrpc: '2.0', id: message.id, error });
    };
    await super.send(message, { ...options, onRequestStreamEnd });
  }
}

/** Waits for a result, but not after the signal has aborted. @throws the signal's reason */
export async function waitUnlessAborted<Value>(signal: AbortSignal, working: Promise<Value>): Promise<Value> {
  const over = Promise.withResolvers<never>();
  const end = (): void => {
    over.reject(signal.reason as Error);
  };
  signal.addEventListener('abort', end, { once: true });
  try {
    signal.throwIfAborted();
    return await Promise.race([working, over.promise]);
  } finally {
    signal.removeEventListener('abort', end);
    void working.catch(() => undefined);
  }
}

const requestIdHeader = 'x-request-id';

function toAppPath(input: Parameters<typeof fetch>[0]): string {
  const { pathname, search } = new URL(input instanceof Request ? input.url : input);
  return parseAppPath(`${pathname}${search}`) ?? '/';
}

function toResponse({ status, headers, body }: AppResponse): Response {
  const hasNone = [204, 205, 304].includes(status);
  if (hasNone) body.destroy();
  const pairs = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((one): [string, string] => [name, one]),
  );
  return new Response(hasNone ? null : (Readable.toWeb(body) as ReadableStream), { status, headers: pairs });
}
