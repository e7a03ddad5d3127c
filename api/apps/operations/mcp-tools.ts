// Reads the tools that a stranger's MCP server lists as operations.
import { type Operation, readWithinLimits } from './operation.ts';
import { isJson, SchemaReader, SchemaTooLarge } from './schema.ts';
import { Names, plainText } from './text.ts';

const maxSchemaBytes = 16_384;

export function readMcpTools(tools: unknown, slug: string): { operations: Operation[]; leftOut: number } {
  const listed = Array.isArray(tools) ? tools : [];
  const names = new Names(slug);
  const operations = readWithinLimits(listed.slice(0, 1_000), (tool) => operationOf(tool, names));
  return { operations, leftOut: listed.length - operations.length };
}

function operationOf(tool: unknown, names: Names): Operation | undefined {
  if (!isJson(tool) || typeof tool['name'] !== 'string' || tool['name'].length > 200) return undefined;
  const inputSchema = schemaOf(tool['inputSchema']);
  if (inputSchema === undefined) return undefined;
  const annotations = isJson(tool['annotations']) ? tool['annotations'] : {};
  const title = plainText(tool['title'] ?? annotations['title'], 100);
  const named = names.next(tool['name']);
  return {
    ...named,
    title,
    description: plainText(tool['description'], 1_000),
    inputSchema,
    way: { kind: 'mcp', tool: tool['name'] },
  };
}

function schemaOf(given: unknown): Operation['inputSchema'] | undefined {
  const own = isJson(given) ? given : {};
  const reader = new SchemaReader(own['$defs'] ?? own['definitions']);
  try {
    const made = { ...reader.read(own), type: 'object' as const, ...reader.definitions() };
    return JSON.stringify(made).length > maxSchemaBytes ? undefined : made;
  } catch (error) {
    if (error instanceof SchemaTooLarge) return undefined;
    throw error;
  }
}
