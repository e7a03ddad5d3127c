// The tools as MCP lists them: schemas of input and output, and what a client may assume of each.
import type { Tool as ListedTool } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { describe, envelopeSchema, type Tool, ToolReader, type ToolRegistry } from '../tools/index.ts';

export function listTools(toolRegistry: ToolRegistry): ListedTool[] {
  return toolRegistry.tools.map((tool) => {
    const off = toolRegistry.offBecause(tool);
    return {
      name: tool.name,
      title: tool.title,
      description: `${describe(tool)}${off === undefined ? '' : ` Not available here. ${off}`}`,
      inputSchema: schemaOf(new ToolReader(tool).shown, 'input'),
      outputSchema: outputSchema(tool),
      annotations: {
        title: tool.title,
        readOnlyHint: tool.writes !== true,
        destructiveHint: tool.writes === true,
        idempotentHint: tool.writes !== true,
        openWorldHint: tool.openWorld,
      },
    };
  });
}

/** A result or a problem: clients validate failed calls by the same schema. */
function outputSchema(tool: Tool): ListedTool['outputSchema'] & object {
  const { properties, required, ...rest } = schemaOf(envelopeSchema(tool), 'output');
  const problem = {
    type: 'object',
    description:
      'RFC 9457 problem, if the call failed: `detail` says what went wrong, and `errors` lists each invalid argument with a fix.',
    additionalProperties: true,
  };
  return {
    ...rest,
    type: 'object',
    properties: { ...properties, problem },
    required: ['request_id'],
    additionalProperties: true,
    anyOf: [{ required: required ?? [] }, { required: ['problem'] }],
  };
}

type ObjectSchema = ListedTool['inputSchema'];

function schemaOf(schema: z.ZodObject, io: 'input' | 'output'): ObjectSchema {
  const made = z.toJSONSchema(schema, { io, target: 'draft-2020-12' });
  delete made.$schema;
  return made as ObjectSchema;
}
