// Calls of tools for the A2A agent: read, paid, run and told by the desk that /t and /mcp have too.
import type { Desk } from '../tools/engine/tool-service.ts';
import { envelopeOf, goesAlong } from '../tools/engine/envelope.ts';
import type { PayerFor } from '../models/callers/payers.ts';
import { ToolReader } from '../tools/engine/reading.ts';
import type { Toolbox } from '../tools/engine/tool-registry.ts';
import type { AgentAnswer, AgentOptions } from './calls.ts';

export interface ToolCallsOptions {
  readonly toolbox: Toolbox;
  readonly desk: Desk;
  readonly payerFor: PayerFor;
}

/** What takes longer is answered with the handle of a job, to be polled. */
const patienceMs = 25_000;

export function toolCalls({ toolbox, desk, payerFor }: ToolCallsOptions): AgentOptions['call'] {
  const readers = new Map(toolbox.tools.map((tool) => [tool.name, new ToolReader(tool)]));
  return async ({ tool: name, arguments: given, context }): Promise<AgentAnswer> => {
    const tool = toolbox.get(name);
    const reading = (readers.get(name) ?? new ToolReader(tool)).read('argument', given);
    const payer = await payerFor(context);
    const fileWanted = reading.options.raw === true;
    const answered = await desk.answer({
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
    const answer = envelopeOf(answered, false);
    const artifact = answered.ran?.artifact;
    if (artifact === undefined) return { answer };
    const inside = fileWanted || goesAlong(artifact, answered.told);
    return {
      answer,
      file: {
        name: artifact.fileName,
        mediaType: artifact.mediaType,
        url: answered.told.fileUrl,
        bytes: inside ? artifact.bytes : undefined,
      },
    };
  };
}
