// Conversations: the messages that a model gets, how it is to answer, and the fields of a request that say so. Texts and images bound
// what a call can cost.
import { z } from 'zod';
import { randomUUID } from 'node:crypto';
import { computeMaxCost, type Prompt } from '../billing/index.ts';
import type { Model } from './catalog.ts';
import type { ModelCall } from './metered-router.ts';

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
export function toMessages({
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

/** What a request for ask or compare says to a model. */
export function readConversation(body: Parameters<typeof toMessages>[0] & AnswerOptions): Conversation {
  const { temperature, top_p, stop, response_format, reasoning } = body;
  return { messages: toMessages(body), options: { temperature, top_p, stop, response_format, reasoning } };
}

/** The call that continues a conversation. Its maximum cost is computed here, and reserved before it is made. */
export function createModelCall({
  model,
  messages,
  options,
  maxTokens,
  ...call
}: Conversation &
  Omit<ModelCall, 'id' | 'model' | 'maxCost' | 'body'> & {
    readonly model: Model;
    readonly maxTokens: number;
  }): ModelCall {
  return {
    ...call,
    id: randomUUID(),
    model,
    maxCost: computeMaxCost(model, toPrompt({ messages, options }), maxTokens),
    // Options that are undefined are left out of JSON.
    body: { ...options, model: model.upstream, messages, max_tokens: maxTokens },
  };
}

/** What a conversation is priced by. An image counts for what any image may; its address and its bytes are no text. */
function toPrompt({ messages, options }: Conversation): Prompt {
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

/** Limit of the prompt and of the system prompt, in characters. A prompt at this limit still fits into the body. */
export const maxPromptLength = 200_000;

/** Fields of ask, compare and the tools. */
export const promptField = z
  .string()
  .min(1)
  .max(maxPromptLength)
  .refine((text) => text.trim() !== '', 'must not be blank');

export const systemField = z.string().max(maxPromptLength);

const maxMessages = 500;

const maxImages = 20;

/** Maximum size of an image that is sent as a data URL, in bytes. */
export const maxImageBytes = 3 * 1024 * 1024;

const maxUrlLength = 4_096;

const imageUrl = z
  .string()
  .check(({ value, issues }) => {
    const message = findImageFault(value);
    if (message !== undefined) issues.push({ code: 'custom', message, input: value });
  })
  .describe(
    `https address of the image, which the model router fetches, not this service; or the image as a data URL, at most ${maxImageBytes} bytes. PNG, JPEG, WebP or GIF.`,
  );

const part = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: z.string().max(maxPromptLength).describe('The text.') }),
  z.strictObject({
    type: z.literal('image_url'),
    image_url: z.strictObject({
      url: imageUrl,
      detail: z.enum(['auto', 'low', 'high']).optional().describe('Level of image detail: auto, low or high.'),
    }),
  }),
]);

const message = z.strictObject({
  role: z.enum(['system', 'user', 'assistant']).describe('Role of the author: system, user or assistant.'),
  content: z
    .union([z.string().max(maxPromptLength), z.array(part).min(1).max(200)])
    .describe(
      'A text, or a list of parts: {"type": "text", "text": "…"} or {"type": "image_url", "image_url": {"url": "…"}}.',
    ),
});

const messages = z
  .array(message)
  .min(1)
  .max(maxMessages)
  .refine(
    (all) =>
      all
        .flatMap(({ content }) => (typeof content === 'string' ? [] : content))
        .filter(({ type }) => type === 'image_url').length <= maxImages,
    `must have at most ${maxImages} images`,
  )
  .refine((all) => all.some(({ role }) => role !== 'system'), 'must have a message of the role user or assistant');

const jsonSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must consist of 1 to 64 letters, digits, "_" and "-"')
    .describe('Name of the schema.'),
  description: z.string().max(2_000).optional().describe('Purpose of the answer.'),
  schema: z.record(z.string(), z.unknown()).describe('JSON Schema of the answer.'),
  strict: z.boolean().optional().describe('Whether the answer must follow the schema exactly.'),
});

const responseFormat = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text') }),
  z.strictObject({ type: z.literal('json_object') }),
  z.strictObject({ type: z.literal('json_schema'), json_schema: jsonSchema }),
]);

const stopText = z.string().min(1).max(200);

/** The fields that say what a model gets: a prompt or messages. */
export const conversationFields = {
  prompt: promptField.optional().describe('The prompt. Send prompt or messages, not both.'),
  messages: messages
    .optional()
    .describe(
      `The conversation, up to ${maxMessages} messages with up to ${maxImages} images: [{"role": "user", "content": "…"}]. Send prompt or messages, not both.`,
    ),
  system: systemField.optional().describe('System prompt, placed before everything else'),
};

export const temperatureField = z
  .number()
  .min(0)
  .max(2)
  .optional()
  .describe('Sampling temperature, 0 to 2; default: that of the model');
export const topPField = z
  .number()
  .gt(0, 'must be above 0')
  .max(1)
  .optional()
  .describe('Nucleus sampling, above 0 to 1; default: that of the model');

/** How the model is to answer. A model that does not take one of them refuses the call, or ignores it. */
export const optionFields = {
  temperature: temperatureField,
  top_p: topPField,
  stop: z
    .union([stopText, z.array(stopText).min(1).max(4)])
    .optional()
    .describe('A text, or up to 4, before which the answer ends'),
  response_format: responseFormat
    .optional()
    .describe(
      '{"type": "json_object"}, or {"type": "json_schema", "json_schema": {"name": "…", "schema": {…}}}; default text',
    ),
  reasoning: z
    .strictObject({
      effort: z
        .enum(['none', 'minimal', 'low', 'medium', 'high'])
        .describe('How long the model thinks: none, minimal, low, medium or high.'),
    })
    .optional()
    .describe(
      '{"effort": "low"}: how long a reasoning model thinks. Its reasoning counts as output, within max_tokens',
    ),
};

/** In OpenAPI: one of the two. */
export const promptOrMessagesSchema = { oneOf: [{ required: ['prompt'] }, { required: ['messages'] }] };

interface PromptOrMessages {
  readonly prompt?: unknown;
  readonly messages?: unknown;
}

/** Exactly one of prompt and messages. */
export function checkPromptOrMessages({ value, issues }: z.core.ParsePayload<PromptOrMessages>): void {
  const both = value.prompt !== undefined && value.messages !== undefined;
  if (!both && (value.prompt ?? value.messages) !== undefined) return;
  issues.push({
    code: 'custom',
    path: [both ? 'messages' : 'prompt'],
    message: both ? 'must not be sent together with prompt' : 'is missing: send prompt, or messages',
    input: value,
  });
}

const dataUrl = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$/;
/** Routers take from the end of a path what is behind an address, and pass on films and documents at their own price. */
const notImages =
  /\.(?:3gpp?|aac|aiff?|avi|csv|docx?|flac|flv|html?|m4a|m4v|mkv|mov|mp3|mp4|mpe?g|mpga|oga|ogg|opus|pdf|pptx?|txt|wav|webm|wmv|xlsx?)$/i;

/**
 * What is wrong with the address of an image, as a predicate; undefined where nothing is. Only images whose cost has an upper
 * limit are allowed, so nothing that a model may read as a film or a document.
 */
export function findImageFault(url: string): string | undefined {
  if (url.startsWith('data:')) return findDataFault(url);
  if (url.length > maxUrlLength) return `must be at most ${maxUrlLength} characters long`;
  const address = URL.canParse(url) ? new URL(url) : undefined;
  if (address?.protocol !== 'https:') return 'must be an https URL, or a data URL like data:image/png;base64,…';
  if (address.username !== '' || address.password !== '') return 'must not contain a user name or a password';
  return notImages.test(address.pathname) ? 'must be the address of an image: PNG, JPEG, WebP or GIF' : undefined;
}

function findDataFault(url: string): string | undefined {
  const comma = url.indexOf(',');
  const bytes = Math.floor(((url.length - comma - 1) * 3) / 4);
  if (bytes > maxImageBytes + 2) return `must be an image of at most ${maxImageBytes} bytes`;
  return dataUrl.test(url)
    ? undefined
    : 'must be base64 of a PNG, JPEG, WebP or GIF image, like data:image/png;base64,…';
}
