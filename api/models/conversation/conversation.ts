// What a model is asked: messages, and how it is to answer. Its texts and images bound what the call can cost.
import type { Prompt } from '../../billing/index.ts';

/** An image of a message: an https address, which the router or the model's maker fetches, or the image itself as a data URL. */
export interface ImagePart {
  readonly type: 'image_url';
  readonly image_url: { readonly url: string; readonly detail?: 'auto' | 'low' | 'high' | undefined };
}

export type MessagePart = { readonly type: 'text'; readonly text: string } | ImagePart;

export interface Message {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string | readonly MessagePart[];
}

/** How the model is to answer. Fields have the names under which routers take them. */
export interface AnswerOptions {
  readonly temperature?: number | undefined;
  readonly top_p?: number | undefined;
  readonly stop?: string | readonly string[] | undefined;
  readonly response_format?: Readonly<Record<string, unknown>> | undefined;
  readonly reasoning?: { readonly effort: string } | undefined;
}

export interface Conversation {
  readonly messages: readonly Message[];
  readonly options?: AnswerOptions | undefined;
}

/** A prompt, or messages, with a system prompt before them. */
export function conversationOf({
  prompt,
  messages,
  system,
}: {
  readonly prompt?: string | undefined;
  readonly messages?: readonly Message[] | undefined;
  readonly system?: string | undefined;
}): readonly Message[] {
  return [
    ...(system === undefined ? [] : [{ role: 'system' as const, content: system }]),
    ...(messages ?? []),
    ...(prompt === undefined ? [] : [{ role: 'user' as const, content: prompt }]),
  ];
}

/** What a conversation is priced by. An image counts for what any image may; its address and its bytes are no text. */
export function promptOfConversation({ messages, options }: Conversation): Prompt {
  const parts = messages.flatMap(({ content }) =>
    typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content,
  );
  const schema = options?.response_format;
  return {
    texts: [
      ...parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])),
      ...(schema === undefined ? [] : [JSON.stringify(schema)]),
    ],
    images: parts.filter(({ type }) => type === 'image_url').length,
    schemas: schema === undefined ? 0 : 1,
  };
}
