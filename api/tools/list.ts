// GET /t: the list of tools, as a page for people and as JSON for programs.
import { z } from 'zod';
import { defineEndpoint, type Endpoint, ignoredFields } from '../http/index.ts';
import { costHeaderFields } from './engine/cost.ts';
import { listPage } from './list-page.ts';
import { listTool, listedTool } from './listed-tool.ts';
import type { ToolRegistry } from './engine/tool-registry.ts';

const html = 'text/html';

export function listEndpoint(toolRegistry: ToolRegistry, baseUrl: string): Endpoint {
  const listed = {
    tools: toolRegistry.tools.map((tool) => listTool(tool, toolRegistry, baseUrl)),
    mcp: `${baseUrl}/mcp`,
  };
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/t',
    operation: 'listTools',
    tag: 'tools',
    summary: 'List tools',
    description:
      'Returns every tool with its parameters, price and availability: as HTML for people, as JSON for programs.',
    query: ignoredFields,
    output: z.object({
      tools: z.array(listedTool),
      mcp: z.string().describe('URL of the same tools over the Model Context Protocol.'),
    }),
    outputDescription: 'The tools.',
    produces: ['application/json', html],
    problemHeaders: costHeaderFields,
    handler: async (_input, { mediaType }) =>
      mediaType === html ? listPage(listed.tools, baseUrl) : Promise.resolve(listed),
  });
}
