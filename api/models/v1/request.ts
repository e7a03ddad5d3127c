// What a hosted app may send to /v1: the usual fields of a chat completion, bounded so that its cost is.
import { z } from 'zod';
import type { Prompt } from '../../billing/index.ts';

const part = z.looseObject({ type: z.string() });
const message = z.looseObject({ role: z.string().max(40), content: z.union([z.string(), z.array(part)]).nullish() });

export const chatRequest = z
  .looseObject({
    model: z.string().max(200).describe('A model from GET /v1/models'),
    messages: z.array(message).min(1).max(2_000).describe('The conversation'),
    max_tokens: z.int().min(1).nullish().describe('Maximum number of output tokens'),
    max_completion_tokens: z.int().min(1).nullish().describe('The newer name of max_tokens'),
    stream: z.boolean().nullish().describe('Whether to send the answer as server-sent events'),
    stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
    n: z.literal(1, 'must be 1 or omitted').nullish(),
  })
  .describe('A chat completion: {"model": "...", "messages": [{"role": "user", "content": "..."}]}');
export type ChatRequest = z.output<typeof chatRequest>;

export const embeddingsRequest = z
  .looseObject({
    model: z.string().max(200).describe('An embedding model from GET /v1/models'),
    input: z
      .union([z.string().min(1), z.array(z.string().min(1)).min(1).max(2_048)])
      .describe('A text, or a list of texts'),
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
export function passOn(request: ChatRequest, upstream: string, maxTokens: number): Record<string, unknown> {
  const options = Object.fromEntries(Object.entries(request).filter(([name]) => passed.has(name)));
  return { ...options, model: upstream, messages: request.messages, max_tokens: maxTokens };
}

const kinds: ReadonlySet<string> = new Set(['text', 'image_url', 'refusal']);

/** Kinds of content whose cost has no bound that could be reserved. */
export function unboundedParts({ messages }: ChatRequest): string[] {
  const found = messages.flatMap(({ content }) => (Array.isArray(content) ? content.map(({ type }) => type) : []));
  return [...new Set(found.filter((type) => !kinds.has(type)))];
}

/** What the request is priced by: all of it as JSON, so that tools and schemas count too. */
export function promptOf(request: ChatRequest): Prompt {
  const images = request.messages
    .flatMap(({ content }) => (Array.isArray(content) ? content : []))
    .filter(({ type }) => type === 'image_url').length;
  const { messages, tools, functions, response_format } = request;
  return {
    texts: [...messages.map((one) => JSON.stringify(one)), JSON.stringify([tools, functions, response_format])],
    images,
  };
}
