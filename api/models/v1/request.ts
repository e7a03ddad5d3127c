// What may be sent to /v1: the usual fields of a chat completion, bounded so that its cost is.
import { z } from 'zod';

const part = z.looseObject({ type: z.string() });
export type ChatPart = z.output<typeof part>;
const message = z.looseObject({
  role: z.string().max(40).describe('Who says it, like user'),
  content: z
    .union([z.string(), z.array(part)])
    .nullish()
    .describe('A text, or a list of parts of the types text and image_url'),
});
export type ChatMessage = z.output<typeof message>;

/** An image of a part; some clients send its address alone. */
export const imagePart = z.union([
  z.string().transform((url) => ({ url, detail: undefined })),
  z.object({ url: z.string(), detail: z.enum(['auto', 'low', 'high']).optional().catch(undefined) }),
]);

export const chatRequest = z
  .looseObject({
    model: z.string().max(200).describe('A model from GET /v1/models'),
    messages: z.array(message).min(1).max(2_000).describe('The conversation'),
    max_tokens: z.int().min(1).nullish().describe('Maximum number of output tokens'),
    max_completion_tokens: z.int().min(1).nullish().describe('The newer name of max_tokens'),
    stream: z.boolean().nullish().describe('Whether to send the answer as server-sent events'),
    tools: z.array(z.unknown()).max(512).nullish().describe('Tools that the model may call'),
    functions: z.array(z.unknown()).max(512).nullish().describe('The older form of tools'),
    response_format: z
      .looseObject({ type: z.string() })
      .nullish()
      .describe('{"type": "json_object"} or {"type": "json_schema", …}'),
    stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
    n: z.literal(1, 'must be 1 or omitted').nullish(),
  })
  .describe('A chat completion: {"model": "...", "messages": [{"role": "user", "content": "..."}]}');
export type ChatRequest = z.output<typeof chatRequest>;

const tokens = z.array(z.int().min(0)).min(1).max(16_384);

export const embeddingsRequest = z
  .looseObject({
    model: z.string().max(200).describe('An embedding model from GET /v1/models'),
    input: z
      .union([
        z.string().min(1),
        z.array(z.string().min(1)).min(1).max(2_048),
        tokens,
        z.array(tokens).min(1).max(2_048),
      ])
      .describe('A text, or a list of texts; or the same as tokens'),
    encoding_format: z.enum(['float', 'base64']).nullish().describe('Form of the embeddings: float or base64'),
    dimensions: z.int().min(1).nullish().describe('Dimensions of the embeddings, where the model lets one choose'),
  })
  .describe('{"model": "...", "input": "..."}');
export type EmbeddingsRequest = z.output<typeof embeddingsRequest>;

/**
 * Fields that change an answer but open no further source of cost; others, such as plugins or other models to fall back
 * on, are dropped.
 */
const passed: ReadonlySet<string> = new Set([
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'stop',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'repetition_penalty',
  'logit_bias',
  'logprobs',
  'top_logprobs',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'functions',
  'function_call',
  'response_format',
  'reasoning_effort',
  'reasoning',
  'verbosity',
  'user',
]);

/** The request as the router gets it. */
export function passOn(
  request: ChatRequest,
  messages: readonly ChatMessage[],
  { upstream, maxTokens }: { readonly upstream: string; readonly maxTokens: number },
): Record<string, unknown> {
  const options = Object.fromEntries(Object.entries(request).filter(([name]) => passed.has(name)));
  return { ...options, model: upstream, messages, max_tokens: maxTokens };
}
