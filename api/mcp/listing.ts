// The tools as MCP lists them: schemas of input and output, and what a client may assume of each. A list is read whole
// into the context of a model, so what all tools have in common is said once, in the instructions,
// and other names of fields, which are read as well, are left to the documents.
import type { Tool as ListedTool } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { termsOf, type Tool, ToolReader, type ToolRegistry } from '../tools/index.ts';

/** Tools that can be called here, and those that cannot. */
export interface ToolListing {
  readonly on: readonly ListedTool[];
  readonly off: readonly ListedTool[];
}

/** What every result has in common. Part of the instructions. */
export const resultText =
  'A result has `result` (see the output schema of each tool; GET /t/<tool> in /openapi.json describes its fields), `cost_usd`, `charged_usd`, `cost_source`, `latency_ms` and `request_id`; `artifact` with `url`, `media_type`, `file_name` and `bytes` if a file was created; `quota` and `hint` when the free quota runs low; a failed call has `problem` instead, whose `detail` says what went wrong and whose `errors` list each invalid argument with a fix.';

export function listTools(toolRegistry: ToolRegistry): ToolListing {
  const { on = [], off = [] } = Object.groupBy(toolRegistry.tools, (tool) =>
    toolRegistry.offBecause(tool) === undefined ? 'on' : 'off',
  );
  return {
    on: on.map((tool) => ({ ...listed(tool), outputSchema: outputSchema(tool) })),
    off: off.map((tool) => {
      const { description, ...rest } = listed(tool);
      return { ...rest, description: `${description} Not available here. ${toolRegistry.offBecause(tool) ?? ''}` };
    }),
  };
}

function listed(tool: Tool): ListedTool & { readonly description: string } {
  return {
    name: tool.name,
    title: tool.title,
    description: `${tool.description} ${termsOf(tool)}`,
    inputSchema: inputSchema(tool),
    annotations: {
      title: tool.title,
      readOnlyHint: tool.writes !== true,
      destructiveHint: tool.writes === true,
      idempotentHint: tool.writes !== true,
      openWorldHint: tool.openWorld,
    },
  };
}

/** What the options of every tool do over MCP, in short. */
const options: Readonly<Record<string, string>> = {
  s: 'Session name; groups your calls and separates spaces of memory.',
  raw: 'Embed the file, whatever its size.',
  wait: 'Seconds to wait for the result.',
  job: 'Id of a job: returns its status or result.',
};

function inputSchema(tool: Tool): ObjectSchema {
  const { description: _, ...schema } = schemaOf(new ToolReader(tool).shown, 'input');
  const fields = Object.entries(schema.properties ?? {})
    .filter(([name]) => name !== 'raw' || tool.artifacts !== undefined)
    .map(([name, field]) => [name, name in tool.input.shape ? field : described(field, options[name])] as const);
  return { ...schema, properties: Object.fromEntries(fields) };
}

type Field = NonNullable<ObjectSchema['properties']>[string];

function described(field: Field, description: string | undefined): Field {
  if (typeof field !== 'object' || Array.isArray(field) || description === undefined) return field;
  return { ...field, description };
}

/** A result, the handle of a job or a problem: clients validate failed calls by the same schema. */
function outputSchema(tool: Tool): ListedTool['outputSchema'] & object {
  const result = schemaOf(tool.output, 'output');
  const kinds = ['result', ...(tool.long === true ? ['job'] : []), 'problem'];
  return {
    type: 'object',
    properties: {
      result,
      ...Object.fromEntries(kinds.slice(1).map((kind) => [kind, { type: 'object' }])),
      ...(tool.artifacts === undefined ? {} : { artifact: { type: 'object' } }),
      cost_usd: { type: 'number' },
      request_id: { type: 'string' },
    },
    required: ['request_id'],
    additionalProperties: true,
    anyOf: kinds.map((kind) => ({ required: [kind] })),
  };
}

type ObjectSchema = ListedTool['inputSchema'];

function schemaOf(schema: z.ZodObject, io: 'input' | 'output'): ObjectSchema {
  const made = z.toJSONSchema(schema, {
    io,
    target: 'draft-2020-12',
    override: ({ jsonSchema }) => {
      // The bounds of every integer that a number can hold say nothing.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      // What a result may not have helps nobody to read it, and its fields are named for what they are.
      if (io === 'output') {
        delete jsonSchema.additionalProperties;
        delete jsonSchema.description;
      }
    },
  });
  delete made.$schema;
  return made as ObjectSchema;
}
