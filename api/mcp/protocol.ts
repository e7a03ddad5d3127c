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
import {
  bufferedResponse,
  fileBodyLimit,
  name,
  type ProtocolMount,
  type RequestContext,
  version,
} from '../http/index.ts';
import { McpToolCalls, type McpToolCallsOptions } from './tool-calls.ts';
import { originGuard } from './guard.ts';
import { listTools, resultText } from './listing.ts';
import { type ExternalTools, noExternalTools } from '../tools/index.ts';
import { type PlainCall, plainAnswer, plainCallOf } from './plain-call.ts';
import { readAhead } from './read-ahead.ts';
import { offerResources, type ResourcesOptions } from './resources.ts';

export interface McpOptions extends Omit<McpToolCallsOptions, 'more'>, ResourcesOptions {
  readonly more?: ExternalTools | undefined;
  readonly log: Logger;
}

export interface Mcp extends ProtocolMount {
  /** Ends open streams. */
  close(): Promise<void>;
}

type CallContext = Omit<RequestContext, 'mediaType'>;

/** Lists are the same for every caller, and operations of apps come and go; a file is only for those who have its URI. */
const listed: CacheHint = { ttlMs: 60_000, cacheScope: 'public' };
const cacheHints = {
  'tools/list': { ttlMs: 10_000, cacheScope: 'public' },
  'server/discover': listed,
  'resources/list': listed,
  'resources/templates/list': listed,
  'resources/read': { ttlMs: 60_000, cacheScope: 'private' },
} as const;
const instructions =
  'The tools of Moorage and of the apps it hosts. Tools with a dot in their name belong to hosted apps and are described by the authors of those apps. ' +
  `${resultText} ` +
  'Calls without a key use a free daily quota. ' +
  'To continue without the quota, send your own key for the model router as Authorization: Bearer sk-…. Long-running tools return a job: call the tool again with its id as `job` to get the result. ' +
  'Tools that are not available here come last; add ?off=hide to the URL to leave them out.';

export function mcpProtocol(options: McpOptions): Mcp {
  const own = listTools(options.toolRegistry);
  const more = options.more ?? noExternalTools;
  const calls = new McpToolCalls({ ...options, more });
  const refuse = originGuard(options.baseUrl);
  const serverInfo = { name: name.toLowerCase(), title: name, version, websiteUrl: options.baseUrl };
  const handler = createMcpHandler((context) => serverFor(contextOf(context), hidesOff(context)), {
    maxRequestBodySize: fileBodyLimit,
    maxSubscriptions: 64,
    onerror: (error) => {
      options.log.debug({ err: error }, 'MCP request rejected');
    },
  });
  return {
    path: '/mcp',
    async answer(request, context) {
      const refused = refuse(request);
      if (refused !== undefined) return refused;
      const { request: left = request, parsedBody } = await readAhead(request, fileBodyLimit);
      const plain = plainCallOf(request.headers, parsedBody);
      const made = plain === undefined ? undefined : await answerPlain(plain, context);
      if (made !== undefined) return made;
      const answer = await handler.fetch(left, {
        parsedBody,
        authInfo: {
          token: '',
          clientId: '',
          scopes: [],
          extra: { context, hidesOff: new URL(request.url).searchParams.get('off') === 'hide' },
        },
      });
      return buffered(answer);
    },
    close: () => handler.close(),
  };

  /** The library says what is wrong with a name that no tool has. */
  async function answerPlain(call: PlainCall, context: CallContext): Promise<Response | undefined> {
    try {
      return bufferedResponse(plainAnswer(call, await calls.call(call, context), serverInfo), {
        headers: { 'content-type': 'application/json' },
      });
    } catch (error) {
      if (error instanceof ProtocolError) return undefined;
      throw error;
    }
  }

  function serverFor(context: CallContext, offHidden: boolean): McpServer {
    const made = new McpServer(serverInfo, {
      instructions,
      cacheHints,
      capabilities: { tools: { listChanged: false }, resources: { listChanged: false, subscribe: false } },
    });
    // Schemas and checks are those of the registry, so its own way of registering tools is not used.
    made.server.setRequestHandler('tools/list', ({ params }) =>
      page([...own.on, ...more.list(), ...(offHidden ? [] : own.off)], params?.cursor),
    );
    made.server.setRequestHandler('tools/call', (request, mcp) => calls.call(request, context, mcp));
    offerResources(made, options);
    return made;
  }
}

/** The library answers with a stream of events, or with JSON that it has in memory: that need not be streamed. */
async function buffered(answer: Response): Promise<Response> {
  if (answer.headers.get('content-type')?.startsWith('application/json') !== true) return answer;
  return bufferedResponse(await answer.text(), {
    status: answer.status,
    headers: Object.fromEntries(answer.headers),
  });
}

/** Tools of one page: all of ours fit into the first. */
const pageSize = 100;

/** The cursor is the number of tools on earlier pages. @throws ProtocolError for any other cursor */
function page(tools: ListToolsResult['tools'], cursor = '0'): ListToolsResult {
  if (!/^\d{1,6}$/.test(cursor))
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      'Invalid cursor. Use the nextCursor of a previous page, or omit it to get the first page.',
    );
  const end = Number(cursor) + pageSize;
  return { tools: tools.slice(Number(cursor), end), ...(end < tools.length ? { nextCursor: String(end) } : {}) };
}

/** What /mcp handed over with the request; the library passes it on as it is. */
function contextOf({ authInfo }: McpRequestContext): CallContext {
  return authInfo?.extra?.['context'] as CallContext;
}

/** Whether the client left out what is not available, by `?off=hide` in the URL. */
function hidesOff({ authInfo }: McpRequestContext): boolean {
  return authInfo?.extra?.['hidesOff'] === true;
}
