// The fields of ask and compare that say what a model is asked, and how it is to answer.
import { z } from 'zod';
import { maxPromptLength, promptField, systemField } from '../request.ts';
import type { AnswerOptions } from './conversation.ts';
import { imageFault, maxImageBytes } from './images.ts';

const maxMessages = 500;
const maxImages = 20;

const imageUrl = z
  .string()
  .check(({ value, issues }) => {
    const message = imageFault(value);
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
      detail: z.enum(['auto', 'low', 'high']).optional().describe('How closely the model looks: auto, low or high.'),
    }),
  }),
]);

const message = z.strictObject({
  role: z.enum(['system', 'user', 'assistant']).describe('Who says it: system, user or assistant.'),
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
  description: z.string().max(2_000).optional().describe('What the answer is for.'),
  schema: z.record(z.string(), z.unknown()).describe('JSON Schema of the answer.'),
  strict: z.boolean().optional().describe('Whether the answer must follow the schema exactly.'),
});

const responseFormat = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text') }),
  z.strictObject({ type: z.literal('json_object') }),
  z.strictObject({ type: z.literal('json_schema'), json_schema: jsonSchema }),
]);

const stopText = z.string().min(1).max(200);

/** What is said: a prompt or messages. */
export const saidFields = {
  prompt: promptField.optional().describe('The prompt. Send prompt or messages, not both.'),
  messages: messages
    .optional()
    .describe(
      `The conversation, up to ${maxMessages} messages with up to ${maxImages} images: [{"role": "user", "content": "…"}]. Send prompt or messages, not both.`,
    ),
  system: systemField.optional().describe('System prompt, put before everything else'),
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
      '{"effort": "low"}: how long a reasoning model thinks. What it thinks counts as output, within max_tokens',
    ),
};

/** Those of a body that are options. */
export function optionsOf({ temperature, top_p, stop, response_format, reasoning }: AnswerOptions): AnswerOptions {
  return { temperature, top_p, stop, response_format, reasoning };
}

/** In OpenAPI: one of the two. */
export const promptOrMessages = { oneOf: [{ required: ['prompt'] }, { required: ['messages'] }] };

interface Said {
  readonly prompt?: unknown;
  readonly messages?: unknown;
}

/** Exactly one of prompt and messages. */
export function checkSaid({ value, issues }: z.core.ParsePayload<Said>): void {
  const both = value.prompt !== undefined && value.messages !== undefined;
  if (!both && (value.prompt ?? value.messages) !== undefined) return;
  issues.push({
    code: 'custom',
    path: [both ? 'messages' : 'prompt'],
    message: both ? 'must not be sent together with prompt' : 'is missing: send prompt, or messages',
    input: value,
  });
}
