// Serves MCP at /mcp over streamable HTTP, in revision 2026-07-28 and the 2025 revisions. Server and transport live for
// one request; a session only shows whose requests a client cancels.
import {
  createMcpHandler,
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type CacheHint,
  type ListToolsResult,
  type Tool as ListedTool,
  type McpRequestContext,
  hostHeaderValidationResponse,
  localhostAllowedHostnames,
  originValidationResponse,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Logger } from '../../../lib/telemetry.ts';
import {
  createBufferedResponse,
  fileBodyLimit,
  serviceName,
  type ProtocolMount,
  type CallContext,
  serviceVersion,
} from '../../http/index.ts';
import { appOperationTools, callName, searchName } from './app-operations.ts';
import {
  Cancellations,
  createSessionId,
  sessionHeader,
  type PlainCall,
  formatPlainAnswer,
  parsePlainCall,
  readAhead,
} from './messages.ts';
import { type CallScope, McpToolCalls, type McpToolCallsOptions } from './tool-calls.ts';
import { listTools, resultText } from './listing.ts';
import { type ExternalTools, noExternalTools } from '../../tools/index.ts';
import { offerResources, type ResourcesOptions } from './content.ts';

export interface McpOptions extends Omit<McpToolCallsOptions, 'more'>, ResourcesOptions {
  readonly more?: ExternalTools | undefined;
  readonly log: Logger;
}

/** Builds the instructions of /mcp/{slug}. */
function buildAppInstructions(app: string): string {
  return (
    `The operations of the hosted app ${app}, in the words of its author. The app is a program of its author and may do anything with what it is sent. ` +
    'A result has `result` (what the app answered), `cost_usd`, `charged_usd`, `latency_ms` and `request_id`; a failed call has `problem`. The tools of Moorage are at /mcp.'
  );
}

export interface Mcp extends ProtocolMount {
  /** /mcp/{slug}: the operations of one app. */
  readonly ofApps: ProtocolMount;
  /** Ends open streams. */
  close(): Promise<void>;
}

/**
 * Cache hints: lists are the same for every caller, and an app's operations change only with its releases. A file is
 * private to those who have its URI.
 */
const listed: CacheHint = { ttlMs: 60_000, cacheScope: 'public' };
const cacheHints = {
  'tools/list': { ttlMs: 10_000, cacheScope: 'public' },
  'server/discover': listed,
  'resources/list': listed,
  'resources/templates/list': listed,
  'resources/read': { ttlMs: 60_000, cacheScope: 'private' },
} as const;
const instructions =
  `The tools of Moorage. Operations of the apps that it hosts are found by ${searchName} and called by ${callName}, or listed for one app at /mcp/{slug}; the authors of the apps describe them. ` +
  `${resultText} ` +
  'Calls without a key use a free daily quota. ' +
  'To continue without the quota, send your own key for the model router as Authorization: Bearer sk-…. Long-running tools return a job: call the tool again with its id as `job` to get the result. ' +
  'Tools that are not available here come last, and a call of one returns how to enable it; add ?off=hide to the URL to leave them out.';

export function createMcp(options: McpOptions): Mcp {
  const own = listTools(options.toolRegistry);
  const more = options.more ?? noExternalTools;
  const calls = new McpToolCalls({ ...options, more });
  const cancellations = new Cancellations();
  const refuse = createOriginGuard(options.baseUrl);
  const serverInfo = {
    name: serviceName.toLowerCase(),
    title: serviceName,
    version: serviceVersion,
    websiteUrl: options.baseUrl,
  };
  const handler = createMcpHandler(createServer, {
    maxRequestBodySize: fileBodyLimit,
    maxSubscriptions: 64,
    onerror: (error) => {
      options.log.debug({ err: error }, 'MCP request rejected');
    },
  });
  return {
    path: '/mcp',
    handle: (request, context) => answer(request, context, undefined),
    ofApps: {
      path: '/mcp/{slug}',
      async handle(request, context) {
        const [, app = ''] = addressed.exec(new URL(request.url).pathname) ?? [];
        more.list(app);
        return answer(request, context, await more.ready(app));
      },
    },
    close: () => handler.close(),
  };

  async function answer(request: Request, context: CallContext, app: string | undefined): Promise<Response> {
    const refused = refuse(request);
    if (refused !== undefined) return refused;
    const session = request.headers.get(sessionHeader);
    if (request.method === 'DELETE' && session !== null) {
      cancellations.end(session);
      await more.endSession(session, context);
      return new Response(null, { status: 204 });
    }
    const accepting = ensureAccept(request);
    const { request: left = accepting, parsedBody } = await readAhead(accepting, fileBodyLimit);
    const canceled = cancellations.read(request.headers, parsedBody, (done) => {
      context.onFinished(done);
    });
    const gone = request.signal;
    const asked: CallScope = {
      app,
      canceled,
      session: session ?? undefined,
      isCanceled: () => canceled?.aborted === true || gone.aborted,
    };
    const plain = parsePlainCall(left.headers, parsedBody);
    const made = plain === undefined ? undefined : await answerPlain(plain, context, asked);
    if (made !== undefined) return made;
    const refusedParams = refuseParams(parsedBody);
    if (refusedParams !== undefined) return refusedParams;
    const offHidden = new URL(request.url).searchParams.get('off') === 'hide';
    const scope: Scope = { context, asked, offHidden };
    const authInfo = { token: '', clientId: '', scopes: [], extra: { scope } };
    return bufferResponse(await handler.fetch(left, { parsedBody, authInfo }), createSessionId(parsedBody));
  }

  /** Answers a plain call. For a name that no tool has, the library formats the error. */
  async function answerPlain(call: PlainCall, context: CallContext, asked: CallScope): Promise<Response | undefined> {
    try {
      return createBufferedResponse(formatPlainAnswer(call, await calls.call(call, context, asked), serverInfo), {
        headers: { 'content-type': 'application/json' },
      });
    } catch (error) {
      if (error instanceof ProtocolError) return undefined;
      throw error;
    }
  }

  function listOwnTools(offHidden: boolean): readonly ListedTool[] {
    return [...own.on, ...appOperationTools, ...(offHidden ? [] : own.off)];
  }

  function createServer(mcpContext: McpRequestContext): McpServer {
    const { context, asked, offHidden } = readScope(mcpContext);
    const { app } = asked;
    const made = new McpServer(app === undefined ? serverInfo : { ...serverInfo, title: `${serviceName}: ${app}` }, {
      instructions: app === undefined ? instructions : buildAppInstructions(app),
      cacheHints,
      capabilities: { tools: { listChanged: false }, resources: { listChanged: false, subscribe: false } },
    });
    // The registry provides schemas and validation, so the library's own tool registration is not used.
    made.server.setRequestHandler('tools/list', ({ params }) =>
      paginateTools(app === undefined ? listOwnTools(offHidden) : more.list(app), params?.cursor),
    );
    made.server.setRequestHandler('tools/call', (request, mcp) => calls.call(request, context, { ...asked, mcp }));
    offerResources(made, options);
    return made;
  }
}

/** Matches the path /mcp/{slug} and captures the slug. */
const addressed = /^\/mcp\/([^/]+)\/?$/;

/** The library responds with an event stream, or with JSON that is in memory and need not be streamed. */
async function bufferResponse(answer: Response, session: string | undefined): Promise<Response> {
  const headers = new Headers(answer.headers);
  if (session !== undefined && answer.ok) headers.set(sessionHeader, session);
  const { status } = answer;
  return headers.get('content-type')?.startsWith('application/json') === true
    ? createBufferedResponse(await answer.text(), { status, headers: Object.fromEntries(headers) })
    : new Response(answer.body, { status, headers });
}

/**
 * Adds the Accept header that the library requires. A client that accepts anything, or that sends no Accept header,
 * accepts both response types (RFC 9110, 12.5.1).
 */
function ensureAccept(request: Request): Request {
  const accept = request.headers.get('accept');
  if (request.method !== 'POST' || (accept !== null && !/(?:^|,)\s*\*\/\*\s*(?:;|,|$)/.test(accept))) return request;
  const headers = new Headers(request.headers);
  headers.set('accept', 'application/json, text/event-stream');
  const { method, body, signal, url } = request;
  return new Request(url, { method, headers, body, signal, duplex: 'half' });
}

/** Explains invalid message parameters; the library would return the raw output of its schema library. */
function refuseParams(message: unknown): Response | undefined {
  const read = named.safeParse(message);
  if (!read.success) return undefined;
  const { id, method, params } = read.data;
  const field = requiredParams[method];
  const fault = field === undefined ? undefined : findFault(params, field);
  if (fault === undefined) return undefined;
  const error = { code: ProtocolErrorCode.InvalidParams, message: `${method}: ${fault}` };
  return Response.json({ jsonrpc: '2.0', id, error }, { status: 400 });
}

function findFault(params: Readonly<Record<string, unknown>>, { name: field, fix }: RequiredParam): string | undefined {
  const given = params[field];
  if (given === undefined) return `params.${field} is missing. ${fix}`;
  if (typeof given !== 'string') return `params.${field} must be a string. ${fix}`;
  const fields = params['arguments'];
  if (fields === undefined || (typeof fields === 'object' && fields !== null && !Array.isArray(fields)))
    return undefined;
  return 'params.arguments must be an object. Send the arguments of the tool by name, such as {"query": "ships"}.';
}

interface RequiredParam {
  readonly name: string;
  readonly fix: string;
}

const named = z.looseObject({
  id: z.union([z.string(), z.number()]),
  method: z.string(),
  params: z.record(z.string(), z.unknown()).default({}),
});
const requiredParams: Readonly<Record<string, RequiredParam>> = {
  'tools/call': { name: 'name', fix: 'Send the name of a tool, as tools/list returns it.' },
  'resources/read': { name: 'uri', fix: 'Send the URI of a resource, such as that of a resource_link.' },
};

/** Bytes of tools per page: all of ours fit on the first. Each page has at least one tool. */
const pageBytes = 48_000;

/**
 * Returns one page of tools. The cursor is the number of tools on earlier pages. @throws ProtocolError for any other
 * cursor
 */
function paginateTools(tools: readonly ListedTool[], cursor = '0'): ListToolsResult {
  if (!/^\d{1,6}$/.test(cursor))
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      'Invalid cursor. Use the nextCursor of a previous page, or omit it to get the first page.',
    );
  const left = tools.slice(Number(cursor));
  let bytes = 0;
  const count = left.findIndex(
    (tool, index) => (bytes += Buffer.byteLength(JSON.stringify(tool))) > pageBytes && index > 0,
  );
  return count === -1 ? { tools: left } : { tools: left.slice(0, count), nextCursor: String(Number(cursor) + count) };
}

/** Scope of a request, apart from its message. */
interface Scope {
  readonly context: CallContext;
  readonly asked: CallScope;
  /** Whether unavailable tools are hidden, by `?off=hide` in the URL. */
  readonly offHidden: boolean;
}

/** Reads the scope, which the library passes through unchanged. */
function readScope({ authInfo }: McpRequestContext): Scope {
  return authInfo?.extra?.['scope'] as Scope;
}

/**
 * Creates a guard against web pages that call an MCP server on the visitor's machine or network (DNS rebinding). It
 * rejects requests with a foreign Host and requests from pages of another origin. Programs send no Origin.
 */
function createOriginGuard(baseUrl: string): (request: Request) => Response | undefined {
  const hosts = [...new Set([new URL(baseUrl).hostname, ...localhostAllowedHostnames()])];
  return (request) => hostHeaderValidationResponse(request, hosts) ?? originValidationResponse(request, hosts);
}
