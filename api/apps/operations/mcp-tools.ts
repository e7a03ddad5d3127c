// Reads the tools that a stranger's MCP server lists as operations.
import { maxOperations, type Operation } from './operation.ts';
import { isJson, SchemaReader, SchemaTooLarge } from './schema.ts';
import { Names, plainText } from './text.ts';

const maxSchemaBytes = 16_384;

export function readMcpTools(tools: unknown, slug: string): { operations: Operation[]; leftOut: number } {
  const listed = Array.isArray(tools) ? tools : [];
  const names = new Names(slug);
  const operations = listed
    .slice(0, 1_000)
    .flatMap((tool) => operationOf(tool, names) ?? [])
    .slice(0, maxOperations);
  return { operations, leftOut: listed.length - operations.length };
}

function operationOf(tool: unknown, names: Names): Operation | undefined {
  if (!isJson(tool) || typeof tool['name'] !== 'string' || tool['name'].length > 200) return undefined;
  const inputSchema = schemaOf(tool['inputSchema']);
  if (inputSchema === undefined) return undefined;
  const annotations = isJson(tool['annotations']) ? tool['annotations'] : {};
  const title = plainText(tool['title'] ?? annotations['title'], 100);
  const name = names.next(tool['name']);
  return {
    name,
    title: title === '' ? name : title,
    description: plainText(tool['description'], 1_000),
    inputSchema,
    reads: annotations['readOnlyHint'] === true,
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
