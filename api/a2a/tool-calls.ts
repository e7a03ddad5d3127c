// Tool calls of the A2A agent: read, paid for and run by the tool service that /t and /mcp use too.
import { envelopeOf, isEmbeddable, ToolReader, type ToolRegistry, type ToolService } from '../tools/index.ts';
import type { PayerFor } from '../models/index.ts';
import type { AgentAnswer, AgentOptions } from './calls.ts';

export interface ToolCallsOptions {
  readonly toolRegistry: ToolRegistry;
  readonly toolService: ToolService;
  readonly payerFor: PayerFor;
}

/** A call that takes longer is answered with the handle of a job to poll. */
const patienceMs = 25_000;

export function toolCalls({ toolRegistry, toolService, payerFor }: ToolCallsOptions): AgentOptions['call'] {
  const readers = new Map(toolRegistry.tools.map((tool) => [tool.name, new ToolReader(tool)]));
  return async ({ tool: name, arguments: given, context }): Promise<AgentAnswer> => {
    const tool = toolRegistry.get(name);
    const reading = (readers.get(name) ?? new ToolReader(tool)).read('argument', given);
    const payer = await payerFor(context);
    const fileWanted = reading.options.raw === true;
    const result = await toolService.call({
      tool,
      reading,
      payer,
      via: 'a2a',
      id: context.id,
      log: context.log,
      delivery: fileWanted ? 'link' : 'json',
      signal: () => context.signal,
      waitMs: patienceMs,
    });
    const answer = envelopeOf(result, false);
    const artifact = result.run?.artifact;
    if (artifact === undefined) return { answer };
    const inside = fileWanted || isEmbeddable(artifact, result.meta);
    return {
      answer,
      file: {
        name: artifact.fileName,
        mediaType: artifact.mediaType,
        url: result.meta.fileUrl,
        bytes: inside ? artifact.bytes : undefined,
      },
    };
  };
}
