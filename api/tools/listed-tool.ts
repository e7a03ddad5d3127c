// A tool as GET /t lists it.
import { z } from 'zod';
import { moneyToNumber, parseMoney } from '../billing/ledger/money.ts';
import { ToolReader } from './engine/reading.ts';
import type { Toolbox } from './engine/tool-registry.ts';
import { exampleUrl } from './example-url.ts';
import type { Tool } from './tool.ts';

export const listedTool = z.object({
  name: z.string(),
  title: z.string(),
  description: z.string(),
  url: z.string().describe('Where it is called, by GET with query parameters or by POST with JSON'),
  example: z.string().describe('A call that works'),
  input_schema: z.record(z.string(), z.unknown()).describe('JSON Schema of its parameters'),
  aliases: z
    .record(z.string(), z.string())
    .describe('Other names of parameters that are taken, and what they stand for'),
  price_usd: z.number().describe('What a call costs, beside its model calls'),
  asks_models: z.boolean().describe('Whether model calls come on top of the price, as they are billed'),
  artifacts: z.array(z.string()).describe('Media types of the file that it makes; empty when it makes none'),
  long: z.boolean().describe('Whether it runs as a job that is polled'),
  on: z.boolean().describe('Whether it works on this installation'),
  off_because: z.string().optional().describe('Why it does not, and which value to set'),
});
export type ListedTool = z.output<typeof listedTool>;

export function listTool(tool: Tool, toolbox: Toolbox, baseUrl: string): ListedTool {
  const off = toolbox.offBecause(tool);
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
