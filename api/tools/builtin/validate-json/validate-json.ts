// The tool validate_json: checks data against a JSON Schema.
import { z } from 'zod';
import { jsonField } from '../../engine/reading.ts';
import { type ToolDependencies, defineTool, type Tool } from '../../tool.ts';

const module = new URL('worker.ts', import.meta.url);

const output = z.object({
  valid: z.boolean().describe('Whether the data conforms to the schema.'),
  draft: z.string().describe('JSON Schema draft that was used.'),
  errors: z
    .array(
      z.object({
        path: z.string().describe('Location in the data as a JSON Pointer; empty for the root.'),
        message: z.string().describe('What is wrong.'),
        keyword: z.string().describe('Schema keyword that is violated.'),
        schema_path: z.string().describe('Location of the keyword in the schema.'),
        params: z.record(z.string(), z.unknown()).describe('Details of the violation, such as the missing property.'),
      }),
    )
    .describe('Errors, at most 100.'),
  error_count: z.int().describe('Total number of errors.'),
});

const schemaField = z.union([z.record(z.string(), z.unknown()), z.boolean()], {
  error: 'must be a JSON Schema: an object, true or false',
});

export function createValidateJsonTool({ workers }: ToolDependencies): Tool {
  return defineTool({
    name: 'validate_json',
    title: 'Validate JSON',
    description:
      'Validates data against a JSON Schema with Ajv and returns every error with its location, up to 100. Supports draft 2020-12 (default), 2019-09, draft-07 and draft-06, selected by $schema. Checks formats such as date-time, email and uri. Does not load references outside the schema. Patterns are matched by RE2: without look-ahead, look-behind and back-references. Validation is limited to 1 second.',
    input: z.strictObject({
      schema: jsonField(schemaField).describe('JSON Schema: an object, true or false. In a query, as JSON text.'),
      data: jsonField(z.unknown().refine((data) => data !== undefined, 'is missing')).describe(
        'Data to validate: any JSON value, passed unchanged. In a query, as JSON text, in which a string is quoted: "\\"text\\"".',
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
    async run({ schema, data }, context) {
      // The call is free, so its worker time is short.
      const result = await workers.run({ module, input: { schema, data }, timeoutMs: 1_000, memoryMb: 128 }, context);
      return { result: output.parse(result) };
    },
  });
}
