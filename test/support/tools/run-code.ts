// run_code in a real worker, for its tests: the result of a run, checked by its shape.
import { z } from 'zod';
import { createRunCodeTool } from '../../../api/tools/builtin/run-code/run-code.ts';
import { createWorkers } from '../../../api/tools/engine/workers/pool.ts';
import type { Tool } from '../../../api/tools/tool.ts';
import { call, createServices } from './call.ts';

const shape = z.object({
  ok: z.boolean(),
  value: z.unknown(),
  value_type: z.string(),
  value_text: z.string(),
  logs: z.array(z.object({ level: z.string(), text: z.string() })),
  truncated: z.boolean(),
  error: z.object({ name: z.string(), message: z.string(), line: z.number().nullable(), stack: z.string() }).nullable(),
});

export interface CodeRunner {
  readonly tool: Tool;
  readonly run: (code: string, more?: Record<string, unknown>) => Promise<z.output<typeof shape>>;
  readonly close: () => Promise<void>;
}

/** Runs code with these fields, such as a language, and so many tasks at once. Close it at the end. */
export function codeRunner(fields: Record<string, unknown> = {}, tasks?: number): CodeRunner {
  const workers = createWorkers(tasks === undefined ? {} : { size: tasks, perCaller: tasks });
  const tool = createRunCodeTool(createServices({ workers }));
  return {
    tool,
    run: async (code, more = {}) => shape.parse((await call(tool, { code, ...fields, ...more })).result),
    close: () => workers.close(),
  };
}
