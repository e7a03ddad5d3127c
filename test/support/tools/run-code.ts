// run_code in a real worker, for its tests: the result of a run, checked by its shape.
import { z } from 'zod';
import { createRunCodeTool } from '../../../api/tools/builtin/run-code/run-code.ts';
import type { Tool } from '../../../api/tools/tool.ts';
import { call, createPatientWorkers, createServices } from './call.ts';

const shape = z.object({
  ok: z.boolean(),
  value: z.unknown(),
  value_type: z.string(),
  value_text: z.string(),
  logs: z.array(z.object({ level: z.string(), text: z.string() })),
  truncated: z.boolean(),
  error: z.object({ name: z.string(), message: z.string(), line: z.number().nullable(), stack: z.string() }).nullable(),
});

type Run = (code: string, more?: Record<string, unknown>) => Promise<z.output<typeof shape>>;

export interface CodeRunner {
  readonly tool: Tool;
  /** For code that ends by itself: with a minute instead of five seconds, since a busy machine takes long. */
  readonly run: Run;
  /** With the five seconds of callers. */
  readonly runAsCaller: Run;
  /** For code that uses up its time: in the same processes, with a second instead of five. */
  readonly runBriefly: Run;
  readonly close: () => Promise<void>;
}

/** Runs code with these fields, such as a language. Close it at the end. */
export function codeRunner(fields: Record<string, unknown> = {}): CodeRunner {
  const workers = createPatientWorkers();
  const runBy =
    (tool: Tool): Run =>
    async (code, more = {}) =>
      shape.parse((await call(tool, { code, ...fields, ...more })).result);
  const tool = createRunCodeTool(createServices({ workers }));
  const patient = createRunCodeTool(createServices({ workers }), { limitMs: 60_000 });
  const brief = createRunCodeTool(createServices({ workers }), { limitMs: 1_000 });
  return {
    tool,
    run: runBy(patient),
    runAsCaller: runBy(tool),
    runBriefly: runBy(brief),
    close: () => workers.close(),
  };
}
