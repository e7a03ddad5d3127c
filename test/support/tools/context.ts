// What a tool knows of a call, for tests that run one by itself.
import { pino } from 'pino';
import { readPart } from '../../../api/http/index.ts';
import type { Spender } from '../../../api/tools/engine/spender.ts';
import type { Progress, Tool, ToolAnswer, ToolContext } from '../../../api/tools/tool.ts';
import { retryWhileBusy } from './call.ts';

const noModels: Spender = {
  ask: () => Promise.reject(new Error('asked a model')),
  compare: () => Promise.reject(new Error('asked a model')),
  maxCost: () => {
    throw new Error('asked a model');
  },
};

/** A context in which no model may be asked, unless one is given. */
export function toolContext(changes: Partial<ToolContext> = {}): ToolContext {
  return {
    id: 'request-1',
    session: undefined,
    owner: 'somebody',
    keyed: false,
    signal: new AbortController().signal,
    log: pino({ level: 'silent' }),
    waiting: (wait) => wait,
    models: noModels,
    report: () => undefined,
    ...changes,
  };
}

/** Validates the input, runs the tool and checks its result, as the runner does. */
export async function runTool(
  tool: Tool,
  input: Record<string, unknown>,
  context: ToolContext = toolContext(),
): Promise<ToolAnswer<Record<string, unknown>>> {
  const answer = await retryWhileBusy(async () => tool.run(readPart('query', tool.input, input), context));
  return { ...answer, result: tool.output.parse(answer.result) };
}

/** Remembers what a tool reports. */
export function reports(): { readonly seen: Progress[]; readonly report: (progress: Progress) => void } {
  const seen: Progress[] = [];
  return {
    seen,
    report: (progress) => {
      seen.push(progress);
    },
  };
}
