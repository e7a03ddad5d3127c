// The tool run_code: runs JavaScript in a sandbox that provides only the language.
import { z } from 'zod';
import { jsonField } from '../../engine/json-field.ts';
import type { ToolDependencies } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

/** What runs it, in a worker. */
export const runCodeModule = new URL('worker.ts', import.meta.url);

const output = z.object({
  ok: z.boolean().describe('Whether the code ran to completion.'),
  value: z
    .unknown()
    .describe('Value of the last expression as JSON, awaited if it is a promise; null if JSON cannot represent it.'),
  value_type: z.string().describe('Type of the value: undefined, object, function, bigint and so on.'),
  logs: z
    .array(
      z.object({
        level: z.string().describe('Level: log, info, warn, error or debug.'),
        text: z.string().describe('Text that was written.'),
      }),
    )
    .describe('Console output of the code.'),
  truncated: z
    .boolean()
    .describe(
      'Whether value or logs were cut because of their size. A value that is too long or nested too deeply is returned as its JSON text.',
    ),
  error: z
    .object({
      name: z.string().describe('Class of the error, or TimeLimit or MemoryLimit.'),
      message: z.string().describe('Error message.'),
      line: z.int().nullable().describe('Line of the code, from 1; null if unknown.'),
      stack: z.string().describe('Stack trace.'),
    })
    .nullable()
    .describe('Why the code did not run to completion; null if it did.'),
  duration_ms: z.number().describe('Run time in milliseconds.'),
});

export function runCodeTool({ workers }: ToolDependencies): Tool {
  return defineTool({
    name: 'run_code',
    title: 'Run JavaScript',
    description:
      'Runs JavaScript (ES2023, top-level await) in a QuickJS sandbox and returns the value of the last expression and the console output. Use it to calculate, parse and check data. Limits: 5 seconds, 64 MB of memory, and no network, files, timers or modules. An error in the code is a result with ok: false, not a failed call.',
    input: z.strictObject({
      code: z
        .string()
        .min(1)
        .max(100_000)
        .describe('JavaScript code, up to 100,000 characters. Its last expression is the value.'),
      input: jsonField(z.unknown())
        .optional()
        .describe('Data for the code, available as the global variable `input`. JSON or JSON text.'),
      language: z.enum(['javascript', 'js']).default('javascript').describe('Language of the code: javascript.'),
    }),
    aliases: { source: 'code', script: 'code', javascript: 'code', js: 'code', data: 'input', lang: 'language' },
    output,
    example: {
      code: 'const squares = [1, 2, 3].map((n) => n * n);\nconsole.log("squares", squares);\nsquares.reduce((a, b) => a + b)',
    },
    price: '0.0001',
    openWorld: false,
    async run({ code, input }, context) {
      const result = await workers.run(
        { module: runCodeModule, input: { code, input }, timeoutMs: 8_000, memoryMb: 192 },
        context,
      );
      return { result: output.parse(result) };
    },
  });
}
