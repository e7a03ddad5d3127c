// validate_json: checks data against a JSON Schema.
import { z } from 'zod';
import { jsonField } from '../../engine/json-field.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

const module = new URL('worker.ts', import.meta.url);

const output = z.object({
  valid: z.boolean().describe('Whether the data keeps to the schema'),
  draft: z.string().describe('The draft of JSON Schema by which it was checked'),
  errors: z
    .array(
      z.object({
        path: z.string().describe('Where in the data, as a JSON Pointer; empty for the whole'),
        message: z.string().describe('What is wrong there'),
        keyword: z.string().describe('The keyword of the schema that is not kept'),
        schema_path: z.string().describe('Where in the schema that keyword stands'),
        params: z.record(z.string(), z.unknown()).describe('What the keyword says, such as the missing property'),
      }),
    )
    .describe('What is wrong, at most 100'),
  error_count: z.int().describe('How many errors there are'),
});

const schemaField = z.union([z.record(z.string(), z.unknown()), z.boolean()], {
  error: 'must be a JSON Schema: an object, true or false',
});

export function validateJsonTool({ workers }: ToolServices): Tool {
  return defineTool({
    name: 'validate_json',
    title: 'Validate JSON',
    description:
      'Checks data against a JSON Schema (2020-12 unless $schema names 2019-09, draft-07 or draft-06) and names every place that does not keep to it. Formats such as date-time, email and uri are checked. References out of the schema are not followed.',
    input: z.strictObject({
      schema: jsonField(schemaField).describe('The JSON Schema, as JSON or as JSON text'),
      data: jsonField(z.unknown().refine((data) => data !== undefined, 'is missing')).describe(
        'The data to check, as JSON or as JSON text (so a text by itself is given in quotes: "\\"text\\"")',
      ),
    }),
    aliases: { json: 'data', instance: 'data' },
    output,
    example: {
      schema: { type: 'object', required: ['name'], properties: { age: { type: 'integer', minimum: 0 } } },
      data: { age: -1 },
    },
    price: '0',
    openWorld: false,
    async run({ schema, data }, { signal }) {
      const result = await workers.run({ module, input: { schema, data }, timeoutMs: 5_000, memoryMb: 128, signal });
      return { result: output.parse(result) };
    },
  });
}
