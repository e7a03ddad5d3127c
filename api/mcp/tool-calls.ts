// One tools/call: read, paid, run and told like a call of /t.
import {
  ProtocolError,
  ProtocolErrorCode,
  type CallToolRequest,
  type CallToolResult,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { Problem } from '../../lib/problem.ts';
import { type RequestContext, internalFault } from '../http/index.ts';
import type { Desk } from '../tools/engine/tool-service.ts';
import type { PayerFor } from '../models/callers/payers.ts';
import { unknownTool } from '../tools/problems.ts';
import { ToolReader } from '../tools/engine/reading.ts';
import type { Progress, Tool } from '../tools/tool.ts';
import type { Toolbox } from '../tools/engine/tool-registry.ts';
import { problemResult, resultOf } from './content.ts';
import type { MoreTools } from '../tools/engine/external-tools.ts';

export interface McpToolCallsOptions {
  readonly toolbox: Toolbox;
  readonly desk: Desk;
  readonly payerFor: PayerFor;
  readonly baseUrl: string;
  readonly more: MoreTools;
}

/** A client that asked for progress waits for the end; others get the handle of a job, and poll. */
const patienceMs = 600_000;

export class McpToolCalls {
  readonly #options: McpToolCallsOptions;
  readonly #readers: ReadonlyMap<string, ToolReader>;

  constructor(options: McpToolCallsOptions) {
    this.#options = options;
    this.#readers = new Map(options.toolbox.tools.map((tool) => [tool.name, new ToolReader(tool)]));
  }

  /** @throws ProtocolError for a name that no tool has; all else that can go wrong is a result with `isError`. */
  async call(
    { params }: CallToolRequest,
    mcp: ServerContext,
    context: Omit<RequestContext, 'mediaType'>,
  ): Promise<CallToolResult> {
    const { name, arguments: given = {} } = params;
    const called = (await this.#options.more.find(name)) ?? this.#find(name);
    try {
      if ('run' in called) return await this.#answer(called, given, mcp, context);
      return await called.call({ given, context, signal: AbortSignal.any([mcp.mcpReq.signal, context.signal]) });
    } catch (error) {
      return problemResult(this.#problem(error, name, context), this.#options.baseUrl, name, context.id);
    }
  }

  async #answer(
    tool: Tool,
    given: unknown,
    mcp: ServerContext,
    context: Omit<RequestContext, 'mediaType'>,
  ): Promise<CallToolResult> {
    const { desk, payerFor } = this.#options;
    const reader = this.#readers.get(tool.name) ?? new ToolReader(tool);
    const reading = reader.read('argument', given);
    const payer = await payerFor(context);
    const report = reporter(mcp);
    const raw = reading.options.raw === true;
    const answered = await desk.answer({
      tool,
      reading,
      payer,
      via: 'mcp',
      id: context.id,
      log: context.log,
      delivery: raw ? 'link' : 'json',
      signal: () => AbortSignal.any([mcp.mcpReq.signal, context.signal]),
      waitMs: report === undefined ? 0 : patienceMs,
      ...(report === undefined ? {} : { report }),
    });
    return resultOf(answered, raw);
  }

  #find(name: string): Tool {
    const { toolbox, more } = this.#options;
    try {
      return toolbox.get(
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

/** Tells progress to who has asked for it; it only ever rises. */
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
