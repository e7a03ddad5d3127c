// The tool run_code: runs JavaScript or Python in a sandbox that provides only the language.
import { z } from 'zod';
import { createValidationProblem } from '../../../http/index.ts';
import { jsonField } from '../../engine/reading.ts';
import type { ToolDependencies } from '../../tool.ts';
import { defineTool, type Tool } from '../../tool.ts';
import { defaultLimitMs, processMb, type CodeTask } from './outcome.ts';

/** The worker that runs JavaScript. */
export const runCodeModule = new URL('worker.ts', import.meta.url);

const python = {
  module: new URL('python/worker.ts', import.meta.url),
  // Includes the start of an interpreter.
  timeoutMs: 22_000,
  memoryMb: processMb,
};
const javascript = { module: runCodeModule, timeoutMs: 8_000, memoryMb: 192 };

const output = z.object({
  ok: z.boolean().describe('Whether the code ran to completion.'),
  value: z
    .unknown()
    .describe(
      'Value of the last expression (or of a top-level return) as JSON. Map, Set and typed arrays are lists, dates and large integers text; null if JSON cannot represent it.',
    ),
  value_type: z.string().describe('Type of the value: as typeof, or as its Python type.'),
  value_text: z.string().describe('The value as console.log or repr() shows it.'),
  logs: z
    .array(
      z.object({
        level: z.string().describe('Level: log, info, warn, error or debug; for Python stdout or stderr.'),
        text: z.string().describe('Text that was written.'),
      }),
    )
    .describe('Output of the code.'),
  truncated: z
    .boolean()
    .describe(
      'Whether value or logs were cut because of their size. A value that is too long or nested too deeply is returned as its JSON text.',
    ),
  error: z
    .object({
      name: z.string().describe('Class of the error, or TimeLimit, MemoryLimit or OutputLimit.'),
      message: z.string().describe('Error message.'),
      line: z.int().nullable().describe('Line of the code, from 1; null if unknown.'),
      stack: z.string().describe('Stack trace.'),
    })
    .nullable()
    .describe('Why the code did not run to completion; null if it did.'),
  duration_ms: z.number().describe('Run time in milliseconds.'),
});

export interface RunCodeOptions {
  /** How long code may run; default 5 000, as the description of the tool states. */
  readonly limitMs?: number;
}

export function createRunCodeTool(
  { workers }: ToolDependencies,
  { limitMs = defaultLimitMs }: RunCodeOptions = {},
): Tool {
  return defineTool({
    name: 'run_code',
    title: 'Run JavaScript or Python',
    description:
      'Runs JavaScript (ES2023 in QuickJS, with top-level await and return, timers, URL, Intl, TextEncoder, structuredClone) or Python 3.12 (with its standard library, no other package) in a sandbox, and returns the value of the last expression and the output. Use it to calculate, parse and check data. Limits: 5 seconds, memory of 64 MB (Python: 128 MB), no network, files, processes or modules to install. An error in the code is a result with ok: false, not a failed call.',
    input: z.strictObject({
      code: z
        .string()
        .min(1)
        .max(100_000)
        .describe('Code, up to 100,000 characters. Its last expression is the value.'),
      input: jsonField(z.unknown())
        .optional()
        .describe(
          'Data for the code, available as the global variable `input`: any JSON value, passed unchanged. In a query, as JSON text.',
        ),
      input_text: z
        .string()
        .max(1_000_000)
        .optional()
        .describe('The same as text, such as CSV: always a string, never decoded; alternative to input.'),
      language: z.enum(['javascript', 'js', 'python', 'py']).default('javascript').describe('Language of the code.'),
    }),
    aliases: { source: 'code', script: 'code', javascript: 'code', js: 'code', data: 'input', lang: 'language' },
    output,
    example: {
      code: 'const squares = [1, 2, 3].map((n) => n * n);\nconsole.log("squares", squares);\nsquares.reduce((a, b) => a + b)',
    },
    price: '0.0001',
    openWorld: false,
    async run({ code, input, input_text: inputText, language }, context) {
      if (input !== undefined && inputText !== undefined)
        throw createValidationProblem([
          {
            in: 'query',
            field: 'input_text',
            message: 'is an alternative to input, which is also set',
            fix: 'Send either input or input_text.',
          },
        ]);
      const task: CodeTask = { code, input: inputText ?? input, limitMs };
      const result = await workers.run({ ...(language.startsWith('py') ? python : javascript), input: task }, context);
      return { result: output.parse(result) };
    },
  });
}
