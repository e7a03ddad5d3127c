// run_code: runs JavaScript in a sandbox that has nothing but the language.
import { z } from 'zod';
import { jsonField } from '../../engine/json-field.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

const module = new URL('worker.ts', import.meta.url);

const output = z.object({
  ok: z.boolean().describe('Whether the code ran to its end'),
  value: z
    .unknown()
    .describe('Value of the last expression (awaited when it is a promise) as JSON; null for what JSON cannot say'),
  value_type: z.string().describe('What kind of value it is: undefined, object, function, bigint ...'),
  logs: z
    .array(
      z.object({
        level: z.string().describe('log, info, warn, error or debug'),
        text: z.string().describe('What was written'),
      }),
    )
    .describe('What the code wrote with console'),
  truncated: z
    .boolean()
    .describe(
      'Whether value or logs were cut, being too long; a value that is too long or nested too deeply is then its JSON text',
    ),
  error: z
    .object({
      name: z.string().describe('Class of the error, or TimeLimit or MemoryLimit'),
      message: z.string().describe('What it says'),
      line: z.int().nullable().describe('Line of the code, from 1'),
      stack: z.string().describe('Where it happened'),
    })
    .nullable()
    .describe('Why the code did not run to its end'),
  duration_ms: z.number().describe('How long it ran'),
});

export function runCodeTool({ workers }: ToolServices): Tool {
  return defineTool({
    name: 'run_code',
    title: 'Run JavaScript',
    description:
      'Runs JavaScript (ES2023, top-level await) in QuickJS and returns the value of the last expression and what was written to console. For calculations, parsing and checking of data. There is no network, no file, no timer and no module; 5 seconds and 64 MB at most. An error of the code is a result with ok: false.',
    input: z.strictObject({
      code: z.string().min(1).max(100_000).describe('The JavaScript; its last expression is the value'),
      input: jsonField(z.unknown())
        .optional()
        .describe('Data for the code, there as the global variable `input`; JSON or JSON text'),
      language: z.enum(['javascript', 'js']).default('javascript').describe('The language of the code'),
    }),
    aliases: { source: 'code', script: 'code', javascript: 'code', js: 'code', data: 'input', lang: 'language' },
    output,
    example: {
      code: 'const squares = [1, 2, 3].map((n) => n * n);\nconsole.log("squares", squares);\nsquares.reduce((a, b) => a + b)',
    },
    price: '0.0001',
    openWorld: false,
    async run({ code, input }, { signal }) {
      const result = await workers.run({ module, input: { code, input }, timeoutMs: 8_000, memoryMb: 192, signal });
      return { result: output.parse(result) };
    },
  });
}
