// The tool ask_model: sends one prompt to one language model.
import { z } from 'zod';
import { modelField, promptField, systemField, temperatureField, topPField } from '../../../models/index.ts';
import { type ToolDependencies, defineTool, type Tool } from '../../tool.ts';

export function createAskModelTool({ catalog, maxTokens }: ToolDependencies): Tool {
  return defineTool({
    name: 'ask_model',
    title: 'Ask a model',
    description:
      'Sends one prompt to one language model and returns its answer with token counts and latency; cost_usd is the cost that the router billed. ' +
      'Text only; images, conversations and JSON by schema are for POST /api/ask. The model does not see earlier calls and does not browse: use deep_research for questions about the live web, and compare_models to ask several models.',
    input: z.strictObject({
      prompt: promptField.describe('Prompt to send to the model.'),
      model: modelField(catalog)
        .optional()
        .describe(
          `Model id from GET /api/models. Default: ${catalog.preferred.id}. Models of the premium tier require your own API key.`,
        ),
      system: systemField.optional().describe('System prompt.'),
      max_tokens: z
        .int()
        .min(1)
        .max(maxTokens.max)
        .optional()
        .describe(`Maximum tokens of the answer, 1 to ${maxTokens.max}. Default: ${maxTokens.default}.`),
      temperature: temperatureField,
      top_p: topPField,
    }),
    aliases: { q: 'prompt', question: 'prompt', message: 'prompt', text: 'prompt', system_prompt: 'system' },
    output: z.object({
      model: z.string().describe('Model that answered.'),
      answer: z.string().describe('Answer of the model.'),
      latency_ms: z.int().describe('Latency in milliseconds.'),
      tokens_in: z.int().optional().describe('Prompt tokens, as the router counted them.'),
      tokens_out: z.int().optional().describe('Answer tokens, as the router counted them.'),
      finish_reason: z
        .string()
        .optional()
        .describe('Why the answer ended: stop, or length when it was cut at max_tokens.'),
    }),
    example: { prompt: 'Why is the sky blue? Answer in one sentence.' },
    price: '0',
    asksModels: true,
    openWorld: true,
    limitMs: 180_000,
    async run({ prompt, model, system, max_tokens, temperature, top_p }, { models }) {
      const options = { temperature, top_p };
      const reply = await models.ask({ prompt, model, system, options, maxTokens: max_tokens });
      return {
        result: {
          model: reply.model,
          answer: reply.text,
          latency_ms: reply.latencyMs,
          tokens_in: reply.tokensIn,
          tokens_out: reply.tokensOut,
          finish_reason: reply.finishReason,
        },
      };
    },
  });
}
