// Tool calls of the A2A agent: read, paid for and run by the tool service that /t and /mcp use too.
import { ToolReader, type ToolRegistry, type ToolService } from '../../tools/index.ts';
import type { PayerFor } from '../../models/index.ts';
import type { AgentOptions } from './calls.ts';
import { agentTask, answerOf } from './tool-answers.ts';

export interface ToolCallsOptions {
  readonly toolRegistry: ToolRegistry;
  readonly toolService: ToolService;
  readonly payerFor: PayerFor;
}

export function toolCalls({ toolRegistry, toolService, payerFor }: ToolCallsOptions): AgentOptions['call'] {
  const readers = new Map(toolRegistry.tools.map((tool) => [tool.name, new ToolReader(tool)]));
  return async ({ tool: name, arguments: given, context, contextId }) => {
    const tool = toolRegistry.get(name);
    const reading = (readers.get(name) ?? new ToolReader(tool)).read('argument', given);
    const payer = await payerFor(context);
    const { wait, raw: fileWanted = false } = reading.options;
    const call = {
      tool,
      reading,
      payer,
      via: 'a2a',
      id: context.id,
      log: context.log,
      delivery: fileWanted ? 'link' : 'json',
      signal: () => context.signal,
      waitMs: 0,
      context: contextId,
    } as const;
    const job = await toolService.jobOf(call);
    if (job === undefined) return answerOf(await toolService.call(call), fileWanted);
    const report = await toolService.follow(job, {
      requestId: context.id,
      payer,
      waitMs: 0,
      signal: context.signal,
    });
    return { task: agentTask(name, report), waitMs: wait === undefined ? undefined : wait * 1_000 };
  };
}
