// What the agent says to who has named no tool: what it can do, and how it is told to.
import { z } from 'zod';
import type { Offer } from '../apps/offer.ts';
import type { Tool } from '../tools/tool.ts';

/** In full of the tools that the text names, of the others a line. */
export function helpText({ tools, baseUrl }: Offer, text: string): string {
  const words = new Set(text.toLowerCase().split(/[^a-z0-9_]+/));
  const named = tools.filter((tool) => words.has(tool.name));
  const how =
    'Send a data part {"tool": "<name>", "arguments": {…}} to run a tool; the same as JSON in a text part will do.';
  if (named.length > 0) return [how, ...named.map(inFull)].join('\n\n');
  const lines = tools.map(({ name, title }) => `- ${name}: ${title}`);
  return [`${how} Name a tool to hear what it takes. All of it: ${baseUrl}/agent-capabilities.json`, lines.join('\n')]
    .filter((part) => part !== '')
    .join('\n\n');
}

function inFull(tool: Tool): string {
  return `${tool.name}: ${tool.description}\nExample: ${JSON.stringify({ tool: tool.name, arguments: tool.example })}\nArguments: ${JSON.stringify(z.toJSONSchema(tool.input, { io: 'input' }))}`;
}
