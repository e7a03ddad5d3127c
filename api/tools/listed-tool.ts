// A tool as GET /t lists it.
import { z } from 'zod';
import { moneyToNumber, parseMoney } from '../billing/index.ts';
import { ToolReader } from './engine/reading.ts';
import type { ToolRegistry } from './engine/tool-registry.ts';
import { exampleUrl } from './example-url.ts';
import type { Tool } from './tool.ts';

export const listedTool = z.object({
  name: z.string(),
  title: z.string(),
  description: z.string(),
  url: z.string().describe('URL to call it at: GET with query parameters, or POST with JSON.'),
  example: z.string().describe('A working example call.'),
  input_schema: z.record(z.string(), z.unknown()).describe('JSON Schema of its parameters.'),
  aliases: z
    .record(z.string(), z.string())
    .describe('Alternative parameter names that are accepted, and the parameter each stands for.'),
  price_usd: z.number().describe('Price of a call in USD, without its model calls.'),
  asks_models: z.boolean().describe('Whether the billed cost of model calls is added to the price.'),
  artifacts: z.array(z.string()).describe('Media types of the file that it creates; empty if it creates none.'),
  long: z.boolean().describe('Whether it runs as a job to poll.'),
  on: z.boolean().describe('Whether it is available on this installation.'),
  off_because: z.string().optional().describe('Why it is not available, and which setting enables it.'),
});
export type ListedTool = z.output<typeof listedTool>;

export function listTool(tool: Tool, toolRegistry: ToolRegistry, baseUrl: string): ListedTool {
  const off = toolRegistry.offBecause(tool);
  const schema: Record<string, unknown> = z.toJSONSchema(new ToolReader(tool).shown, { io: 'input' });
  delete schema['$schema'];
  return {
    name: tool.name,
    title: tool.title,
    description: tool.description,
    url: `${baseUrl}/t/${tool.name}`,
    example: exampleUrl(tool, baseUrl),
    input_schema: schema,
    aliases: { ...tool.aliases },
    price_usd: moneyToNumber(parseMoney(tool.price)),
    asks_models: tool.asksModels === true,
    artifacts: [...(tool.artifacts ?? [])],
    long: tool.long === true,
    on: off === undefined,
    ...(off === undefined ? {} : { off_because: off }),
  };
}
