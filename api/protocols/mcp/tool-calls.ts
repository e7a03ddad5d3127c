// Runs one tools/call: the tool service parses, charges and runs it like a call to /t.
import {
  ProtocolError,
  ProtocolErrorCode,
  type CallToolRequest,
  type CallToolResult,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { Problem, createUnknownNameProblem } from '../../../lib/problem.ts';
import { internalFault, type CallContext } from '../../http/index.ts';
import {
  type ExternalProgress,
  type ExternalToolCall,
  type ExternalTools,
  type Tool,
  ToolReader,
  type ToolRegistry,
  type ToolService,
  unknownTool,
} from '../../tools/index.ts';
import type { PayerFor } from '../../models/index.ts';
import { callName, callOperation, searchName, searchOperations } from './app-operations.ts';
import { toProblemResult, toCallResult } from './content.ts';

export interface McpToolCallsOptions {
  readonly toolRegistry: ToolRegistry;
  readonly toolService: ToolService;
  readonly payerFor: PayerFor;
  readonly baseUrl: string;
  readonly more: ExternalTools;
}

/** Everything that a client specifies for a call, apart from the message itself. */
export interface CallScope {
  /** If set, only operations of this app can be called: that of /mcp/{slug}. */
  readonly app: string | undefined;
  /** Aborts when the client cancels the request with a message. */
  readonly canceled: AbortSignal | undefined;
  /** Id of the client's session; undefined if it has none. */
  readonly session: string | undefined;
  /** Whether the client has canceled the request or disconnected. */
  readonly isCanceled: () => boolean;
  readonly mcp?: ServerContext;
}

export class McpToolCalls {
  readonly #options: McpToolCallsOptions;
  readonly #readers: ReadonlyMap<string, ToolReader>;

  constructor(options: McpToolCallsOptions) {
    this.#options = options;
    this.#readers = new Map(options.toolRegistry.tools.map((tool) => [tool.name, new ToolReader(tool)]));
  }

  /** Runs a call. @throws ProtocolError for a name that no tool has; every other failure is a result with `isError`. */
  async call(
    { params }: Pick<CallToolRequest, 'params'>,
    context: CallContext,
    asked: CallScope,
  ): Promise<CallToolResult> {
    const { name, arguments: given = {} } = params;
    const run = await this.#find(name, asked.app);
    try {
      return await run(given, context, asked);
    } catch (error) {
      return toProblemResult(this.#toProblem(error, name, context), this.#options.baseUrl, name, context.id);
    }
  }

  async #answer(tool: Tool, given: unknown, context: CallContext, asked: CallScope): Promise<CallToolResult> {
    const { toolService, payerFor } = this.#options;
    const reader = this.#readers.get(tool.name) ?? new ToolReader(tool);
    const reading = reader.read('argument', given);
    const payer = await payerFor(context);
    const report = asked.mcp === undefined ? undefined : createProgressReporter(asked.mcp);
    const raw = reading.options.raw === true;
    const result = await toolService.call({
      tool,
      reading,
      payer,
      via: 'mcp',
      id: context.id,
      log: context.log,
      delivery: raw ? 'link' : 'json',
      signal: () => combineSignals(context, asked),
      // Even a client that requested progress may stop waiting, so it needs the job id by then.
      waitMs: 0,
      isCanceled: asked.isCanceled,
      ...(report === undefined
        ? {}
        : {
            report: ({ done, message }) => {
              report({ progress: done, total: 1, message });
            },
          }),
    });
    return toCallResult(result, raw);
  }

  async #find(name: string, app: string | undefined): Promise<RunCall> {
    const { more } = this.#options;
    const own = app === undefined ? this.#findOwnTool(name) : undefined;
    if (own !== undefined) return own;
    const operation = await more.find(name);
    if (operation !== undefined && (app === undefined || app === operation.app))
      return (given, context, asked) => operation.call({ given, ...toExternalCall(context, asked) });
    throw toProtocolError(() => {
      this.#refuse(name, app);
    });
  }

  /** Finds a built-in tool, or one of the two that give access to operations of apps. */
  #findOwnTool(name: string): RunCall | undefined {
    if (name === searchName) return (given, { id }) => searchOperations(given, this.#options, id);
    if (name === callName)
      return (given, context, asked) => callOperation(given, this.#options, toExternalCall(context, asked));
    const tool = this.#readers.get(name)?.tool;
    return tool === undefined ? undefined : (given, context, asked) => this.#answer(tool, given, context, asked);
  }

  /** @throws Problem (unknown-tool) */
  #refuse(name: string, app: string | undefined): void {
    const { toolRegistry, more } = this.#options;
    if (app === undefined) toolRegistry.get(name, [searchName, callName, ...more.names()]);
    else
      throw createUnknownNameProblem(unknownTool, {
        says: `${app} has no operation`,
        name,
        names: more.list(app).map((one) => one.name),
        all: 'tools/list lists them.',
      });
  }

  #toProblem(error: unknown, name: string, { log, id }: CallContext): Problem {
    if (error instanceof Problem) return error;
    log.error({ err: error, tool: name }, 'call failed');
    return new Problem(internalFault, `Something went wrong on our side. It is logged as ${id}.`, { cause: error });
  }
}

type RunCall = (
  given: Readonly<Record<string, unknown>>,
  context: CallContext,
  asked: CallScope,
) => Promise<CallToolResult>;

/** Converts an unknown name to the library's error. */
function toProtocolError(refuse: () => void): unknown {
  try {
    refuse();
    return undefined;
  } catch (error) {
    if (!(error instanceof Problem) || error.type !== unknownTool) return error;
    return new ProtocolError(ProtocolErrorCode.InvalidParams, error.message, error.members);
  }
}

/** Combines the signals: a message can be canceled separately, and ends with its request. */
function combineSignals({ signal }: Pick<CallContext, 'signal'>, { mcp, canceled }: CallScope): AbortSignal {
  const others = [mcp?.mcpReq.signal, canceled].filter((one) => one !== undefined);
  return others.length === 0 ? signal : AbortSignal.any([signal, ...others]);
}

function toExternalCall(context: CallContext, asked: CallScope): Omit<ExternalToolCall, 'given'> {
  return {
    context,
    signal: combineSignals(context, asked),
    session: asked.session,
    ...(asked.mcp === undefined ? {} : { report: createProgressReporter(asked.mcp) }),
  };
}

/** Reports progress to a client that requested it. As MCP requires, the value only increases. */
function createProgressReporter({ mcpReq }: ServerContext): ((progress: ExternalProgress) => void) | undefined {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  let last = Number.NEGATIVE_INFINITY;
  return ({ progress, total, message }) => {
    if (progress <= last) return;
    last = progress;
    const text = message === undefined ? {} : { message: message.slice(0, maximumProgressText) };
    mcpReq
      .notify({
        method: 'notifications/progress',
        params: { progressToken, progress, ...(total === undefined ? {} : { total }), ...text },
      })
      .catch(() => undefined);
  };
}

const maximumProgressText = 1_000;
