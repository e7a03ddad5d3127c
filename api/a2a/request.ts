// The request in an A2A message: a tool with its arguments, or help.
import type { Message } from '@a2a-js/sdk';
import { z } from 'zod';

const toolCall = z.object({
  tool: z.string().min(1).max(100),
  arguments: z.record(z.string(), z.unknown()).default({}),
});

export type AgentRequest =
  | { readonly kind: 'call'; readonly tool: string; readonly arguments: Readonly<Record<string, unknown>> }
  | { readonly kind: 'help'; readonly text: string };

/** A data part, or a text part with the same JSON, names a tool; anything else is a request for help. */
export function readRequest(message: Message): AgentRequest {
  const texts: string[] = [];
  for (const { content } of message.parts) {
    const given: unknown =
      content?.$case === 'data' ? content.value : content?.$case === 'text' ? parsed(content.value) : undefined;
    const call = toolCall.safeParse(given);
    if (call.success) return { kind: 'call', ...call.data };
    if (content?.$case === 'text') texts.push(content.value);
  }
  return { kind: 'help', text: texts.join('\n').slice(0, 2_000) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
