// The request in an A2A message: a tool with its arguments, in any of the forms that agents write, or words.
import type { Message } from '@a2a-js/sdk';
import { z } from 'zod';
import type { Tool } from '../../tools/index.ts';

const fields = z.record(z.string(), z.unknown());
const named = z.looseObject({ tool: z.string().min(1).max(100), arguments: fields.optional() });

export type AgentRequest =
  | { readonly kind: 'call'; readonly tool: string; readonly arguments: Readonly<Record<string, unknown>> }
  | { readonly kind: 'words'; readonly text: string };

/**
 * A data part, or a text with the same JSON, alone or in a fenced block, names a tool. Its arguments are in `arguments`
 * or beside the name; without a name, they have to be those of a single tool.
 */
export function readRequest(message: Message, tools: readonly Tool[] = []): AgentRequest {
  const texts: string[] = [];
  for (const { content } of message.parts) {
    const call = content?.$case === 'data' ? callOf(content.value, tools) : callIn(content, tools);
    if (call !== undefined) return call;
    if (content?.$case === 'text') texts.push(content.value);
    if (content?.$case === 'data') texts.push(JSON.stringify(content.value));
  }
  return { kind: 'words', text: texts.join('\n').slice(0, 8_000) };
}

/** The first JSON of a text that is a call: all of it, or a fenced block. */
function callIn(content: Message['parts'][number]['content'], tools: readonly Tool[]): AgentRequest | undefined {
  if (content?.$case !== 'text') return undefined;
  const blocks = [...content.value.matchAll(/```(?:json[c5]?)?[ \t]*\r?\n(.*?)```/gis)].map(([, block = '']) => block);
  for (const text of [content.value, ...blocks]) {
    const call = callOf(parsed(text), tools);
    if (call !== undefined) return call;
  }
  return undefined;
}

function callOf(given: unknown, tools: readonly Tool[]): AgentRequest | undefined {
  const call = named.safeParse(given);
  if (call.success) {
    const { tool, arguments: inside, ...beside } = call.data;
    return { kind: 'call', tool, arguments: { ...beside, ...inside } };
  }
  const alone = fields.safeParse(given);
  const tool = alone.success ? onlyToolOf(Object.keys(alone.data), tools) : undefined;
  return tool === undefined ? undefined : { kind: 'call', tool: tool.name, arguments: alone.data ?? {} };
}

/** The only tool with these fields that needs no others: by their own names first, then by their other names too. */
function onlyToolOf(names: readonly string[], tools: readonly Tool[]): Tool | undefined {
  if (names.length === 0) return undefined;
  for (const aliased of [false, true]) {
    const fitting = tools.filter((tool) => takes(tool, names, aliased));
    if (fitting.length > 0) return fitting.length === 1 ? fitting[0] : undefined;
  }
  return undefined;
}

function takes({ input, aliases }: Tool, names: readonly string[], aliased: boolean): boolean {
  const meant = names.map((name) => (aliased ? (aliases[name] ?? name) : name));
  if (!meant.every((name) => Object.hasOwn(input.shape, name))) return false;
  return Object.entries(input.shape).every(
    ([name, field]) => meant.includes(name) || (field as z.ZodType).safeParse(undefined).success,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
