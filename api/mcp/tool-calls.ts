// One tools/call: read, paid for and run by the tool service, like a call of /t.
import {
  ProtocolError,
  ProtocolErrorCode,
  type CallToolRequest,
  type CallToolResult,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { Problem } from '../../lib/problem.ts';
import { internalFault, type RequestContext } from '../http/index.ts';
import {
  type ExternalTools,
  type Progress,
  type Tool,
  ToolReader,
  type ToolRegistry,
  type ToolService,
  unknownTool,
} from '../tools/index.ts';
import type { PayerFor } from '../models/index.ts';
import { problemResult, resultOf } from './content.ts';

export interface McpToolCallsOptions {
  readonly toolRegistry: ToolRegistry;
  readonly toolService: ToolService;
  readonly payerFor: PayerFor;
  readonly baseUrl: string;
  readonly more: ExternalTools;
}

/** A client that asked for progress waits for the end; others get the handle of a job, and poll. */
const patienceMs = 600_000;

export class McpToolCalls {
  readonly #options: McpToolCallsOptions;
  readonly #readers: ReadonlyMap<string, ToolReader>;

  constructor(options: McpToolCallsOptions) {
    this.#options = options;
    this.#readers = new Map(options.toolRegistry.tools.map((tool) => [tool.name, new ToolReader(tool)]));
  }

  /** @throws ProtocolError for a name that no tool has; all else that can go wrong is a result with `isError`. */
  async call(
    { params }: Pick<CallToolRequest, 'params'>,
    context: Omit<RequestContext, 'mediaType'>,
    mcp?: ServerContext,
  ): Promise<CallToolResult> {
    const { name, arguments: given = {} } = params;
    const called = (await this.#options.more.find(name)) ?? this.#find(name);
    try {
      if ('run' in called) return await this.#answer(called, given, context, mcp);
      return await called.call({ given, context, signal: signalOf(context, mcp) });
    } catch (error) {
      return problemResult(this.#problem(error, name, context), this.#options.baseUrl, name, context.id);
    }
  }

  async #answer(
    tool: Tool,
    given: unknown,
    context: Omit<RequestContext, 'mediaType'>,
    mcp: ServerContext | undefined,
  ): Promise<CallToolResult> {
    const { toolService, payerFor } = this.#options;
    const reader = this.#readers.get(tool.name) ?? new ToolReader(tool);
    const reading = reader.read('argument', given);
    const payer = await payerFor(context);
    const report = mcp === undefined ? undefined : reporter(mcp);
    const raw = reading.options.raw === true;
    const result = await toolService.call({
      tool,
      reading,
      payer,
      via: 'mcp',
      id: context.id,
      log: context.log,
      delivery: raw ? 'link' : 'json',
      signal: () => signalOf(context, mcp),
      waitMs: report === undefined ? 0 : patienceMs,
      ...(report === undefined ? {} : { report }),
    });
    return resultOf(result, raw);
  }

  #find(name: string): Tool {
    const { toolRegistry, more } = this.#options;
    try {
      return toolRegistry.get(
        name,
        more.list().map((tool) => tool.name),
      );
    } catch (error) {
      if (!(error instanceof Problem) || error.type !== unknownTool) throw error;
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, error.message, error.members);
    }
  }

  #problem(error: unknown, name: string, { log, id }: Omit<RequestContext, 'mediaType'>): Problem {
    if (error instanceof Problem) return error;
    log.error({ err: error, tool: name }, 'call failed');
    return new Problem(internalFault, `Something went wrong on our side. It is logged as ${id}.`, { cause: error });
  }
}

/** A message may be cancelled by itself, and ends with its request. */
function signalOf({ signal }: Pick<RequestContext, 'signal'>, mcp: ServerContext | undefined): AbortSignal {
  return mcp === undefined ? signal : AbortSignal.any([mcp.mcpReq.signal, signal]);
}

/** Reports progress to a client that asked for it; it only ever rises. */
function reporter({ mcpReq }: ServerContext): ((progress: Progress) => void) | undefined {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  let last = -1;
  return ({ done, message }) => {
    if (done <= last) return;
    last = done;
    mcpReq
      .notify({ method: 'notifications/progress', params: { progressToken, progress: done, total: 1, message } })
      .catch(() => undefined);
  };
}
