// The tool ask_model: one prompt to one model.
import { z } from 'zod';
import { modelField, promptField, systemField } from '../../../models/request.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

export function askModelTool({ catalog, maxTokens }: ToolServices): Tool {
  return defineTool({
    name: 'ask_model',
    title: 'Ask a model',
    description:
      'Sends one prompt to one language model and returns its answer, with tokens and latency; what the call cost, as the router billed it, is cost_usd of the call. ' +
      'Takes text only, knows nothing of earlier calls, and does not browse: use deep_research for questions about the live web, compare_models to hear several models.',
    input: z.strictObject({
      prompt: promptField.describe('The prompt'),
      model: modelField(catalog)
        .optional()
        .describe(
          `Id of a model, of GET /api/models; default ${catalog.preferred.id}. Models of the tier premium need your own key`,
        ),
      system: systemField.optional().describe('System prompt'),
      max_tokens: z
        .int()
        .min(1)
        .max(maxTokens.max)
        .optional()
        .describe(`Most tokens of the answer, 1 to ${maxTokens.max}; default ${maxTokens.default}`),
    }),
    aliases: { q: 'prompt', question: 'prompt', message: 'prompt', text: 'prompt', system_prompt: 'system' },
    output: z.object({
      model: z.string().describe('The model that answered'),
      answer: z.string().describe('Its answer'),
      latency_ms: z.int().describe('Milliseconds until it had answered'),
      tokens_in: z.int().optional().describe('Tokens of the prompt, as the router counted them'),
      tokens_out: z.int().optional().describe('Tokens of the answer'),
      finish_reason: z.string().optional().describe('Why the answer ends: stop; length when it was cut at max_tokens'),
    }),
    example: { prompt: 'Why is the sky blue? Answer in one sentence.' },
    price: '0',
    asksModels: true,
    openWorld: true,
    limitMs: 180_000,
    async run({ prompt, model, system, max_tokens }, { models }) {
      const reply = await models.ask({ prompt, model, system, maxTokens: max_tokens });
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
