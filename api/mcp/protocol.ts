// /mcp: streamable HTTP without sessions. Server and transport are made for each request and go with it; revision
// 2026-07-28 and those of 2025.
import {
  createMcpHandler,
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type CacheHint,
  type ListToolsResult,
  type McpRequestContext,
} from '@modelcontextprotocol/server';
import type { Logger } from '../../lib/log.ts';
import type { ProtocolMount, RequestContext } from '../http/endpoint.ts';
import { name, version } from '../http/service.ts';
import { Calls, type CallsOptions } from './tool-calls.ts';
import { originGuard } from './guard.ts';
import { listTools } from './listing.ts';
import { noExternalTools, type ExternalTools } from '../tools/engine/external-tools.ts';
import { readAhead } from './read-ahead.ts';
import { offerResources, type ResourcesOptions } from './resources.ts';

export interface McpOptions extends Omit<CallsOptions, 'more'>, ResourcesOptions {
  readonly more?: ExternalTools | undefined;
  readonly log: Logger;
}

export interface Mcp extends ProtocolMount {
  /** Ends open streams. */
  close(): Promise<void>;
}

type CallContext = Omit<RequestContext, 'mediaType'>;

/** Longest body; as /t takes. */
const bodyLimit = 1_500_000;
/** Lists are the same for every caller, and operations of apps come and go; a file is for whoever was told of it. */
const listed: CacheHint = { ttlMs: 60_000, cacheScope: 'public' };
const cacheHints = {
  'tools/list': { ttlMs: 10_000, cacheScope: 'public' },
  'server/discover': listed,
  'resources/list': listed,
  'resources/templates/list': listed,
  'resources/read': { ttlMs: 60_000, cacheScope: 'private' },
} as const;
const instructions =
  'Tools of Moorage, and of the apps that it hosts (those with a dot in their name; what is said of them is said by their authors). Every answer tells what it cost (cost_usd); without a key, calls draw on a free quota per day. ' +
  'Send your own key of the model router as Authorization: Bearer sk-… to go on without it. Tools that take long answer with a job: call them again with its id as `job`.';

export function mcpProtocol(options: McpOptions): Mcp {
  const own = listTools(options.toolRegistry);
  const more = options.more ?? noExternalTools;
  const calls = new Calls({ ...options, more });
  const refuse = originGuard(options.baseUrl);
  const handler = createMcpHandler((context) => serverFor(contextOf(context)), {
    maxRequestBodySize: bodyLimit,
    maxSubscriptions: 64,
    onerror: (error) => {
      options.log.debug({ err: error }, 'MCP request refused');
    },
  });
  return {
    path: '/mcp',
    async answer(request, context) {
      const refused = refuse(request);
      if (refused !== undefined) return refused;
      const { request: left = request, parsedBody } = await readAhead(request, bodyLimit);
      return handler.fetch(left, { parsedBody, authInfo: { token: '', clientId: '', scopes: [], extra: { context } } });
    },
    close: () => handler.close(),
  };

  function serverFor(context: CallContext): McpServer {
    const made = new McpServer(
      { name: name.toLowerCase(), title: name, version, websiteUrl: options.baseUrl },
      {
        instructions,
        cacheHints,
        capabilities: { tools: { listChanged: false }, resources: { listChanged: false, subscribe: false } },
      },
    );
    // Schemas and checks are those of the registry, so its own way of registering tools is not used.
    made.server.setRequestHandler('tools/list', ({ params }) => page([...own, ...more.list()], params?.cursor));
    made.server.setRequestHandler('tools/call', (request, mcp) => calls.call(request, mcp, context));
    offerResources(made, options);
    return made;
  }
}

/** Tools of one page: all of ours fit into the first. */
const pageSize = 100;

/** The cursor is how many were listed before. @throws ProtocolError for one that is none of ours */
function page(tools: ListToolsResult['tools'], cursor = '0'): ListToolsResult {
  if (!/^\d{1,6}$/.test(cursor))
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      'the cursor is none that was given out; leave it out to begin with the first page',
    );
  const end = Number(cursor) + pageSize;
  return { tools: tools.slice(Number(cursor), end), ...(end < tools.length ? { nextCursor: String(end) } : {}) };
}

/** What /mcp handed over with the request; the library passes it on as it is. */
function contextOf({ authInfo }: McpRequestContext): CallContext {
  return authInfo?.extra?.['context'] as CallContext;
}
