// GET /t: the tools, as a page for a person and as JSON for a program.
import { z } from 'zod';
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts';
import { listPage } from './list-page.ts';
import { listTool, listedTool } from './listed-tool.ts';
import type { Toolbox } from './engine/tool-registry.ts';

const html = 'text/html';

export function listEndpoint(toolbox: Toolbox, baseUrl: string): Endpoint {
  const listed = { tools: toolbox.tools.map((tool) => listTool(tool, toolbox, baseUrl)), mcp: `${baseUrl}/mcp` };
  return defineEndpoint({
    method: 'GET',
    path: '/t',
    operation: 'listTools',
    tag: 'tools',
    summary: 'The tools that can be called',
    description: 'As a page for a person, as JSON for a program.',
    output: z.object({
      tools: z.array(listedTool),
      mcp: z.string().describe('The same tools by the Model Context Protocol'),
    }),
    outputDescription: 'The tools.',
    produces: ['application/json', html],
    handler: async (_input, { mediaType }) =>
      mediaType === html ? listPage(listed.tools, baseUrl) : Promise.resolve(listed),
  });
}
