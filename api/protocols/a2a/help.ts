// The help text for a message that names no tool: the tools, and how to run one.
import { z } from 'zod';
import type { Offer } from '../../apps/index.ts';
import type { Tool } from '../../tools/index.ts';

/** Details of the tools that the text names, or else a line for each tool. */
export function helpText({ tools, baseUrl }: Offer, text: string): string {
  const named = toolsIn(tools, text);
  const how = 'To run a tool, send a data part {"tool": "<name>", "arguments": {…}}, or the same JSON as a text part.';
  if (named.length > 0) return [how, ...named.map(inFull)].join('\n\n');
  const lines = tools.map(({ name, title }) => `- ${name}: ${title}`);
  return [
    `${how} Send the name of a tool to see its arguments. Full list: ${baseUrl}/agent-capabilities.json`,
    lines.join('\n'),
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

/** Whether a text names a tool. */
export function namesTool({ tools }: Pick<Offer, 'tools'>, text: string): boolean {
  return toolsIn(tools, text).length > 0;
}

function toolsIn(tools: readonly Tool[], text: string): Tool[] {
  const words = new Set(text.toLowerCase().split(/[^a-z0-9_]+/));
  return tools.filter((tool) => words.has(tool.name));
}

function inFull(tool: Tool): string {
  return `${tool.name}: ${tool.description}\nExample: ${JSON.stringify({ tool: tool.name, arguments: tool.example })}\nArguments: ${JSON.stringify(z.toJSONSchema(tool.input, { io: 'input' }))}`;
}
