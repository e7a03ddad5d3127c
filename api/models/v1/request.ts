// What may be sent to /v1: the fields of a chat completion whose cost has an upper limit, each by name. A request is passed on
// as it was sent or refused: nothing in it is changed or left out in silence.
import { z } from 'zod';
import type { FieldError } from '../../../lib/problem.ts';
import type { Prompt } from '../../billing/index.ts';
import { createValidationProblem } from '../../http/index.ts';
import { findImageFault } from '../conversation.ts';

export interface TokenLimits {
  readonly default: number;
  readonly max: number;
}

const imageUrl = z.union([
  // Some clients send its address alone.
  z.string(),
  z.strictObject({ url: z.string(), detail: z.enum(['auto', 'low', 'high']).nullish() }),
]);
const textPart = z.strictObject({ type: z.literal('text'), text: z.string() });
const imagePart = z.strictObject({ type: z.literal('image_url'), image_url: imageUrl });
const refusalPart = z.strictObject({ type: z.literal('refusal'), refusal: z.string() });

export type ChatPart = z.output<typeof textPart> | z.output<typeof imagePart> | z.output<typeof refusalPart>;

/** A part of another type could cost more than what is reserved: its price is not that of text. */
function describePartError(types: string): (issue: { readonly input?: unknown }) => string {
  return ({ input }) => {
    const type = typeof input === 'object' && input !== null && 'type' in input ? input.type : undefined;
    return typeof type === 'string'
      ? `must not be ${type.slice(0, 40)}: the cost of such a part has no upper limit. Send only parts of the types ${types}`
      : `must be one of ${types}`;
  };
}

const contentText =
  'A text, or a list of parts: {"type": "text", "text": "…"} or {"type": "image_url", "image_url": {"url": "…"}}.';
const texts = z.union([
  z.string(),
  z.array(z.discriminatedUnion('type', [textPart], { error: describePartError('text') })),
]);
const textsAndImages = z.union([
  z.string(),
  z.array(z.discriminatedUnion('type', [textPart, imagePart], { error: describePartError('text, image_url') })),
]);
const textsAndRefusals = z.union([
  z.string(),
  z.array(z.discriminatedUnion('type', [textPart, refusalPart], { error: describePartError('text, refusal') })),
]);

const calledFunction = z.strictObject({ name: z.string(), arguments: z.string() });
const toolCall = z.discriminatedUnion(
  'type',
  [
    z.strictObject({
      id: z.string().max(1_000),
      type: z.literal('function'),
      function: calledFunction,
      index: z.int().nullish(),
    }),
  ],
  { error: () => 'must be function' },
);
/** What a model thought, as routers return it and want it back with the results of tools. */
const reasoningDetail = z.strictObject({
  type: z.enum(['reasoning.text', 'reasoning.summary', 'reasoning.encrypted']),
  text: z.string().nullish(),
  summary: z.string().nullish(),
  data: z.string().nullish(),
  signature: z.string().nullish(),
  id: z.string().nullish(),
  format: z.string().nullish(),
  index: z.int().nullish(),
});
const thinkingBlock = z.strictObject({
  type: z.enum(['thinking', 'redacted_thinking']),
  thinking: z.string().nullish(),
  signature: z.string().nullish(),
  data: z.string().nullish(),
});

const name = z.string().max(256).nullish();
/** Clients send an answer back with all of its members, also those that are empty. */
const answerMembers = {
  refusal: z.string().nullish(),
  tool_calls: z.array(toolCall).max(512).nullish().describe('The functions that the model called'),
  function_call: calledFunction.nullish(),
  reasoning: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  reasoning_details: z.array(reasoningDetail).max(2_000).nullish(),
  thinking_blocks: z.array(thinkingBlock).max(2_000).nullish(),
  annotations: z.array(z.never()).max(0, 'must be empty').nullish(),
  audio: z.null('must be null').optional(),
};
const message = z.discriminatedUnion(
  'role',
  [
    z.strictObject({ role: z.literal('system'), content: texts.describe('A text.'), name }),
    z.strictObject({ role: z.literal('developer'), content: texts.describe('A text.'), name }),
    z.strictObject({ role: z.literal('user'), content: textsAndImages.describe(contentText), name }),
    z.strictObject({
      role: z.literal('assistant'),
      content: textsAndRefusals.nullish().describe('A text, or a list of parts of the types text and refusal.'),
      name,
      ...answerMembers,
    }),
    z.strictObject({
      role: z.literal('tool'),
      content: textsAndImages.describe(contentText),
      tool_call_id: z.string().max(1_000).describe('The call that produced this result.'),
      name,
    }),
    z.strictObject({ role: z.literal('function'), content: z.string().nullish(), name: z.string().max(256) }),
  ],
  { error: () => 'must be one of system, developer, user, assistant, tool, function' },
);
export type ChatMessage = z.output<typeof message>;

const functionName = z
  .string()
  .regex(/^[A-Za-z0-9_.:-]{1,128}$/, 'must consist of 1 to 128 letters, digits, "_", "-", "." and ":"');
const describedFunction = z.strictObject({
  name: functionName,
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
  strict: z.boolean().nullish(),
});
/** Routers run tools of other types themselves, such as searches and MCP servers, and bill for them. */
const tool = z.discriminatedUnion(
  'type',
  [z.strictObject({ type: z.literal('function'), function: describedFunction })],
  { error: () => 'must be function: tools that the model router runs have a cost without an upper limit' },
);
const namedFunction = z.strictObject({ name: functionName });
const toolChoice = z.union([
  z.enum(['none', 'auto', 'required']),
  z.discriminatedUnion('type', [z.strictObject({ type: z.literal('function'), function: namedFunction })], {
    error: () => 'must be function',
  }),
]);

const responseFormat = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text') }),
  z.strictObject({ type: z.literal('json_object') }),
  z.strictObject({
    type: z.literal('json_schema'),
    json_schema: z.strictObject({
      name: z.string().max(64),
      description: z.string().nullish(),
      schema: z.record(z.string(), z.unknown()).nullish(),
      strict: z.boolean().nullish(),
    }),
  }),
]);

const efforts = z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh']);
const model = z.string().max(200);

/** Fields that change an answer but open no further source of cost. They are passed on as they are. */
const passedFields = {
  temperature: z.number().min(0).max(2).nullish().describe('Sampling temperature, 0 to 2'),
  top_p: z.number().min(0).max(1).nullish().describe('Nucleus sampling, 0 to 1'),
  top_k: z.int().min(0).nullish().describe('Number of tokens to sample from'),
  min_p: z.number().min(0).max(1).nullish(),
  stop: z
    .union([z.string().max(1_000), z.array(z.string().max(1_000)).max(16)])
    .nullish()
    .describe('A text, or up to 16, before which the answer ends'),
  seed: z.int().nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  repetition_penalty: z.number().min(0).max(2).nullish(),
  logit_bias: z.record(z.string(), z.number()).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  tools: z
    .array(tool)
    .max(512)
    .nullish()
    .describe(
      'Functions that the model may call: [{"type": "function", "function": {"name": "…", "parameters": {…}}}]',
    ),
  tool_choice: toolChoice
    .nullish()
    .describe('none, auto, required, or {"type": "function", "function": {"name": "…"}}'),
  parallel_tool_calls: z.boolean().nullish(),
  functions: z.array(describedFunction).max(512).nullish().describe('The older form of tools'),
  function_call: z
    .union([z.enum(['none', 'auto']), namedFunction])
    .nullish()
    .describe('The older form of tool_choice: none, auto, or {"name": "…"}'),
  response_format: responseFormat.nullish().describe('{"type": "json_object"} or {"type": "json_schema", …}'),
  reasoning_effort: efforts
    .nullish()
    .describe('How long a reasoning model thinks: none, minimal, low, medium, high or xhigh'),
  reasoning: z
    // Without a name of its own, generators of Go clients give its type the name of that of reasoning_effort.
    .strictObject({ effort: efforts.meta({ 'x-go-type-name': 'ChatEffort' }) })
    .nullish()
    .describe('{"effort": "low"}: another form of reasoning_effort'),
  verbosity: z.enum(['low', 'medium', 'high']).nullish().describe('low, medium or high'),
  user: z.string().max(512).nullish().describe('Passed on to the provider of the model'),
};
const passed: ReadonlySet<string> = new Set(Object.keys(passedFields));

/** What happens in any case, so nothing is passed on: clients send these as their defaults. */
const impliedFields = {
  n: z.literal(1, 'must be 1 or omitted').nullish().describe('1: one answer'),
  store: z.literal(false, 'must be false or omitted').nullish().describe('false: answers are not stored'),
  service_tier: z.enum(['auto', 'default']).nullish().describe('auto or default'),
  modalities: z.array(z.literal('text', 'must be text')).min(1).max(1).nullish().describe('["text"]'),
};

export function createChatRequestSchema({ default: usual, max }: TokenLimits) {
  const maxTokens = z.int().min(1).max(max, `must be at most ${max}`).nullish();
  return z
    .strictObject({
      model: model.describe('A model from GET /v1/models'),
      messages: z.array(message).min(1).max(2_000).describe('The conversation'),
      max_tokens: maxTokens.describe(
        `Maximum number of output tokens, 1 to ${max}; default ${usual}, then reported in the header X-Max-Tokens`,
      ),
      max_completion_tokens: maxTokens.describe('The newer name of max_tokens'),
      stream: z.boolean().nullish().describe('Whether to send the answer as server-sent events'),
      stream_options: z
        .strictObject({
          include_usage: z.boolean().nullish(),
          include_obfuscation: z.literal(false, 'must be false or omitted').nullish(),
        })
        .nullish()
        .describe('{"include_usage": true}: the last event of the stream has the usage'),
      ...passedFields,
      ...impliedFields,
    })
    .check(({ value: { max_tokens, max_completion_tokens }, issues }) => {
      if ((max_tokens ?? max_completion_tokens) === (max_completion_tokens ?? max_tokens)) return;
      issues.push({
        code: 'custom',
        path: ['max_tokens'],
        message: 'must not differ from max_completion_tokens, which is its newer name',
        params: { fix: 'Send one of the two.' },
        input: max_tokens,
      });
    })
    .describe('A chat completion: {"model": "...", "messages": [{"role": "user", "content": "..."}]}');
}
export type ChatRequest = z.output<ReturnType<typeof createChatRequestSchema>>;

const tokens = z.array(z.int().min(0)).min(1).max(16_384);

export const embeddingsRequest = z
  .strictObject({
    model: model.describe('An embedding model from GET /v1/models'),
    input: z
      .union([
        z.string().min(1),
        z.array(z.string().min(1)).min(1).max(2_048),
        tokens,
        z.array(tokens).min(1).max(2_048),
      ])
      .describe('A text, or a list of texts; or the same as tokens'),
    encoding_format: z.enum(['float', 'base64']).nullish().describe('Form of the embeddings: float or base64'),
    dimensions: z.int().min(1).nullish().describe('Dimensions of the embeddings, if the model supports a choice'),
    user: passedFields.user,
  })
  .describe('{"model": "...", "input": "..."}');
export type EmbeddingsRequest = z.output<typeof embeddingsRequest>;

/** The request as the router gets it. */
export function toRouterBody(
  request: ChatRequest,
  messages: readonly ChatMessage[],
  { upstream, maxTokens }: { readonly upstream: string; readonly maxTokens: number },
): Record<string, unknown> {
  const options = Object.fromEntries(
    Object.entries(request).filter(([field, value]) => passed.has(field) && value !== null),
  );
  return { ...options, model: upstream, messages, max_tokens: maxTokens };
}

/** Messages that the router gets, with images in one form: nothing in them has a cost without an upper limit. @throws Problem (invalid-request) that names each image that is refused */
export function readMessages(messages: readonly ChatMessage[]): ChatMessage[] {
  const errors: FieldError[] = [];
  const read = messages.map((message, index) => {
    const { content } = message;
    if (!Array.isArray(content)) return message;
    const parts = content.map((part, at) => readPart(part, `messages.${index}.content.${at}`, errors));
    return { ...message, content: parts } as ChatMessage;
  });
  if (errors.length > 0) throw createValidationProblem(errors);
  return read;
}

function readPart(part: ChatPart, field: string, errors: FieldError[]): ChatPart {
  if (part.type !== 'image_url') return part;
  const { image_url: image } = part;
  const { url, detail = null } = typeof image === 'string' ? { url: image } : image;
  const fault = findImageFault(url);
  if (fault !== undefined)
    errors.push({
      in: 'body',
      field: typeof image === 'string' ? `${field}.image_url` : `${field}.image_url.url`,
      message: fault,
      fix: 'Send a PNG, JPEG, WebP or GIF image by https or as a data URL.',
    });
  return { type: 'image_url', image_url: detail === null ? { url } : { url, detail } };
}

/** What the request is priced by: all of it as JSON, so that tools and schemas count too, but images as images. */
export function toChatPrompt(
  { tools, functions, response_format }: ChatRequest,
  messages: readonly ChatMessage[],
): Prompt {
  const schemas = [tools, functions, response_format].filter((one) => one !== undefined && one !== null);
  const isImage = ({ type }: ChatPart): boolean => type === 'image_url';
  return {
    texts: [
      ...messages.map(({ content, ...rest }) =>
        JSON.stringify({
          ...rest,
          content: Array.isArray(content) ? content.filter((part) => !isImage(part)) : content,
        }),
      ),
      JSON.stringify(schemas),
    ],
    images: messages.flatMap(({ content }) => (Array.isArray(content) ? content.filter(isImage) : [])).length,
    schemas: schemas.length,
  };
}
