// Reads the description of an app, in a process of its own: it may be huge, nested without end, or made to take long.
import { upgrade } from '@scalar/openapi-upgrader';
import { parse } from 'yaml';
import { readMcpTools } from './mcp-tools.ts';
import { readOpenApi } from './openapi.ts';
import type { OperationList } from './operation.ts';
import { isJson } from './schema.ts';

export type AppDescription = { readonly slug: string } & (
  { readonly kind: 'openapi'; readonly text: string } | { readonly kind: 'mcp'; readonly tools: unknown }
);

export default function read(description: AppDescription): OperationList & { readonly fault?: string } {
  if (description.kind === 'mcp') return readMcpTools(description.tools, description.slug);
  const document = parsed(description.text);
  if (!isJson(document) || (document['openapi'] === undefined && document['swagger'] === undefined))
    return { operations: [], leftOut: 0, fault: 'is not an OpenAPI document.' };
  try {
    return readOpenApi(
      typeof document['openapi'] === 'string' && /^3\.[12]/.test(document['openapi'])
        ? document
        : upgrade(document, '3.1'),
      description.slug,
    );
  } catch {
    return { operations: [], leftOut: 0, fault: 'could not be read as OpenAPI.' };
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    try {
      return parse(text, { maxAliasCount: 50, logLevel: 'silent' }) as unknown;
    } catch {
      return undefined;
    }
  }
}
